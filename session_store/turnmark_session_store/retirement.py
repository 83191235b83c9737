"""Taking back and restoring: which turns stop counting, and what a restored one owes again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnmark_session_store.queries import json_keys
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import live_tips_after, only_reached_from, parents_of

_MARK_UNDER_SETTLED = """
WITH RECURSIVE below (id) AS (
    SELECT value FROM json_each(:turns)
    UNION SELECT turn.id FROM below JOIN turn ON turn.predecessor = below.id
    UNION SELECT turn FROM below JOIN merge_parent ON merge_parent.parent = below.id
), above (id) AS (
    SELECT id FROM below JOIN mark ON mark.workspace = :workspace AND mark.turn = id
    UNION SELECT predecessor FROM above JOIN turn USING (id) WHERE predecessor >= :first
    UNION SELECT parent FROM above JOIN merge_parent ON merge_parent.turn = above.id
        WHERE parent >= :first
)
INSERT INTO mark (workspace, turn, outcome, reason, writer, revision, at_ms)
SELECT :workspace, turn.id, 'parked', 'restored', '', revision, :at_ms
FROM json_each(:turns) JOIN turn ON turn.id = value JOIN workspace ON workspace.id = :workspace
WHERE recordable AND turn.id IN (SELECT id FROM above)
    AND NOT EXISTS (SELECT 1 FROM mark WHERE mark.workspace = :workspace AND mark.turn = turn.id)
    AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE forgotten_turn.turn = turn.id)
"""
"""From the restored turns down to what is settled below them, and up again as far as the oldest."""


def retire_unreached(tx: Transaction, tips: Iterable[int], kept: Iterable[int]) -> list[int]:
    """Retires what `tips` reach and no live branch of any session does; returns those turns.

    Called after the tips have moved to `kept`, so that the database's live branches are the truth.
    Costs time by what came after `kept`, not by the store.
    """
    old, stays = list(tips), list(kept)
    perhaps = only_reached_from(tx.db, old, stays)
    others = live_tips_after(tx.db, perhaps)
    return retire(tx, only_reached_from(tx.db, old, [*stays, *others]) if others else perhaps)


def retire(tx: Transaction, turns: Iterable[int]) -> list[int]:
    """Retires `turns`; returns those that were neither retired nor forgotten before."""
    asked = json_keys(dict.fromkeys(turns))
    retired: list[int] = [
        turn
        for (turn,) in tx.rows(
            "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT turn FROM retired_turn)"
            " AND value NOT IN (SELECT turn FROM forgotten_turn)",
            (asked,),
        )
    ]
    tx.execute(
        "INSERT OR IGNORE INTO retired_turn (turn, at_ms) SELECT value, ? FROM json_each(?)",
        (tx.at_ms, asked),
    )
    return retired


def restore_path(tx: Transaction, *turns: int) -> list[int]:
    """Restores `turns` and their retired ancestors over all parents; returns them, oldest first.

    What was settled is owed again (`parked`, reason `restored`), and so is what was never settled
    but lies below a settled descendant: no mark may claim more than is true.
    """
    restored = _retired_path(tx, turns)
    for found in restored:
        tx.execute("DELETE FROM retired_turn WHERE turn = ?", (found,))
    if restored:
        _owe_again(tx, restored)
    return restored


def _retired_path(tx: Transaction, turns: Sequence[int]) -> list[int]:
    """Returns the retired ancestors-or-selves of `turns`.

    Walks while turns are retired, and through forgotten ones: they are not in the way.
    """
    found: set[int] = set()
    seen: set[int] = set()
    queue = list(turns)
    while queue:
        turn = queue.pop()
        if turn in seen:
            continue
        seen.add(turn)
        retired, forgotten = tx.row(
            "SELECT EXISTS (SELECT 1 FROM retired_turn WHERE turn = ?1),"
            " EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = ?1)",
            (turn,),
        )
        if retired:
            found.add(turn)
        if retired or forgotten:
            queue.extend(parents_of(tx.db, turn))
    return sorted(found)


def _owe_again(tx: Transaction, restored: Sequence[int]) -> None:
    turns = json_keys(restored)
    tx.execute(
        "UPDATE mark SET outcome = 'parked', reason = 'restored', at_ms = ?"
        " WHERE turn IN (SELECT value FROM json_each(?))"
        " AND turn NOT IN (SELECT turn FROM forgotten_turn)",
        (tx.at_ms, turns),
    )
    for (workspace,) in tx.rows("SELECT id FROM workspace"):
        tx.execute(
            _MARK_UNDER_SETTLED,
            {"turns": turns, "first": restored[0], "workspace": workspace, "at_ms": tx.at_ms},
        )
