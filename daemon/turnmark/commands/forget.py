"""`turnmark forget …`: shows what would be erased for ever, asks, erases, and proves it."""

from __future__ import annotations

import argparse

from turnmark.commands.invocation import Invocation, WrongUse, text_of
from turnmark.commands.wording import Fields, count

_SHOWN = 20
_AIMS = {
    "block": ("BLOCK", "a block, and the turns that it cites"),
    "turn": ("TURN", "a turn: its label, SESSION#ID or id"),
    "session": ("SESSION", "a session, with what only it reaches"),
    "speaker": ("SPEAKER", "all that somebody said: an id, or a whole name"),
    "query": ("TEXT", "what `turnmark recall TEXT` finds and has all its words"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    aim = parser.add_mutually_exclusive_group(required=True)
    for name, (metavar, what) in _AIMS.items():
        aim.add_argument(f"--{name}", metavar=metavar, help=what)
    parser.add_argument(
        "--keep-evidence",
        action="store_true",
        help="take the blocks out of memory, but keep the turns",
    )
    parser.add_argument(
        "--everywhere",
        action="store_true",
        help="also the same words in other sessions, and what a session shares with others",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("--confirm", metavar="CODE", help="erase what a dry run named with CODE")
    parser.add_argument("--yes", action="store_true", help="erase without asking")


def run(invocation: Invocation) -> int:
    """Shows what would go; erases what was agreed to."""
    options = invocation.options
    if options.dry_run and (options.confirm or options.yes):
        raise WrongUse("--dry-run erases nothing; leave it out, or --yes and --confirm")
    aim = {name: _given(getattr(options, name), name) for name in _AIMS}
    asked = {
        **aim,
        "evidence": False if options.keep_evidence else None,
        "everywhere": options.everywhere or None,
    }
    confirm = options.confirm
    if confirm is None:
        plan = invocation.call("memory.forget", **asked)
        if not _agreed(invocation, plan):
            return 0
        confirm = plan["confirm"]
    done = invocation.call("memory.forget", **asked, dry_run=False, confirm=confirm)
    if invocation.as_json:
        invocation.print_json(done)
    else:
        _report(invocation, done)
    return 0


def _given(value: str | None, name: str) -> str | None:
    return None if value is None else text_of(value, f"--{name}")


def _agreed(invocation: Invocation, plan: Fields) -> bool:
    """Shows the plan and asks, where somebody can answer; else says how to go on."""
    options = invocation.options
    if invocation.as_json:
        if not options.yes:
            invocation.print_json(plan)
        return bool(options.yes)
    _show(invocation, plan)
    if not plan["turns"] and not plan["blocks"]:
        return False
    if options.yes:
        return True
    if options.dry_run or not invocation.stdin.isatty():
        invocation.print(f"Nothing was erased. To erase just this, add --confirm {plan['confirm']}")
        return False
    agreed = invocation.is_agreed("Erase this for ever? It can't be undone.")
    if not agreed:
        invocation.print("Nothing was erased.")
    return agreed


def _show(invocation: Invocation, plan: Fields) -> None:
    turns, blocks = plan["turns"], plan["blocks"]
    if not turns and not blocks:
        invocation.print("Memory holds nothing of that.")
        return
    sessions = count(plan["sessions"], "session")
    invocation.print(
        f"This would erase {count(turns, 'turn')} of {sessions}, "
        f"{count(plan['sources'], 'source')} and {count(blocks, 'block')}:"
    )
    examples = plan["examples"]
    for example in examples[:_SHOWN]:
        place = f" ({example['topic']})" if example.get("topic") else ""
        invocation.print_text(f"  {example['ref']}{place}: {example['text']}")
    more = turns + blocks - len(examples[:_SHOWN])
    if more > 0:
        invocation.print(f"  … and {more:,} more")


def _report(invocation: Invocation, done: Fields) -> None:
    proof = done["proof"]
    invocation.print(
        f"Erased {count(done['turns'], 'turn')}, {count(done['sources'], 'source')} and "
        f"{count(done['blocks'], 'block')}."
    )
    left = {place: number for place, number in proof["left"].items() if number}
    if left:
        named = ", ".join(f"{place} {number:,}" for place, number in left.items())
        invocation.print(f"Not yet gone: {named}. Run the same command again.")
    files = f"Searched {count(proof['searched'], 'file')}"
    if proof["found"]:
        invocation.print(f"{files}; the same words still stand in:")
        invocation.print(*(f"  {path}" for path in proof["found"]))
        invocation.print("Somebody else may have said them, or you wrote them: look there.")
    else:
        invocation.print(f"{files} for the words: they are in none.")
    invocation.print(f"Out of reach: {'; '.join(proof['not_searched'])}.")
