"""The backlog: turns older than the moment their source was connected, held until asked for."""

from __future__ import annotations

from turnmark_session_store.marks import park
from turnmark_session_store.queries import rows_of
from turnmark_session_store.sessions import get_session
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import LIVE_BRANCH, descendants, unwritten


def park_backlog(tx: Transaction, workspace: int, session: str, before_ms: int) -> list[int]:
    """Parks the session's unwritten turns from before `before_ms`; returns those parked.

    Only a prefix can be held: a turn that comes after a newer one (a clock went backwards) is
    written like it. Turns behind the prefix are owed as ever. Call it in the transaction that
    brings the turns, or they may be claimed first.
    """
    row = get_session(tx.db, session)
    tips = tx.rows(f"SELECT tip FROM branch WHERE session = ? AND {LIVE_BRANCH}", (row.id,))
    owed = [turn for turn, _ in unwritten(tx.db, workspace, (tip for (tip,) in tips))]
    times = dict(
        rows_of(
            tx.db,
            "SELECT turn.id, time_ms FROM json_each(?) AS asked JOIN turn ON turn.id = asked.value",
            ("[" + ",".join(map(str, owed)) + "]",),
        )
    )
    newer = [turn for turn in owed if times[turn] >= before_ms]
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
