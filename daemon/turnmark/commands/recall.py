"""`turnmark recall QUERY`: what memory knows about something, with where it comes from."""

from __future__ import annotations

import argparse
from typing import Any

from turnmark.commands.invocation import (
    Invocation,
    WrongUse,
    at_least_one,
    number_of_rows,
    time_of,
    words_of,
)
from turnmark.commands.wording import Fields, count, local_time, source, speaker
from turnmark.terminal import printable

_INDENT = "   "
# Below it two places behind the point say nothing.
_TELLING = 0.1
_KINDS = ("block", "turn")
_MODES = ("hybrid", "lexical", "dense", "select")
_NARROWING = ("kinds", "topic", "speaker", "since", "until", "project")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("query", metavar="QUERY", nargs="+", help="what to look for")
    parser.add_argument("-k", type=number_of_rows, metavar="N", help="at most this many hits (8)")
    parser.add_argument("--session", metavar="SESSION", help="rank for a reader in this session")
    parser.add_argument("--tip", metavar="ID", help="and on the branch that ends here")
    parser.add_argument("--kinds", metavar="KINDS", help="block, turn or block,turn")
    parser.add_argument("--topic", metavar="TOPIC", help="only this topic")
    parser.add_argument("--speaker", metavar="NAME", help="only what this speaker said")
    parser.add_argument("--since", type=time_of, metavar="TIME", help="only from then on")
    parser.add_argument("--until", type=time_of, metavar="TIME", help="only up to then")
    parser.add_argument("--project", metavar="PATH", help="only this project")
    parser.add_argument("--history", action="store_true", help="superseded blocks, too")
    parser.add_argument(
        "--budget-tokens", type=at_least_one, metavar="N", help="at most this many tokens"
    )
    parser.add_argument(
        "--mode", choices=_MODES, metavar="MODE", help="hybrid, lexical, dense or select"
    )


def run(invocation: Invocation) -> int:
    """Prints the hits, best first."""
    answer = invocation.call("memory.recall", **_params(invocation.options))
    if invocation.as_json:
        invocation.print_json(answer)
    elif not answer["hits"]:
        invocation.print(_nothing(invocation.options), *_not_yet(invocation))
    else:
        for number, hit in enumerate(answer["hits"], start=1):
            print_hit(invocation, number, hit)
    return 0


def _nothing(options: argparse.Namespace) -> str:
    """Returns that nothing was found, and which options may be why."""
    narrow = [f"--{name}" for name in _NARROWING if getattr(options, name) is not None]
    if not narrow:
        return "Memory holds nothing about that."
    return (
        f"Memory holds nothing about that within {' and '.join(narrow)}; without "
        f"{'it' if len(narrow) == 1 else 'them'} all of it is searched."
    )


def _not_yet(invocation: Invocation) -> list[str]:
    """Returns a line about what was said and is not written yet: it may be what was meant."""
    turns = invocation.call("status")["owed"]["turns"]
    is_are = "is" if turns == 1 else "are"
    said = f"{count(turns, 'turn')} {is_are} not written yet: `turnmark flush` writes what waits"
    return [f"{said}, `turnmark owed` lists it."] if turns else []


def _params(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "query": words_of(" ".join(options.query), "QUERY"),
        "k": options.k,
        "session": options.session,
        "tip": options.tip,
        "kinds": _kinds(options.kinds),
        "topic": options.topic,
        "speaker": options.speaker,
        "since": options.since,
        "until": options.until,
        "project": options.project,
        "history": options.history or None,
        "budget_tokens": options.budget_tokens,
        "mode": options.mode,
    }


def _kinds(said: str | None) -> list[str] | None:
    if not said:
        return None
    kinds = [kind.strip() for kind in said.split(",")]
    for kind in kinds:
        if kind not in _KINDS:
            raise WrongUse(f"{kind!r} is no kind of hit; there are {' and '.join(_KINDS)}")
    return kinds


def print_hit(invocation: Invocation, number: int, hit: Fields) -> None:
    """Prints a hit: its text, what it is, and a line for each source."""
    ink = invocation.ink
    first, *rest = printable(hit["text"]).splitlines() or [""]
    invocation.print(f"{ink.accent(f'{number:>2}')} {ink.bold(first)}")
    invocation.print(*(f"{_INDENT}{line}" for line in rest))
    invocation.print(f"{_INDENT}{printable(_about(hit))}")
    lines = [printable(source(one)) for one in hit.get("sources", ())]
    invocation.print(*(ink.dim(f"{_INDENT}{line}") for line in lines))


def _about(hit: Fields) -> str:
    """Returns what the hit is, where it stands and how well it fits."""
    parts = [
        hit["kind"],
        hit["ref"],
        hit.get("topic"),
        hit["branch"],
        f"score {_score(hit['score'])}",
    ]
    if not hit.get("sources"):
        parts += [speaker(hit.get("speaker")), local_time(hit.get("time"))]
    if hit.get("superseded_by"):
        parts.append(f"superseded by {hit['superseded_by']}")
    return " · ".join(part for part in parts if part)


def _score(score: float) -> str:
    """Returns a score with two digits that say something; small ones differ, too."""
    return f"{score:.2f}" if score >= _TELLING else f"{score:.2g}"
