"""One entry of an OpenClaw transcript, reduced to what the graph of turns needs.

The same JSON objects stand in lines of a file, up to 2026.7, and in rows of a database since. An
entry hangs from another by `parentId`; many only carry the chain. Entries of old versions name no
parent and hang from the entry before them.

A turn's id is its entry's, where that is a UUID. Short ids are unique in one transcript only, and
copies keep their time as well: together they are the same in each copy and in no other transcript.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from turnmark_session_store.transcripts.fields import mapping_at, string_at
from turnmark_session_store.transcripts.ids import hash_of, is_plain_id, is_uuid
from turnmark_session_store.transcripts.moments import moment_ms, written_time
from turnmark_session_store.transcripts.openclaw.words import Words, words_of

_HASH_BYTES = 8


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The first record of a transcript.

    `parent` is what the transcript was copied from: a session, or the path of its file.
    """

    session: str
    started_ms: int | None
    cwd: str | None
    parent: str | None


class Leaf(msgspec.Struct, frozen=True, kw_only=True):
    """A record that puts the agent behind another entry; None is the beginning."""

    target: str | None


class Copied(NamedTuple):
    """What an entry keeps where the program writes it again under another id."""

    role: str
    text: str
    said_ms: int


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A record that takes part in the chain of parents.

    `key` is the id that its turn has wherever the entry stands. `written_ms` is when it was
    written, `time` when its words came in. `words` is None for an entry that only carries the
    chain. `copied` is what copies of it under other ids have in common with it. `spawned` names
    the conversation of a sub-agent that a tool began.
    """

    id: str
    parent: str | None
    line: int
    key: str
    written_ms: int | None
    time: str | None
    words: Words | None = None
    leaf: Leaf | None = None
    copied: Copied | None = None
    spawned: str | None = None


def read_header(record: Mapping[str, Any]) -> Header | None:
    """Returns what a record says of its transcript, None if it is no header."""
    session = string_at(record, "id")
    if record.get("type") != "session" or session is None:
        return None
    return Header(
        session=session,
        started_ms=moment_ms(record.get("timestamp")),
        cwd=string_at(record, "cwd"),
        parent=string_at(record, "parentSession") or string_at(record, "branchedFrom"),
    )


def read_entry(
    record: Mapping[str, Any], *, line: int, session: str, before: str | None
) -> Entry | None:
    """Returns the entry of a record of `session`, None if it is none.

    `before` is the id of the entry before it, which it hangs from where it names no parent.
    """
    own = string_at(record, "id")
    kind = record.get("type")
    message = mapping_at(record, "message" if kind == "message" else "")
    if kind == "session" or (own is None and not message):
        return None
    written_ms, said_ms = moment_ms(record.get("timestamp")), moment_ms(message.get("timestamp"))
    words = words_of(message)
    has_place = "parentId" in record
    return Entry(
        id=own or f"#{line}",
        parent=string_at(record, "parentId") if has_place else before,
        line=line,
        key=_key(own, written_ms, session, line),
        written_ms=written_ms,
        time=written_time(said_ms if said_ms is not None else written_ms),
        words=words,
        leaf=_leaf(record),
        copied=Copied(words.role, words.text, said_ms) if words and said_ms is not None else None,
        spawned=_spawned(message),
    )


def bare_entry(entry_id: str, parent: str | None, line: int) -> Entry:
    """Returns an entry of which only its place is known: its words can't be read."""
    return Entry(
        id=entry_id, parent=parent, line=line, key=_plain(entry_id), written_ms=None, time=None
    )


def _key(own: str | None, written_ms: int | None, session: str, line: int) -> str:
    if own is None:
        return f"{_plain(session)}.{line}"
    if is_uuid(own):
        return own
    return f"{_plain(own)}.{_plain(session) if written_ms is None else written_ms}"


def _plain(text: str) -> str:
    return text if is_plain_id(text) else f"x-{hash_of(text, size_bytes=_HASH_BYTES)}"


def _leaf(record: Mapping[str, Any]) -> Leaf | None:
    # A leaf of mode `side` says where something is noted beside the conversation.
    if record.get("type") != "leaf" or record.get("appendMode") == "side":
        return None
    return Leaf(target=string_at(record, "targetId"))


def _spawned(message: Mapping[str, Any]) -> str | None:
    if message.get("role") != "toolResult":
        return None
    return string_at(mapping_at(message, "details"), "childSessionKey")
