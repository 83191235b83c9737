"""How turns lie to one another, asked of the session store: for recall and for edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import apsw

from turnmark_memory.placing import Place
from turnmark_session_store import SessionStore
from turnmark_session_store.owed import live_branches
from turnmark_session_store.queries import json_keys, rows_of, value_of
from turnmark_session_store.sessions import find_session, get_turn
from turnmark_session_store.walks import ancestors, live_tips_after, roots_below

TurnRef = tuple[str, str]
_UNKNOWN = Place(state="unknown", on_path=False, only_here=False, of_session=False)


class StoreRelations:
    """Answers recall's questions about turns from one snapshot each."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    async def place(
        self, turns: Sequence[TurnRef], session: str | None, tip: str | None
    ) -> Sequence[Place]:
        """Returns each turn's place for a reader at `tip` (None: the head) of `session`.

        Raises:
            NotFound: if `tip` is no turn of `session`.
        """
        return await self._store.read(lambda db: place_turns(db, turns, session, tip))


def place_turns(
    db: apsw.Connection, turns: Sequence[TurnRef], session: str | None, tip: str | None
) -> list[Place]:
    """Returns each turn's place; the branches that share a root with the turns are walked once."""
    keys = keys_of(db, turns)
    known = [key for key in keys if key is not None]
    states = _states(db, known)
    reader = _Reader(db, known, session, tip)
    return [_UNKNOWN if key is None else reader.place(key, states[key]) for key in keys]


def refs_of(db: apsw.Connection, turns: Iterable[int]) -> list[TurnRef]:
    """Returns (namespace, id) of `turns`, oldest first."""
    return rows_of(
        db,
        "SELECT namespace.name, turn.key FROM json_each(?) JOIN turn ON turn.id = value"
        " JOIN namespace ON namespace.id = turn.namespace ORDER BY turn.id",
        (json_keys(turns),),
    )


def keys_of(db: apsw.Connection, turns: Sequence[TurnRef]) -> list[int | None]:
    """Returns the store's integer key of each (namespace, id), None where it is unknown."""
    return [
        value_of(
            db,
            "SELECT turn.id FROM turn JOIN namespace ON namespace.id = turn.namespace"
            " WHERE namespace.name = ? AND turn.key = ?",
            turn,
        )
        for turn in turns
    ]


State = Literal["live", "retired", "forgotten"]


def _states(db: apsw.Connection, keys: Iterable[int]) -> dict[int, State]:
    rows = rows_of(
        db,
        "SELECT value, EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = value),"
        " EXISTS (SELECT 1 FROM retired_turn WHERE turn = value) FROM json_each(?)",
        (json_keys(keys),),
    )
    return {
        key: "forgotten" if forgotten else "retired" if retired else "live"
        for key, forgotten, retired in rows
    }


class _Reader:
    """A reader at a tip: which turns lie on its path, and which only there."""

    def __init__(
        self, db: apsw.Connection, keys: Sequence[int], session: str | None, tip: str | None
    ) -> None:
        self._path: frozenset[int] = frozenset()
        self._elsewhere: frozenset[int] = frozenset()
        self._session: frozenset[int] = frozenset()
        found = None if session is None else find_session(db, session)
        if found is None or not keys:
            return
        lowest = min(keys)
        at = found.head if tip is None else get_turn(db, found, tip)
        if at is not None:
            self._path = frozenset(ancestors(db, at, lowest))
        own = live_branches(db, found.name)
        below = set(live_tips_after(db, keys))
        reached = {live.branch: frozenset(ancestors(db, live.tip, lowest)) for live in own}
        mine = next((live.branch for live in own if live.tip == at), None) or next(
            (live.branch for live in own if at in reached[live.branch]), None
        )
        said = _first_said(db, found.id, keys)
        self._session = self._path.union(said, *reached.values())
        others = [tips for branch, tips in reached.items() if branch != mine]
        others += [
            frozenset(ancestors(db, live.tip, lowest))
            for live in live_branches(db)
            if live.session != found.id and live.tip in below
        ]
        self._elsewhere = frozenset[int]().union(*others)

    def place(self, key: int, state: State) -> Place:
        """Returns the place of one turn."""
        return Place(
            state=state,
            on_path=key in self._path,
            only_here=key in self._path and key not in self._elsewhere,
            of_session=key in self._session,
        )


def _first_said(db: apsw.Connection, session: int, keys: Iterable[int]) -> set[int]:
    rows = rows_of(
        db,
        "SELECT turn.id FROM turn JOIN json_each(?) ON turn.id = value WHERE session = ?",
        (json_keys(keys), session),
    )
    return {turn for (turn,) in rows}


def on_sibling(db: apsw.Connection, tip: int, turns: Sequence[TurnRef]) -> bool:
    """Tells whether one of `turns` lies on a branch beside `tip`: related, and not before it.

    Turns of unrelated conversations, and ones that the store never had, don't count.
    """
    keys = [key for key in keys_of(db, turns) if key is not None]
    if not keys:
        return False
    before = set(ancestors(db, tip, min(keys)))
    roots = roots_below(db, tip)
    return any(key not in before and not roots.isdisjoint(roots_below(db, key)) for key in keys)
