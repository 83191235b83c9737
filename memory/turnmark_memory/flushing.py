"""Flushes: what one would write, and what is left of its scope afterwards."""

from __future__ import annotations

import apsw
import msgspec

from turnmark_memory.demand import Failure
from turnmark_memory.planning import Bounds, Look, plan
from turnmark_memory.requests import FlushRequest


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
    db: apsw.Connection,
    workspace: int,
    look: Look,
    owed: dict[int, int],
    *,
    trigger_tokens: int,
) -> FlushAnswer:
    """Returns the plan of a flush that is done now, of the turns `owed` in it: all of them left."""
    total = sum(owed.values())
    first = plan(db, workspace, look, Bounds(trigger_tokens=trigger_tokens), at_ms=0).batches
    return FlushAnswer(
        batches=max(len(first), -(-total // trigger_tokens)) if owed else 0,
        turns=len(owed),
        tokens=total,
        blocks=0,
        left=len(owed),
        failures=[],
    )
