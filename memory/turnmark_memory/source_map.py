"""Where each archived turn lies: a derived database beside the archive, rebuilt from its files.

One row per line with a label, one per file with the size and time that the rows were made from.
No row holds words. A damaged database is thrown away; the archive then reads its files again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec
import structlog

log = structlog.get_logger(__name__)

_FILE = Path(".turnmark") / "sources.db"
_VERSION = 1
_SCHEMA = """
CREATE TABLE file (
    key INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    lines INTEGER NOT NULL
) STRICT;
CREATE TABLE place (
    label TEXT NOT NULL PRIMARY KEY,
    namespace TEXT NOT NULL,
    id TEXT NOT NULL,
    file INTEGER NOT NULL REFERENCES file(key),
    line INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX place_turn ON place(namespace, id);
CREATE INDEX place_file ON place(file);
"""
_PLACE = """
SELECT label, namespace, id, path, line, offset, length
FROM place JOIN file ON file.key = place.file
"""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """One archived turn: line `line` (from 1) of `path`, `length` bytes from `offset` on."""

    label: str
    namespace: str
    id: str
    path: str
    line: int
    offset: int
    length: int


class FileState(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a file the map knows."""

    size: int
    lines: int


class SourceMap:
    """The map of one workspace. Not safe for threads: the archive takes care of that."""

    def __init__(self, root: Path) -> None:
        self._path = root / _FILE
        try:
            self._db = self._opened()
        except apsw.Error as error:
            log.warning("source_map_discarded", reason=str(error))
            self._discard()
            self._db = self._opened()

    def close(self) -> None:
        """Closes the database."""
        self._db.close()

    def files(self) -> dict[str, tuple[int, int]]:
        """Returns (size, mtime in ns) of each known file, by path."""
        rows = self._db.execute("SELECT path, size, mtime_ns FROM file")
        return {str(path): (_int(size), _int(mtime)) for path, size, mtime in rows}

    def file(self, path: str) -> tuple[int, int] | None:
        """Returns (size, mtime in ns) that the rows of `path` were made from."""
        row = self._db.execute("SELECT size, mtime_ns FROM file WHERE path = ?", (path,)).fetchone()
        return None if row is None else (_int(row[0]), _int(row[1]))

    def state(self, path: str) -> FileState:
        """Returns how much of `path` is known; nothing of an unknown file."""
        row = self._db.execute("SELECT size, lines FROM file WHERE path = ?", (path,)).fetchone()
        if row is None:
            return FileState(size=0, lines=0)
        return FileState(size=_int(row[0]), lines=_int(row[1]))

    def count(self) -> int:
        """Returns how many places are known."""
        row = self._db.execute("SELECT count(*) FROM place").fetchone()
        return 0 if row is None else _int(row[0])

    def by_label(self, label: str) -> Place | None:
        """Returns the place of a label."""
        return self._one("WHERE label = ?", (label,))

    def by_turn(self, namespace: str, turn: str) -> Place | None:
        """Returns the place of a turn."""
        return self._one("WHERE namespace = ? AND id = ?", (namespace, turn))

    def add(self, places: Sequence[Place], path: str, status: os.stat_result, lines: int) -> None:
        """Adds places of `path`, which now has `status` and `lines`, in one transaction."""
        with self._transaction():
            self._db.execute(
                "INSERT INTO file(path, size, mtime_ns, lines) VALUES (?1, ?2, ?3, ?4) "
                "ON CONFLICT(path) DO UPDATE SET size = ?2, mtime_ns = ?3, lines = ?4",
                (path, status.st_size, status.st_mtime_ns, lines),
            )
            self._insert(places)

    def add_places(self, places: Sequence[Place]) -> None:
        """Adds places of a file that is still being read: unknown until `add` ends it."""
        with self._transaction():
            for path in {place.path for place in places}:
                # A size that no file has, so that a crash now means reading it again.
                self._db.execute(
                    "INSERT OR IGNORE INTO file(path, size, mtime_ns, lines) VALUES (?, -1, 0, 0)",
                    (path,),
                )
            self._insert(places)

    def drop_file(self, path: str) -> None:
        """Forgets all about a file."""
        with self._transaction():
            self._db.execute(
                "DELETE FROM place WHERE file = (SELECT key FROM file WHERE path = ?)", (path,)
            )
            self._db.execute("DELETE FROM file WHERE path = ?", (path,))

    def scrub(self) -> None:
        """Takes deleted rows out of the log as well; the pages are overwritten at deletion."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _one(self, condition: str, bindings: tuple[str, ...]) -> Place | None:
        row = self._db.execute(_PLACE + condition, bindings).fetchone()
        if row is None:
            return None
        label, namespace, turn, path, line, offset, length = row
        return Place(
            label=str(label),
            namespace=str(namespace),
            id=str(turn),
            path=str(path),
            line=_int(line),
            offset=_int(offset),
            length=_int(length),
        )

    def _insert(self, places: Iterable[Place]) -> None:
        # A person's copy of a line changes nothing: the first place of a label or turn stays.
        self._db.executemany(
            "INSERT OR IGNORE INTO place(label, namespace, id, file, line, offset, length) "
            "SELECT ?, ?, ?, key, ?, ?, ? FROM file WHERE path = ?",
            (
                (
                    place.label,
                    place.namespace,
                    place.id,
                    place.line,
                    place.offset,
                    place.length,
                    place.path,
                )
                for place in places
            ),
        )

    @contextlib.contextmanager
    def _transaction(self) -> Generator[None, None, None]:
        with self._db:
            yield

    def _opened(self) -> Any:
        # Any: apsw's stubs leave the types of bindings and rows open before Python 3.12.
        db: Any = apsw.Connection(str(self._path))
        try:
            db.execute("PRAGMA journal_mode = WAL").fetchall()
            # Whole after a power cut; the last transactions may be gone, which sizes tell.
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA secure_delete = ON").fetchall()
            version = db.pragma("user_version")
            if version == 0:
                with db:
                    db.execute(_SCHEMA)
                    db.pragma("user_version", _VERSION)
            elif version != _VERSION:
                raise apsw.SchemaChangeError(f"version {version} is not {_VERSION}")  # noqa: TRY301  one way out for every unusable file
            db.execute("SELECT count(*) FROM file").fetchall()
            self._path.chmod(0o600)
        except BaseException:
            db.close()
            raise
        return db

    def _discard(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _int(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(value)
    return value
