"""What the tables of opencode's database say of its sessions, and their messages.

The database holds accounts and credentials, too: the tables that are named here are read, and no
other. There are three generations of them:

    session, message, part (JSON each), event     1.x
    session_v2, session_message                   2.x; the tables of 1.x stay as they were
    sessions, messages (with their parts)         before the program was written anew

Those of the first version are read by `old.py`, and `event`, a log of each session, by
`log.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from turnmark_session_store.transcripts.database_file import Database, Row
from turnmark_session_store.transcripts.fields import string_at
from turnmark_session_store.transcripts.ids import is_plain_id
from turnmark_session_store.transcripts.opencode import old
from turnmark_session_store.transcripts.opencode.chain import SessionRecord
from turnmark_session_store.transcripts.opencode.info import (
    RANK_ROWS,
    RANK_TABLES,
    RawMessage,
    SessionRow,
    messages_of,
    parse_json,
    read_revert,
    record_of,
    stand_before,
)
from turnmark_session_store.transcripts.opencode.log import removed_messages
from turnmark_session_store.transcripts.opencode.records import (
    Message,
    Read,
    message_of,
    message_of_row,
    moment_of,
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
_OF = "WHERE session_id = ?"
_NO_PARTS: tuple[Any, Iterable[Row]] = (None, ())
_WORDLESS: Mapping[str, Any] = {"type": "tool"}
_WORDLESS_STARTS = tuple(f'{{"type":"{one}"' for one in ("tool", "reasoning", "patch", "snapshot"))
_Part = tuple[Any, Mapping[str, Any]]
"""When a part was written last, and what it holds."""
# Only such a call can have begun a sub-agent.
_SPAWN_MARKS = ('"sessionI', '"prompt"')
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
    return db.path.name.startswith(_OLD_NAME) and old.is_old(db)


def session_rows(db: Database) -> dict[str, SessionRow]:
    """Returns the sessions of a database; those of a newer table in place of those of an older."""
    found = {row.id: row for row in old.old_rows(db)}
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
    if row.table == old.TABLE:
        return old.read_old(db, row)
    reading = _Reading(db, row)
    rows = reading.rows()
    if rows:
        own = {raw.found.id: message_of(*raw) for raw in reading.raw()}
        standing, behind = stand_before([_with_parts(one, own) for one in rows], row.revert)
    else:
        standing, behind = messages_of(reading.raw(), row.revert)
        behind += removed_messages(db, row.id, reading.there)
    return record_of(
        row,
        rank=RANK_ROWS if rows or row.table == "session_v2" else RANK_TABLES,
        messages=standing,
        removed=behind,
        warnings=reading.warnings,
    )


class _Reading:
    """Reads the messages of one session, of which `there` are those of 1.x that could be read.

    One at a time: what a message and its parts hold beside the words is many times as much.
    """

    def __init__(self, db: Database, row: SessionRow) -> None:
        self._db = db
        self._row = row
        self.warnings: list[ReadWarning] = []
        self.there: set[str] = set()

    def rows(self) -> list[Message]:
        """Returns the messages of 2.x."""
        columns = ("id", "type", "seq", "time_created", "time_updated", "data")
        found: list[Message] = []
        for key, kind, seq, created, updated, data in self._db.each(
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

    def raw(self) -> Iterator[RawMessage]:
        """Yields the messages of 1.x with their parts."""
        names = {key for (key,) in self._db.table("message", ("id",), _OF, self._only)}
        parts = groupby(self._parts_of(names), key=itemgetter(1))
        of, own = next(parts, _NO_PARTS)
        columns = ("id", "time_created", "time_updated", "data")
        in_order = f"{_OF} ORDER BY id"
        for key, created, updated, data in self._db.each("message", columns, in_order, self._only):
            there = list[_Part]()
            if of == key:
                there = list(self._read_parts(own))
                of, own = next(parts, _NO_PARTS)
            record = self._object(data)
            if record is None or not is_plain_id(key):
                continue
            self.there.add(key)
            written = [moment for one, _ in [(updated, None), *there] if (moment := moment_of(one))]
            place = Read(key, self._db.path.name, created, max(written, default=None))
            yield RawMessage(record, [part for _, part in there], place)

    def _parts_of(self, names: Container[Any]) -> Iterator[Row]:
        """Yields the parts of messages that are there, in the order in which those are read."""
        columns = ("id", "message_id", "time_updated", "data")
        rows = self._db.each("part", columns, f"{_OF} ORDER BY message_id, id", self._only)
        return (row for row in rows if row[1] in names)

    def _read_parts(self, rows: Iterable[Row]) -> Iterator[_Part]:
        for key, _, updated, data in rows:
            record = _WORDLESS if _is_wordless(data) else self._object(data)
            if record is not None:
                yield updated, {**record, "id": key}

    @property
    def _only(self) -> tuple[str]:
        return (self._row.id,)

    def _object(self, data: Any) -> dict[str, Any] | None:
        record = parse_json(data)
        if isinstance(record, dict):
            return record
        self.warnings.append(ReadWarning(file=str(self._db.path), line=0, reason=record))
        return None


def _is_wordless(data: Any) -> bool:
    """Returns whether a part is sure to hold nothing that counts, without parsing it.

    Results of tools are by far the most of a database.
    """
    if not isinstance(data, str) or not data.startswith(_WORDLESS_STARTS):
        return False
    return not any(mark in data for mark in _SPAWN_MARKS)


def _with_parts(row: Message, own: Mapping[str, Message | None]) -> Message:
    """Returns a row of 2.x with the words of the message of 1.x that it was made of."""
    before = own.get(row.id)
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
        created_ms=moment_of(fields["time_created"]) or 0,
        updated_ms=moment_of(fields["time_updated"]) or 0,
        fork=(fields["fork_session_id"], fields["fork_boundary"]),
        state=row,
    )
