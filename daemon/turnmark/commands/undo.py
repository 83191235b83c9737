"""`turnmark undo REVISION`: takes back exactly what one revision changed."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import count


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "revision", type=_revision, metavar="REVISION", help="its number, as in turnmark log"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="also blocks that were changed since; leave those that others rest on",
    )


def _revision(word: str) -> int:
    """Returns the number that was given, for argparse's `type`."""
    try:
        return int(word)
    except ValueError:
        message = f"{word!r} is no number; `turnmark log` lists the revisions"
        raise argparse.ArgumentTypeError(message) from None


def run(invocation: Invocation) -> int:
    """Takes the revision back and prints the blocks; the undo is a revision, too."""
    options = invocation.options
    answer = invocation.call("memory.undo", revision=options.revision, force=options.force or None)
    if invocation.as_json:
        invocation.print_json(answer)
        return 0
    blocks = answer["blocks"]
    invocation.print(
        f"Revision {options.revision} is taken back, as revision {answer['revision']}: "
        f"{count(len(blocks), 'block')}.",
        *blocks,
    )
    return 0
