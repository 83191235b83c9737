"""The backlog: turns older than the moment their source was connected, held until asked for."""

from __future__ import annotations

from turnmark_session_store.marks import park
from turnmark_session_store.queries import json_keys, rows_of
from turnmark_session_store.sessions import get_session
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import LIVE_BRANCH, descendants, unwritten


def park_backlog(
    tx: Transaction, workspace: int, session: str, before_ms: int, *, stored_from_ms: int = 0
) -> list[int]:
    """Parks the session's unwritten turns from before `before_ms`; returns those parked.

    Only a prefix can be held: a turn that comes after a newer one (a clock went backwards) is
    written like it. Turns behind the prefix are owed as ever. With `stored_from_ms` only turns that
    came into the store from then on are held. Call it in the transaction that brings the turns, or
    they may be claimed first.
    """
    row = get_session(tx.db, session)
    tips = tx.rows(f"SELECT tip FROM branch WHERE session = ? AND {LIVE_BRANCH}", (row.id,))
    owed = [turn for turn, _ in unwritten(tx.db, workspace, (tip for (tip,) in tips))]
    rows = rows_of(
        tx.db,
        "SELECT turn.id FROM json_each(?) AS asked JOIN turn ON turn.id = asked.value"
        " WHERE time_ms >= ? OR created_ms < ?",
        (json_keys(owed), before_ms, stored_from_ms),
    )
    newer = [turn for (turn,) in rows]
    behind = set(descendants(tx.db, newer)) if newer else set[int]()
    return park(tx, workspace, [turn for turn in owed if turn not in behind], "backlog")


def release_backlog(tx: Transaction, workspace: int) -> int:
    """Lets the held turns be written now, as if they had never been held; returns how many."""
    tx.execute(
        "UPDATE mark SET reason = 'lost', at_ms = ? WHERE workspace = ?"
        " AND outcome = 'parked' AND reason = 'backlog'",
        (tx.at_ms, workspace),
    )
    return tx.db.changes()
