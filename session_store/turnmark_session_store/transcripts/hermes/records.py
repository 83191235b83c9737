"""What stands in Hermes' database, or in the files of its older versions: sessions and rows.

Ids of rows are no identities: a row that is carried over a compaction, copied by a branch or put
back by a repair gets a new one. Times are numbers of seconds, and not to be relied on: carried rows
keep theirs, some are no times at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from turnmark_session_store.recordable import replace_surrogates
from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.fields import mapping_at, mappings_in, string_at
from turnmark_session_store.transcripts.moments import moment_ms

SESSIONS, MESSAGES = "sessions", "messages"

# Lists of parts stand in a text behind one of these.
_LIST_MARKS = ("\x00json:", "\x01json:")
_TEXT_TYPES = ("text", "input_text", "output_text")
_PICTURE_TYPES = ("image", "image_url", "input_image")
# Chats of one person with the bot. In a group some keys tell whose talk with the bot it is.
_PRIVATE = ("dm", "direct", "private")
# Nothing was said to Hermes before 2020, and what lies beyond 2200 is no time.
_TIMES = (1_577_836_800.0, 7_258_118_400.0)
_MS = 1_000.0

_SESSION_COLUMNS = (
    "id",
    "source",
    "parent_session_id",
    "model_config",
    "end_reason",
    "cwd",
    "git_repo_root",
    "title",
    "user_id",
    "session_key",
    "chat_type",
    "origin_json",
    "started_at",
)
_ROW_COLUMNS = (
    "id",
    "role",
    "content",
    "timestamp",
    "active",
    "compacted",
    "tool_calls",
    "codex_message_items",
    "finish_reason",
    "observed",
    "_compressed_summary",
    "display_kind",
)


class HermesSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session. `origin` is the session that its pointer names, whatever the relation.

    `markers` are the relations that Hermes wrote down, each with the session that it names;
    `branched_at` is the row behind which a branch begins, where it is told. `speaker` is the one
    person who talks there, None where several do.
    """

    id: str
    source: str | None = None
    origin: str | None = None
    markers: Mapping[str, str] = {}
    branched_at: int | None = None
    end_reason: str | None = None
    project: str | None = None
    title: str | None = None
    speaker: str | None = None
    speaker_name: str | None = None
    started_at: float | None = None

    @property
    def is_agent(self) -> bool:
        """Whether another agent gave it its task."""
        return self.source == "subagent" or "_delegate_from" in self.markers

    @property
    def is_scheduled(self) -> bool:
        """Whether a clock set it off."""
        return self.source == "cron"


class HermesRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a session, its words as they stand there.

    `number` is that of the row or line, `stamp` what stands there as a time, `at` the time if it
    is one. `is_taken_back` says that it was rewound. `calls` are the arguments of tools.
    """

    number: int
    role: str
    text: str
    stamp: str | None = None
    at: float | None = None
    is_taken_back: bool = False
    is_summary: bool = False
    is_hidden: bool = False
    is_observed: bool = False
    is_failed: bool = False
    has_picture: bool = False
    calls: Sequence[str] = ()

    @property
    def time(self) -> str | None:
        """When it was said, as RFC 3339 in UTC."""
        if self.at is None:
            return None
        made = datetime.fromtimestamp(self.at, UTC).replace(tzinfo=None)
        return made.isoformat(timespec="milliseconds") + "Z"


def is_hermes(db: Database) -> bool:
    """Returns whether a database is of Hermes: by columns that no other program has together."""
    return {"id", "source", "started_at", "end_reason"} <= db.columns_of(SESSIONS) and {
        "session_id",
        "role",
        "content",
        "tool_calls",
        "timestamp",
    } <= db.columns_of(MESSAGES)


def sessions_in(db: Database, names: Collection[str] | None = None) -> dict[str, HermesSession]:
    """Returns all sessions, or some, by id, the oldest first; of words their titles are read."""
    some = () if names is None else (json.dumps(sorted(names)),)
    rest = "WHERE id IN (SELECT value FROM json_each(?))" if some else ""
    made = [session_of(row) for row in _mappings(db, SESSIONS, _SESSION_COLUMNS, rest, some)]
    made.sort(key=lambda one: (one.started_at or 0.0, one.id))
    return {one.id: one for one in made if one.id}


def rows_in(db: Database, session: str) -> list[HermesRow]:
    """Returns the rows of a session in the order in which they were written."""
    rest = "WHERE session_id = ? ORDER BY id"
    return [row_of(one) for one in _mappings(db, MESSAGES, _ROW_COLUMNS, rest, [session])]


def _mappings(
    db: Database,
    table: str,
    columns: Sequence[str],
    rest: str = "",
    parameters: Sequence[Any] = (),
) -> list[dict[str, Any]]:
    rows = db.table(table, columns, rest, parameters)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def session_of(found: Mapping[str, Any]) -> HermesSession:
    """Returns the session that a row of columns tells of; what is of no use there is left out."""
    config = _object(found.get("model_config"))
    origin = _object(found.get("origin_json"))
    user, key = string_at(found, "user_id"), string_at(found, "session_key") or ""
    is_alone = (string_at(found, "chat_type") or "dm") in _PRIVATE or key.endswith(f":{user}")
    name = string_at(origin, "user_name")
    branched_at = config.get("_branched_from_message")
    return HermesSession(
        id=string_at(found, "id") or "",
        source=string_at(found, "source"),
        origin=string_at(found, "parent_session_id"),
        markers={
            key: value
            for key in ("_branched_from", "_delegate_from", "_reset_from")
            if (value := string_at(config, key))
        },
        branched_at=branched_at if isinstance(branched_at, int) else None,
        end_reason=string_at(found, "end_reason"),
        project=string_at(found, "cwd") or string_at(found, "git_repo_root"),
        title=string_at(found, "title"),
        speaker=user if is_alone else None,
        speaker_name=replace_surrogates(name) if is_alone and name else None,
        started_at=seconds(found.get("started_at")),
    )


def row_of(found: Mapping[str, Any]) -> HermesRow:
    """Returns the row that columns, or the keys of an older version's message, tell of."""
    number = found.get("id")
    content = _opened(found.get("content"))
    items = () if content else _objects(found, "codex_message_items")
    text = text_in(content) or "\n\n".join(text_in(item.get("content")) for item in items)
    stamp = found.get("timestamp")
    at = seconds(stamp)
    return HermesRow(
        number=number if isinstance(number, int) else 0,
        role=string_at(found, "role") or "",
        text=replace_surrogates(text),
        stamp=f"{at:.3f}" if at is not None else None if stamp is None else str(stamp),
        at=at,
        is_taken_back=found.get("active") == 0 and not found.get("compacted"),
        is_summary=bool(found.get("_compressed_summary")),
        is_hidden=found.get("display_kind") == "hidden",
        is_observed=bool(found.get("observed")),
        is_failed=found.get("finish_reason") == "error",
        has_picture=any(part.get("type") in _PICTURE_TYPES for part in mappings_in(content)),
        calls=tuple(
            arguments
            for call in _objects(found, "tool_calls")
            if (arguments := string_at(mapping_at(call, "function"), "arguments"))
        ),
    )


def seconds(value: Any) -> float | None:
    """Returns a moment in seconds since 1970, None for what is none.

    Older versions wrote local times without a zone: that of this machine is assumed.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return None
    at_ms = moment_ms(value, seconds=True)
    return at_ms / _MS if at_ms is not None and _TIMES[0] <= at_ms / _MS < _TIMES[1] else None


def text_in(content: Any) -> str:
    """Returns the text of a content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in mappings_in(content) if part.get("type") in _TEXT_TYPES)
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _opened(content: Any) -> Any:
    """Returns a content with the list that stands in its text, if one does."""
    if not isinstance(content, str) or not content.startswith(_LIST_MARKS):
        return content
    opened = _json(content.split(":", 1)[1])
    return cast("object", opened) if isinstance(opened, list) else content


def _object(value: Any) -> dict[str, Any]:
    found = _json(value) if isinstance(value, str) else value
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _objects(found: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = found.get(key)
    return mappings_in(_json(value) if isinstance(value, str) else value)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
