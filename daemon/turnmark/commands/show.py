"""`turnmark show REF`: one block, source, turn or topic, with where it comes from."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation, text_of
from turnmark.commands.wording import plain, source
from turnmark.terminal import table


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "ref",
        metavar="REF",
        help="a block (b-…), a source (s-…), a topic, SESSION#ID or a turn's id",
    )


def run(invocation: Invocation) -> int:
    """Prints the text, then what is known about it."""
    answer = invocation.call("memory.show", ref=text_of(invocation.options.ref, "REF"))
    if invocation.as_json:
        invocation.print_json(answer)
        return 0
    invocation.print_text(answer["text"] or "")
    facts = {name: value for name, value in answer.items() if name not in {"text", "sources"}}
    known = [(name, plain(value)) for name, value in facts.items() if value not in (None, [], {})]
    sources = [("source", source(one)) for one in answer.get("sources") or ()]
    invocation.print("", *(invocation.ink.dim(line) for line in table(known + sources)))
    return 0
