"""A made-up OpenClaw: writes its database, in the real schema, through a connection of its own.

The schema is that of the generated database among the tests' data. Everything that happens is one
transaction, as the program writes it; times go forward by a second with every entry.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from turnmark_session_store.times import to_rfc3339
from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader
from turnmark_session_store.transcripts.reader import ReadSession

DATA = Path(__file__).resolve().parents[2] / "data" / "openclaw"
GENERATED = DATA / "generated-2026.9.6-openclaw-agent.sqlite"
MAIN = "agent:main:main"
EPOCH_MS = 1_786_269_600_000  # 2026-08-09T10:00:00Z
WORDS = ["Bergen", "Oslo", "tea", "coffee", "tabs", "北京", "上海", "喜欢", "咖啡", "Robin", "Dana"]

Event = dict[str, Any]


class Gateway:
    """The program: `now_ms` is its clock, `current` the transcript of each conversation."""

    def __init__(self, path: Path, *, chance: random.Random | None = None) -> None:
        self.path = path
        self.chance = chance or random.Random(7)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(GENERATED, path)
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", "wal")
        self.db.pragma("wal_autocheckpoint", 0)
        self.db.pragma("foreign_keys", 1)
        with self.db:
            for table in ("session_nodes", "session_windows", "schema_meta"):
                self.db.execute(f"DELETE FROM {table}")
        self.now_ms = EPOCH_MS
        self.current: dict[str, str] = {}
        self.leaves: dict[str, str | None] = {}

    def close(self) -> None:
        """Ends the program: the log is brought in and removed."""
        self.db.close()

    # Conversations and their windows.

    def begin(self, key: str = MAIN, *, header: bool = True, **node: Any) -> str:
        """Begins a conversation; columns of its row may be given."""
        window = {name: node.pop(name) for name in list(node) if name in _WINDOW_COLUMNS}
        session = self._uuid()
        with self.db:
            self.insert(
                "session_nodes",
                session_key=key,
                current_session_id=session,
                entry_json="{}",
                updated_at=self.now_ms,
                **node,
            )
            self._window(key, session, header=header, **window)
        return session

    def reset(self, key: str = MAIN, reason: str = "reset") -> str:
        """Begins a transcript with nothing in it."""
        session = self._uuid()
        with self.db:
            self._window(key, session, previous_session_id=self.current[key], reason=reason)
        return session

    def rewind(self, key: str, message: str) -> str:
        """Takes back a message and what came after it."""
        parent = self.parent_of(self.current[key], message)
        return self._rotate(key, "rewind", parent)

    def switch(self, key: str, leaf: str) -> str:
        """Goes back to another branch."""
        return self._rotate(key, "switch", leaf)

    def fork(self, key: str, message: str, fork: str) -> str:
        """Begins another conversation with what stood before a message."""
        source = self.current[key]
        session = self._uuid()
        path = self.path_to(source, self.parent_of(source, message))
        with self.db:
            self.insert(
                "session_nodes",
                session_key=fork,
                current_session_id=session,
                entry_json="{}",
                updated_at=self.now_ms,
                parent_session_key=key,
                fork_source_session_key=key,
                fork_source_session_id=source,
                fork_source_entry_id=message,
            )
            self._window(fork, session, reason="fork")
            for event in path:
                self._append(session, event)
        return session

    def compact(self, key: str = MAIN) -> str:
        """Goes on in another transcript behind a summary, with the last entries again."""
        source = self.current[key]
        kept = self.path_to(source, self.leaves[source])[-2:]
        session = self._uuid()
        with self.db:
            self._window(key, session, previous_session_id=source, reason="compaction")
            summary = self._entry(session, "compaction", summary="The story so far.")
            for event in kept:
                self._append(session, {**event, "parentId": summary})
                summary = event["id"]
        return session

    def _rotate(self, key: str, reason: str, target: str | None) -> str:
        source = self.current[key]
        events = self.events(source)
        session = self._uuid()
        with self.db:
            self._window(key, session, previous_session_id=source, reason=reason)
            for event in events:
                if event["type"] != "session":
                    self._append(session, event)
            self.now_ms += 1
            leaf = {
                "type": "leaf",
                "id": self._uuid()[:8],
                "parentId": events[-1]["id"],
                "timestamp": to_rfc3339(self.now_ms),
                "targetId": target,
            }
            self._append(session, leaf)
            self.leaves[session] = target
        return session

    def _window(self, key: str, session: str, *, header: bool = True, **columns: Any) -> None:
        self.now_ms += 1_000
        columns.setdefault("reason", None if "previous_session_id" in columns else "initial")
        self.insert(
            "session_windows",
            session_id=session,
            session_key=key,
            created_at=self.now_ms,
            updated_at=self.now_ms,
            **columns,
        )
        self.db.execute(
            "UPDATE session_nodes SET current_session_id = ? WHERE session_key = ?", (session, key)
        )
        self.current[key], self.leaves[session] = session, None
        if header:
            self._append(
                session,
                {
                    "type": "session",
                    "version": 4,
                    "id": session,
                    "timestamp": to_rfc3339(self.now_ms),
                    "cwd": "/home/robin/.openclaw/workspace",
                },
            )

    # Entries.

    def user(self, text: str, key: str = MAIN, **message: Any) -> str:
        """A message to the agent."""
        return self._message(key, {"role": "user", "content": text, **message})

    def answer(self, text: str, key: str = MAIN, **message: Any) -> str:
        """What the agent says."""
        content = [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": text}]
        shape = {"provider": "fake", "model": "demo", "stopReason": "stop"}
        return self._message(key, {"role": "assistant", "content": content, **shape, **message})

    def tool(self, key: str = MAIN, **details: Any) -> str:
        """A call of a tool, and what it gave back."""
        call: Event = {"type": "toolCall", "id": "call_1|fc_1", "name": "exec", "arguments": {}}
        self.answer("", key, content=[call], stopReason="toolUse")
        result: Event = {
            "role": "toolResult",
            "toolCallId": "call_1|fc_1",
            "content": [],
            **details,
        }
        return self._message(key, result)

    def note(self, key: str = MAIN) -> str:
        """An entry of the program's own."""
        session = self.current[key]
        return self._entry(session, "custom", customType="model-snapshot", data={})

    def append(self, event: Event, key: str = MAIN) -> None:
        """A row as it is given."""
        with self.db:
            self._append(self.current[key], event)

    def shorten(self, key: str, entry: str) -> None:
        """Writes an entry and all that follows again beside it, under other ids."""
        session = self.current[key]
        path = self.path_to(session, self.leaves[session])
        place = next(at for at, event in enumerate(path) if event["id"] == entry)
        before = path[place]["parentId"]
        with self.db:
            for event in path[place:]:
                self.now_ms += 1
                again = {**event, "id": self._uuid(), "parentId": before}
                again["timestamp"] = to_rfc3339(self.now_ms)
                self._append(session, again)
                before = again["id"]

    def replace(self, session: str, events: Sequence[Event]) -> None:
        """Writes a transcript anew, as the program does for a repair."""
        with self.db:
            self.db.execute("DELETE FROM transcript_events WHERE session_id = ?", (session,))
            for event in events:
                self._append(session, event)
            self.insert(
                "transcript_rewrite_watermarks",
                session_id=session,
                generation=self._uuid(),
                updated_at=self.now_ms,
            )

    def _message(self, key: str, message: Event) -> str:
        self.now_ms += 1_000
        timed = {**message, "timestamp": self.now_ms - 400}
        return self._entry(self.current[key], "message", message=timed)

    def _entry(self, session: str, kind: str, **fields: Any) -> str:
        self.now_ms += 1
        entry = self._uuid()
        event = {"type": kind, "id": entry, "parentId": self.leaves[session], **fields}
        with self.db:
            self._append(session, {**event, "timestamp": to_rfc3339(self.now_ms)})
        return entry

    def _append(self, session: str, event: Event) -> None:
        count = self.value(
            "SELECT coalesce(max(seq) + 1, 0) FROM transcript_events WHERE session_id = ?", session
        )
        self.insert(
            "transcript_events",
            session_id=session,
            seq=count,
            event_json=json.dumps(event, ensure_ascii=False),
            created_at=self.now_ms,
        )
        if "id" in event:
            self.insert(
                "transcript_event_identities",
                session_id=session,
                event_id=event["id"],
                seq=count,
                event_type=event["type"],
                parent_id=event.get("parentId"),
                created_at=self.now_ms,
            )
        if event["type"] not in ("session", "leaf"):
            self.leaves[session] = event.get("id")
        self.db.execute(
            "UPDATE session_windows SET transcript_updated_at = ? WHERE session_id = ?",
            (self.now_ms, session),
        )

    # Looking and changing.

    def events(self, session: str) -> list[Event]:
        """All rows of a transcript."""
        rows = self.db.execute(
            "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq", (session,)
        )
        return [json.loads(text) for (text,) in rows]

    def path_to(self, session: str, entry: str | None) -> list[Event]:
        """The entries of a transcript from the first to one."""
        by_id = {event["id"]: event for event in self.events(session)}
        path: list[Event] = []
        while entry is not None:
            path.append(by_id[entry])
            entry = by_id[entry]["parentId"]
        return path[::-1]

    def parent_of(self, session: str, entry: str) -> str | None:
        """What an entry hangs from."""
        found: str | None = next(e["parentId"] for e in self.events(session) if e["id"] == entry)
        return found

    def insert(self, table: str, **columns: Any) -> None:
        """Adds a row, in the place of one that is there."""
        self.db.execute(
            f"INSERT OR REPLACE INTO {table} ({', '.join(columns)})"
            f" VALUES ({', '.join('?' * len(columns))})",
            tuple(columns.values()),
        )

    def run(self, sql: str, *values: Any) -> None:
        """Changes rows where they are."""
        self.db.execute(sql, values)

    def value(self, sql: str, *values: Any) -> Any:
        """The first column of the first row."""
        found: Any = self.db.execute(sql, values).fetchone()
        return found[0]

    def _uuid(self) -> str:
        digits = f"{self.chance.getrandbits(128):032x}"
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return "-".join(parts)


_WINDOW_COLUMNS = (
    "session_scope",
    "hook_external_content_source",
    "channel",
    "chat_type",
    "primary_conversation_id",
)


def sessions_in(*paths: Path) -> dict[str, ReadSession]:
    """What the reader finds, by name."""
    return {read.session: read for read in OpenClawReader().read(paths)}


def said(read: ReadSession) -> list[str]:
    """What a session added to the set, in order."""
    return [str(one.turn.text) for one in read.turns]


def line_to(read: ReadSession, turn: str | None) -> list[str]:
    """The words from the root to a turn, as far as the session itself said them."""
    turns = {one.turn.id: one for one in read.turns}
    words: list[str] = []
    while turn in turns:
        words.append(str(turns[turn].turn.text))
        turn = turns[turn].predecessor
    return words[::-1]


def text_of_turns(read: ReadSession, ids: Sequence[str]) -> list[str]:
    """The words of some turns of a session."""
    turns = {one.turn.id: str(one.turn.text) for one in read.turns}
    return [turns[one] for one in ids]
