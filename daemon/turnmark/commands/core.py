"""`turnmark core`: the page that is always in an agent's context."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import count


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares that there are no arguments of its own."""
    del parser


def run(invocation: Invocation) -> int:
    """Prints the page itself; on a terminal its size and what did not fit follow beside it."""
    answer = invocation.call("memory.core")
    if invocation.as_json:
        invocation.print_json(answer)
        return 0
    invocation.print_text(answer["text"])
    size = f"{count(answer['tokens'], 'token')} ({answer['counter']})"
    if left_out := answer["left_out"]:
        size += f"; {count(len(left_out), 'block')} did not fit: {', '.join(left_out)}"
    invocation.note(size)
    return 0
