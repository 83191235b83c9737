"""What each topic held lately: the contents that a person's editor may have been opened on.

One small SQLite file, `.turnmark/bases.db`. The newest content of a topic is what memory has seen:
a file that differs from it holds an edit that nobody has taken in. The older ones tell a save by an
editor that was opened before an install from a removal. Where a person's paragraphs have no ids in
the file yet, the *view* beside the content has them. Losing the file loses the finer merge only.

Every function blocks, may be called from any thread, and costs what one topic costs, however many
there are; `scrub` alone reads everything. What has returned survives a power cut: an install whose
content were lost here would be taken for a person's edit.
"""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import apsw
import msgspec
import structlog

from turnmark_events.errors import Unavailable
from turnmark_memory.durable import digest_of
from turnmark_memory.topic import Topic, TopicWarning
from turnmark_memory.topic_format import parse

log = structlog.get_logger(__name__)

KEPT = 8
"""Contents kept per topic and kind: an editor that was opened more installs ago is rare."""

_APPLICATION_ID = 0x746D6261
_SCHEMA_VERSION = 1
_BUSY_MS = 5_000
_PRAGMAS = (
    "PRAGMA journal_mode = wal",
    "PRAGMA synchronous = full",
    "PRAGMA secure_delete = on",  # what was forgotten must not stay in free pages
    "PRAGMA journal_size_limit = 4194304",
)
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_SCHEMA_VERSION};
CREATE TABLE base (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest TEXT,
    content BLOB,
    view BLOB,
    at_ms INTEGER NOT NULL,
    revision INTEGER,
    offered INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX base_by_topic ON base (topic, id);
CREATE TABLE pending (topic TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX pending_by_time ON pending (at_ms);
CREATE TABLE copied (
    topic TEXT NOT NULL, block TEXT NOT NULL, PRIMARY KEY (topic, block)
) WITHOUT ROWID;
CREATE INDEX copied_by_block ON copied (block);
CREATE TABLE warning (topic TEXT NOT NULL, line INTEGER NOT NULL, problem TEXT NOT NULL);
CREATE INDEX warning_by_topic ON warning (topic);
"""

_TABLES = ("base", "pending", "copied", "warning")

Kind = Literal["install", "edit"]


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """One content of a topic's file, and how memory reads it.

    `content` None is "no file". `view` is the content with the ids and notes that the file still
    lacks, None where it lacks nothing. `offered` says that this very save was once taken for one of
    an old text. `revision` is that of the install or intake, None where no block changed.
    """

    topic: str
    kind: Kind
    content: bytes | None
    view: bytes | None = None
    at_ms: int
    revision: int | None = None
    offered: bool = False

    @property
    def digest(self) -> str | None:
        """The digest of the file's bytes, None where there is no file."""
        return None if self.content is None else digest_of(self.content)

    @property
    def seen(self) -> bytes:
        """The bytes as memory reads them."""
        return (self.content or b"") if self.view is None else self.view

    def as_topic(self) -> Topic:
        """Returns the topic as memory reads it."""
        return parse(self.seen)


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a topic that a person should look at; `line` 0 is the file itself."""

    topic: str
    line: int
    problem: str


class Bases:
    """The recent contents of one workspace's topics; `open` it, `close` it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = RLock()
        with self._errors():
            self._db = _open_or_replace(path)

    @classmethod
    def open(cls, path: Path) -> Bases:
        """Returns the bases at `path`; a file that can't be used is replaced by an empty one.

        Raises:
            Unavailable: if `path` can't be written.
        """
        return cls(path)

    def close(self) -> None:
        """Closes the file; nothing may use it any more."""
        with self._lock:
            self._db.close()

    def newest(self, topic: str) -> Base | None:
        """Returns what memory has seen of a topic; content None: it saw that there is no file."""
        return next(iter(self._rows(topic, 1)), None)

    def is_seen(self, topic: str, content: bytes | None) -> bool:
        """Tells whether a topic's file holds what memory saw last."""
        found = self._all(
            "SELECT digest FROM base WHERE topic = ? ORDER BY id DESC LIMIT 1", (topic,)
        )
        digest = None if content is None else digest_of(content)
        return bool(found) and found[0][0] == digest

    def recent(self, topic: str) -> list[Base]:
        """Returns the kept contents of a topic, newest first."""
        return self._rows(topic, 2 * KEPT)

    def topics(self) -> list[str]:
        """Returns the topics that had a file when they were seen last, sorted."""
        rows = self._all(
            "SELECT topic FROM base WHERE id IN (SELECT max(id) FROM base GROUP BY topic)"
            " AND digest IS NOT NULL ORDER BY topic",
            (),
        )
        return [str(topic) for (topic,) in rows]

    def seen_ms(self) -> dict[str, int]:
        """Returns when each topic was seen or installed last; costs a row per kept content."""
        rows = self._all("SELECT topic, max(at_ms) FROM base GROUP BY topic", ())
        return {str(topic): int(at_ms) for topic, at_ms in rows}

    def below(self, folder: str) -> list[str]:
        """Returns the topics in a folder (`people`), those without a file now included."""
        first, last = f"{folder}/", f"{folder}0"  # `0` follows `/`
        rows = self._all(
            "SELECT DISTINCT topic FROM base WHERE topic >= ? AND topic < ?", (first, last)
        )
        return [str(topic) for (topic,) in rows]

    def record(self, bases: Iterable[Base]) -> None:
        """Adds contents, the last of a topic being what is seen now; a redo changes nothing.

        What earlier calls recorded for the same topic and revision is replaced.
        """
        bases = list(bases)
        with self._lock, self._errors(), self._db:
            for topic, revision in dict.fromkeys((base.topic, base.revision) for base in bases):
                if revision is not None:
                    self._db.execute(
                        "DELETE FROM base WHERE topic = ? AND revision = ?", (topic, revision)
                    )
            for base in bases:
                self._add(base)

    def _add(self, base: Base) -> None:
        self._db.execute(
            "INSERT INTO base (topic, kind, digest, content, view, at_ms, revision, offered)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(base.topic, base.kind, base.digest, _packed(base.content), _packed(base.view)),
                *(base.at_ms, base.revision, int(base.offered)),
            ),
        )
        self._db.execute(
            "DELETE FROM base WHERE topic = ?1 AND kind = ?2 AND id NOT IN (SELECT id FROM base"
            f" WHERE topic = ?1 AND kind = ?2 ORDER BY id DESC LIMIT {KEPT})",
            (base.topic, base.kind),
        )
        if base.view is None:
            self._db.execute("DELETE FROM pending WHERE topic = ?", (base.topic,))
            self._db.execute("DELETE FROM copied WHERE topic = ?", (base.topic,))
        else:
            self._db.execute(
                "INSERT OR REPLACE INTO pending VALUES (?, ?)", (base.topic, base.at_ms)
            )

    def pending(self, until_ms: int) -> list[str]:
        """Returns the topics whose ids wait to be written and that were quiet since `until_ms`."""
        rows = self._all("SELECT topic FROM pending WHERE at_ms <= ? ORDER BY topic", (until_ms,))
        return [str(topic) for (topic,) in rows]

    def bring_near(self, now_ms: int) -> None:
        """Takes edits from ahead of now, by a clock that was set back since, as made now."""
        with self._lock, self._errors():
            self._db.execute("UPDATE pending SET at_ms = ?1 WHERE at_ms > ?1", (now_ms,))

    def oldest_pending_ms(self) -> int | None:
        """Returns when the topic was edited last whose ids wait the longest; None: none wait."""
        found: int | None = self._all("SELECT min(at_ms) FROM pending", ())[0][0]
        return found

    def set_copied(self, topic: str, blocks: Iterable[str]) -> None:
        """Notes which ids of a topic's file are another topic's, until its own are written."""
        with self._lock, self._errors(), self._db:
            self._db.execute("DELETE FROM copied WHERE topic = ?", (topic,))
            for block in blocks:
                self._db.execute("INSERT OR REPLACE INTO copied VALUES (?, ?)", (topic, block))

    def copies_of(self, block: str) -> list[str]:
        """Returns the topics whose files hold a copy of `block` that has no id of its own yet."""
        rows = self._all("SELECT topic FROM copied WHERE block = ? ORDER BY topic", (block,))
        return [str(topic) for (topic,) in rows]

    def copied_in(self, topic: str) -> frozenset[str]:
        """Returns the ids in a topic's file that are another block's."""
        rows = self._all("SELECT block FROM copied WHERE topic = ?", (topic,))
        return frozenset(str(block) for (block,) in rows)

    def set_problems(self, topic: str, problems: Sequence[TopicWarning]) -> list[TopicWarning]:
        """Makes `problems` those of a topic; returns the ones that are new."""
        with self._lock, self._errors():
            rows = self._db.execute("SELECT problem FROM warning WHERE topic = ?", (topic,))
            known = {str(problem) for (problem,) in rows}
            if not known and not problems:
                return []
            with self._db:
                self._db.execute("DELETE FROM warning WHERE topic = ?", (topic,))
                for one in problems:
                    values = (topic, one.line, one.problem)
                    self._db.execute("INSERT INTO warning VALUES (?, ?, ?)", values)
        return [one for one in problems if one.problem not in known]

    def problems(self, limit: int = -1) -> list[Problem]:
        """Returns what a person should look at, by topic and line."""
        sql = "SELECT topic, line, problem FROM warning ORDER BY topic, line LIMIT ?"
        return [
            Problem(topic=str(topic), line=line, problem=str(problem))
            for topic, line, problem in self._all(sql, (limit,))
        ]

    def unreadable(self) -> frozenset[str]:
        """Returns the topics whose files could not be read when they were looked at last."""
        rows = self._all("SELECT topic FROM warning WHERE line = 0", ())
        return frozenset(str(topic) for (topic,) in rows)

    def scrub(self, names: Iterable[str]) -> int:
        """Drops all older contents of the topics in which a label or block id of `names` stood.

        Their newest content stays: it is what the file holds. Returns how many were dropped; the
        bytes are gone from the file and its log.
        """
        wanted = [name.encode() for name in names]
        if not wanted:
            return 0
        with self._lock, self._errors():
            found = {
                str(topic)
                for topic, content, view in self._db.execute(
                    "SELECT topic, content, view FROM base"
                )
                if any(_holds(blob, wanted) for blob in (content, view))
            }
            before = self._db.total_changes()
            with self._db:
                for topic in found:
                    self._db.execute(
                        "DELETE FROM base WHERE topic = ?1 AND id <>"
                        " (SELECT max(id) FROM base WHERE topic = ?1)",
                        (topic,),
                    )
            dropped = self._db.total_changes() - before
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return dropped

    def drop(self, topics: Iterable[str]) -> None:
        """Forgets that there were `topics`; their names are gone from the file and its log."""
        with self._lock, self._errors():
            with self._db:
                for topic in topics:
                    for table in _TABLES:
                        self._db.execute(f"DELETE FROM {table} WHERE topic = ?", (topic,))
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def clear(self) -> None:
        """Forgets everything: what the files hold now is believed as it is."""
        with self._lock, self._errors(), self._db:
            for table in _TABLES:
                self._db.execute(f"DELETE FROM {table}")

    def _rows(self, topic: str, limit: int) -> list[Base]:
        rows = self._all(
            "SELECT topic, kind, content, view, at_ms, revision, offered FROM base"
            " WHERE topic = ? ORDER BY id DESC LIMIT ?",
            (topic, limit),
        )
        return [
            Base(
                topic=str(topic),
                kind=kind,
                content=_unpacked(content),
                view=_unpacked(view),
                at_ms=at_ms,
                revision=revision,
                offered=bool(offered),
            )
            for topic, kind, content, view, at_ms, revision, offered in rows
        ]

    def _all(self, sql: str, values: Sequence[Any]) -> list[Any]:
        with self._lock, self._errors():
            return list(self._db.execute(sql, values))

    @contextlib.contextmanager
    def _errors(self) -> Generator[None]:
        try:
            yield
        except apsw.Error as error:
            raise Unavailable(
                f"{self._path} can't be used ({error}); check the free space and the rights of its "
                "directory. Delete it while the daemon is stopped if it is damaged: only the "
                "memory of recent saves is lost with it.",
                path=str(self._path),
            ) from error


def _packed(content: bytes | None) -> bytes | None:
    return None if content is None else zlib.compress(content, 1)


def _unpacked(blob: bytes | None) -> bytes | None:
    return None if blob is None else zlib.decompress(blob)


def _holds(blob: bytes | None, names: Iterable[bytes]) -> bool:
    content = _unpacked(blob)
    return content is not None and any(name in content for name in names)


def _open_or_replace(path: Path) -> apsw.Connection:
    if path.exists():
        with contextlib.suppress(apsw.Error):
            db = _connected(path)
            with contextlib.suppress(apsw.Error):
                version = db.execute("PRAGMA user_version").fetchone()
                checked = db.execute("PRAGMA quick_check(1)").fetchone()
                if version == (_SCHEMA_VERSION,) and checked == ("ok",):
                    return db
            db.close()
        log.warning("bases_discarded", path=str(path))
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    path.touch(mode=0o600)
    db = _connected(path)
    db.execute(f"BEGIN; {_SCHEMA} COMMIT;")
    return db


def _connected(path: Path) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.set_busy_timeout(_BUSY_MS)
    for pragma in _PRAGMAS:
        db.execute(pragma)
    return db
