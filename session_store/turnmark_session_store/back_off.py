"""Back-off: conversations whose batches failed, how long they are left alone, how far halved.

One row for each root of the DAG. `failures` counts since the last success; at 0 the row only keeps
the bound, which grows again with each success until it bounds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
import msgspec

from turnmark_session_store.queries import json_keys, row_of, rows_of
from turnmark_session_store.transaction import Transaction

_UNBOUNDED_TURNS = 64
"""A bound that has grown so far is dropped: few batches of one conversation hold more turns."""


class BackOff(msgspec.Struct, frozen=True):
    """A conversation that failed: its next batch's bound (None: none), and when it is due again."""

    limit_turns: int | None
    not_before_ms: int


def back_offs(db: apsw.Connection, workspace: int) -> dict[int, BackOff]:
    """Returns what is known of conversations that failed, by root."""
    rows = rows_of(
        db, "SELECT root, limit_turns, not_before_ms FROM failure WHERE workspace = ?", (workspace,)
    )
    return {root: BackOff(limit, not_before_ms) for root, limit, not_before_ms in rows}


def failing(db: apsw.Connection, workspace: int) -> dict[int, str]:
    """Returns why the last batch failed, by root, of conversations that fail now."""
    rows = rows_of(
        db, "SELECT root, reason FROM failure WHERE workspace = ? AND failures > 0", (workspace,)
    )
    return dict(rows)


def next_retry_ms(db: apsw.Connection, workspace: int, after_ms: int) -> int | None:
    """Returns when the next conversation comes out of its back-off, None where none is in it.

    Back-offs that were over at `after_ms` don't count: they have been looked at.
    """
    found = row_of(
        db,
        "SELECT min(not_before_ms) FROM failure"
        " WHERE workspace = ? AND failures > 0 AND not_before_ms > ?",
        (workspace, after_ms),
    )
    return None if found is None else found[0]


def roots_due_again(db: apsw.Connection, workspace: int, at_ms: int) -> set[int]:
    """Returns the roots of the conversations whose back-off is over by `at_ms`."""
    rows = rows_of(
        db,
        "SELECT root FROM failure WHERE workspace = ? AND failures > 0 AND not_before_ms <= ?",
        (workspace, at_ms),
    )
    return {root for (root,) in rows}


def note_failed(
    tx: Transaction,
    workspace: int,
    roots: Iterable[int],
    reason: str,
    *,
    not_before_ms: int,
    limit_turns: int | None,
) -> int:
    """Counts a failure; returns how often one of these conversations has failed now.

    `limit_turns` bounds the next batch (a failing one is halved), None leaves it as it is.
    """
    failures = 0
    for root in roots:
        tx.execute(
            "INSERT INTO failure (workspace, root, failures, limit_turns, not_before_ms, reason)"
            " VALUES (?, ?, 1, ?, ?, ?) ON CONFLICT DO UPDATE SET failures = failures + 1,"
            " limit_turns = coalesce(excluded.limit_turns, limit_turns),"
            " not_before_ms = excluded.not_before_ms, reason = excluded.reason",
            (workspace, root, limit_turns, not_before_ms, reason),
        )
        found = "SELECT failures FROM failure WHERE workspace = ? AND root = ?"
        failures = max(failures, int(tx.value(found, (workspace, root))))
    return failures


def note_succeeded(tx: Transaction, workspace: int, roots: Iterable[int]) -> None:
    """Ends the back-off, and lets the next batch grow again, until it is bounded no more.

    Not the first one after a failure: half of a failed batch went well, so the other half is what
    fails, and it is to be halved as it is.
    """
    for root in roots:
        tx.execute(
            "DELETE FROM failure WHERE workspace = ? AND root = ?"
            " AND (limit_turns IS NULL OR (failures = 0 AND limit_turns >= ?))",
            (workspace, root, _UNBOUNDED_TURNS),
        )
        tx.execute(
            "UPDATE failure SET not_before_ms = 0, failures = 0,"
            " limit_turns = CASE WHEN failures = 0 THEN limit_turns * 2 ELSE limit_turns END"
            " WHERE workspace = ? AND root = ?",
            (workspace, root),
        )


def leave_alone(tx: Transaction, workspace: int, roots: Iterable[int], until_ms: int) -> None:
    """Lets conversations that failed rest until then."""
    tx.execute(
        "UPDATE failure SET not_before_ms = ? WHERE workspace = ?"
        " AND root IN (SELECT value FROM json_each(?))",
        (until_ms, workspace, json_keys(roots)),
    )


def bring_near(tx: Transaction, workspace: int, latest_ms: int) -> int:
    """Lets no conversation rest longer than until then; returns how many would have.

    A clock that was ahead when their batches failed would keep them for years.
    """
    tx.execute(
        "UPDATE failure SET not_before_ms = ?1 WHERE workspace = ?2 AND not_before_ms > ?1",
        (latest_ms, workspace),
    )
    return tx.db.changes()


def end_pauses(tx: Transaction, workspace: int, roots: Iterable[int]) -> None:
    """Ends the pauses of conversations that only wait for an endpoint: its rest is theirs."""
    tx.execute(
        "UPDATE failure SET not_before_ms = min(not_before_ms, ?) WHERE workspace = ?"
        " AND root IN (SELECT value FROM json_each(?))",
        (tx.at_ms, workspace, json_keys(roots)),
    )


def forget_failures(tx: Transaction, workspace: int, roots: Iterable[int]) -> None:
    """Forgets that conversations failed: what failed in them is out of the way."""
    tx.execute(
        "DELETE FROM failure WHERE workspace = ? AND root IN (SELECT value FROM json_each(?))",
        (workspace, json_keys(roots)),
    )
