"""`turnmark flush`: writes what is owed now; what may cost much only after it was said how much."""

from __future__ import annotations

import argparse
from typing import Any

from turnmark.commands.invocation import Invocation, WrongUse, time_of
from turnmark.commands.wording import Fields, count

# Of these there may be years, and a model is paid by the token.
_COSTLY = frozenset({"backlog", "rewrite"})


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("--session", metavar="SESSION", help="only this session")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be written")
    parser.add_argument("--backlog", action="store_true", help="older turns that were held, too")
    parser.add_argument("--removed", action="store_true", help="turns of removed blocks, too")
    parser.add_argument("--rewrite", metavar="WRITER", help="offer again what WRITER wrote")
    parser.add_argument("--since", type=time_of, metavar="TIME", help="only turns from then on")
    parser.add_argument("--no-wait", action="store_true", help="return once the plan is made")
    parser.add_argument("--yes", action="store_true", help="write old turns without asking")


def run(invocation: Invocation) -> int:
    """Asks for the flush and prints what came of it; 1 where a batch failed."""
    options = invocation.options
    if options.since is not None and options.rewrite is None:
        raise WrongUse("--since bounds what is written anew; add --rewrite WRITER")
    params = _params(options)
    if not _agreed(invocation, params):
        return 0
    if options.dry_run:
        params["dry_run"] = True
    answer = invocation.call_shown("writing", "memory.flush", **params)
    if invocation.as_json:
        invocation.print_json(answer)
    else:
        _print(invocation, answer)
    return 1 if answer["failures"] else 0


def _agreed(invocation: Invocation, params: dict[str, Any]) -> bool:
    """Says what old turns would cost before a writer gets them, and asks where somebody is there.

    A machine, and whoever pipes, has `--dry-run` for that and is not asked.
    """
    options = invocation.options
    if options.dry_run or invocation.as_json or not _COSTLY.intersection(params):
        return True
    plan = invocation.call("memory.flush", **params, dry_run=True)
    if not plan["turns"]:
        return True  # the flush says so
    invocation.note(written(plan, "About to write"))
    if options.yes or not invocation.stdin.isatty():
        return True
    if invocation.is_agreed("Write them now?"):
        return True
    invocation.print("Nothing was written.")
    return False


def _params(options: argparse.Namespace) -> dict[str, Any]:
    wanted = {
        "session": options.session,
        "backlog": options.backlog or None,
        "removed": options.removed or None,
        "rewrite": options.rewrite,
        "since": options.since,
        "wait": False if options.no_wait else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def _print(invocation: Invocation, answer: Fields) -> None:
    options = invocation.options
    if options.dry_run or options.no_wait:
        invocation.print(written(answer, "Would write" if options.dry_run else "Planned"))
    else:
        print_written(invocation, answer)
    if options.rewrite is not None and not answer["turns"] and not answer["left"]:
        invocation.print(f"No turn here was settled by a writer called {options.rewrite}.")


def print_written(invocation: Invocation, answer: Fields) -> None:
    """Prints what a flush wrote, what it left, and why."""
    invocation.print(written(answer))
    if answer["left"]:
        invocation.print(f"{count(answer['left'], 'turn')} left; turnmark owed says why.")
    for failure in answer["failures"]:
        place = f"{failure['session']} {failure['branch']}"
        invocation.print(invocation.ink.warning(f"failed: {place}: {failure['reason']}"))


def written(answer: Fields, verb: str = "Wrote") -> str:
    """Returns what a flush wrote, or would write, in a sentence."""
    if not answer["batches"] and not answer["left"] and not answer["failures"]:
        return "Nothing to write."
    if verb == "Wrote" and not answer["turns"]:
        return "Nothing was written."
    batches = count(answer["batches"], "batch")
    sizes = f"{count(answer['turns'], 'turn')}, {count(answer['tokens'], 'token')}"
    if verb != "Wrote":  # where forks and failures part the turns shows while they are written
        return f"{verb} {sizes}, in at least {batches}."
    blocks = f", {count(answer['blocks'], 'block')}" if answer.get("blocks") else ""
    return f"{verb} {batches}: {sizes}{blocks}."
