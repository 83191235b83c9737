"""`turnmark export SESSION`: a session as lines of JSON that `import` takes back."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation, text_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("session", metavar="SESSION", help="the session to write out")


def run(invocation: Invocation) -> int:
    """Prints the export's lines as they come, a page at a time."""
    session = text_of(invocation.options.session, "SESSION")
    for line in invocation.client().export(session):
        invocation.print(line)
    return 0
