"""`turnmark log`: the revisions of the memory, newest first: what changed, when and why."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation, whole_number
from turnmark.commands.wording import Fields, count, local_time

_HEADING = ("REVISION", "AT", "BLOCKS", "TOPICS", "WHY")
_PAGE_LIMIT = 1_000
_DEFAULT_LIMIT = 20
_NAMED_LIMIT = 3
"""Topics that a line names; the others are counted."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "-n",
        type=whole_number,
        default=_DEFAULT_LIMIT,
        metavar="N",
        help=f"the last N revisions ({_DEFAULT_LIMIT}); 0 for all",
    )


def run(invocation: Invocation) -> int:
    """Prints a line for each revision; the number is what `turnmark undo` takes."""
    wanted = invocation.options.n
    revisions: list[Fields] = []
    for page in invocation.pages("memory.history", limit=min(wanted or _PAGE_LIMIT, _PAGE_LIMIT)):
        revisions += page["revisions"]
        if wanted and len(revisions) >= wanted:
            break
    shown = revisions[:wanted] if wanted else revisions
    if invocation.as_json:
        invocation.print_json({"revisions": shown})
    elif not shown:
        invocation.print("Memory has no revision yet.")
    else:
        invocation.print_table([_HEADING, *(_row(revision) for revision in shown)])
    return 0


def _row(revision: Fields) -> list[str]:
    topics = list(revision["topics"])
    named = ", ".join(topics[:_NAMED_LIMIT])
    if len(topics) > _NAMED_LIMIT:
        named += f" and {count(len(topics) - _NAMED_LIMIT, 'topic')} more"
    return [
        str(revision["revision"]),
        local_time(revision["at"]),
        str(len(revision["blocks"])),
        named or "-",
        revision["cause"],
    ]
