"""Batches that failed: put off, halved, and in the end one turn parked so that the rest goes on.

Only a failure that may be the batch's own fault halves it. An endpoint that doesn't answer or a
full disk puts the conversation off and changes nothing else.
"""

from __future__ import annotations

import random

from turnmark_memory.planning import Planned
from turnmark_memory.writing import Outcome
from turnmark_session_store.back_off import bring_near, forget_failures, leave_alone
from turnmark_session_store.batches import fail, note_reason, release
from turnmark_session_store.marks import park
from turnmark_session_store.transaction import Transaction

FIRST_BACKOFF_MS = 30_000
_LONGEST_BACKOFF_MS = 3_600_000
_JITTER = 0.2
"""Conversations that failed together, at a dead endpoint, don't come back together."""

_FAILURES_ALONE = 2
"""A single turn is parked when it failed alone this often: once, and once more after a pause."""

_AT_FAULT = "failed"
"""The outcome of a batch that failed by what is in it."""


def note_failure(
    tx: Transaction,
    workspace: int,
    batch: int,
    planned: Planned,
    outcome: Outcome,
    *,
    writer: str,
    first_backoff_ms: int,
) -> bool:
    """Ends a batch that failed and puts its conversation off; tells whether its turn was parked.

    A turn that was parked before stays parked and says nothing about the rest of its conversation:
    how far that is halved, and how long it pauses, is left alone.
    """
    reason = outcome.reason or "the writer failed"
    if planned.parked:
        note_reason(tx, batch, reason)
        release(tx, batch)
        return True
    half = max(1, len(planned.turns) // 2)
    failures = fail(
        tx,
        batch,
        reason,
        not_before_ms=tx.at_ms,
        limit_turns=half if outcome.counts else None,
    )
    if outcome.counts:
        tx.execute("UPDATE batch SET outcome = ? WHERE id = ?", (_AT_FAULT, batch))
        if len(planned.turns) == 1 and _failed_alone(tx, workspace, planned) >= _FAILURES_ALONE:
            park(tx, workspace, planned.turns, "failed", writer)
            forget_failures(tx, workspace, planned.roots)
            return True
    until_ms = tx.at_ms + _pause_ms(failures, first_backoff_ms)
    leave_alone(tx, workspace, planned.roots, until_ms)
    return False


def end_pauses_ahead(tx: Transaction, workspace: int) -> int:
    """Ends the pauses that a clock set which was ahead; returns how many there were."""
    return bring_near(tx, workspace, tx.at_ms + round(_LONGEST_BACKOFF_MS * (1 + _JITTER)))


def _pause_ms(failures: int, first_backoff_ms: int) -> int:
    pause_ms: int = min(first_backoff_ms * 2 ** min(failures - 1, 16), _LONGEST_BACKOFF_MS)
    jitter: float = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  no secret
    return round(pause_ms * jitter)


def _failed_alone(tx: Transaction, workspace: int, planned: Planned) -> int:
    """Returns in how many batches of its own the turn failed by itself, this one included."""
    return int(
        tx.value(
            "SELECT count(*) FROM batch_turn AS mine JOIN batch ON batch.id = mine.batch"
            " WHERE mine.turn = ? AND workspace = ? AND outcome = ? AND NOT EXISTS"
            " (SELECT 1 FROM batch_turn AS other"
            " WHERE other.batch = mine.batch AND other.turn <> mine.turn)",
            (planned.turns[0], workspace, _AT_FAULT),
        )
    )
