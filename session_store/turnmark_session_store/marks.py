"""Marks: what a workspace has dealt with. Closed under ancestors, replaced but never removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import apsw

from turnmark_events.errors import Refused
from turnmark_session_store.model import MarkOutcome
from turnmark_session_store.queries import json_keys, rows_of, value_of
from turnmark_session_store.sessions import turn_id
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import unwritten

ParkReason = Literal["failed", "lost", "restored", "rewrite", "backlog", "removed"]
DUE_AT_ONCE: frozenset[str] = frozenset({"lost", "restored", "rewrite"})
"""Parked for these reasons, a turn is owed like one that was never settled."""

REWRITTEN = "rewritten"
"""The reason beside `kept` of a turn that was offered again to another writer and kept by it."""


def workspace_key(tx: Transaction, workspace: str) -> int:
    """Returns the integer key of a workspace's id, made if it is new."""
    found = tx.value("SELECT id FROM workspace WHERE name = ?", (workspace,))
    if found is None:
        return tx.insert("INSERT INTO workspace (name) VALUES (?)", (workspace,))
    return int(found)


def workspace_revision(db: apsw.Connection, workspace: int) -> int:
    """Returns the newest revision that was settled for a workspace."""
    return int(value_of(db, "SELECT revision FROM workspace WHERE id = ?", (workspace,)))


def reach_revision(tx: Transaction, workspace: int, revision: int) -> None:
    """Notes that a workspace is at `revision`: its files say so, and the marks fell behind."""
    tx.execute("UPDATE workspace SET revision = ? WHERE id = ?", (revision, workspace))


def settle(
    tx: Transaction,
    workspace: int,
    turns: Iterable[int],
    *,
    outcome: MarkOutcome,
    writer: str,
    revision: int,
    reason: str | None = None,
) -> list[int]:
    """Marks `turns` in topological order; returns those marked.

    Turns that were taken back meanwhile are left out: they count as not recordable.

    Raises:
        Refused: if a recordable ancestor of one of them would stay unsettled (law 7); the
            transaction is then rolled back by its owner.
    """
    settled = [turn for turn in sorted(set(turns)) if _counts(tx, turn)]
    for turn in settled:
        tx.execute(
            "INSERT INTO mark (workspace, turn, outcome, reason, writer, revision, at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET outcome = excluded.outcome,"
            " reason = excluded.reason, writer = excluded.writer, revision = excluded.revision,"
            " at_ms = excluded.at_ms",
            (workspace, turn, outcome, reason, writer, revision, tx.at_ms),
        )
    _check_closed(tx, workspace, settled)
    return settled


def _counts(tx: Transaction, turn: int) -> bool:
    return (
        tx.row(
            "SELECT 1 FROM turn WHERE id = ?1 AND recordable"
            " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = ?1)",
            (turn,),
        )
        is not None
    )


def _check_closed(tx: Transaction, workspace: int, settled: Sequence[int]) -> None:
    parents = tx.rows(
        "SELECT DISTINCT predecessor FROM turn JOIN json_each(?1) ON turn.id = value"
        " WHERE predecessor IS NOT NULL UNION"
        " SELECT merge_parent.parent FROM merge_parent JOIN json_each(?1) ON turn = value",
        (json_keys(settled),),
    )
    left = unwritten(tx.db, workspace, (parent for (parent,) in parents))
    if left:
        raise Refused(
            f"turn {turn_id(tx.db, left[0][0])!r} comes before the turns of this batch and is not "
            "settled; a batch is settled oldest first",
            turn=turn_id(tx.db, left[0][0]),
        )


def park(
    tx: Transaction, workspace: int, turns: Iterable[int], reason: ParkReason, writer: str = ""
) -> list[int]:
    """Parks `turns` with a reason; returns those parked. The walk stops at them all the same."""
    revision = workspace_revision(tx.db, workspace)
    return settle(
        tx, workspace, turns, outcome="parked", writer=writer, revision=revision, reason=reason
    )


def offer_again(tx: Transaction, workspace: int, turns: Iterable[int], reason: ParkReason) -> int:
    """Parks settled turns again, who settled them left in the mark; returns how many.

    Their marks stay marks, so nothing above or below them changes (law 7).
    """
    tx.execute(
        "UPDATE mark SET outcome = 'parked', reason = ?, at_ms = ? WHERE workspace = ?"
        " AND outcome <> 'parked' AND turn IN (SELECT value FROM json_each(?))",
        (reason, tx.at_ms, workspace, json_keys(turns)),
    )
    return tx.db.changes()


def offer_failed_to(tx: Transaction, workspace: int, writer: str) -> None:
    """Offers turns that failed alone again, where the writer is another one since."""
    tx.execute(
        "UPDATE mark SET reason = 'rewrite', at_ms = ? WHERE workspace = ?"
        " AND outcome = 'parked' AND reason = 'failed' AND writer <> ?",
        (tx.at_ms, workspace, writer),
    )


def note_rewritten(tx: Transaction, workspace: int, turns: Iterable[int]) -> None:
    """Says in the marks of kept turns that this was done once before by another writer."""
    tx.execute(
        "UPDATE mark SET reason = ? WHERE workspace = ? AND outcome = 'kept'"
        " AND turn IN (SELECT value FROM json_each(?))",
        (REWRITTEN, workspace, json_keys(turns)),
    )


def parked_for(
    tx: Transaction, workspace: int, turns: Iterable[int], reason: ParkReason
) -> list[int]:
    """Returns those of `turns` that are parked for `reason`."""
    rows = tx.rows(
        "SELECT mark.turn FROM json_each(?) AS asked JOIN mark ON mark.turn = asked.value"
        " WHERE workspace = ? AND outcome = 'parked' AND reason = ?",
        (json_keys(turns), workspace, reason),
    )
    return [turn for (turn,) in rows]


def park_settled_after(tx: Transaction, workspace: int, revision: int, reason: ParkReason) -> int:
    """Parks every turn whose mark rests on a later revision than `revision`; returns how many.

    For a workspace that went back (law 5): what it no longer holds is offered again.
    """
    tx.execute(
        "UPDATE mark SET outcome = 'parked', reason = ?, at_ms = ?"
        " WHERE workspace = ? AND revision > ? AND outcome <> 'parked'",
        (reason, tx.at_ms, workspace, revision),
    )
    return tx.db.changes()


def parked(db: apsw.Connection, workspace: int) -> list[tuple[int, str, int]]:
    """Returns (turn, reason, tokens) of the parked turns that still count, oldest first."""
    return rows_of(
        db,
        "SELECT turn.id, coalesce(reason, ''), tokens FROM mark JOIN turn ON turn.id = mark.turn"
        " WHERE workspace = ? AND outcome = 'parked'"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE retired_turn.turn = mark.turn)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE forgotten_turn.turn = mark.turn)"
        " ORDER BY turn.id",
        (workspace,),
    )
