"""opencode's other stores, with made-up words: tables of 2.x and of the first version, files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from session_store.transcripts.opencode_program import EPOCH_MS, PROJECT, made_id

Record = dict[str, Any]

_NEW_TABLES = """
CREATE TABLE IF NOT EXISTS session_v2 (
    id text PRIMARY KEY, project_id text NOT NULL, parent_id text, fork_session_id text,
    fork_boundary text, slug text NOT NULL, directory text NOT NULL, title text,
    version text NOT NULL, revert text, time_created integer NOT NULL,
    time_updated integer NOT NULL, time_archived integer
);
DROP TABLE IF EXISTS session_message;
CREATE TABLE session_message (
    id text PRIMARY KEY, session_id text NOT NULL, type text NOT NULL, seq integer NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL
);
CREATE UNIQUE INDEX session_message_session_seq_idx ON session_message (session_id, seq);
"""
_OLD_TABLES = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
    message_count INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL, summary_message_id TEXT
);
CREATE TABLE messages (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
    parts TEXT NOT NULL DEFAULT '[]', model TEXT, created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, finished_at INTEGER
);
"""


class NewOpencode:
    """The program of 2.x: one row a message, and forks that say what they are of."""

    def __init__(self, path: Path, *, now: int = EPOCH_MS) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.now = now
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", "wal")
        self.db.execute(_NEW_TABLES)
        self._made = 0

    def close(self) -> None:
        """Ends the program."""
        self.db.close()

    def open(self, name: str, **columns: Any) -> str:
        """Begins a session."""
        self.now += 1_000
        fields: Record = {
            "id": f"ses_{name}",
            "project_id": PROJECT,
            "slug": name,
            "directory": "/home/robin/demo",
            "title": f"About {name}",
            "version": "2.0.1",
            "time_created": self.now,
            "time_updated": self.now,
            **columns,
        }
        self._insert("session_v2", fields)
        return f"ses_{name}"

    def say(self, session: str, kind: str, key: str | None = None, **data: Any) -> str:
        """Adds a row."""
        self.now += 1_000
        self._made += 1
        row = key or made_id("msg", self.now, self._made)
        self._row(session, row, kind, {"time": {"created": self.now}, **data}, self.now)
        return row

    def prompt(self, session: str, text: str) -> str:
        """Types something."""
        return self.say(session, "user", text=text)

    def answer(self, session: str, *texts: str, done: bool = True) -> str:
        """Answers."""
        content = [{"type": "text", "id": str(at), "text": one} for at, one in enumerate(texts)]
        time = {"created": self.now + 1_000, **({"completed": self.now + 2_000} if done else {})}
        return self.say(session, "assistant", content=content, agent="build", time=time)

    def write(self, row: str, **data: Any) -> None:
        """Writes a row anew."""
        self.now += 1_000
        [(held,)] = list[Any](
            self.db.execute("SELECT data FROM session_message WHERE id = ?", (row,))
        )
        self.db.execute(
            "UPDATE session_message SET data = ?, time_updated = ? WHERE id = ?",
            (json.dumps({**json.loads(held), **data}), self.now, row),
        )

    def fork(self, session: str, name: str, before: str, *, copies: bool = True) -> str:
        """Copies the rows before one, with their times, under new ids."""
        boundary = json.dumps({"type": "before", "messageID": before})
        fork = self.open(name, fork_session_id=session, fork_boundary=boundary)
        for key, kind, seq, created, data in list[Any](
            self.db.execute(
                "SELECT id, type, seq, time_created, data FROM session_message"
                " WHERE session_id = ? ORDER BY seq",
                (session,),
            )
        ):
            if key == before or not copies:
                break
            self._row(fork, f"msg_{name}_{seq}", kind, json.loads(data), created)
        return fork

    def revert(self, session: str, message: str) -> None:
        """Puts a session back before a message."""
        self.now += 1_000
        self.db.execute(
            "UPDATE session_v2 SET revert = ?, time_updated = ? WHERE id = ?",
            (json.dumps({"messageID": message, "files": []}), self.now, session),
        )

    def commit(self, session: str, message: str) -> None:
        """Deletes what was put back."""
        self.db.execute(
            "DELETE FROM session_message WHERE session_id = ?1 AND seq >="
            " (SELECT seq FROM session_message WHERE id = ?2)",
            (session, message),
        )
        self.db.execute("UPDATE session_v2 SET revert = NULL WHERE id = ?", (session,))

    def _row(self, session: str, key: str, kind: str, data: Record, created: int) -> None:
        [(seq,)] = list[Any](
            self.db.execute(
                "SELECT coalesce(max(seq) + 2, 1) FROM session_message WHERE session_id = ?",
                (session,),
            )
        )
        fields = {"id": key, "session_id": session, "type": kind, "seq": seq}
        times = {"time_created": created, "time_updated": self.now}
        self._insert("session_message", {**fields, **times, "data": json.dumps(data)})

    def _insert(self, table: str, fields: Record) -> None:
        columns, marks = ", ".join(fields), ", ".join("?" * len(fields))
        sql = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        self.db.execute(sql, tuple(fields.values()))


def write_first_version(
    path: Path, sessions: Iterable[tuple[Any, ...]], messages: Iterable[Sequence[Any]]
) -> Path:
    """Writes a database of the first version.

    Sessions are (id, parent, title, second, summary), messages (id, session, role, parts, second).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(path))
    db.execute(_OLD_TABLES)
    for key, parent, title, second, summary in sessions:
        db.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, 0, ?, ?, ?)",
            (key, parent, title, second, second, summary),
        )
    for key, session, role, parts, second in messages:
        db.execute(
            "INSERT INTO messages VALUES (?, ?, ?, ?, 'demo', ?, ?, ?)",
            (key, session, role, json.dumps(parts), second, second, second),
        )
    db.close()
    return path


def old_text(text: str) -> Record:
    """A part of text of the first version."""
    return {"type": "text", "data": {"text": text}}


class Files:
    """The storage before the database: a file for each session, message and part."""

    def __init__(self, base: Path, *, nested: bool = False) -> None:
        self.base = base
        self._nested = nested
        self.now = EPOCH_MS
        self._made = 0

    def open(self, name: str, **info: Any) -> str:
        """Begins a session."""
        session = f"ses_{name}"
        self.now += 1_000
        folder = self._top / "info" if self._nested else self.base / "session" / PROJECT
        own = {"id": session, "version": "1.0.3", "directory": "/home/robin/demo"}
        time = {"created": self.now, "updated": self.now}
        write(folder / f"{session}.json", {**own, "title": f"About {name}", "time": time, **info})
        return session

    def say(self, session: str, role: str, *texts: str, **info: Any) -> str:
        """Adds a message with its parts."""
        self.now += 1_000
        self._made += 1
        key = made_id("msg", self.now, self._made)
        time = {"created": self.now}
        if role == "assistant":
            time["completed"] = self.now + 500
        own = {"id": key, "sessionID": session, "role": role, "time": time, **info}
        write(self._top / "message" / session / f"{key}.json", own)
        for number, text in enumerate(texts):
            part = {"id": f"prt_{number}", "messageID": key, "type": "text", "text": text}
            write(self.folder_of(session, key) / f"prt_{number}.json", part)
        return key

    def folder_of(self, session: str, message: str) -> Path:
        """Where the parts of a message lie."""
        parts = self._top / "part"
        return parts / session / message if self._nested else parts / message

    def paths(self) -> list[Path]:
        """All files."""
        return sorted(self.base.rglob("*.json"))

    @property
    def _top(self) -> Path:
        return self.base / "session" if self._nested else self.base


def write(path: Path, record: Record) -> None:
    """Writes an object, as a file is written anew each time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
