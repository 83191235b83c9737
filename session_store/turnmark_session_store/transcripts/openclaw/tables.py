"""What the tables of OpenClaw's database say of its transcripts, and their entries.

One database an agent, `agents/<agent>/agent/openclaw-agent.sqlite`. It holds credentials, too: the
tables that are named here are read, and no other. A row of `session_windows` is one transcript, a
row of `session_nodes` the conversation that went through it, a row of `transcript_events` an entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.fields import string_at
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.openclaw.entries import Entry, bare_entry, read_header
from turnmark_session_store.transcripts.openclaw.windows import Facts
from turnmark_session_store.transcripts.openclaw.zstd import unpack

NAME = "openclaw-agent.sqlite"
"""How every agent's database is called; others beside it have names that begin with this one's."""

EVENTS = "transcript_events"
_WINDOWS = "session_windows"
_WINDOW_COLUMNS = (
    "session_id",
    "session_key",
    "previous_session_id",
    "reason",
    "session_scope",
    "created_at",
    "transcript_updated_at",
    "hook_external_content_source",
    "channel",
    "primary_conversation_id",
    "spawned_by",
    "display_name",
)
_NODE_COLUMNS = (
    "session_key",
    "fork_source_session_id",
    "spawned_by",
    "created_via",
    "label",
    "display_name",
)
# A transcript's first row says where it began; what is longer is no header.
_HEADER_LIMIT_BYTES = 65_536
# The program's own limit of one entry.
_ENTRY_LIMIT_BYTES = 4 * 1024 * 1024
# A chat with one person; in the scope `shared-main` several people write.
_DIRECT, _OWN_SCOPE = "direct", "conversation"
# What the first transcript of a conversation gives as its reason, where it gives one.
_FIRST = (None, "initial", "fork")

Record = Mapping[str, Any]


def is_own(db: Database) -> bool:
    """Returns whether a database has the tables of OpenClaw's transcripts."""
    return {"session_id", "seq", "event_json"} <= db.columns_of(EVENTS)


def read_facts(db: Database) -> list[Facts]:
    """Returns what is known of each transcript; reads no words."""
    nodes = _by_name(db, "session_nodes", _NODE_COLUMNS)
    windows = _by_name(db, _WINDOWS, _WINDOW_COLUMNS)
    names = db.select(("session_id",), f"FROM {_transcripts(db)}")
    withdrawn = {name for (name,) in db.table("memory_session_tombstones", ("session_id",))}
    people = _people(db)
    found: list[Facts] = []
    for name in [name for (name,) in names if isinstance(name, str) and name]:
        window = windows.get(name, {})
        node = nodes.get(window.get("session_key", ""), {})
        is_direct = window.get("session_scope") == _OWN_SCOPE
        found.append(
            Facts(
                session=name,
                conversation=string_at(window, "session_key"),
                previous=string_at(window, "previous_session_id"),
                reason=string_at(window, "reason"),
                origin=_origin(window, node),
                spawned_by=string_at(window, "spawned_by") or string_at(node, "spawned_by"),
                created_ms=_count(window.get("created_at")),
                touched_ms=_count(window.get("transcript_updated_at")),
                title=string_at(node, "label")
                or string_at(node, "display_name")
                or string_at(window, "display_name"),
                channel=string_at(window, "channel"),
                external=string_at(window, "hook_external_content_source"),
                created_via=string_at(node, "created_via"),
                speaker=people.get(window.get("primary_conversation_id")) if is_direct else None,
                withdrawn=name in withdrawn,
            )
        )
    return found


def read_states(db: Database) -> dict[str, tuple[Any, ...]]:
    """Returns by transcript what differs as soon as entries were added to it or rewritten.

    Costs a look into an index for each transcript, and at no entry.
    """
    rewritten = db.table("transcript_rewrite_watermarks", ("session_id", "generation"))
    generations: dict[Any, Any] = dict(rewritten)
    last = f"(SELECT max(seq) FROM {EVENTS} WHERE session_id = transcript.session_id)"
    rows = db.select(("session_id", last), f"FROM {_transcripts(db)} AS transcript")
    return {name: (seq, generations.get(name)) for name, seq in rows}


def read_directories(db: Database) -> dict[str, str]:
    """Returns the directories in which transcripts began, as far as their first rows tell."""
    rows = db.select(
        ("entry.session_id", "event_json"),
        f"FROM {_transcripts(db)} AS transcript JOIN {EVENTS} AS entry"
        " ON entry.session_id = transcript.session_id AND seq = 0 WHERE length(event_json) < ?",
        (_HEADER_LIMIT_BYTES,),
    )
    found: dict[str, str] = {}
    for name, text in rows:
        record = _record(text, None)
        header = read_header(record) if isinstance(record, dict) else None
        if header is not None and header.cwd is not None:
            found[name] = header.cwd
    return found


def read_rows(db: Database, session: str) -> Iterator[tuple[int, Record | Entry | str]]:
    """Yields the number of each row of a transcript with its object, or why it has none.

    A row that is compressed is read where a decoder is installed. Of one that can't be read the
    place in the chain is yielded as well, if that is known.
    """
    places: dict[int, Entry] | None = None
    for number, text, packed in db.table(
        EVENTS, ("seq", "event_json", "event_zstd"), "WHERE session_id = ? ORDER BY seq", (session,)
    ):
        record = _record(text, packed)
        if record is None:
            continue
        yield number, record
        if isinstance(record, str):
            places = _places(db, session) if places is None else places
            if number in places:
                yield number, places[number]


def _record(text: Any, packed: Any) -> Record | str | None:
    if isinstance(packed, bytes) and text is None:
        unpacked = unpack(packed, limit_bytes=_ENTRY_LIMIT_BYTES)
        return unpacked if isinstance(unpacked, str) else parse_line(unpacked + b"\n")
    if isinstance(text, str):
        return parse_line(text.encode("utf-8", "surrogatepass") + b"\n")
    return "neither text nor compressed"


def _places(db: Database, session: str) -> dict[int, Entry]:
    rows = db.table(
        "transcript_event_identities",
        ("seq", "event_id", "parent_id", "event_type"),
        "WHERE session_id = ?",
        (session,),
    )
    return {
        number: bare_entry(entry, parent, number)
        for number, entry, parent, kind in rows
        if isinstance(entry, str) and kind != "session"
    }


def _origin(window: Record, node: Record) -> str | None:
    """Returns the transcript that one is a fork of: the first of a conversation can be one."""
    is_first = window.get("reason") in _FIRST and not window.get("previous_session_id")
    return string_at(node, "fork_source_session_id") if is_first else None


def _by_name(db: Database, table: str, columns: tuple[str, ...]) -> dict[str, Record]:
    rows = db.table(table, columns)
    return {
        row[0]: dict(zip(columns, row, strict=True))
        for row in rows
        if isinstance(row[0], str) and row[0]
    }


def _transcripts(db: Database) -> str:
    """Returns what to select the names of all transcripts from."""
    if db.columns_of(_WINDOWS):
        return _WINDOWS
    return f"(SELECT DISTINCT session_id FROM {EVENTS})"


def _people(db: Database) -> dict[Any, str]:
    """Returns the names of the persons that chats are with, by the chat."""
    rows = db.table("conversations", ("conversation_id", "kind", "label"))
    return {
        name: label
        for name, kind, label in rows
        if kind == _DIRECT and isinstance(label, str) and label
    }


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None
