"""Forgetting: the only code that deletes words, and deleting a session, which forgets through it.

Forgotten at once, erased in slices: the rows of `forgotten_turn` count from their commit on, and
whatever words they still have are deleted in later transactions, after a crash too.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
import msgspec

from turnmark_events.types import Forgotten
from turnmark_session_store.heads import TipMove, To, move
from turnmark_session_store.queries import json_keys, rows_of
from turnmark_session_store.sessions import get_session
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import live_tips_after, only_reached_from

SLICE_TURNS = 500
"""Words deleted in one transaction, so that an append never waits long behind an erasure."""


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """What deleting a session took with it: integer keys of the turns forgotten."""

    turns: list[int]


def forget_turns(tx: Transaction, turns: Iterable[int]) -> list[int]:
    """Marks `turns` as forgotten for ever; returns those that were not before.

    Their words are erased by `erase_slice`.
    """
    asked = json_keys(dict.fromkeys(turns))
    forgotten: list[int] = [
        turn
        for (turn,) in tx.rows(
            "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT turn FROM forgotten_turn)",
            (asked,),
        )
    ]
    tx.execute(
        "INSERT OR IGNORE INTO forgotten_turn (turn, at_ms) SELECT value, ? FROM json_each(?)",
        (tx.at_ms, asked),
    )
    if forgotten:
        _forget_reasons(tx, asked)
        tx.record(Forgotten, {"turns": len(forgotten)})
    return forgotten


def _forget_reasons(tx: Transaction, turns: str) -> None:
    """Takes out why answers about the turns could not be used: that may quote what they said."""
    tx.execute(
        "UPDATE failure SET reason = 'the writer failed' WHERE root IN"
        " (SELECT turn.root FROM turn JOIN json_each(?) ON turn.id = value)",
        (turns,),
    )
    tx.execute(
        "UPDATE batch SET reason = NULL WHERE reason IS NOT NULL AND id IN"
        " (SELECT batch FROM batch_turn JOIN json_each(?) ON turn = value)",
        (turns,),
    )


def erase_slice(tx: Transaction) -> int:
    """Deletes the words of at most a slice of forgotten turns; returns how many were left to do."""
    tx.execute(
        "DELETE FROM turn_words WHERE turn IN (SELECT turn FROM forgotten_turn"
        " JOIN turn_words USING (turn) LIMIT ?)",
        (SLICE_TURNS,),
    )
    return tx.db.changes()


def delete_session(tx: Transaction, session_name: str) -> Deleted:
    """Ends every branch of a session, takes its head and title, forgets what only it reached.

    Raises:
        NotFound: if the session is unknown.
    """
    session = get_session(tx.db, session_name)
    branches = tx.rows(
        "SELECT id FROM branch WHERE session = ? AND tip IS NOT NULL ORDER BY id",
        (session.id,),
    )
    unreached = turns_only_of(tx.db, session.id)
    moves = [TipMove(branch, None, "delete", ends_as="deleted") for (branch,) in branches]
    move(tx, session.id, moves, To(None, None), cause="delete")
    forgotten = forget_turns(tx, unreached)
    for table in ("session_words", "partial_turn", "request_key"):
        tx.execute(f"DELETE FROM {table} WHERE session = ?", (session.id,))
    tx.execute("UPDATE session SET deleted_ms = ? WHERE id = ?", (tx.at_ms, session.id))
    return Deleted(turns=forgotten)


def turns_only_of(db: apsw.Connection, session: int) -> list[int]:
    """Returns the turns that a session reaches and no live branch of another one, oldest first.

    Also those that were said in it and that nothing reaches any more.
    """
    rows = rows_of(
        db,
        "SELECT tip FROM branch WHERE session = ?1 AND tip IS NOT NULL"
        " UNION SELECT id FROM turn WHERE session = ?1 ORDER BY 1",
        (session,),
    )
    start = [turn for (turn,) in rows]
    reached = only_reached_from(db, start, [])
    return only_reached_from(db, start, live_tips_after(db, reached, other_than=session))
