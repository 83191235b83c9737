"""A made-up agent that keeps what was said in SQLite, and its reader: the smallest there can be.

Its program writes through a connection of its own, in WAL mode or not: rows are added, reworded,
flagged as taken back, streamed and deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.database_live import Conversation, finished_sessions
from turnmark_session_store.transcripts.live import Standing
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

AGENT = "notes"


class NoteReader:
    """Reads notes: a `DatabaseReader` and a `Reader`.

    `reads` are the conversations that were read, `looks` how often it was asked what there is.
    """

    agent = AGENT

    def __init__(self, patience_seconds: float = 60.0) -> None:
        self.reads: list[str] = []
        self.looks = 0
        self.patience_seconds = patience_seconds

    def places(self, root: Path) -> tuple[Path, ...]:
        """The directory itself."""
        return (root,)

    def databases(self, root: Path) -> Collection[Path]:
        """Each database right below."""
        return [root] if root.is_file() else list(root.glob("*.db"))

    def conversations(self, db: Database) -> Sequence[Conversation]:
        """Sessions by what they were forked from."""
        self.looks += 1
        tally = db.select(
            ["session", "max(rowid)", "count(*)", "sum(gone)", "sum(edits)", "max(time)"],
            "FROM note GROUP BY session",
        )
        counts = {row[0]: row[1:] for row in tally}
        found: dict[str, list[tuple[str, str | None]]] = {}
        for session, origin, project in db.table("session", ["name", "origin", "project"]):
            found.setdefault(origin or session, []).append((session, project))
        return [
            Conversation(
                name=root,
                fingerprint=repr([counts.get(session) for session, _ in sorted(ones)]).encode(),
                sessions=dict(ones),
                touched_at=max((counts[one][-1] for one, _ in ones if one in counts), default=0.0),
            )
            for root, ones in found.items()
        ]

    def read(
        self, db: Database, conversation: Conversation, *, without: Collection[str], now: float
    ) -> Standing:
        """The sessions of one, the root first."""
        self.reads.append(conversation.name)
        root = conversation.name
        names = sorted(conversation.sessions, key=lambda name: (name != root, name))
        columns = ["id", "above", "role", "text", "gone", "done", "time"]
        sessions: list[ReadSession] = []
        held: dict[str, float] = {}
        for name in [name for name in names if name not in without]:
            rows = db.table("note", columns, "WHERE session = ? ORDER BY rowid", [name])
            for key, above, *_, done, time in rows:
                if above in held or (not done and time + self.patience_seconds > now):
                    held[key] = time + self.patience_seconds
            origin = None if name == root or root in without else root
            sessions.append(
                _session(name, conversation.sessions[name], origin, _without(rows, held))
            )
        return Standing(
            sessions=tuple(sessions), held=frozenset(held), due=min(held.values(), default=None)
        )

    def recognises(self, path: Path, head: bytes) -> bool:
        """By name."""
        del head
        return path.suffix == ".db"

    def read_files(self, paths: Iterable[Path]) -> Iterator[ReadSession]:
        """All of some databases."""
        for path in paths:
            yield from finished_sessions(self, path)


def _without(rows: Sequence[Any], held: Collection[str]) -> list[Any]:
    return [row for row in rows if row[0] not in held]


def _session(name: str, project: str | None, origin: str | None, rows: list[Any]) -> ReadSession:
    turns = [
        ReadTurn(turn=TurnIn(id=key, role=role, text=text), predecessor=above, session=name)
        for key, above, role, text, *_ in rows
    ]
    gone = [row[0] for row in rows if row[4]]
    stand = [row for row in rows if not row[4]]
    below = {row[1] for row in stand}
    tips = tuple(row[0] for row in stand if row[0] not in below)
    return ReadSession(
        session=name,
        agent=AGENT,
        project=project,
        forked_from=ForkPoint(session=origin) if origin else None,
        turns=tuple(turns),
        tips=tips,
        head=tips[-1] if tips else None,
        taken_back=tuple(gone),
    )


class Notes:
    """The program that writes: a second connection to the database at `path`."""

    def __init__(self, path: Path, *, journal: str = "wal") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.db = apsw.Connection(str(path))
        self.db.pragma("journal_mode", journal)
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS session (name TEXT PRIMARY KEY, origin TEXT, project TEXT);"
            "CREATE TABLE IF NOT EXISTS note (id TEXT UNIQUE, session TEXT, above TEXT, role TEXT,"
            " text TEXT, gone INT DEFAULT 0, done INT DEFAULT 1, time REAL, edits INT DEFAULT 0)"
        )
        self._last: dict[str, str] = {}

    def open(self, session: str, origin: str | None = None, project: str | None = None) -> None:
        """Begins a session, perhaps as a fork."""
        self.db.execute("INSERT INTO session VALUES (?, ?, ?)", (session, origin, project))
        if origin is not None:
            self._last[session] = self._last[origin]

    def say(
        self,
        session: str,
        key: str,
        text: str,
        *,
        role: str = "user",
        done: bool = True,
        time: float = 0.0,
    ) -> None:
        """Adds a row behind the session's last."""
        self.db.execute(
            "INSERT INTO note (id, session, above, role, text, done, time)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key, session, self._last.get(session), role, text, done, time),
        )
        self._last[session] = key

    def run(self, sql: str, *values: object) -> None:
        """Changes rows where they are."""
        self.db.execute(sql, values)

    def close(self) -> None:
        """Ends the program: the log is brought in and removed."""
        self.db.close()
