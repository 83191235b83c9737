"""Taking back and restoring: which turns stop counting, and what a restored one owes again."""

from __future__ import annotations

from collections.abc import Iterable

from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import live_tips, only_reached_from, parents_of


def retire_unreached(tx: Transaction, tips: Iterable[int]) -> list[int]:
    """Retires what `tips` reach and no live branch of any session does; returns those turns.

    Called after the tips have moved away, so that the database's live branches are the truth.
    """
    old = list(tips)
    gone = only_reached_from(tx.db, old, live_tips(tx.db, roots_of=old))
    return retire(tx, gone)


def retire(tx: Transaction, turns: Iterable[int]) -> list[int]:
    """Retires `turns`; returns those that were not retired before."""
    retired: list[int] = []
    for turn in turns:
        tx.execute(
            "INSERT OR IGNORE INTO retired_turn (turn, at_ms) VALUES (?, ?)", (turn, tx.at_ms)
        )
        if tx.db.changes():
            retired.append(turn)
    return retired


def restore_path(tx: Transaction, turn: int) -> list[int]:
    """Restores `turn` and its retired ancestors over all parents; returns them, oldest first.

    What was settled is owed again (`parked`, reason `restored`), and so is what was never settled
    but lies below a settled descendant: no mark may claim more than is true.
    """
    restored = _retired_path(tx, turn)
    for found in restored:
        tx.execute("DELETE FROM retired_turn WHERE turn = ?", (found,))
    for found in restored:
        _owe_again(tx, found)
    return restored


def _retired_path(tx: Transaction, turn: int) -> list[int]:
    """Returns the retired ancestors-or-selves of `turn`, walking only while turns are retired."""
    seen: set[int] = set()
    queue = [turn]
    while queue:
        candidate = queue.pop()
        if candidate in seen or not tx.row(
            "SELECT 1 FROM retired_turn WHERE turn = ?", (candidate,)
        ):
            continue
        seen.add(candidate)
        queue.extend(parents_of(tx.db, candidate))
    return sorted(seen)


def _owe_again(tx: Transaction, turn: int) -> None:
    tx.execute(
        "UPDATE mark SET outcome = 'parked', reason = 'restored', at_ms = ? WHERE turn = ?",
        (tx.at_ms, turn),
    )
    tx.execute(
        "WITH RECURSIVE below (id) AS (SELECT ?1 UNION"
        " SELECT turn.id FROM below JOIN turn ON turn.predecessor = below.id UNION"
        " SELECT turn FROM below JOIN merge_parent ON merge_parent.parent = below.id)"
        " INSERT INTO mark (workspace, turn, outcome, reason, writer, revision, at_ms)"
        " SELECT workspace.id, ?1, 'parked', 'restored', '', workspace.revision, ?2 FROM workspace"
        " WHERE (SELECT recordable FROM turn WHERE id = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM mark WHERE workspace = workspace.id AND turn = ?1)"
        " AND EXISTS (SELECT 1 FROM below JOIN mark ON mark.turn = below.id"
        " WHERE mark.workspace = workspace.id)",
        (turn, tx.at_ms),
    )
