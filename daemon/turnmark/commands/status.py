"""`turnmark status`: first whether all is well and what to do if not, then the numbers."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import Fields, plain
from turnmark.terminal import one_line, table

# Where a daemon puts its sentences about what a person should do; empty where all is well.
_ADVICE = "what_to_do"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares that there are no arguments of its own."""
    del parser


def run(invocation: Invocation) -> int:
    """Prints the sentence and the table; 0 also where something is to be done."""
    answer = invocation.call("status")
    if invocation.as_json:
        invocation.print_json(answer)
        return 0
    advice = _sentences(answer.get(_ADVICE))
    first, *others = advice or ["All is well; nothing to do."]
    paint = invocation.ink.warning if advice else invocation.ink.good
    invocation.print(paint(one_line(first)), *(one_line(other) for other in others), "")
    invocation.print(*table(list(_rows(answer))))
    return 0


def _sentences(said: Any) -> list[str]:
    if not said:
        return []
    return [said] if isinstance(said, str) else [str(sentence) for sentence in said]


def _rows(answer: Fields) -> Iterable[tuple[str, str]]:
    """Yields a row for each fact; one that holds facts of its own begins with their name."""
    for name, value in answer.items():
        if name != _ADVICE:
            yield name.replace("_", " "), plain(value)
