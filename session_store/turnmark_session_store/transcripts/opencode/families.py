"""Which sessions of opencode's database belong together, and what tells that one has changed.

Nothing is read that holds words: rows of sessions, counts and times. A table of a million parts is
not gone through at each change: what changes without a new row is the end of a session, or it is in
the session's log.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.fields import mapping_at
from turnmark_session_store.transcripts.opencode.info import SessionRow, fields_of
from turnmark_session_store.transcripts.opencode.records import moment_of

# How many of the last messages of a session may still be written.
_LATE_MESSAGES = 4
_FINGERPRINT_BYTES = 16

_FIRST = (
    "SELECT data FROM event WHERE aggregate_id = logged.aggregate_id"
    " AND type >= 'message.updated' AND type < 'message.updatee' ORDER BY seq LIMIT 1"
)
_WITH_REMOVED = (
    "FROM event_sequence AS logged WHERE EXISTS"
    " (SELECT 1 FROM event WHERE aggregate_id = logged.aggregate_id"
    " AND type >= 'message.removed' AND type < 'message.removee')"
)

Counts = dict[str, list[Any]]


def families(db: Database, rows: Mapping[str, SessionRow]) -> list[Conversation]:
    """Returns the sessions that belong together: sub-agents, forks and what these came from.

    A fork of 1.x names no origin; it begins with the copy of a message, made when that was made.
    Where the first message was removed, the session's log tells what it was.
    """
    counts: Counts = {name: [rows[name].state] for name in rows}
    moments: dict[str, list[int]] = {name: [row.updated_ms] for name, row in rows.items()}
    firsts: dict[int | None, list[str]] = {}
    for name, first, latest, *more in _messages(db):
        if name in counts:
            counts[name].append((first, latest, *more))
            moments[name].append(moment_of(latest) or 0)
            firsts.setdefault(moment_of(first), []).append(name)
    for name, first in _removed_firsts(db):
        if name in counts:
            firsts.setdefault(first, []).append(name)
    for name, *more in (*_parts(db), *_late(db), *_logs(db)):
        if name in counts:
            counts[name].append(tuple(more))
    return [
        Conversation(
            name=members[0],
            fingerprint=_fingerprint(counts[name] for name in members),
            sessions={name: rows[name].directory for name in members},
            touched_at=max(max(moments[name]) for name in members) / 1000,
        )
        for members in joined(
            {name: row.created_ms for name, row in rows.items()},
            [(name, one) for name, row in rows.items() for one in (row.parent, row.fork[0])],
            (names for first, names in firsts.items() if first is not None),
        )
    ]


def joined(
    began: Mapping[str, int],
    pointers: Iterable[tuple[str, Any]],
    together: Iterable[Collection[str]],
) -> list[list[str]]:
    """Returns the sessions that belong together, the oldest of each first.

    `began` holds all sessions with their beginning, `pointers` what each points at, `together`
    those that have something in common.
    """
    leader = {name: name for name in began}

    def lead(name: str) -> str:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    def join(one: str, other: Any) -> None:
        if isinstance(other, str) and other in leader:
            leader[lead(one)] = lead(other)

    for name, other in pointers:
        join(name, other)
    for names in together:
        for name in names:
            join(name, next(iter(names)))
    found: dict[str, list[str]] = {}
    for name in sorted(began, key=lambda name: (began[name], name)):
        found.setdefault(lead(name), []).append(name)
    return list(found.values())


def _messages(db: Database) -> Iterable[tuple[Any, ...]]:
    """Yields by session the first moment of its messages, the last change, and counts."""
    first, latest = "min(time_created)", "max(time_updated)"
    if db.columns_of("message"):
        columns = ["session_id", first, latest, "count(*)"]
        yield from db.select(columns, "FROM message GROUP BY session_id")
    if db.columns_of("session_message"):
        columns = ["session_id", first, "max(time_created)", "count(*)", "max(seq)"]
        yield from db.select(columns, "FROM session_message GROUP BY session_id")
    if {"session_id", "parts"} <= db.columns_of("messages"):
        changed = ["max(updated_at)", "count(*)", "count(finished_at)", "sum(length(parts))"]
        columns = ["session_id", "min(created_at)", *changed]
        yield from db.select(columns, "FROM messages GROUP BY session_id")


def _removed_firsts(db: Database) -> Iterable[tuple[str, int | None]]:
    """Yields the sessions of which something was removed, with their log's first moment."""
    if not db.columns_of("event") or not db.columns_of("event_sequence"):
        return
    for name, data in db.select(["logged.aggregate_id", f"({_FIRST})"], _WITH_REMOVED):
        info = mapping_at(fields_of(data), "info")
        yield name, moment_of(mapping_at(info, "time").get("created"))


def _parts(db: Database) -> Iterable[tuple[Any, ...]]:
    if db.columns_of("part"):
        yield from db.select(["session_id", "count(*)"], "FROM part GROUP BY session_id")


def _late(db: Database) -> Iterable[tuple[Any, ...]]:
    """Yields by session how often and when the parts of its last messages were written."""
    changed = ["count(*)", "max({0}.time_updated)", "sum({0}.time_updated)"]
    if db.columns_of("part") and db.columns_of("message") and db.columns_of("session"):
        yield from db.select(
            ["session.id", *(one.format("part") for one in changed)],
            "FROM session JOIN message ON message.id IN"
            " (SELECT late.id FROM message AS late WHERE late.session_id = session.id"
            f" ORDER BY late.time_created DESC, late.id DESC LIMIT {_LATE_MESSAGES})"
            " JOIN part ON part.message_id = message.id GROUP BY session.id",
        )
    if not db.columns_of("session_message"):
        return
    for table in ("session", "session_v2"):
        if db.columns_of(table):
            yield from db.select(
                [f"{table}.id", *(one.format("message") for one in changed)],
                f"FROM {table} JOIN session_message AS message ON message.id IN"
                f" (SELECT late.id FROM session_message AS late WHERE late.session_id = {table}.id"
                f" ORDER BY late.seq DESC LIMIT {_LATE_MESSAGES}) GROUP BY {table}.id",
            )


def _logs(db: Database) -> Iterable[tuple[Any, ...]]:
    """Yields by session how long its log is."""
    if db.columns_of("event_sequence"):
        yield from db.table("event_sequence", ["aggregate_id", "seq"])


def _fingerprint(counts: Iterable[Any]) -> bytes:
    text = repr(list(counts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_FINGERPRINT_BYTES).digest()
