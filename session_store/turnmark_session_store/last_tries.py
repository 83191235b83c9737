"""How the last attempt to write turns ended: when, by which writer, why.

A batch that failed keeps its reason until its turns are forgotten. A writer's reason may quote what
it was given; what is in quotation marks is left out of what is shown beside marks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import apsw
import msgspec

from turnmark_session_store.queries import json_keys, rows_of
from turnmark_session_store.times import to_rfc3339

_LONGEST_CAUSE = 200
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|「[^」]*」|`[^`]*`|(?<!\w)'[^']*'(?!\w)")


class LastTry(msgspec.Struct, frozen=True, kw_only=True):
    """The newest failed batch of some turns; `at` is when it ended."""

    at: str
    writer: str
    cause: str


def last_try(db: apsw.Connection, workspace: int, turns: Iterable[int]) -> LastTry | None:
    """Returns how the newest batch that failed with any of `turns` ended, None if none did."""
    rows = rows_of(
        db,
        "SELECT closed_ms, writer, batch.reason FROM json_each(?1)"
        " JOIN batch_turn ON batch_turn.turn = value JOIN batch ON batch.id = batch_turn.batch"
        " WHERE workspace = ?2 AND closed_ms IS NOT NULL AND install IS NULL"
        " AND batch.reason IS NOT NULL ORDER BY batch.id DESC LIMIT 1",
        (json_keys(turns), workspace),
    )
    for closed_ms, writer, reason in rows:
        return LastTry(at=to_rfc3339(closed_ms), writer=writer, cause=without_quotes(reason))
    return None


def without_quotes(reason: str) -> str:
    """Returns a writer's reason on one line, without what it quotes and with an end."""
    line = " ".join(_QUOTED.sub("…", reason).split())
    return line if len(line) <= _LONGEST_CAUSE else f"{line[: _LONGEST_CAUSE - 1]}…"
