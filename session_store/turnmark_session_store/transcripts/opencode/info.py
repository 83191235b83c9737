"""A session of opencode out of an object and its messages, wherever these were stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from turnmark_session_store.transcripts.fields import mapping_at, string_at
from turnmark_session_store.transcripts.ids import is_plain_id
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.opencode.chain import Origin, Removed, SessionRecord
from turnmark_session_store.transcripts.opencode.records import (
    Message,
    Read,
    message_of,
    moment_of,
)
from turnmark_session_store.transcripts.reader import ReadWarning

# Which store is believed of a session that several hold.
RANK_FILES, RANK_OLD, RANK_EXPORT, RANK_TABLES, RANK_ROWS = range(5)
_THROUGH = "through"


class Revert(NamedTuple):
    """What the marker of a session says: taken back is all from a message, or a part of one, on."""

    message: str
    part: str | None


class RawMessage(NamedTuple):
    """An `info` of a message, the parts in their order, and where it was found."""

    info: Mapping[str, Any]
    parts: Sequence[Mapping[str, Any]]
    found: Read


def parse_json(value: Any) -> dict[str, Any] | str:
    """Returns the object in a column, or why there is none."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogatepass")
    if not isinstance(value, bytes):
        return "no JSON"
    record = parse_line(value)
    return "no JSON" if record is None else record


def read_revert(value: Any) -> Revert | None:
    """Returns what a session's marker says, which is an object or JSON; None where none is."""
    fields = fields_of(value)
    message = string_at(fields, "messageID")
    return Revert(message, string_at(fields, "partID")) if message is not None else None


def read_origin(session: Any, boundary: Any) -> Origin | None:
    """Returns what a session of 2.x says that it was forked from; the boundary may be JSON."""
    if not is_plain_id(session):
        return None
    fields = fields_of(boundary)
    return Origin(
        session=session,
        message=string_at(fields, "messageID"),
        includes=fields.get("type") == _THROUGH,
    )


def fields_of(value: Any) -> Mapping[str, Any]:
    """Returns an object, or the one in JSON; an empty one where there is none."""
    parsed = cast("Mapping[str, Any]", value) if isinstance(value, dict) else parse_json(value)
    return {} if isinstance(parsed, str) else parsed


def messages_of(
    raw: Iterable[RawMessage], revert: Revert | None
) -> tuple[list[Message], list[Removed]]:
    """Returns the messages that stand and those that the session's marker takes back."""
    messages: list[Message] = []
    removed: list[Removed] = []
    for one in raw:
        whole = message_of(one.info, one.parts, one.found)
        if whole is None:
            continue
        if revert is not None and revert.part is not None and whole.id == revert.message:
            kept = _before_part(one, revert.part)
            if kept is not None and kept.text != whole.text:
                # What the message said with those parts, it no longer says.
                other = msgspec.structs.replace(whole, id=f"{whole.id}.{revert.part}")
                removed.append(Removed(message=other))
                whole = kept
        messages.append(whole)
    standing, behind = stand_before(messages, revert)
    return standing, [*removed, *behind]


def stand_before(
    messages: Sequence[Message], revert: Revert | None
) -> tuple[list[Message], list[Removed]]:
    """Returns the messages before a session's marker, and those from there on as taken back."""
    ordered = sorted(messages, key=lambda message: message.place)
    at = next((i for i, one in enumerate(ordered) if revert and one.id == revert.message), None)
    if revert is None or at is None:
        return ordered, []
    cut = at if revert.part is None else at + 1
    return ordered[:cut], [Removed(message=one) for one in ordered[cut:]]


def session_of(
    info: Mapping[str, Any],
    raw: Sequence[RawMessage],
    *,
    name: str,
    rank: int,
    warnings: Sequence[ReadWarning] = (),
) -> SessionRecord:
    """Returns the session of an `info` as files and exports have it."""
    messages, removed = messages_of(raw, read_revert(info.get("revert")))
    time, fork = mapping_at(info, "time"), mapping_at(info, "fork")
    created = moment_of(time.get("created"))
    return SessionRecord(
        id=name,
        rank=rank,
        title=string_at(info, "title"),
        project=string_at(info, "directory"),
        parent=string_at(info, "parentID"),
        created_ms=created if created is not None else first_moment(messages),
        updated_ms=moment_of(time.get("updated")) or 0,
        messages=tuple(messages),
        removed=tuple(removed),
        origin=read_origin(fork.get("sessionID"), fork.get("boundary")),
        warnings=tuple(warnings),
    )


def first_moment(messages: Sequence[Message]) -> int:
    """Returns when the first message of a session was made, 0 if that is not known."""
    return min((one.made_ms for one in messages if one.made_ms is not None), default=0)


def _before_part(raw: RawMessage, part: str) -> Message | None:
    """Returns a message with the parts before one; nothing more comes to it."""
    ids = [string_at(one, "id") for one in raw.parts]
    kept = raw.parts[: ids.index(part)] if part in ids else raw.parts
    message = message_of(raw.info, kept, raw.found)
    return msgspec.structs.replace(message, is_whole=True) if message is not None else None


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


def record_of(
    row: SessionRow,
    *,
    rank: int,
    messages: Iterable[Message],
    removed: Iterable[Removed] = (),
    by_program: bool = False,
    warnings: Iterable[ReadWarning] = (),
) -> SessionRecord:
    """Returns the session of a row with its messages."""
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
        by_program=by_program,
        warnings=tuple(warnings),
    )
