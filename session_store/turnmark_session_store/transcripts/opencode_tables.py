"""What the tables of opencode's database say of its sessions, and their messages.

The database holds accounts and credentials, too: the tables that are named here are read, and no
other. There are three generations of them:

    session, message, part (JSON each), event     1.x
    session_v2, session_message                   2.x; the tables of 1.x stay as they were
    sessions, messages (with their parts)         before the program was written anew

`event` is a log of each session, where it is kept: it tells what was said in messages that were
removed since.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.fields import list_at, mapping_at, string_at
from turnmark_session_store.transcripts.opencode_chain import Removed, SessionRecord
from turnmark_session_store.transcripts.opencode_info import (
    RANK_OLD,
    RANK_ROWS,
    RANK_TABLES,
    RawMessage,
    Revert,
    first_moment,
    is_plain_id,
    messages_of,
    parse_json,
    read_origin,
    read_revert,
    stand_before,
)
from turnmark_session_store.transcripts.opencode_records import (
    Message,
    Read,
    message_of,
    message_of_old_row,
    message_of_row,
    moment_ms,
    objects_in,
)
from turnmark_session_store.transcripts.reader import ReadWarning

_SESSION_COLUMNS = (
    "id",
    "parent_id",
    "directory",
    "title",
    "revert",
    "time_created",
    "time_updated",
    "fork_session_id",
    "fork_boundary",
)
_OLD_COLUMNS = ("id", "parent_session_id", "title", "created_at", "updated_at")
_OLD_MESSAGE_COLUMNS = ("id", "role", "parts", "model", "created_at", "updated_at", "finished_at")
# The first version asked its model for a title in a session of its own.
_OLD_TITLES = "title-"
_OF = "WHERE session_id = ?"
_REMOVED = "WHERE aggregate_id = ? AND type >= 'message.removed' AND type < 'message.removee'"
# A log holds each part as often as it was written: only what tells of these messages is fetched.
_TOLD = (
    "WHERE aggregate_id = ? AND type >= 'message.' AND type < 'message/' AND EXISTS"
    " (SELECT 1 FROM json_each(?) AS gone WHERE instr(event.data, gone.value)) ORDER BY seq"
)


# What no other agent's database has together: tables and a column of each.
_OWN_TABLES = (
    (("session", "directory"), ("message", "data"), ("part", "message_id")),
    (("session_v2", "directory"), ("session_message", "data")),
)
_OLD_NAME = "opencode"


def has_sessions(db: Database) -> bool:
    """Returns whether a database is opencode's; another program took its first tables over."""
    if any(all(name in db.columns_of(table) for table, name in one) for one in _OWN_TABLES):
        return True
    return db.path.name.startswith(_OLD_NAME) and _is_old(db)


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a table of sessions. `state` is what of it changes with the session."""

    id: str
    table: str
    parent: str | None
    directory: str | None
    title: str | None
    revert: Revert | None
    created_ms: int
    updated_ms: int
    fork: tuple[Any, Any]
    state: tuple[Any, ...]


def session_rows(db: Database) -> dict[str, SessionRow]:
    """Returns the sessions of a database; those of a newer table in place of those of an older."""
    found = {row.id: row for row in map(_old_session, _old_rows(db)) if row is not None}
    for table in ("session", "session_v2"):
        for row in db.table(table, _SESSION_COLUMNS):
            session = _session(table, dict(zip(_SESSION_COLUMNS, row, strict=True)), row)
            if session is not None:
                found[session.id] = session
    return found


def sessions_with_messages(db: Database) -> set[str]:
    """Returns the sessions of which a database holds anything that was said."""
    return {
        str(name)
        for table in ("message", "session_message")
        if db.columns_of(table)
        for (name,) in db.select(["DISTINCT session_id"], f"FROM {table}")
    }


def sessions_of_moments(db: Database, moments: Collection[Any]) -> set[str]:
    """Returns the sessions with a message that was made at one of these moments; costs a scan."""
    asked = msgspec.json.encode(sorted(moments)).decode()
    rest = "WHERE time_created IN (SELECT value FROM json_each(?))"
    return {
        str(name)
        for table in ("message", "session_message")
        for (name,) in db.table(table, ("session_id",), rest, (asked,))
    }


def read_session(db: Database, row: SessionRow) -> SessionRecord:
    """Returns a session with all its messages."""
    if row.table == "sessions":
        return _old_record(db, row)
    reading = _Reading(db, row)
    rows = reading.rows()
    raw = reading.raw()
    if rows:
        own = {one.found.id: one for one in raw}
        standing, behind = stand_before([_with_parts(one, own) for one in rows], row.revert)
    else:
        standing, behind = messages_of(raw, row.revert)
        behind += reading.removed({one.found.id for one in raw})
    return _record(
        row,
        rank=RANK_ROWS if rows or row.table == "session_v2" else RANK_TABLES,
        messages=standing,
        removed=behind,
        warnings=reading.warnings,
    )


class _Reading:
    """Reads the messages of one session."""

    def __init__(self, db: Database, row: SessionRow) -> None:
        self._db = db
        self._row = row
        self.warnings: list[ReadWarning] = []

    def rows(self) -> list[Message]:
        """Returns the messages of 2.x."""
        columns = ("id", "type", "seq", "time_created", "time_updated", "data")
        found: list[Message] = []
        for key, kind, seq, created, updated, data in self._db.table(
            "session_message", columns, f"{_OF} ORDER BY seq", (self._row.id,)
        ):
            record = self._object(data)
            if record is None or not is_plain_id(key) or not isinstance(kind, str):
                continue
            place = Read(key, self._db.path.name, created, updated)
            message = message_of_row(kind, record, seq if isinstance(seq, int) else 0, place)
            if message is not None:
                found.append(message)
        return found

    def raw(self) -> list[RawMessage]:
        """Returns the messages of 1.x with their parts."""
        parts: dict[str, list[tuple[Any, Mapping[str, Any]]]] = {}
        for key, message, updated, data in self._db.table(
            "part", ("id", "message_id", "time_updated", "data"), f"{_OF} ORDER BY id", self._only
        ):
            record = self._object(data)
            if record is not None:
                parts.setdefault(str(message), []).append((updated, {**record, "id": key}))
        columns = ("id", "time_created", "time_updated", "data")
        found: list[RawMessage] = []
        for key, created, updated, data in self._db.table("message", columns, _OF, self._only):
            record = self._object(data)
            if record is None or not is_plain_id(key):
                continue
            own = parts.get(key, [])
            written = [moment for one, _ in [(updated, None), *own] if (moment := moment_ms(one))]
            place = Read(key, self._db.path.name, created, max(written, default=None))
            found.append(RawMessage(record, [part for _, part in own], place))
        return found

    def removed(self, there: Collection[str]) -> list[Removed]:
        """Returns the messages that the log says were removed, as it has them."""
        gone: dict[str, int] = {}
        for seq, data in self._db.table("event", ("seq", "data"), _REMOVED, self._only):
            message = string_at(self._told(data), "messageID")
            if message is not None and message not in there and isinstance(seq, int):
                gone[message] = seq
        if not gone:
            return []
        log = _Log(gone)
        names = msgspec.json.encode(list(gone)).decode()
        for seq, kind, data in self._db.table(
            "event", ("seq", "type", "data"), _TOLD, (*self._only, names)
        ):
            if isinstance(seq, int) and isinstance(kind, str):
                log.take(seq, kind, self._told(data))
        return log.removed(self._db.path.name)

    @property
    def _only(self) -> tuple[str]:
        return (self._row.id,)

    def _object(self, data: Any) -> dict[str, Any] | None:
        record = parse_json(data)
        if isinstance(record, dict):
            return record
        self.warnings.append(ReadWarning(file=str(self._db.path), line=0, reason=record))
        return None

    def _told(self, data: Any) -> Mapping[str, Any]:
        record = parse_json(data)
        return record if isinstance(record, dict) else {}


class _LoggedMessage(NamedTuple):
    said_at: int
    info: Mapping[str, Any]


class _Log:
    """What the log of a session tells of messages that are gone; `gone` says when they went."""

    def __init__(self, gone: Mapping[str, int]) -> None:
        self._gone = gone
        self._messages: dict[str, _LoggedMessage] = {}
        self._parts: dict[str, dict[str, Mapping[str, Any]]] = {}

    def take(self, seq: int, kind: str, data: Mapping[str, Any]) -> None:
        """Takes the next record; what was written of a message after it went is none of it."""
        info, part = mapping_at(data, "info"), mapping_at(data, "part")
        message = string_at(info, "id") or string_at(part, "messageID") or data.get("messageID")
        if not isinstance(message, str) or seq > self._gone.get(message, -1):
            return
        if kind.startswith("message.updated"):
            known = self._messages.get(message)
            self._messages[message] = _LoggedMessage(known.said_at if known else seq, info)
        elif kind.startswith("message.part.updated"):
            self._parts.setdefault(message, {})[string_at(part, "id") or ""] = part
        elif kind.startswith("message.part.removed"):
            self._parts.get(message, {}).pop(str(data.get("partID")), None)

    def removed(self, file: str) -> list[Removed]:
        """Returns the messages whose words are known."""
        found: list[Removed] = []
        for key, logged in self._messages.items():
            parts = [part for _, part in sorted(self._parts.get(key, {}).items())]
            message = message_of(logged.info, parts, Read(key, file)) if is_plain_id(key) else None
            if message is not None:
                found.append(
                    Removed(message=message, said_at=logged.said_at, removed_at=self._gone[key])
                )
        return found


def _with_parts(row: Message, own: Mapping[str, RawMessage]) -> Message:
    """Returns a row of 2.x with the words of the message of 1.x that it was made of."""
    raw = own.get(row.id)
    before = message_of(raw.info, raw.parts, raw.found) if raw is not None else None
    if before is None or before.role != row.role:
        return row
    return msgspec.structs.replace(before, place=row.place, is_whole=row.is_whole)


def _session(table: str, fields: Mapping[str, Any], row: tuple[Any, ...]) -> SessionRow | None:
    name = fields["id"]
    if not is_plain_id(name):
        return None
    return SessionRow(
        id=name,
        table=table,
        parent=string_at(fields, "parent_id"),
        directory=string_at(fields, "directory"),
        title=string_at(fields, "title"),
        revert=read_revert(fields["revert"]),
        created_ms=moment_ms(fields["time_created"]) or 0,
        updated_ms=moment_ms(fields["time_updated"]) or 0,
        fork=(fields["fork_session_id"], fields["fork_boundary"]),
        state=row,
    )


def _record(
    row: SessionRow,
    *,
    rank: int,
    messages: Iterable[Message],
    removed: Iterable[Removed] = (),
    warnings: Iterable[ReadWarning] = (),
) -> SessionRecord:
    there = tuple(messages)
    return SessionRecord(
        id=row.id,
        rank=rank,
        title=row.title,
        project=row.directory,
        parent=row.parent,
        created_ms=row.created_ms or first_moment(there),
        updated_ms=row.updated_ms,
        messages=there,
        removed=tuple(removed),
        origin=read_origin(*row.fork),
        by_program=row.id.startswith(_OLD_TITLES),
        warnings=tuple(warnings),
    )


# The tables of the first version, one database for each project.


def _old_rows(db: Database) -> list[tuple[Any, ...]]:
    return db.table("sessions", (*_OLD_COLUMNS, "summary_message_id")) if _is_old(db) else []


def _is_old(db: Database) -> bool:
    return {"session_id", "parts"} <= db.columns_of("messages")


def _old_session(row: tuple[Any, ...]) -> SessionRow | None:
    fields: dict[str, Any] = dict(zip(_OLD_COLUMNS, row, strict=False))
    name = fields["id"]
    if not is_plain_id(name):
        return None
    return SessionRow(
        id=name,
        table="sessions",
        parent=string_at(fields, "parent_session_id"),
        directory=None,
        title=string_at(fields, "title"),
        revert=None,
        created_ms=moment_ms(fields["created_at"]) or 0,
        updated_ms=moment_ms(fields["updated_at"]) or 0,
        fork=(None, None),
        state=row,
    )


def _old_record(db: Database, row: SessionRow) -> SessionRecord:
    warnings: list[ReadWarning] = []
    messages: list[Message] = []
    for number, values in enumerate(
        db.table("messages", _OLD_MESSAGE_COLUMNS, f"{_OF} ORDER BY created_at, rowid", (row.id,))
    ):
        fields: dict[str, Any] = dict(zip(_OLD_MESSAGE_COLUMNS, values, strict=True))
        text = fields["parts"]
        listed = parse_json(f'{{"parts":{text}}}' if isinstance(text, str) else None)
        if isinstance(listed, str):
            warnings.append(ReadWarning(file=str(db.path), line=0, reason=listed))
            continue
        name = fields["id"]
        message = message_of_old_row(
            {**fields, "rowid": number},
            objects_in(list_at(listed, "parts")),
            Read(str(name), db.path.name),
            summarises=name == row.state[-1],
        )
        if message is not None and is_plain_id(name):
            messages.append(message)
    # The program lies in `.opencode` in the project.
    record = _record(row, rank=RANK_OLD, messages=messages, warnings=warnings)
    return msgspec.structs.replace(record, project=str(db.path.parent.parent))
