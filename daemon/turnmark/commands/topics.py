"""`turnmark topics`: what memory has a page about."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import Fields, local_time

_HEADING = ("TOPIC", "BLOCKS", "TOKENS", "UPDATED", "ABOUT")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares that there are no arguments of its own."""
    del parser


def run(invocation: Invocation) -> int:
    """Prints a line for each topic."""
    answer = invocation.whole("memory.topics", "topics")
    if invocation.as_json:
        invocation.print_json(answer)
    elif not answer["topics"]:
        invocation.print("Memory has no topic yet.")
    else:
        invocation.print_table([_HEADING, *(_row(topic) for topic in answer["topics"])])
    return 0


def _row(topic: Fields) -> list[str]:
    return [
        topic["topic"],
        str(topic["blocks"]),
        str(topic["tokens"]),
        local_time(topic.get("updated_at")),
        topic.get("about") or "",
    ]
