"""Which branches of a session end at a turn, or reach it."""

from __future__ import annotations

from turnmark_session_store.sessions import SessionRow
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import LIVE_BRANCH, is_ancestor


def branches_at(tx: Transaction, session: SessionRow, tip: int) -> list[int]:
    """Returns the session's live branches that end at `tip`: the head's, then the last moved."""
    # By tip, which few branches share: a session may have thousands.
    rows = tx.rows(
        "SELECT move, id FROM branch INDEXED BY branch_by_tip"
        f" WHERE tip = ? AND session = ? AND {LIVE_BRANCH}",
        (tip, session.id),
    )
    rows.sort(key=lambda row: (row[1] == session.head_branch, row[0]), reverse=True)
    return [branch for _, branch in rows]


def branch_at(tx: Transaction, session: SessionRow, tip: int | None) -> int | None:
    """Returns the branch that an append at `tip` continues: the head's, else the last moved."""
    branches = [] if tip is None else branches_at(tx, session, tip)
    return branches[0] if branches else None


def branch_reaching(tx: Transaction, session: SessionRow, turn: int) -> int | None:
    """Returns a live branch of the session that reaches `turn`: the head's, else the last moved."""
    rows = tx.rows(
        f"SELECT id, tip FROM branch WHERE session = ? AND tip >= ? AND {LIVE_BRANCH}"
        " ORDER BY id = ? DESC, tip = ? DESC, move DESC",
        (session.id, turn, session.head_branch, turn),
    )
    for branch, tip in rows:
        if is_ancestor(tx.db, turn, tip):
            return int(branch)
    return None
