"""What a block rests on: the turns it cites, who said them, where, and how they lie to each other.

The night joins blocks only where this allows it: never across branches that contradict each other,
across people, or across projects that may not read each other's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

import apsw
import msgspec

from turnmark_memory.index import Index
from turnmark_memory.relations import TurnRef, keys_of
from turnmark_session_store.queries import rows_of
from turnmark_session_store.walks import ancestors, roots_below


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """The turns behind a block. `speakers` are its users; `circles` are projects.

    `is_whole` says that every cite resolves: where one doesn't, nobody knows what it rests on.
    """

    refs: tuple[TurnRef, ...]
    speakers: frozenset[str]
    circles: frozenset[str | None]
    sessions: frozenset[str]
    latest: datetime | None
    is_whole: bool

    def may_join(self, other: Grounds) -> bool:
        """Tells whether one block may say what both say, their branches aside."""
        both_whole = self.is_whole and other.is_whole
        return both_whole and (self.speakers, self.circles) == (other.speakers, other.circles)


def grounds_of(index: Index, cites: Collection[str]) -> Grounds:
    """Returns what a block with these cites rests on; a look at the index for each cite."""
    turns = [turn for label in cites if (turn := index.turn(label)) is not None]
    speakers = (
        turn.speaker_id or turn.speaker_name or turn.role for turn in turns if turn.role == "user"
    )
    return Grounds(
        refs=tuple((turn.namespace, turn.id) for turn in turns),
        speakers=frozenset(speakers),
        circles=frozenset(turn.project for turn in turns),
        sessions=frozenset(turn.session for turn in turns),
        latest=max((turn.time for turn in turns), default=None),
        is_whole=len(turns) == len(cites) > 0,
    )


def are_alternatives(db: apsw.Connection, turns: Iterable[TurnRef]) -> bool:
    """Tells whether two of `turns` lie on branches beside each other, or one is not known here.

    Turns of unrelated conversations are no alternatives. Walks each path of them once.
    """
    known = keys_of(db, list(dict.fromkeys(turns)))
    keys = sorted({key for key in known if key is not None}, reverse=True)
    if None in known or not keys:
        return True
    left: list[int] = keys
    while len(left) > 1:
        before = set(ancestors(db, left[0], left[-1]))
        beside = [key for key in left if key not in before]
        roots = roots_below(db, left[0]) if beside else set[int]()
        if any(not roots.isdisjoint(roots_below(db, key)) for key in beside):
            return True
        left = beside
    return False


def kept_local(db: apsw.Connection, sessions: Iterable[str]) -> frozenset[str]:
    """Returns those of `sessions` whose words go to no endpoint that isn't on this machine."""
    names = msgspec.json.encode(sorted(sessions)).decode()
    rows = rows_of(
        db,
        "SELECT name FROM session JOIN json_each(?) ON name = value WHERE memory <> 'on'",
        (names,),
    )
    return frozenset(str(name) for (name,) in rows)
