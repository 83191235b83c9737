"""A made-up opencode: it writes a database as the released program does, in real SQLite.

The schema is that of a database that the program wrote. Every change is a transaction of its own,
and told to the log of its session, as long as `logs` says so.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

from turnmark_session_store.queries import rows_of
from turnmark_session_store.transcripts.opencode.reader import OpencodeReader
from turnmark_session_store.transcripts.reader import ReadSession

DATA = Path(__file__).resolve().parents[2] / "data" / "opencode"
WRITTEN = DATA / "generated-v1.18.33-opencode.db"
EXPORTED = DATA / "generated-v1.18.33-export.json"
PROJECT = "b592a510f695688d2c1a374e60e3db2b2c4e1ef0"
EPOCH_MS = 1_786_269_600_000  # 2026-08-09T10:00:00Z
_TICK_MS = 1_000

Record = dict[str, Any]


def made_id(prefix: str, moment: int, number: int) -> str:
    """An id as the program makes it: the low bits of the time first, and never the same again."""
    return f"{prefix}_{(moment * 4096 + 1) % 2**48:012x}{number:014d}"


class Opencode:
    """The program on a database of its own; its clock `now` goes on by `tick` with each step."""

    def __init__(
        self, path: Path, *, logs: bool = True, now: int = EPOCH_MS, tick: int = _TICK_MS
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.logs = logs
        self.now = now
        self._tick = tick
        self.db = apsw.Connection(str(path))
        self.db.set_busy_timeout(30_000)
        self.db.pragma("journal_mode", "wal")
        self.db.pragma("wal_autocheckpoint", 0)
        if not self.db.execute("SELECT 1 FROM sqlite_master").fetchall():
            self._create()
        self._made = 0

    def _create(self) -> None:
        written = apsw.Connection(f"file:{WRITTEN}?immutable=1", flags=0x41)
        with self.db:
            for (sql,) in written.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC"
            ):
                self.db.execute(sql)
        written.close()

    def close(self) -> None:
        """Ends the program."""
        self.db.close()

    # What a person does.

    def open(self, name: str, *, parent: str | None = None, **columns: Any) -> str:
        """Begins a session."""
        session = f"ses_{name}"
        fields: Record = {
            "id": session,
            "project_id": PROJECT,
            "parent_id": parent,
            "slug": name,
            "directory": "/home/robin/demo",
            "title": f"About {name}",
            "version": "1.18.33",
            "time_created": self.tick(),
            "time_updated": self.now,
            **columns,
        }
        with self.db:
            self._insert("session", fields)
            self._log(session, "session.created.1", {"info": {"id": session}})
        return session

    def prompt(self, session: str, *texts: str, **info: Any) -> str:
        """Types something; what was put back before is deleted with it."""
        self.clean_up(session)
        message = self.begin(session, role="user", **info)
        for text in texts:
            self.part(message, type="text", text=text)
        return message

    def answer(self, session: str, *texts: str, **info: Any) -> str:
        """Answers, whole."""
        message = self.begin(session, role="assistant", **info)
        for text in texts:
            self.part(message, type="text", text=text, time=self._span())
        self.finish(message)
        return message

    def exchange(self, session: str, question: str, answer: str) -> tuple[str, str]:
        """A prompt and its answer."""
        return self.prompt(session, question), self.answer(session, answer)

    def fork(self, session: str, name: str, before: str | None = None) -> str:
        """Copies a session, up to a message; nothing says where it came from."""
        title = self._one("SELECT title FROM session WHERE id = ?", session)
        fork = self.open(name, title=f"{title} (fork #1)")
        for key, created, data in self.messages(session):
            if key == before:
                break
            copy = self._id("msg")
            with self.db:
                self._put("message", copy, fork, data, created=created)
                self._log(fork, "message.updated.1", {"info": {**data, "id": copy}})
            for (part,) in rows_of(
                self.db, "SELECT data FROM part WHERE message_id = ? ORDER BY id", (key,)
            ):
                self.part(copy, **json.loads(part))
        return fork

    def revert(self, session: str, message: str, part: str | None = None) -> None:
        """Puts a session back before a message, or before a part of it."""
        marker = {"messageID": message, **({"partID": part} if part else {}), "snapshot": "0"}
        self._mark(session, json.dumps(marker))

    def unrevert(self, session: str) -> None:
        """Puts in again what was put back."""
        self._mark(session, None)

    def clean_up(self, session: str) -> None:
        """Deletes what was put back."""
        marker = self._one("SELECT revert FROM session WHERE id = ?", session)
        if marker is None:
            return
        at = json.loads(marker)
        keys = [key for key, *_ in self.messages(session)]
        cut = keys.index(at["messageID"])
        for key in keys[cut + (1 if "partID" in at else 0) :]:
            self.remove(key)
        if "partID" in at:
            self._remove_parts(at["messageID"], at["partID"])
        self._mark(session, None)

    def compact(self, session: str, summary: str) -> None:
        """Sums a session up."""
        asked = self.begin(session, role="user")
        self.part(asked, type="compaction", auto=False)
        self.answer(session, summary, mode="compaction", agent="compaction", summary=True)

    def archive(self, session: str) -> None:
        """Hides a session."""
        self.db.execute("UPDATE session SET time_archived = ? WHERE id = ?", (self.tick(), session))

    def delete(self, session: str) -> None:
        """Deletes a session with all that is in it."""
        with self.db:
            for table in ("part", "message"):
                self.db.execute(f"DELETE FROM {table} WHERE session_id = ?", (session,))
            self.db.execute("DELETE FROM session WHERE id = ?", (session,))

    # What the program does, step by step.

    def begin(self, session: str, *, role: str, **info: Any) -> str:
        """Begins a message."""
        data: Record = {"role": role, "agent": "build", **info}
        data["time"] = {"created": self.tick(), **info.get("time", {})}
        key = self._id("msg")
        if role == "assistant":
            data |= {"modelID": "demo", "mode": info.get("mode", "build"), "parentID": "msg_0"}
        with self.db:
            self._put("message", key, session, data, created=self.now)
            self._log(session, "message.updated.1", {"info": {**data, "id": key}})
        return key

    def part(self, message: str, **data: Any) -> str:
        """Adds a part to a message."""
        key = self._id("prt")
        session = self._session_of(message)
        with self.db:
            self._put("part", key, session, data, message_id=message, created=self.tick())
            told = {**data, "id": key, "messageID": message}
            self._log(session, "message.part.updated.1", {"part": told})
        return key

    def stream(self, part: str, **data: Any) -> None:
        """Writes a part anew; the log is told of it when the answer is complete."""
        held = json.loads(self._one("SELECT data FROM part WHERE id = ?", part))
        self.db.execute(
            "UPDATE part SET data = ?, time_updated = ? WHERE id = ?",
            (json.dumps({**held, **data}), self.tick(), part),
        )

    def finish(self, message: str, **info: Any) -> None:
        """Completes an answer."""
        self.part(message, type="step-finish", reason="stop")
        held = json.loads(self._one("SELECT data FROM message WHERE id = ?", message))
        held["time"]["completed"] = self.tick()
        session = self._session_of(message)
        for part in self.parts(message):
            data = json.loads(self._one("SELECT data FROM part WHERE id = ?", part))
            told = {**data, "id": part, "messageID": message}
            self._log(session, "message.part.updated.1", {"part": told})
        with self.db:
            self.db.execute(
                "UPDATE message SET data = ?, time_updated = ? WHERE id = ?",
                (json.dumps({**held, "finish": "stop", **info}), self.now, message),
            )
            self._log(session, "message.updated.1", {"info": {**held, "id": message}})

    def call(self, message: str, child: str, task: str) -> str:
        """Calls a sub-agent."""
        state = {"status": "running", "input": {"prompt": task}, "metadata": {"sessionId": child}}
        return self.part(message, type="tool", tool="task", callID="call_1", state=state)

    def remove(self, message: str) -> None:
        """Deletes a message."""
        session = self._session_of(message)
        with self.db:
            self.db.execute("DELETE FROM part WHERE message_id = ?", (message,))
            self.db.execute("DELETE FROM message WHERE id = ?", (message,))
            self._log(session, "message.removed.1", {"messageID": message})

    def tick(self) -> int:
        """Lets time pass."""
        self.now += self._tick
        return self.now

    def messages(self, session: str) -> list[tuple[str, int, Record]]:
        """The messages of a session as the program lists them: id, moment, data."""
        rows = rows_of(
            self.db,
            "SELECT id, time_created, data FROM message WHERE session_id = ?"
            " ORDER BY time_created, id",
            (session,),
        )
        return [(key, created, json.loads(data)) for key, created, data in rows]

    def parts(self, message: str) -> list[str]:
        """The parts of a message."""
        sql = "SELECT id FROM part WHERE message_id = ? ORDER BY id"
        return [key for (key,) in rows_of(self.db, sql, (message,))]

    def _id(self, prefix: str) -> str:
        self._made += 1
        return made_id(prefix, self.now, self._made)

    def _span(self) -> Record:
        return {"start": self.tick(), "end": self.tick()}

    def _session_of(self, message: str) -> str:
        return str(self._one("SELECT session_id FROM message WHERE id = ?", message))

    def _remove_parts(self, message: str, first: str) -> None:
        self.db.execute("DELETE FROM part WHERE message_id = ? AND id >= ?", (message, first))

    def _mark(self, session: str, marker: str | None) -> None:
        self.db.execute(
            "UPDATE session SET revert = ?, time_updated = ? WHERE id = ?",
            (marker, self.tick(), session),
        )

    def _put(
        self, table: str, key: str, session: str, data: Record, *, created: int, **more: Any
    ) -> None:
        fields = {"id": key, "session_id": session, "time_created": created, **more}
        # As the program does: halves of pairs are escaped, nothing else.
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        text = text.encode("utf-8", "backslashreplace").decode()
        self._insert(table, {**fields, "time_updated": self.now, "data": text})

    def _log(self, session: str, kind: str, data: Record) -> None:
        if not self.logs:
            return
        seq = self._one("SELECT seq FROM event_sequence WHERE aggregate_id = ?", session)
        seq = 0 if seq is None else seq + 1
        self.db.execute("INSERT OR REPLACE INTO event_sequence VALUES (?, ?, NULL)", (session, seq))
        fields = {"id": self._id("evt"), "aggregate_id": session, "seq": seq, "type": kind}
        self._insert("event", {**fields, "data": json.dumps(data)})

    def _insert(self, table: str, fields: Record) -> None:
        columns, marks = ", ".join(fields), ", ".join("?" * len(fields))
        sql = f"INSERT INTO {table} ({columns}) VALUES ({marks})"
        self.db.execute(sql, tuple(fields.values()))

    def _one(self, sql: str, *parameters: Any) -> Any:
        row = self.db.execute(sql, parameters).fetchone()
        return None if row is None else row[0]


def read(*paths: Path, **options: Any) -> dict[str, ReadSession]:
    """Reads a set of files; returns the sessions by name."""
    return {one.session: one for one in OpencodeReader(**options).read(paths)}


def said(*sessions: ReadSession, role: str = "user", kind: str = "turn") -> list[str]:
    """The texts of the turns of one role and kind."""
    turns = [turn.turn for session in sessions for turn in session.turns]
    return [str(turn.text) for turn in turns if turn.role == role and turn.kind == kind]


def edges(*sessions: ReadSession) -> dict[str, str | None]:
    """The DAG by its texts, which must differ: what each turn says, and what its predecessor."""
    turns = [turn for session in sessions for turn in session.turns]
    texts = {turn.turn.id: str(turn.turn.text) for turn in turns}
    assert len(texts) == len(turns), "a turn is listed once"
    found = {
        str(turn.turn.text): texts[turn.predecessor] if turn.predecessor else None for turn in turns
    }
    assert len(found) == len(turns), "texts are told apart"
    return found


def words(session: ReadSession, ids: tuple[str, ...], *others: ReadSession) -> list[str]:
    """What turns say, by their ids."""
    turns = [turn.turn for one in (session, *others) for turn in one.turns]
    texts = {turn.id: str(turn.text) for turn in turns}
    return [texts[key] for key in ids]
