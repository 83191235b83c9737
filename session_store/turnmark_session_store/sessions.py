"""Sessions and turns as rows: found by public names, refused clearly when they are not there."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import apsw

from turnmark_events.errors import Conflict, NotFound, Refused
from turnmark_session_store.model import CallerRef
from turnmark_session_store.names import FAMILY, check_name
from turnmark_session_store.queries import row_of, rows_of
from turnmark_session_store.requests import ForkPoint, OpenSession
from turnmark_session_store.transaction import Transaction

_COLUMNS = (
    "id, name, agent, project, namespace, memory, forked_from, forked_turn, caller, head,"
    " head_branch, created_ms, updated_ms, closed_ms, deleted_ms,"
    " (SELECT namespace.name FROM namespace WHERE namespace.id = session.namespace)"
)
_BY_NAME = f"SELECT {_COLUMNS} FROM session WHERE name = ? AND deleted_ms IS NULL"
_BY_ID = f"SELECT {_COLUMNS} FROM session WHERE id = ?"


class Rows(Protocol):
    """What can answer queries: a transaction, or a reader's connection."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Any:
        """Runs one statement."""


class SessionRow(NamedTuple):
    """One row of `session`; integers are keys of the store."""

    id: int
    name: str
    agent: str
    project: str | None
    namespace: int | None
    memory: str
    forked_from: int | None
    forked_turn: int | None
    caller: int | None
    head: int | None
    head_branch: int | None
    created_ms: int
    updated_ms: int
    closed_ms: int | None
    deleted_ms: int | None
    namespace_name: str | None


def find_session(db: apsw.Connection | apsw.Cursor, name: str) -> SessionRow | None:
    """Returns the session of that name, unless it is unknown or deleted."""
    return _row(db, _BY_NAME, name)


def get_session(db: apsw.Connection, name: str) -> SessionRow:
    """Returns the session of that name.

    Raises:
        NotFound: if it is unknown or deleted.
    """
    found = find_session(db, name)
    if found is None:
        raise NotFound(f"no session {name!r} here; `turnmark sessions` lists them", session=name)
    return found


def session_by_id(db: apsw.Connection, session: int) -> SessionRow:
    """Returns the session of that integer key, deleted or not."""
    found = _row(db, _BY_ID, session)
    assert found is not None  # noqa: S101  keys of sessions come from the store itself
    return found


def _row(db: apsw.Connection | apsw.Cursor, sql: str, parameter: object) -> SessionRow | None:
    row = row_of(db, sql, (parameter,))
    return None if row is None else SessionRow._make(row)


def open_session(tx: Transaction, asked: OpenSession) -> tuple[SessionRow, bool]:
    """Returns the session, made if it is new, and whether it was made now.

    Opening again may fill in what was unknown (agent, title, project); the memory mode is replaced
    when given.

    Raises:
        NotFound: if `forked_from` or `caller` names what is not here.
        Refused: if `forked_from` is the session itself or a turn that was taken back.
        Conflict: if `forked_from` would change the namespace that turns already live in.
    """
    known = find_session(tx.db, asked.session)
    created = known is None
    if created:
        _insert_session(tx, asked)
    else:
        _fill_in(tx, known, asked)
    session = get_session(tx.db, asked.session)
    if asked.forked_from is not None:
        _set_fork_point(tx, session, asked.forked_from)
    if asked.caller is not None and session.caller is None:
        caller = resolve_caller(tx, asked.caller)
        tx.execute("UPDATE session SET caller = ? WHERE id = ?", (caller, session.id))
    if asked.title is not None:
        tx.execute(
            "INSERT INTO session_words (session, title) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET title = excluded.title",
            (session.id, asked.title),
        )
    return get_session(tx.db, asked.session), created


def find_or_open(tx: Transaction, name: str) -> SessionRow:
    """Returns the session of that name; one that is unknown is opened now."""
    known = find_session(tx.cursor, name)
    return known or open_session(tx, OpenSession(session=name))[0]


def _insert_session(tx: Transaction, asked: OpenSession) -> None:
    """Makes the row, or begins anew on that of a deleted session of the same name."""
    check_name(asked.session, "a session's name")
    agent = check_name(asked.agent, "an agent's name") if asked.agent else "agent"
    facts = (agent, asked.project, asked.memory or "on", tx.at_ms, tx.at_ms, asked.session)
    tx.execute(
        "UPDATE session SET agent = ?, project = ?, memory = ?, created_ms = ?, updated_ms = ?,"
        " namespace = NULL, forked_from = NULL, forked_turn = NULL, caller = NULL,"
        " closed_ms = NULL, deleted_ms = NULL WHERE name = ?",
        facts,
    )
    if not tx.db.changes():
        tx.execute(
            "INSERT INTO session (agent, project, memory, created_ms, updated_ms, name)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            facts,
        )


def _fill_in(tx: Transaction, known: SessionRow | None, asked: OpenSession) -> None:
    if known is None:
        return
    if known.agent == "agent" and asked.agent and known.namespace is None:
        check_name(asked.agent, "an agent's name")
        tx.execute("UPDATE session SET agent = ? WHERE id = ?", (asked.agent, known.id))
    if asked.project and known.project is None:
        tx.execute("UPDATE session SET project = ? WHERE id = ?", (asked.project, known.id))
    if asked.memory:
        tx.execute("UPDATE session SET memory = ? WHERE id = ?", (asked.memory, known.id))


def _set_fork_point(tx: Transaction, session: SessionRow, point: ForkPoint) -> None:
    origin = get_session(tx.db, point.session)
    if origin.id == session.id:
        raise Refused(f"session {session.name!r} can't be forked from itself")
    turn = get_turn(tx.db, origin, point.turn) if point.turn else origin.head
    if turn is None:
        raise NotFound(
            f"session {point.session!r} has no head to fork from; name a turn of it",
            session=point.session,
        )
    if session.forked_from == origin.id and session.forked_turn == turn:
        return
    if tx.row("SELECT 1 FROM retired_turn WHERE turn = ?", (turn,)):
        raise Refused(
            f"turn {tx.turn_id(turn)!r} was taken back; fork from a live one, or bring it back with"
            " session.checkout and restore: true"
        )
    namespace = namespace_of(tx, origin)
    if session.namespace is not None and session.namespace != namespace:
        raise Conflict(
            f"session {session.name!r} already has turns of its own; a fork is declared before the "
            "first of them. Open a new session instead",
            session=session.name,
        )
    tx.execute(
        "UPDATE session SET forked_from = ?, forked_turn = ?, namespace = ? WHERE id = ?",
        (origin.id, turn, namespace, session.id),
    )


def namespace_of(tx: Transaction, session: SessionRow) -> int:
    """Returns the session's namespace, fixed now if this is the first time it is needed.

    It is the family: the session that this one was forked from, transitively, or itself. A reader
    that declares its agent's ids global fixes the agent's namespace before the first turn.
    """
    if session.namespace is not None:
        return session.namespace
    namespace = intern_namespace(tx, f"{FAMILY}{session.name}")
    tx.execute("UPDATE session SET namespace = ? WHERE id = ?", (namespace, session.id))
    return namespace


def in_namespace(tx: Transaction, session: SessionRow) -> SessionRow:
    """Returns the session with its namespace fixed; see `namespace_of`."""
    if session.namespace is not None:
        return session
    namespace = namespace_of(tx, session)
    name = str(tx.value("SELECT name FROM namespace WHERE id = ?", (namespace,)))
    return session._replace(namespace=namespace, namespace_name=name)


def intern_namespace(tx: Transaction, name: str) -> int:
    """Returns the integer key of a namespace, made if it is new."""
    found = tx.value("SELECT id FROM namespace WHERE name = ?", (name,))
    if found is None:
        return tx.insert("INSERT INTO namespace (name) VALUES (?)", (name,))
    assert isinstance(found, int)  # noqa: S101  an integer primary key
    return found


def find_turn(db: apsw.Connection, session: SessionRow, turn: str | None) -> int | None:
    """Returns the integer key of a turn's id in the session's namespace, or None."""
    if turn is None or session.namespace is None:
        return None
    row = row_of(
        db, "SELECT id FROM turn WHERE namespace = ? AND key = ?", (session.namespace, turn)
    )
    return None if row is None else row[0]


def get_turn(db: apsw.Connection, session: SessionRow, turn: str) -> int:
    """Returns the integer key of a turn's id in the session's namespace.

    Raises:
        NotFound: if there is no such turn.
    """
    found = find_turn(db, session, turn)
    if found is None:
        raise NotFound(
            f"session {session.name!r} has no turn {turn!r}; `turnmark tree {session.name}` "
            "shows what it has",
            session=session.name,
            turn=turn,
        )
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


def resolve_caller(tx: Transaction, caller: CallerRef) -> int:
    """Returns the integer key of the turn that spawned another.

    Raises:
        NotFound: if its session or the turn is unknown: append the caller first.
    """
    return get_turn(tx.db, get_session(tx.db, caller.session), caller.turn)


def turn_id(db: apsw.Connection, turn: int | None) -> str | None:
    """Returns the public id of an integer key; None for None."""
    if turn is None:
        return None
    row = row_of(db, "SELECT key FROM turn WHERE id = ?", (turn,))
    return None if row is None else str(row[0])
