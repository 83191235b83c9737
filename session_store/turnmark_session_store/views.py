"""What the store shows of sessions and branches: the socket's answers."""

from __future__ import annotations

import apsw
import msgspec

from turnmark_session_store.model import TurnOut
from turnmark_session_store.owed import dues_of, owed_turns
from turnmark_session_store.paging import check_limit, cursor_of, position_of
from turnmark_session_store.queries import row_of, rows_of, value_of
from turnmark_session_store.requests import ListBranch, ListSessions
from turnmark_session_store.sessions import (
    SessionRow,
    get_session,
    get_turn,
    turn_id,
)
from turnmark_session_store.times import to_rfc3339
from turnmark_session_store.turn_views import fitting, show_turns
from turnmark_session_store.walks import line_of, turns_of_session


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
