"""Hermes as far as its database is concerned: made-up talks, written the way the program writes.

Every change is one transaction of a connection that only this program has.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import apsw

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted."
END_OF_SUMMARY = (
    "--- END OF CONTEXT SUMMARY — respond to the message below, not the summary above ---"
)
BEGAN = 1_790_000_000.0
_TABLES = """
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, session_key TEXT, chat_id TEXT,
    chat_type TEXT, display_name TEXT, origin_json TEXT, model_config TEXT, system_prompt TEXT,
    parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT,
    message_count INTEGER DEFAULT 0, cwd TEXT, git_repo_root TEXT, title TEXT,
    rewind_count INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL, content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT,
    timestamp REAL NOT NULL, finish_reason TEXT, reasoning TEXT, codex_message_items TEXT,
    platform_message_id TEXT, observed INTEGER DEFAULT 0, active INTEGER NOT NULL DEFAULT 1,
    compacted INTEGER NOT NULL DEFAULT 0, api_content TEXT
);
CREATE INDEX IF NOT EXISTS idx_messages_session_active ON messages(session_id, active, timestamp);
"""


class HermesStore:
    """A `state.db` that is written; each row that is no copy comes twenty seconds later."""

    def __init__(self, path: Path, *, journal: str = "wal") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", journal)
        self.db.execute(_TABLES)
        self.now = BEGAN

    def close(self) -> None:
        """Ends the program: the log is brought in and removed."""
        self.db.close()

    def begin(self, name: str, origin: str | None = None, **columns: Any) -> str:
        """Begins a session; `model_config` may be given as an object."""
        if isinstance(columns.get("model_config"), dict):
            columns["model_config"] = json.dumps(columns["model_config"])
        row = {"id": name, "source": "cli", "parent_session_id": origin, "started_at": self.now}
        self._insert("sessions", row | columns)
        return name

    def say(self, session: str, content: str | None, role: str = "user", **columns: Any) -> int:
        """Adds a row and returns its number."""
        self.now += 20.0
        row = {"session_id": session, "role": role, "content": content, "timestamp": self.now}
        with self.db:
            self._insert("messages", row | columns)
            count = "UPDATE sessions SET message_count = message_count + 1 WHERE id = ?"
            self.db.execute(count, (session,))
        return self.db.last_insert_rowid()

    def exchange(self, session: str, words: str) -> None:
        """A question and its answer."""
        self.say(session, words)
        self.say(session, f"You said: {words}", "assistant", finish_reason="stop")

    def call(self, session: str, **arguments: Any) -> int:
        """A row in which the model calls a tool."""
        function = {"name": "delegate_task", "arguments": json.dumps(arguments)}
        calls = [{"id": "call_1", "type": "function", "function": function}]
        return self.say(session, None, "assistant", tool_calls=json.dumps(calls))

    def rewind(self, session: str, row: int) -> None:
        """Takes back the live rows from one on."""
        with self.db:
            self.run(
                "UPDATE messages SET active = 0 WHERE session_id = ? AND id >= ? AND active = 1"
                " AND compacted = 0",
                session,
                row,
            )
            self.run("UPDATE sessions SET rewind_count = rewind_count + 1 WHERE id = ?", session)

    def restore(self, session: str, row: int) -> None:
        """Undoes a rewinding."""
        self.run(
            "UPDATE messages SET active = 1 WHERE session_id = ? AND id >= ? AND compacted = 0",
            session,
            row,
        )

    def compact(self, session: str, kept: int, *, restamped: bool = False) -> None:
        """Archives all that is live; writes a summary and the last rows again."""
        with self.db:
            tail = self.live_rows(session)[-kept:] if kept else []
            self.run(
                "UPDATE messages SET active = 0, compacted = 1 WHERE session_id = ? AND active = 1",
                session,
            )
            self.say(session, SUMMARY)
            self._copy(tail, session, restamped=restamped)

    def replace(self, session: str) -> None:
        """Deletes the live rows and writes them again, with their times."""
        with self.db:
            rows = self.live_rows(session)
            self.run("DELETE FROM messages WHERE session_id = ? AND active = 1", session)
            self._copy(rows, session)

    def branch(self, origin: str, name: str, *, restamped: bool = False) -> str:
        """Begins a branch with a copy of what its origin shows."""
        with self.db:
            self.begin(name, origin, model_config={"_branched_from": origin})
            self._copy(self.live_rows(origin), name, restamped=restamped)
        return name

    def go_on(self, origin: str, name: str) -> str:
        """Goes on behind a compaction in a session of its own."""
        with self.db:
            self.end(origin, "compression")
            self.begin(name, origin)
            self.say(name, SUMMARY)
        return name

    def delegate(self, origin: str, name: str, task: str) -> str:
        """Gives a sub-agent a task, and has it report."""
        self.call(origin, goal=task)
        self.begin(name, origin, source="subagent", model_config={"_delegate_from": origin})
        self.exchange(name, f"{task} Report back.")
        return name

    def end(self, session: str, reason: str) -> None:
        """Ends a session."""
        self.run(
            "UPDATE sessions SET end_reason = ?, ended_at = ? WHERE id = ?",
            reason,
            self.now,
            session,
        )

    def live_rows(self, session: str) -> list[Any]:
        """The rows that the model is shown."""
        rows = self.db.execute(
            "SELECT id, role, content, timestamp, tool_calls FROM messages"
            " WHERE session_id = ? AND active = 1 ORDER BY id",
            (session,),
        )
        return list(rows)

    def run(self, sql: str, *values: object) -> None:
        """Changes rows where they are."""
        self.db.execute(sql, values)

    def _copy(self, rows: Sequence[Any], session: str, *, restamped: bool = False) -> None:
        for _, role, content, timestamp, calls in rows:
            self.now -= 20.0
            again = self.now + 20.0 if restamped else timestamp
            self.say(session, content, role, tool_calls=calls, timestamp=again)

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


class HermesPlay:
    """Does what people do with Hermes, at random."""

    def __init__(self, store: HermesStore, chance: Random) -> None:
        self.store = store
        self.chance = chance
        self.open: dict[str, int] = {}  # the first row of each session that is no copy
        self.shared: set[str] = set()
        self._count = 0

    def step(self) -> None:
        """Does one thing."""
        if not self.open or self.chance.random() < 0.05:
            self._begin(self.store.begin(self._name(), cwd=self.chance.choice([None, "/home/w"])))
        session = self.chance.choice(list(self.open))
        act = self.chance.choice(
            [self._talk] * 6
            + [
                self._rewind,
                self._compact,
                self._branch,
                self._go_on,
                self._delegate,
                self._replace,
                self._note,
            ]
        )
        act(session)

    def _name(self) -> str:
        self._count += 1
        return f"20260921_10{self._count:04}_a1b2c3"

    def _begin(self, session: str) -> None:
        rows = self.store.live_rows(session)
        self.open[session] = rows[-1][0] + 1 if rows else 0

    def _talk(self, session: str) -> None:
        words = self.chance.choice(["yes", "我住在卑尔根。", "plan a trip", f"fact {self._count}"])
        self.store.exchange(session, words)

    def _rewind(self, session: str) -> None:
        rows = [row for row in self.store.live_rows(session) if row[0] >= self.open[session]]
        rows = [row for row in rows if row[2] != SUMMARY]
        if rows:
            self.store.rewind(session, self.chance.choice(rows)[0])

    def _compact(self, session: str) -> None:
        self.store.compact(session, self.chance.randint(0, 3))
        if session in self.shared:
            self._begin(session)

    def _branch(self, session: str) -> None:
        branch = self.store.branch(session, self._name())
        for one in (branch, session):  # what both hold is not taken back
            self.shared.add(one)
            self._begin(one)

    def _go_on(self, session: str) -> None:
        del self.open[session]
        name = self.store.go_on(session, self._name())
        self.shared.add(name)
        self._begin(name)

    def _delegate(self, session: str) -> None:
        self.store.delegate(session, self._name(), f"Look into matter {self._count}.")
        self.shared.add(session)

    def _replace(self, session: str) -> None:
        if session not in self.shared:  # what others began on is where it was
            self.store.replace(session)
            self._begin(session)

    def _note(self, session: str) -> None:
        self.store.say(session, "[System note: the machine slept.]")
        self.store.say(session, '{"ok": true}', "tool", tool_name="clock")
