"""How the daemon's answers read to a model: plain text, each fact with where it comes from.

What memory holds stands inside the fence that turnmark's own gate cuts out of appended turns, so
that an agent that repeats it does not make it evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnmark.commands.wording import count, local_time, source
from turnmark_memory.context import CLOSE, OPEN, escape

Fields = Mapping[str, Any]

_NOTHING = "Memory has nothing that fits."
_SOURCES_SHOWN = 3
_BRANCHES = {"other-branch": "another branch of this conversation", "own": "this branch"}


def hits(answer: Fields) -> str:
    """Returns what a search found, best first; a sentence where it found nothing."""
    found: Sequence[Fields] = answer["hits"]
    if not found:
        return _NOTHING
    return _fenced("\n\n".join(_hit(number, hit) for number, hit in enumerate(found, 1)))


def _hit(number: int, hit: Fields) -> str:
    about = [hit["ref"], hit.get("topic"), _BRANCHES.get(hit["branch"])]
    if hit.get("superseded_by"):
        about.append(f"superseded by {hit['superseded_by']}")
    lines = [f"{number}. {hit['text']}", f"   ({', '.join(part for part in about if part)})"]
    lines += [f"   - {source(one)}" for one in hit.get("sources", ())[:_SOURCES_SHOWN]]
    return "\n".join(lines)


def context(answer: Fields) -> str:
    """Returns the fenced text; a sentence where memory is empty."""
    return str(answer["text"]) or _NOTHING


def remembered(answer: Fields) -> str:
    """Returns where the fact stands now."""
    return f"Remembered as {answer['block']} in {answer['topic']}."


def shown(answer: Fields) -> str:
    """Returns the thing in full, and its sources."""
    heading = " · ".join(
        str(part) for part in (answer["kind"], answer["ref"], answer.get("topic")) if part
    )
    lines = [heading, "", answer["text"].rstrip("\n")]
    if answer.get("superseded_by"):
        lines.append(f"superseded by {answer['superseded_by']}")
    lines += [f"- {source(one)}" for one in answer.get("sources", ())]
    return _fenced("\n".join(lines))


def forgotten(answer: Fields) -> str:
    """Returns what would go and the code that confirms it, or what went and the proof."""
    counts = f"{count(answer['turns'], 'turn')} and {count(answer['blocks'], 'block')}"
    if "proof" in answer:
        found = answer["proof"]["found"]
        rest = f" The same words still stand in: {', '.join(found)}." if found else ""
        return f"Erased {counts}; they can't come back.{rest}"
    if not answer["turns"] and not answer["blocks"]:
        return _NOTHING
    examples = "\n".join(f"- {one['ref']}: {one['text']}" for one in answer["examples"])
    return (
        f"Nothing was erased yet. This would erase {counts}:\n{_fenced(examples)}\n"
        f"Show this to the user. If they agree: the same call with confirm={answer['confirm']}"
    )


def owed(answer: Fields) -> str:
    """Returns a line for each branch with something left to write."""
    if not answer["tips"]:
        return "Nothing is owed: every conversation is written."
    lines = [f"{count(answer['turns'], 'turn')} are not written yet:"]
    for tip in answer["tips"]:
        why = f", {tip['reason']}" if tip.get("reason") else ""
        since = local_time(tip.get("oldest"))
        lines.append(
            f"- {tip['session']}: {count(tip['n'], 'turn')}, {tip['state']}{why} ({since})"
        )
    return "\n".join(lines)


def topics(answer: Fields) -> str:
    """Returns a line for each topic."""
    if not answer["topics"]:
        return "Memory has no topics yet."
    lines = [
        f"- {topic['topic']}: {topic['about'] or 'no description'} "
        f"({count(topic['blocks'], 'block')})"
        for topic in answer["topics"]
    ]
    more = ["- … and more"] if answer.get("next") else []
    return _fenced("\n".join([*lines, *more]))


def _fenced(text: str) -> str:
    return f"{OPEN}\n{escape(text)}\n{CLOSE}"
