"""One message of opencode, reduced to what the graph of turns needs, out of every form it has.

The forms: an `info` with parts (tables of 1.x, files before that, exports), a row of
`session_message` (2.x), and a row with its parts as JSON (before the program was written anew).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from turnmark_session_store.model import Kind, Role
from turnmark_session_store.transcripts.fields import (
    mapping_at,
    mappings_in,
    string_at,
)
from turnmark_session_store.transcripts.moments import moment_ms
from turnmark_session_store.transcripts.opencode.words import (
    PART_BREAK,
    shows_picture,
    spawned_session,
    spoken_parts,
    task_of,
    typed_words,
    unquoted,
)

_COMPACTION = "compaction"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message, by a person, the model or another agent.

    `place` orders the messages of a session. `made_ms` is when it was made, by itself: what every
    copy keeps; None where there are no copies. `said_ms` is when it was said, `touched_ms` when it
    is known to have been written last. `is_whole` says that nothing more comes to it, `is_said`
    that it is a turn. `pieces` are the texts that an answer is made of, and `ended` says how many
    of the first of them are whole. `spawned` are the sub-agents' sessions that it began, `tasks`
    what it told sub-agents. `file` is where it was read.
    """

    id: str
    place: tuple[int, int, str]
    role: Role
    kind: Kind
    text: str
    made_ms: int | None
    said_ms: int | None
    touched_ms: int
    is_whole: bool
    is_said: bool
    file: str
    model: str | None = None
    pieces: tuple[str, ...] = ()
    ended: int = 0
    spawned: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


class Read(NamedTuple):
    """Where a record of a message was found: its id there, its file, and the times of its row."""

    id: str
    file: str
    created: Any = None
    updated: Any = None


def moment_of(value: Any) -> int | None:
    """Returns a time as milliseconds since 1970; first versions wrote seconds. None if none."""
    return moment_ms(value, seconds=True)


def message_of(
    info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], found: Read
) -> Message | None:
    """Returns the message of an `info` with its parts in their order, None if it is nobody's."""
    role = info.get("role")
    if role not in ("user", "assistant"):
        return None
    time = mapping_at(info, "time")
    made = moment_of(time.get("created")) or moment_of(found.created)
    times = (mapping_at(part, "time") for part in parts)
    known = [moment_of(value) for one in times for value in (one.get("start"), one.get("end"))]
    touched = [made, moment_of(found.updated), moment_of(time.get("completed")), *known]
    is_user = role == "user"
    pieces = () if is_user else tuple(spoken_parts(parts))
    text = typed_words(parts, info.get("summary")) if is_user else PART_BREAK.join(pieces)
    return Message(
        id=found.id,
        place=(made or 0, 0, found.id),
        role="user" if is_user else "assistant",
        kind="turn" if is_user else _kind_of(info),
        text=text,
        made_ms=made,
        said_ms=made,
        touched_ms=max((one for one in touched if one is not None), default=0),
        is_whole=not is_user and _is_whole(info, parts),
        is_said=bool(text.strip()) or (is_user and shows_picture(parts)),
        file=found.file,
        model=string_at(info, "modelID") or string_at(mapping_at(info, "model"), "modelID"),
        pieces=pieces,
        ended=_ended(parts),
        spawned=_spawned(parts),
        tasks=_tasks(parts),
    )


def message_of_row(kind: str, data: Mapping[str, Any], seq: int, found: Read) -> Message | None:
    """Returns the message of a row of `session_message`, None if nobody says it."""
    if kind not in ("user", "assistant", _COMPACTION):
        return None
    time = mapping_at(data, "time")
    made = moment_of(time.get("created")) or moment_of(found.created)
    content = mappings_in(data.get("content"))
    text = _words_of_row(kind, data, content)
    pictured = kind == "user" and shows_picture(
        [{"type": "file", **file} for file in mappings_in(data.get("files"))]
    )
    summarises = kind == _COMPACTION
    return Message(
        id=found.id,
        place=(seq, 0, found.id),
        role="user" if kind == "user" else "assistant",
        kind="summary" if summarises else "turn" if kind == "user" else _kind_of(data),
        text=text,
        made_ms=made,
        said_ms=made,
        touched_ms=moment_of(found.updated) or made or 0,
        is_whole=_is_whole_row(kind, data, time),
        is_said=bool(text.strip()) or pictured,
        file=found.file,
        model=string_at(mapping_at(data, "model"), "id"),
        spawned=_spawned(content),
        tasks=_tasks(content),
    )


def message_of_old_row(
    row: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], found: Read, *, summarises: bool
) -> Message | None:
    """Returns the message of a row from before the program was written anew; `{type, data}` parts.

    Its id is a UUID and no copy of it exists, so it has no `made_ms`.
    """
    role = row.get("role")
    if role not in ("user", "assistant"):
        return None
    flat = [{**mapping_at(part, "data"), "type": part.get("type")} for part in parts]
    words = PART_BREAK.join(spoken_parts(flat))
    made = moment_of(row.get("created_at")) or 0
    ends = [part.get("reason") for part in flat if part.get("type") == "finish"]
    is_user = role == "user"
    return Message(
        id=found.id,
        place=(made, _count(row.get("rowid")), found.id),
        role="user" if is_user else "assistant",
        kind="summary" if summarises else "runtime" if "canceled" in ends else "turn",
        text=unquoted(words) if is_user else words,
        made_ms=None,
        said_ms=made or None,
        touched_ms=moment_of(row.get("updated_at")) or made,
        is_whole=is_user or bool(ends or row.get("finished_at")),
        is_said=bool(words.strip()) or (is_user and _shows_old_picture(flat)),
        file=found.file,
        model=string_at(row, "model"),
        spawned=tuple(
            call
            for part in flat
            if part.get("type") == "tool_call" and (call := string_at(part, "id")) is not None
        ),
    )


def _spoken(parts: Sequence[Mapping[str, Any]]) -> str:
    return PART_BREAK.join(spoken_parts(parts))


def _words_of_row(kind: str, data: Mapping[str, Any], content: Sequence[Mapping[str, Any]]) -> str:
    if kind == "assistant":
        return _spoken(content)
    if kind == "user":
        return unquoted(string_at(data, "text") or "")
    return string_at(data, "summary") or ""


def _ended(parts: Sequence[Mapping[str, Any]]) -> int:
    """Returns how many of the first texts say that they are whole."""
    said = [part for part in parts if spoken_parts([part])]
    ends = (at for at, part in enumerate(said) if not mapping_at(part, "time").get("end"))
    return next(ends, len(said))


def _is_whole(info: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether an answer says that nothing more comes.

    A copy is complete before its parts are there; the last of them ends the step that one began.
    """
    if info.get("error"):
        return True
    kinds = [part.get("type") for part in parts]
    is_cut = "step-start" in kinds and "step-finish" not in kinds
    return bool(mapping_at(info, "time").get("completed")) and not is_cut


def _is_whole_row(kind: str, data: Mapping[str, Any], time: Mapping[str, Any]) -> bool:
    if kind == "assistant":
        return bool(time.get("completed") or data.get("error"))
    return kind == "user" or data.get("status") != "running"


def _kind_of(info: Mapping[str, Any]) -> Kind:
    """Returns the kind of what the model said; a stopped answer is no more than a notice."""
    if info.get("summary") is True or _COMPACTION in (info.get("mode"), info.get("agent")):
        return "summary"
    error = info.get("error")
    if not error:
        return "turn"
    names = (mapping_at(info, "error").get(key) for key in ("name", "type"))
    is_aborted = any(isinstance(name, str) and "abort" in name.lower() for name in names)
    return "runtime" if is_aborted else "error"


def _spawned(parts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    sessions = (spawned_session(part) for part in parts)
    return tuple(one for one in sessions if one is not None)


def _tasks(parts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    tasks = (task_of(part) for part in parts)
    return tuple(one for one in tasks if one is not None)


def _shows_old_picture(parts: Sequence[Mapping[str, Any]]) -> bool:
    return any(part.get("type") in ("image_url", "binary") for part in parts)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
