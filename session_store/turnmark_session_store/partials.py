"""Partial turns: what an assistant is still saying, kept for display until the whole turn comes.

A partial is no turn: nothing comes after it, memory never sees it, and it has no key of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.sessions import SessionRow, find_turn
from turnmark_session_store.transaction import Transaction


def keep_partials(
    tx: Transaction, session: SessionRow, after: int | None, turns: Sequence[PreparedTurn]
) -> None:
    """Keeps the partial ones of `turns` for display; one whose turn is there already is late."""
    for turn in turns:
        if turn.kind != "partial" or find_turn(tx.db, session, turn.id) is not None:
            continue
        tx.execute(
            "INSERT INTO partial_turn (session, id, predecessor, role, text, at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET text = excluded.text,"
            " predecessor = excluded.predecessor, at_ms = excluded.at_ms",
            (session.id, turn.id or "", after, turn.role, turn.text.encode(), tx.at_ms),
        )


def drop_partial(tx: Transaction, session: SessionRow, turn: str) -> None:
    """Drops what was kept of a turn that is whole now, and what came without an id."""
    tx.execute("DELETE FROM partial_turn WHERE session = ? AND id IN (?, '')", (session.id, turn))
