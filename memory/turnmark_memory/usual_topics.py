"""Where a conversation's matter stands in memory already, so that a group keeps one page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from turnmark_memory.index import FiledRow, Index
from turnmark_memory.model import Evidence

_SUBJECTS = "subjects/"

_OF_SESSION = 200
_OF_ALL = 1_000
"""Turns looked back at, of the session and of all: the cost does not grow with the memory."""

_A_GROUP = 2
"""Speakers who together are known again; one alone talks about anything."""


def usual_topics(
    index: Index, turns: Sequence[Evidence], kept_in: Collection[str] = frozenset()
) -> tuple[tuple[str, float], ...]:
    """Returns the subjects that hold what these sessions said before, the largest first.

    Where they said nothing yet: those that hold words of people who speak here and hardly of
    others. With each goes its share of what is kept of them anywhere. What was said in `kept_in`
    counts for nothing.
    """
    sessions = dict.fromkeys(turn.session for turn in turns)
    said = [row for one in sessions for row in index.filed(_OF_SESSION, one)]
    if found := _largest([row for row in said if row.session not in kept_in]):
        return found
    speakers = {
        speaker
        for turn in turns
        if turn.role == "user" and (speaker := turn.speaker_id or turn.speaker_name)
    }
    if len(speakers) < _A_GROUP:
        return ()
    rows = [row for row in index.filed(_OF_ALL) if row.speaker and row.session not in kept_in]
    heard: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        heard[row.topic].add(row.speaker or "")
    ours = {topic for topic, those in heard.items() if _are_ours(those, speakers)}
    return _largest([row for row in rows if row.topic in ours])


def _are_ours(those: set[str], speakers: set[str]) -> bool:
    """Returns whether all whose words stand there speak here, or several who are most of them."""
    here = len(those & speakers)
    return here == len(those) or (here >= _A_GROUP and 2 * here >= len(those))


def _largest(rows: Sequence[FiledRow]) -> tuple[tuple[str, float], ...]:
    """Returns the subjects of `rows`, each with its share of their cites."""
    counts = Counter[str]()
    for row in rows:
        counts[row.topic] += row.cites
    of = counts.total() or 1
    subjects = [topic for topic in counts if topic.startswith(_SUBJECTS)]
    return tuple(
        (topic, counts[topic] / of)
        for topic in sorted(subjects, key=lambda one: (-counts[one], one))
    )
