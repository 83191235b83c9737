"""`turnmark organize`: the night's work, now."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation
from turnmark.commands.wording import Fields, count, plain
from turnmark.terminal import one_line

_TITLES = {"changed": "blocks changed"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--no-wait", action="store_true", help="return once it has begun")
    parser.add_argument(
        "--uncited",
        action="store_true",
        help="offer turns again that another writer dealt with and no block cites",
    )
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument("--approve", metavar="PASS", help="do the pass that was held")
    decision.add_argument("--discard", metavar="PASS", help="drop the pass that was held")


def run(invocation: Invocation) -> int:
    """Asks for the passes and prints their report."""
    options = invocation.options
    wanted = {
        "wait": False if options.no_wait else None,
        "uncited": options.uncited or None,
        "approve": options.approve,
        "discard": options.discard,
    }
    params = {name: value for name, value in wanted.items() if value is not None}
    answer = invocation.call_shown("organizing", "memory.organize", **params)
    if invocation.as_json:
        invocation.print_json(answer)
    else:
        _print(invocation, answer)
    return 0


def _print(invocation: Invocation, answer: Fields) -> None:
    held = answer.get("held")
    report: list[str] = answer.get("report") or []
    facts = {
        _TITLES.get(name, name): value
        for name, value in answer.items()
        if name not in ("held", "report")
    }
    if core := facts.get("core"):
        facts["core"] = f"{count(core['tokens'], 'token')}, {count(len(core['blocks']), 'block')}"
    invocation.print_table([("WHAT", "RESULT"), *((key, plain(facts[key])) for key in facts)])
    if report:
        invocation.print("", *(one_line(line) for line in report))
    elif held:
        name, of = held["pass"], plain(held["blocks"])
        invocation.print(
            "",
            f"Held: {name} would remove {plain(held['removes'])} of {of} blocks.",
            f"Look at it, then: turnmark organize --approve {name} (or --discard {name})",
        )
