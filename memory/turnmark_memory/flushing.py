"""Flushes: what one would write, and what is left of its scope afterwards."""

from __future__ import annotations

import apsw
import msgspec

from turnmark_memory.planning import Look, plan
from turnmark_memory.requests import FlushRequest
from turnmark_memory.worker import Failure
from turnmark_session_store.marks import parked
from turnmark_session_store.owed import dues_of, owing_branches


class FlushAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.flush`'s answer; `left` counts the scope's turns that are not dealt with."""

    batches: int
    turns: int
    tokens: int
    blocks: int
    left: int
    failures: list[Failure]


def look_of(asked: FlushRequest) -> Look:
    """Returns where a flush looks: everything in its scope, whole, back-off or not."""
    reasons = {"failed"}
    if asked.backlog:
        reasons.add("backlog")
    if asked.removed:
        reasons.add("removed")
    return Look(
        moved=None, whole=None, session=asked.session, reasons=frozenset(reasons), at_once=True
    )


def flush_answer(
    db: apsw.Connection, workspace: int, look: Look, *, trigger_tokens: int
) -> FlushAnswer:
    """Returns the plan of a flush that is done now: all of it is left."""
    all_parked = parked(db, workspace)
    turns: dict[int, int] = {}
    for live in owing_branches(db, workspace, look.session):
        dues = dues_of(db, workspace, live.tip, all_parked)
        turns.update(dues.due)
        turns.update((turn, tokens) for turn, why, tokens in dues.held if why in look.reasons)
    first = plan(
        db, workspace, look, trigger_tokens=trigger_tokens, at_ms=0, busy_roots=frozenset()
    )
    total = sum(turns.values())
    return FlushAnswer(
        batches=max(len(first), -(-total // trigger_tokens)) if turns else 0,
        turns=len(turns),
        tokens=total,
        blocks=0,
        left=len(turns),
        failures=[],
    )
