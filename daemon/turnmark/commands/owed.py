"""`turnmark owed`: what memory has not dealt with, tip by tip."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import Fields, count, local_time

_HEADING = ("SESSION", "BRANCH", "TIP", "TURNS", "TOKENS", "OLDEST", "STATE", "REASON")
_HINTS = {
    "backlog": "backlog waits until it is asked for: `turnmark flush --backlog`",
    "removed": "removed blocks stay away until they are asked for: `turnmark flush --removed`",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--session", metavar="SESSION", help="only this session")
    parser.add_argument("--ids", action="store_true", help="name the turns, too")


def run(invocation: Invocation) -> int:
    """Prints a line for each tip and state, `*` at a session's head, then the totals."""
    options = invocation.options
    filters = {"session": options.session, "ids": options.ids or None}
    answer = invocation.whole("memory.owed", "tips", **filters)
    if invocation.as_json:
        invocation.print_json(answer)
        return 0
    if not answer["tips"]:
        invocation.print("Nothing is owed.")
        return 0
    invocation.print_table([_HEADING, *(_row(tip) for tip in answer["tips"])])
    for tip in answer["tips"] if options.ids else ():
        invocation.print("", f"{tip['session']} {tip['tip']}:", *(tip.get("turns") or ()))
    total = f"{count(answer['turns'], 'turn')}, {count(answer['tokens'], 'token')} owed in all"
    states = {tip["state"] for tip in answer["tips"]}
    invocation.print("", total, *(hint for state, hint in _HINTS.items() if state in states))
    return 0


def _row(tip: Fields) -> list[str]:
    return [
        tip["session"],
        tip["branch"],
        f"{tip['tip']} *" if tip.get("head") else tip["tip"],
        str(tip["n"]),
        str(tip["tokens"]),
        local_time(tip.get("oldest")),
        tip["state"],
        _reason(tip),
    ]


def _reason(tip: Fields) -> str:
    """Returns why a tip is in its state, nothing where the state says it.

    Of what failed: what the last attempt said, when it was, and with which writer.
    """
    reason: str = tip.get("reason") or ""
    if failed := tip.get("failed_at"):
        cause = tip["cause"] if tip["state"] == "parked" else reason
        return f"{cause} ({local_time(failed)}, {tip['failed_with']})"
    return "" if reason == tip["state"] else reason
