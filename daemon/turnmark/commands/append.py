"""`turnmark append SESSION TEXT`: one turn."""

from __future__ import annotations

import argparse
import os
from typing import Any

from turnmark.commands.invocation import Invocation, WrongUse, text_of, time_of, words_of

# A client's idempotency key: long enough that no two appends ever share one.
_KEY_BYTES = 16


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("session", metavar="SESSION", help="the session; a new one is opened")
    parser.add_argument("text", metavar="TEXT", help="what was said; - reads standard input")
    parser.add_argument(
        "--role",
        choices=("user", "assistant", "system", "tool"),
        default="user",
        metavar="R",
        help="who said it: user (the default), assistant, system or tool",
    )
    parser.add_argument("--after", metavar="ID", help="the turn before it; without: the head")
    parser.add_argument("--root", action="store_true", help="begin a new root, after nothing")
    parser.add_argument("--id", metavar="ID", help="the turn's own id; without: from its words")
    parser.add_argument("--speaker", metavar="NAME", help="the name of who said it")
    parser.add_argument(
        "--time", type=time_of, metavar="TIME", help="when, as 2026-08-09T14:02:00+02:00"
    )


def run(invocation: Invocation) -> int:
    """Appends the turn and prints its id."""
    options = invocation.options
    if options.root and options.after is not None:
        raise WrongUse("--root and --after say different places; give one of them")
    params: dict[str, Any] = {
        "session": text_of(options.session, "SESSION"),
        "turns": [_turn(invocation)],
        "key": os.urandom(_KEY_BYTES).hex(),
    }
    if options.root or options.after is not None:
        params["after"] = options.after
    answer = invocation.client().call("turn.append", params)
    if answer.get("forgotten"):
        invocation.note("turnmark: this turn was forgotten before; its text was not stored again")
    if invocation.as_json:
        invocation.print_json(answer)
    else:
        invocation.print(*answer["turns"])
    return 0


def _turn(invocation: Invocation) -> dict[str, Any]:
    options = invocation.options
    if options.text == "-":
        # The newline that ends a last line is the shell's, not the speaker's.
        text = invocation.read_stdin().removesuffix("\n").removesuffix("\r")
    else:
        text = words_of(options.text, "TEXT")
    turn: dict[str, Any] = {"role": options.role, "text": text}
    if options.id is not None:
        turn["id"] = text_of(options.id, "ID")
    if options.speaker is not None:
        turn["speaker"] = {"name": text_of(options.speaker, "NAME")}
    if options.time is not None:
        turn["time"] = options.time
    return turn
