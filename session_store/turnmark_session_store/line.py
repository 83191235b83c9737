"""A line of turns: placed one after the other from where it starts. Nothing moves yet."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.partials import drop_partial
from turnmark_session_store.retirement import restore_path
from turnmark_session_store.sessions import SessionRow, get_turn, namespace_of, resolve_caller
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.turn_rows import Placed, key_of, place_turn
from turnmark_session_store.walks import LIVE_BRANCH

_LOOK = (
    "SELECT (SELECT key FROM turn WHERE id = ?1),"
    " EXISTS (SELECT 1 FROM retired_turn WHERE turn = ?1)"
    " OR EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = ?1),"
    " EXISTS (SELECT 1 FROM partial_turn WHERE session = ?2),"
    f" (SELECT id FROM branch WHERE id = ?3 AND tip = ?1 AND {LIVE_BRANCH})"
)
"""All that a line needs to know about its start, in one statement."""


class Line(msgspec.Struct):
    """Where a line starts, the turns placed on it, and what that changed.

    `continues` is the head's branch where its tip is the start: the branch that goes on.
    `leaves_head` says that its first turn named a caller: a spawn beside the conversation.
    `superseded` pairs each turn that was replaced with the one that replaced it.
    """

    start: int | None
    continues: int | None = None
    placed: list[Placed] = []
    spawned: bool = False
    leaves_head: bool = False
    restored: bool = False
    superseded: dict[int, int] = {}

    @property
    def last(self) -> int | None:
        """The turn that the line ends with."""
        return self.placed[-1].turn if self.placed else self.start

    @property
    def new(self) -> int:
        """How many of its turns were written now."""
        return sum(placed.new for placed in self.placed)


def place_line(
    tx: Transaction, session: SessionRow, turns: Sequence[PreparedTurn], start: int | None
) -> Line:
    """Places `turns` one after the other from `start`; what of it was taken back is restored.

    Raises:
        Conflict: if an id is there with other content.
        NotFound: if a turn's `caller` or `supersedes` is not here.
    """
    line = Line(start)
    gone, has_partials, line.continues = _look(tx, session, start)
    if gone and start is not None:
        line.restored = bool(restore_path(tx, start))
    for turn in turns:
        placed = _place(tx, session, line, turn)
        if has_partials:
            drop_partial(tx, session, placed.id)
        line.placed.append(placed)
    back = [placed.turn for placed in line.placed if placed.retired or placed.forgotten]
    if back:
        line.restored = bool(restore_path(tx, *back)) or line.restored
    return line


def _look(tx: Transaction, session: SessionRow, start: int | None) -> tuple[bool, bool, int | None]:
    """Returns whether `start` is gone, whether the session has partials, and `Line.continues`."""
    key, gone, has_partials, continues = tx.row(_LOOK, (start, session.id, session.head_branch))
    if start is not None:
        tx.knows(start, key)
    return bool(gone), bool(has_partials), continues


def _place(tx: Transaction, session: SessionRow, line: Line, turn: PreparedTurn) -> Placed:
    """Places one turn at the line's end, and notes on the line what that means for it."""
    previous = line.last
    caller = _caller(tx, session, turn, previous)
    if previous is None:
        line.spawned, line.leaves_head = caller is not None, turn.caller is not None
    replaced = None if turn.supersedes is None else get_turn(tx.db, session, turn.supersedes)
    placed = place_turn(tx, session, namespace_of(tx, session), turn, previous, caller=caller)
    if placed.new and replaced is not None:
        line.superseded[replaced] = placed.turn
    return placed


def _caller(
    tx: Transaction, session: SessionRow, turn: PreparedTurn, previous: int | None
) -> int | None:
    """Returns the turn that spawned `turn`: its own, or the session's for the first root."""
    if turn.caller is not None:
        return resolve_caller(tx, turn.caller)
    if previous is not None or session.caller is None:
        return None
    first = tx.row(
        "SELECT key FROM turn WHERE session = ? AND predecessor IS NULL ORDER BY id LIMIT 1",
        (session.id,),
    )
    if first is None:
        return session.caller
    key = key_of(tx, session, namespace_of(tx, session), turn, None, session.caller)
    return session.caller if key == first[0] else None
