"""What the store shows: turns, branches and sessions as the socket's answers."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from turnmark_events.errors import NotFound, Refused
from turnmark_session_store.last_tries import last_try
from turnmark_session_store.model import CallerRef, MarkOut, Speaker, TurnOut
from turnmark_session_store.owed import dues_of, live_branches, owed_turns
from turnmark_session_store.queries import json_keys, row_of, rows_of, value_of
from turnmark_session_store.requests import ListBranch, ListSessions
from turnmark_session_store.sessions import (
    SessionRow,
    find_session,
    find_turn,
    get_session,
    get_turn,
    turn_id,
)
from turnmark_session_store.times import to_rfc3339
from turnmark_session_store.walks import ancestors, line_of

_LIST_LIMIT = 1_000
_NO_POSITION = 1 << 48
"""More rows than a database holds, and well inside what SQLite takes for a number."""
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


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `session.list`."""

    session: str
    agent: str
    title: str | None
    project: str | None
    head: str | None
    tips: int
    turns: int
    owed_turns: int
    updated_at: str


class SessionList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`session.list`'s answer."""

    sessions: list[SessionSummary]
    next: str | None = None


class BranchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One branch in `session.show`."""

    branch: str
    tip: str | None
    name: str
    state: str
    moved_at: str
    idle_at: str | None
    owed_turns: int
    owed_tokens: int


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """`session.show`'s answer."""

    session: str
    agent: str
    title: str | None
    project: str | None
    memory: str
    namespace: str | None
    head: str | None
    turns: int
    closed: bool
    created_at: str
    updated_at: str
    branches: list[BranchRow]


class TurnList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`session.branch`'s answer, oldest first."""

    turns: list[TurnOut]
    next: str | None = None


def check_limit(limit: int) -> int:
    """Returns `limit` if a list may have that length.

    Raises:
        Refused: if it is below 1 or above 1,000.
    """
    if not 1 <= limit <= _LIST_LIMIT:
        raise Refused(f"limit must be 1 to {_LIST_LIMIT}; page with cursor")
    return limit


def cursor_of(position: int) -> str:
    """Returns an opaque cursor for the row after `position`."""
    return base64.urlsafe_b64encode(str(position).encode()).decode()


def position_of(cursor: str | None) -> int:
    """Returns the position that a cursor stands for, 0 without one.

    Raises:
        Refused: if it is no cursor of ours.
    """
    if cursor is None:
        return 0
    try:
        position = int(base64.urlsafe_b64decode(cursor.encode()))
    except ValueError:
        position = -1
    if not 0 <= position < _NO_POSITION:
        raise Refused("cursor is not one that this daemon gave; begin again without it")
    return position


def list_sessions(db: apsw.Connection, asked: ListSessions, workspace: int | None) -> SessionList:
    """Returns the sessions, last updated first."""
    limit, start = check_limit(asked.limit), position_of(asked.cursor)
    rows = rows_of(
        db,
        "SELECT session.id, name, agent, title, project, head, updated_ms FROM session"
        " LEFT JOIN session_words ON session_words.session = session.id"
        " WHERE deleted_ms IS NULL AND (?1 IS NULL OR agent = ?1) AND (?2 IS NULL OR project = ?2)"
        " ORDER BY updated_ms DESC, session.id DESC LIMIT ?3 OFFSET ?4",
        (asked.agent, asked.project, limit + 1, start),
    )
    found = [
        SessionSummary(
            session=name,
            agent=agent,
            title=title,
            project=project,
            head=turn_id(db, head),
            tips=_count_tips(db, session),
            turns=len(turns_of_session(db, session)),
            owed_turns=owed_turns(db, workspace, name),
            updated_at=to_rfc3339(updated_ms),
        )
        for session, name, agent, title, project, head, updated_ms in rows[:limit]
    ]
    return SessionList(sessions=found, next=cursor_of(start + limit) if len(rows) > limit else None)


def _count_tips(db: apsw.Connection, session: int) -> int:
    tips = value_of(
        db,
        "SELECT count(DISTINCT tip) FROM branch WHERE session = ? AND state = 'live'",
        (session,),
    )
    return int(tips)


def turns_of_session(db: apsw.Connection, session: int) -> list[int]:
    """Returns every turn that the session's branches reach or that was first said in it.

    Without those that were forgotten and that nothing reaches, as of a deleted session that began
    anew under its name.
    """
    rows = rows_of(
        db,
        "WITH RECURSIVE walk (id) AS (SELECT tip FROM branch WHERE session = ?1 AND tip IS NOT NULL"
        " UNION SELECT id FROM turn WHERE session = ?1"
        " AND id NOT IN (SELECT turn FROM forgotten_turn)"
        " UNION SELECT predecessor FROM walk JOIN turn USING (id) WHERE predecessor IS NOT NULL"
        " UNION SELECT parent FROM walk JOIN merge_parent ON merge_parent.turn = walk.id)"
        " SELECT id FROM walk ORDER BY id",
        (session,),
    )
    return [turn for (turn,) in rows]


def show_session(db: apsw.Connection, name: str, workspace: int | None) -> SessionShown:
    """Returns a session with all its branches.

    Raises:
        NotFound: if it is unknown.
    """
    session = get_session(db, name)
    title = row_of(db, "SELECT title FROM session_words WHERE session = ?", (session.id,))
    namespace = row_of(db, "SELECT name FROM namespace WHERE id = ?", (session.namespace,))
    return SessionShown(
        session=session.name,
        agent=session.agent,
        title=title[0] if title else None,
        project=session.project,
        memory=session.memory,
        namespace=namespace[0] if namespace else None,
        head=turn_id(db, session.head),
        turns=len(turns_of_session(db, session.id)),
        closed=session.closed_ms is not None,
        created_at=to_rfc3339(session.created_ms),
        updated_at=to_rfc3339(session.updated_ms),
        branches=_branch_rows(db, session, workspace),
    )


def _branch_rows(
    db: apsw.Connection, session: SessionRow, workspace: int | None
) -> list[BranchRow]:
    rows = rows_of(
        db,
        "SELECT name, title, tip, state, archived, moved_ms, idle_ms FROM branch"
        " WHERE session = ? AND state <> 'deleted' ORDER BY id",
        (session.id,),
    )
    found: list[BranchRow] = []
    for name, title, tip, state, archived, moved_ms, idle_ms in rows:
        owed: list[tuple[int, int]] = []
        if workspace is not None and tip is not None and state == "live":
            dues = dues_of(db, workspace, tip)
            owed = [*dues.due, *((turn, tokens) for turn, _, tokens in dues.held)]
        found.append(
            BranchRow(
                branch=name,
                tip=turn_id(db, tip),
                name=title,
                state="archived" if archived and state == "live" else state,
                moved_at=to_rfc3339(moved_ms),
                idle_at=None if idle_ms is None else to_rfc3339(idle_ms),
                owed_turns=len(owed),
                owed_tokens=sum(tokens for _, tokens in owed),
            )
        )
    return found


def list_branch(db: apsw.Connection, asked: ListBranch) -> TurnList:
    """Returns the turns from the root to `tip`, or to the head, oldest first.

    Raises:
        NotFound: if the session or the turn is unknown.
    """
    limit, start = check_limit(asked.limit), position_of(asked.cursor)
    session = get_session(db, asked.session)
    tip = session.head if asked.tip is None else get_turn(db, session, asked.tip)
    if tip is None:
        return TurnList(turns=[])
    line = line_of(db, tip)
    page = fitting(db, line[start : start + limit])
    following = start + len(page)
    return TurnList(
        turns=show_turns(db, page), next=cursor_of(following) if following < len(line) else None
    )


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


def get_turn_anywhere(db: apsw.Connection, ref: str) -> int:
    """Returns the turn of a ref: `SESSION#ID`, or an id that is unique among namespaces.

    Raises:
        NotFound: if no turn has that id.
        Refused: if several namespaces have one; `facts["candidates"]` are refs that are unique.
    """
    for position, sign in enumerate(ref):
        session = find_session(db, ref[:position]) if sign == "#" else None
        found = None if session is None else find_turn(db, session, ref[position + 1 :])
        if found is not None:
            return found
    rows = rows_of(
        db,
        "SELECT turn.id, session.name FROM turn JOIN session ON session.id = session"
        " WHERE key = ? ORDER BY turn.id",
        (ref,),
    )
    if not rows:
        raise NotFound(
            f"nothing here is called {ref!r}: name a block (b-…), a source (s-…), a topic, "
            "SESSION#ID or a turn's id",
            ref=ref,
        )
    if len(rows) > 1:
        candidates = [f"{name}#{ref}" for _, name in rows]
        raise Refused(
            f"{len(rows)} turns are called {ref!r}; say which: {', '.join(candidates[:5])}",
            candidates=candidates,
        )
    return int(rows[0][0])


def live_tip_count(db: apsw.Connection) -> int:
    """Returns how many live tips there are."""
    return len({live.tip for live in live_branches(db)})
