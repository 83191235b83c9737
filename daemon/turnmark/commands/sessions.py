"""`turnmark sessions`: which conversations there are."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import Fields, local_time

_HEADING = ("SESSION", "AGENT", "TURNS", "TIPS", "OWED", "UPDATED", "TITLE", "PROJECT")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--agent", metavar="NAME", help="only sessions of this agent")
    parser.add_argument("--project", metavar="PATH", help="only sessions of this project")


def run(invocation: Invocation) -> int:
    """Prints a line for each session."""
    options = invocation.options
    filters = {"agent": options.agent, "project": options.project}
    answer = invocation.whole("session.list", "sessions", **filters)
    if invocation.as_json:
        invocation.print_json(answer)
    elif not answer["sessions"]:
        invocation.print("There is no session yet.")
    else:
        invocation.print_table([_HEADING, *(_row(row) for row in answer["sessions"])])
    return 0


def _row(session: Fields) -> list[str]:
    return [
        session["session"],
        session.get("agent") or "-",
        str(session["turns"]),
        str(session["tips"]),
        str(session["owed_turns"]),
        local_time(session.get("updated_at")),
        session.get("title") or "-",
        session.get("project") or "",
    ]
