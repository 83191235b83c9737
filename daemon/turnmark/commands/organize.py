"""`turnmark organize`: the night's work, now."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation, WrongUse
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
    parser.add_argument(
        "--dry-run", action="store_true", help="with --uncited: only say how much that is"
    )
    parser.add_argument("--yes", action="store_true", help="offer turns again without asking")
    decision = parser.add_mutually_exclusive_group()
    decision.add_argument("--approve", metavar="PASS", help="do the pass that was held")
    decision.add_argument("--discard", metavar="PASS", help="drop the pass that was held")


def run(invocation: Invocation) -> int:
    """Asks for the passes and prints their report."""
    options = invocation.options
    if options.dry_run and not options.uncited:
        raise WrongUse("--dry-run says what --uncited would cost; add that")
    if options.uncited and (options.approve or options.discard):
        raise WrongUse("decide about what is held first; then organize --uncited")
    if options.dry_run:
        return _print_cost(invocation)
    if options.uncited and not _agreed(invocation):
        return 0
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


def _cost(invocation: Invocation) -> Fields:
    answer: Fields = invocation.call("memory.organize", uncited=True, dry_run=True)
    return answer


def _print_cost(invocation: Invocation) -> int:
    answer = _cost(invocation)
    if invocation.as_json:
        invocation.print_json(answer)
    else:
        invocation.print(_again(answer["uncited"], "Would offer"))
    return 0


def _agreed(invocation: Invocation) -> bool:
    """Says what turns offered again cost, and asks where somebody is there, as `flush` does."""
    options = invocation.options
    if invocation.as_json:
        return True
    uncited = _cost(invocation)["uncited"]
    invocation.note(_again(uncited, "About to offer"))
    if options.yes or not uncited["turns"] or not invocation.stdin.isatty():
        return True
    if invocation.is_agreed("Offer them to the writer now?"):
        return True
    invocation.print("Nothing was done.")
    return False


def _again(uncited: Fields, verb: str) -> str:
    if not uncited["turns"]:
        return "No turns to offer again."
    sizes = f"{count(uncited['turns'], 'turn')}, {count(uncited['tokens'], 'token')}"
    return f"{verb} {sizes} to the writer again."


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
