"""One record of a rollout of Codex, reduced to what the graph of turns needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from turnmark_session_store.model import Role
from turnmark_session_store.transcripts.codex.words import (
    has_picture,
    parts_of,
    spoken_words,
    typed_words,
)
from turnmark_session_store.transcripts.fields import (
    count_at,
    list_at,
    mapping_at,
    normal_time,
    string_at,
)
from turnmark_session_store.transcripts.ids import is_plain_id, is_uuid
from turnmark_session_store.transcripts.moments import moment_ms, written_time

Source = Literal["item", "event", "response"]
"""Which of its copies a message was read from: the program writes each twice or three times."""

# Whole threads that the program holds with itself. The names are an open set; these words in them
# tell that nobody is spoken to.
_PROGRAM_THREAD = re.compile(r"review|compact|memor|title|guardian|system", re.IGNORECASE)
# What sets off a turn is a person's prompt, unless its name has one of these words in it.
_PROGRAM_TRIGGER = re.compile(
    r"schedul|cron|automat|heartbeat|timer|goal|loop|hook|title|guardian|memor|compact|review"
    r"|system|agent|app_tool",
    re.IGNORECASE,
)
# Where a UUID says of which version it is, and the one that begins with a time.
_VERSION_AT, _TIME_ORDERED = 14, "7"
# The tool is called `spawn_agent` in rollouts, and `spawnAgent` to clients.
_SPAWN = "spawn"
# `rollout-<local time>-<thread>`, and after a revert `_<generation>` behind it.
_FILE_NAME = re.compile(r"rollout-[\dT-]{19}-([0-9a-f-]{36})(?:_[0-9a-f-]{36})?\.jsonl")


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """Where the history of a file begins: behind a line of another file of `thread`.

    That line's ordinal is `end_ordinal` - 1; `end_byte` is where it ends, if that is known.
    """

    thread: str
    end_ordinal: int
    end_byte: int | None


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of a rollout: which thread it is of and what that rests on.

    `started` is when the file was begun: all files of a thread name the time of its first one.
    `origin` is the thread that this one is a fork of, `parent` the one whose agent spawned it.
    `by_program` says that the program talks to itself there, `scheduled` that no person set it off.
    Records before ordinal `own_from` are copies.
    """

    thread: str
    started: str
    cwd: str | None
    origin: str | None
    parent: str | None
    base: Base | None
    by_program: bool
    scheduled: bool
    own_from: int | None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message. `turn` is Codex's own id of the exchange, which may hold several of a person.

    `segment` counts the exchanges of the file. `thread` is where it was said, if the record tells.
    `scheduled` says that no person set off the exchange, `pictured` that pictures go with it.
    """

    line: int
    ordinal: int | None
    segment: int
    source: Source
    turn: str | None
    item: str | None
    thread: str | None
    role: Role
    text: str
    time: str
    phase: str | None = None
    model: str | None = None
    scheduled: bool = False


class Envelope(NamedTuple):
    """A record's type and payload; very old ones have no envelope and are their own payload."""

    type: str
    payload: Mapping[str, Any]


def open_envelope(record: Mapping[str, Any]) -> Envelope | None:
    """Returns what is in a record, None if it is none of a rollout."""
    kind = string_at(record, "type")
    if isinstance(record.get("payload"), dict):
        return Envelope(kind or "", mapping_at(record, "payload"))
    if kind == "message" and "role" in record:
        return Envelope("response_item", record)
    if kind is None and string_at(record, "id") and "timestamp" in record:
        return Envelope("session_meta", record)
    return None


def read_meta(payload: Mapping[str, Any], time: str) -> Meta | None:
    """Returns what the first record of a rollout, or a later one of its type, says."""
    thread = plain_id(payload, "id") or plain_id(payload, "session_id")
    if thread is None:
        return None
    source = mapping_at(payload, "source")
    agent = source.get("subagent")
    spawn = mapping_at(mapping_at(source, "subagent"), "thread_spawn")
    named = string_at(payload, "thread_source") or ""
    return Meta(
        thread=thread,
        started=time or normal_time(payload.get("timestamp")) or "",
        cwd=string_at(payload, "cwd"),
        origin=plain_id(payload, "forked_from_id"),
        parent=plain_id(payload, "parent_thread_id") or plain_id(spawn, "parent_thread_id"),
        base=_base(mapping_at(payload, "history_base")),
        by_program=(agent is not None and not spawn)
        or "internal" in source
        or _PROGRAM_THREAD.search(named) is not None,
        scheduled=_PROGRAM_TRIGGER.search(named.replace("subagent", "")) is not None,
        own_from=count_at(payload, "subagent_history_start_ordinal"),
    )


def meta_of_name(name: str, time: str) -> Meta | None:
    """Returns what a file's name says of a rollout whose first record can't be read."""
    thread = thread_of_name(name)
    if thread is None:
        return None
    return Meta(
        thread=thread,
        started=time,
        cwd=None,
        origin=None,
        parent=None,
        base=None,
        by_program=False,
        scheduled=False,
        own_from=None,
    )


def thread_of_name(name: str) -> str | None:
    """Returns the thread that a rollout's file is named after, None for any other name."""
    found = _FILE_NAME.fullmatch(name)
    return found[1] if found is not None and is_uuid(found[1]) else None


def _base(payload: Mapping[str, Any]) -> Base | None:
    thread, end = plain_id(payload, "thread_id"), count_at(payload, "end_ordinal_exclusive")
    if thread is None or end is None:
        return None
    return Base(thread=thread, end_ordinal=end, end_byte=count_at(payload, "end_byte_offset"))


def is_scheduled(payload: Mapping[str, Any]) -> bool:
    """Returns whether a record that begins an exchange says that no person set it off."""
    attribution = mapping_at(payload, "turn_attribution")
    trigger = string_at(attribution, "turn_trigger") or ""
    by_agent = attribution.get("parent_turn_id") or attribution.get("initiating_agent_path")
    return bool(by_agent) or _PROGRAM_TRIGGER.search(trigger) is not None


class Words(NamedTuple):
    """Who says what in a record; `phase` is the answer's: `commentary`, `final_answer`, `plan`."""

    role: Role
    text: str
    phase: str | None = None


def event_words(payload: Mapping[str, Any]) -> Words | None:
    """Returns the words of a legacy event, None if it has none."""
    message = string_at(payload, "message") or ""
    if payload.get("type") == "agent_message":
        text = spoken_words([message])
        return Words("assistant", text, string_at(payload, "phase")) if text else None
    if payload.get("type") != "user_message" or payload.get("kind", "plain") != "plain":
        return None
    pictured = bool(payload.get("images") or payload.get("local_images"))
    return _person(typed_words([message]), pictured=pictured)


def item_words(item: Mapping[str, Any]) -> Words | None:
    """Returns the words of a completed item, None if it has none."""
    content = item.get("content")
    match item.get("type"):
        case "UserMessage":
            parts = parts_of(content)
            return _person(typed_words(parts), pictured=has_picture(content))
        case "AgentMessage":
            text, phase = spoken_words(parts_of(content)), string_at(item, "phase")
        case "Plan":
            text, phase = spoken_words([string_at(item, "text") or ""]), "plan"
        case _:
            return None
    return Words("assistant", text, phase) if text else None


def response_words(payload: Mapping[str, Any]) -> Words | None:
    """Returns the words of what the model was shown or said, None if nobody's."""
    content, role = payload.get("content"), payload.get("role")
    if payload.get("type") != "message":
        return None
    if role == "assistant":
        text = spoken_words(parts_of(content))
        return Words("assistant", text, string_at(payload, "phase")) if text else None
    if role != "user":
        return None
    parts = parts_of(content)
    return _person(typed_words(parts), pictured=has_picture(content))


def _person(text: str, *, pictured: bool) -> Words | None:
    """Returns what a person typed; a picture without words stays as a turn with empty text."""
    return Words("user", text) if text.strip() or pictured else None


def spawned_threads(payload: Mapping[str, Any]) -> list[str]:
    """Returns the threads of sub-agents that an event tells were spawned."""
    item = mapping_at(payload, "item")
    if _SPAWN in (string_at(item, "tool") or ""):
        return [one for one in list_at(item, "receiver_thread_ids") if isinstance(one, str)]
    kind = string_at(payload, "type") or ""
    if kind == "collab_agent_spawn_end":
        thread = string_at(payload, "new_thread_id")
    elif kind == "sub_agent_activity" and payload.get("kind") == "started":
        thread = string_at(payload, "agent_thread_id")
    else:
        thread = None
    return [thread] if thread else []


def plain_id(payload: Mapping[str, Any], key: str) -> str | None:
    """Returns an id that can be one here, None for any other."""
    found = string_at(payload, key)
    return found if found is not None and is_plain_id(found) else None


def uuid_time(text: str | None) -> datetime | None:
    """Returns when a time-ordered UUID was made, None for any other id."""
    if text is None or not is_uuid(text) or text[_VERSION_AT] != _TIME_ORDERED:
        return None
    try:
        return datetime.fromtimestamp(int(text[:8] + text[9:13], 16) / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # its 48 bits reach beyond the year 9999
        return None


def record_time(record: Mapping[str, Any], before: str) -> str:
    """Returns when a record was written; without a time, as the one before it."""
    written = record.get("timestamp")
    if isinstance(written, str):
        return normal_time(written) or before
    return written_time(moment_ms(written, seconds=True)) or before  # early files had numbers
