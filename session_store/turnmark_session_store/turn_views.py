"""Turns as they go out: their words, who reaches them, and what was made of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from turnmark_session_store.last_tries import last_try
from turnmark_session_store.model import CallerRef, MarkOut, Speaker, TurnOut
from turnmark_session_store.queries import json_keys, row_of, rows_of, value_of
from turnmark_session_store.sessions import turn_id
from turnmark_session_store.times import to_rfc3339
from turnmark_session_store.walks import ancestors

_PAGE_TEXT_BYTES = 1 << 19
"""Text on one page of turns: with all that is told beside it, it fits a frame of 1 MiB."""


_TURN = """
SELECT turn.id, turn.key, role, kind, recordable, masked, time_ms, predecessor, turn.caller,
    supersedes, session.name, text, speaker_id, speaker_name, metadata,
    EXISTS (SELECT 1 FROM retired_turn WHERE retired_turn.turn = turn.id),
    EXISTS (SELECT 1 FROM forgotten_turn WHERE forgotten_turn.turn = turn.id)
FROM json_each(?) AS wanted JOIN turn ON turn.id = wanted.value
    JOIN session ON session.id = turn.session
    LEFT JOIN turn_words ON turn_words.turn = turn.id
ORDER BY wanted.key
"""


def fitting(db: apsw.Connection, turns: Sequence[int]) -> Sequence[int]:
    """Returns the first of `turns` whose words fit one answer: all, or at least one."""
    sizes = rows_of(
        db,
        "SELECT turn, length(text) + ifnull(length(metadata), 0) FROM json_each(?)"
        " JOIN turn_words ON turn = value",
        (json_keys(turns),),
    )
    size_of, total = dict(sizes), 0
    for position, turn in enumerate(turns):
        total += size_of.get(turn, 0)
        if total > _PAGE_TEXT_BYTES and position:
            return turns[:position]
    return turns


def show_turns(db: apsw.Connection, turns: Sequence[int], *, reached: bool = True) -> list[TurnOut]:
    """Returns turns as they go out, in the order asked for.

    Without `reached` nobody looks which sessions and branches reach them: the costly part.
    """
    rows = rows_of(db, _TURN, (json_keys(turns),))
    marks = _marks_of(db, turns)
    reach = _sessions_reaching(db, turns) if reached else {}
    return [_turn_out(db, row, marks, reach) for row in rows]


def _turn_out(
    db: apsw.Connection,
    row: tuple[Any, ...],
    marks: dict[int, dict[str, MarkOut]],
    reach: dict[int, list[tuple[str, str]]],
) -> TurnOut:
    (turn, key, role, kind, recordable, masked, time_ms, predecessor, caller, supersedes) = row[:10]
    (session, text, speaker_id, speaker_name, metadata, retired, forgotten) = row[10:]
    counts = bool(recordable) and not retired and not forgotten
    speaker = Speaker(id=speaker_id, name=speaker_name) if speaker_id or speaker_name else None
    sessions = list(dict.fromkeys([session, *(name for name, _ in reach.get(turn, []))]))
    return TurnOut(
        id=key,
        role=role,
        kind=kind,
        text="" if text is None else text.decode("utf-8", "replace"),
        speaker=speaker,
        time=to_rfc3339(time_ms),
        caller=_caller_ref(db, caller),
        supersedes=turn_id(db, supersedes),
        metadata=None if metadata is None else msgspec.json.decode(metadata),
        session=session,
        sessions=sessions,
        branch=_branch_of(session, reach.get(turn, [])),
        predecessor=turn_id(db, predecessor),
        merged=_merged(db, turn),
        seq=turn,
        state="forgotten" if forgotten else "retired" if retired else "live",
        recordable=counts,
        masked=bool(masked),
        marks=marks.get(turn, {}),
    )


def _branch_of(session: str, reach: list[tuple[str, str]]) -> str | None:
    for name, branch in reach:
        if name == session:
            return branch
    return reach[0][1] if reach else None


def _caller_ref(db: apsw.Connection, caller: int | None) -> CallerRef | None:
    if caller is None:
        return None
    row = row_of(
        db,
        "SELECT session.name, key FROM turn JOIN session ON session.id = session WHERE turn.id = ?",
        (caller,),
    )
    return None if row is None else CallerRef(session=row[0], turn=row[1])


def _merged(db: apsw.Connection, turn: int) -> list[str]:
    rows = rows_of(
        db,
        "SELECT key FROM merge_parent JOIN turn ON turn.id = parent WHERE turn = ? ORDER BY parent",
        (turn,),
    )
    return [key for (key,) in rows]


def _marks_of(db: apsw.Connection, turns: Sequence[int]) -> dict[int, dict[str, MarkOut]]:
    rows = rows_of(
        db,
        "SELECT turn, workspace.name, workspace.id, outcome, writer, mark.revision, reason"
        " FROM json_each(?)"
        " JOIN mark ON turn = value JOIN workspace ON workspace.id = workspace",
        (json_keys(turns),),
    )
    found: dict[int, dict[str, MarkOut]] = defaultdict(dict)
    for turn, name, workspace, outcome, writer, revision, reason in rows:
        failed = outcome == "parked" and reason == "failed"
        tried = last_try(db, workspace, [turn]) if failed else None
        found[turn][name] = MarkOut(
            outcome=outcome,
            writer=writer,
            revision=revision,
            reason=reason,
            cause=None if tried is None else tried.cause,
            failed_at=None if tried is None else tried.at,
        )
    return found


def _sessions_reaching(
    db: apsw.Connection, turns: Sequence[int]
) -> dict[int, list[tuple[str, str]]]:
    """Returns the (session, branch) pairs whose live branches reach each turn, oldest branch first.

    Looks at the branches of sessions that share a root with the turns, each walked down once.
    """
    if not turns:
        return {}
    wanted = set(turns)
    roots = "SELECT DISTINCT turn.root FROM turn JOIN json_each(?) ON turn.id = value"
    merged = value_of(db, "SELECT EXISTS (SELECT 1 FROM merge_parent)")
    rows = rows_of(
        db,
        "SELECT session.name, branch.name, tip FROM branch"
        " JOIN session ON session.id = branch.session JOIN turn ON turn.id = tip"
        f" WHERE state = 'live' AND tip >= ? AND (? OR turn.root IN ({roots})) ORDER BY branch.id",
        (min(turns), merged, json_keys(turns)),
    )
    found: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for session, branch, tip in rows:
        for turn in wanted.intersection(ancestors(db, tip, min(turns))):
            found[turn].append((session, branch))
    return found
