"""`turnmark remember TEXT`: one fact, in memory at once."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation, text_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("text", metavar="TEXT", help="one paragraph; - reads standard input")
    parser.add_argument("--topic", metavar="TOPIC", help="where it goes; without: where it belongs")
    parser.add_argument("--session", metavar="SESSION", help="it rests on the last that was said")
    parser.add_argument("--turn", metavar="ID", help="it rests on this turn")
    parser.add_argument("--pin", action="store_true", help="keep it on the core page")


def run(invocation: Invocation) -> int:
    """Writes the block and prints its id, its topic and the revision."""
    options = invocation.options
    text = invocation.read_stdin() if options.text == "-" else text_of(options.text, "TEXT")
    answer = invocation.call(
        "memory.remember",
        text=text.strip(),
        topic=options.topic,
        session=options.session,
        turn=options.turn,
        pin=options.pin or None,
    )
    if invocation.as_json:
        invocation.print_json(answer)
    else:
        invocation.print(f"{answer['block']} in {answer['topic']} (revision {answer['revision']})")
    return 0
