"""An agent's SQLite database: read while the agent writes it, and never written.

A database is opened, read in one short transaction and closed: nothing is pinned, and no file is
made beside it. In WAL mode all that is new may stand in `<db>-wal` alone, so the file is read
through SQLite and with its log. Two cases in which SQLite would make files of its own are kept from
it. Where there is no log, as after a clean exit, the file is read as it is; whether somebody began
to write meanwhile is looked at afterwards, and then it is read again. Where there is a log without
the shared memory that belongs to it, or where SQLite is not let in, a private copy is read; of a
large database only where it is not let in, as each reading would copy it.

What is in the columns comes out as it is: whole texts with NULs in them, and what is not UTF-8 with
replacement characters. Programs add columns without a word: those that are not there read as None.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import apsw

from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.json_lines import unreadable
from turnmark_session_store.transcripts.line_file import FileStamp

T = TypeVar("T")
Row = tuple[Any, ...]

MAGIC = b"SQLite format 3\0"
"""The first bytes of every database, but of an empty one."""

# A writer's commit takes milliseconds; a checkpoint or a recovery may keep others out for longer.
_BUSY_MS = 500
# What passes by itself: tried again after so long. Five seconds in all, so that a shutdown, which
# can't end a thread, doesn't wait long for one.
_WAITS_SECONDS = (0.05, 0.2, 0.5, 1.5)
# Bytes 18 and 19 of a database that is written through a log.
_WAL_VERSIONS = b"\2\2"
_LOG, _JOURNAL, _SHARED = "-wal", "-journal", "-shm"
_LOGS = (_LOG, _JOURNAL)
# What programs call their databases.
_SUFFIXES = (".db", ".sqlite", ".sqlite3")
# A database holds a conversation in some ten kilobytes: copying it for each costs its size squared.
_COPIED_BYTES = 8 * 1024 * 1024

_PASSING = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.IOError,
    apsw.ProtocolError,
    apsw.SchemaChangeError,
)
# The directory, or a journal that has to be rolled back, keeps SQLite from only reading.
_CLOSED = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError)


class Database:
    """An open database, in a transaction that only reads; `path` is that of the agent's file."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self.path = path
        self._db = connection
        self._columns: dict[str, frozenset[str]] = {}

    def columns_of(self, table: str) -> frozenset[str]:
        """Returns the columns of a table, none where there is no such table."""
        if table not in self._columns:
            rows = self._db.execute("SELECT name FROM pragma_table_info(?)", (table,))
            self._columns[table] = frozenset(str(name) for (name,) in rows)
        return self._columns[table]

    def is_empty(self) -> bool:
        """Returns whether there is no table in it, as when its program has only just made it."""
        [[tables]] = self.select(["count(*)"], "FROM sqlite_schema WHERE type = 'table'")
        return not tables

    def table(
        self, name: str, columns: Sequence[str], rest: str = "", parameters: Sequence[Any] = ()
    ) -> list[Row]:
        """Returns the rows of a table, the columns in the order asked for.

        A column that is not there gives None, a table that is not there no rows. `rest` is what
        follows the table's name, and may name only columns that are there.

        Raises:
            apsw.Error: as SQLite does; `read_database` makes an `Unavailable` of it.
        """
        return list(self.each(name, columns, rest, parameters))

    def each(
        self, name: str, columns: Sequence[str], rest: str, parameters: Sequence[Any] = ()
    ) -> Iterator[Row]:
        """Yields what `table` returns, a row at a time; `rest` must say in which order."""
        there = self.columns_of(name)
        if there:
            asked = [f'"{column}"' if column in there else "NULL" for column in columns]
            yield from self._rows(asked, f'FROM "{name}" {rest}', parameters)

    def select(
        self, expressions: Sequence[str], rest: str, parameters: Sequence[Any] = ()
    ) -> list[Row]:
        """Returns the rows of `SELECT expressions rest`; `rest` begins with FROM.

        Raises:
            apsw.Error: as SQLite does; `read_database` makes an `Unavailable` of it.
        """
        return list(self._rows(expressions, rest, parameters))

    def _rows(
        self, expressions: Sequence[str], rest: str, parameters: Sequence[Any]
    ) -> Iterator[Row]:
        sql = f"SELECT {', '.join(expressions)} {rest}"
        given = 0
        try:
            for row in cast("Iterable[Row]", self._db.execute(sql, tuple(parameters))):
                given += 1
                yield row
        except UnicodeDecodeError:
            yield from islice(self._decoded(expressions, rest, parameters), given, None)

    def _decoded(
        self, expressions: Sequence[str], rest: str, parameters: Sequence[Any]
    ) -> Iterator[Row]:
        """Yields the rows again, with their texts fetched as bytes and decoded here."""
        encoding = str(self._db.pragma("encoding")).replace("-", "_")
        doubled = ", ".join(
            f"typeof({one}), CASE typeof({one}) WHEN 'text' THEN CAST({one} AS BLOB) ELSE {one} END"
            for one in expressions
        )
        rows = self._db.execute(f"SELECT {doubled} {rest}", tuple(parameters))
        for row in cast("Iterable[Row]", rows):
            yield tuple(
                value.decode(encoding, "replace") if kind == "text" else value
                for kind, value in zip(row[::2], row[1::2], strict=True)
            )


def unknown_tables(db: Database, program: str) -> Unavailable:
    """Returns what is wrong with a database of a program in which no table is what it was.

    Its reader would find nothing in it, now and for good, and say nothing of that.
    """
    message = (
        f"The database {db.path} has no sessions of {program} where this turnmark looks for them:"
        f" {program} may be newer. Nothing is lost; update turnmark, or set this agent to off below"
        " [transcripts] in the configuration."
    )
    return Unavailable(message, file=str(db.path))


class _WrittenMeanwhileError(Exception):
    """A file was written while it was read as one that nobody writes."""


def read_database(path: Path, work: Callable[[Database], T], *, is_long: bool = False) -> T:
    """Returns what `work` makes of the database at `path`, all of it from one moment.

    Blocks on disk, and for five seconds where the writer keeps everybody out: meant for a thread.
    `work` may run more than once, so it only reads. Who reads keeps a writer without a log
    from committing: where that `is_long`, a copy is read.

    Raises:
        Unavailable: if it is not there, no database, damaged, or locked for longer.
    """
    for wait_seconds in (*_WAITS_SECONDS, None):
        try:
            return _read_once(path, work, is_long=is_long)
        except (*_PASSING, _WrittenMeanwhileError) as error:
            if wait_seconds is None:
                raise _unreadable(path, error) from error
            time.sleep(wait_seconds)
        except (apsw.Error, OSError) as error:
            raise _unreadable(path, error) from error
    raise AssertionError("the last try returns or raises")


def begins_as_database(path: Path) -> bool:
    """Returns whether a file begins as a database does.

    Raises:
        Unavailable: if it can't be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise unreadable(path, error) from error


def database_of(path: Path) -> Path | None:
    """Returns the database that a file event is about: its own path, or that of its log.

    None for the shared memory, which readers change as well.
    """
    for suffix in _LOGS:
        if path.name.endswith(suffix):
            return path.with_name(path.name.removesuffix(suffix))
    return None if path.name.endswith(_SHARED) else path


def directory_of(root: Path) -> Path:
    """Returns the directory of databases, which may be given by one in it that isn't there yet."""
    return root.parent if root.suffix in _SUFFIXES or root.is_file() else root


def stamp_of(path: Path) -> FileStamp:
    """Returns what the database's own file is now.

    Raises:
        OSError: if it is not there or can't be looked at.
    """
    return FileStamp.of(path.stat())


def size_of(path: Path) -> int:
    """Returns the bytes of a database and its log, as far as they are there."""
    return sum(stamp.size for stamp in _stamps(path) if stamp is not None)


def _read_once(path: Path, work: Callable[[Database], T], *, is_long: bool) -> T:
    with path.open("rb") as file:
        is_logged = file.read(20)[18:] == _WAL_VERSIONS
    _, log, journal = _stamps(path)
    if is_logged and journal is None:
        if log is None or not log.size:
            return _read_unshared(path, work)
        if not _beside(path, _SHARED).exists() and size_of(path) <= _COPIED_BYTES:
            return _read_copy(path, work)
    elif is_long:
        return _read_copy(path, work)
    try:
        return _read(path, path, "mode=ro", work)
    except _CLOSED:
        return _read_copy(path, work)


def _read_unshared(path: Path, work: Callable[[Database], T]) -> T:
    before = _stamps(path)
    try:
        found = _read(path, path, "immutable=1", work)
    except apsw.Error:
        if _stamps(path) == before:
            raise
        raise _WrittenMeanwhileError from None
    if _stamps(path) != before:
        raise _WrittenMeanwhileError
    return found


def _read_copy(path: Path, work: Callable[[Database], T]) -> T:
    """Reads a private copy with its log; SQLite makes the shared memory anew."""
    before = _stamps(path)
    with TemporaryDirectory(prefix="turnmark-") as folder:
        copy = Path(folder) / "copy.db"
        for suffix in ("", *_LOGS):
            beside = _beside(path, suffix)
            if not suffix or beside.exists():
                shutil.copyfile(beside, _beside(copy, suffix))
        if _stamps(path) != before:
            raise _WrittenMeanwhileError
        return _read(path, copy, "mode=rw", work)


def _read(path: Path, opened: Path, mode: str, work: Callable[[Database], T]) -> T:
    flags = apsw.SQLITE_OPEN_URI | (
        apsw.SQLITE_OPEN_READWRITE if mode == "mode=rw" else apsw.SQLITE_OPEN_READONLY
    )
    with closing(apsw.Connection(f"{opened.absolute().as_uri()}?{mode}", flags=flags)) as db:
        db.set_busy_timeout(_BUSY_MS)
        # Schemas of others may name functions: none of them is run, and nothing is tidied up.
        db.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        db.pragma("query_only", 1)
        db.execute("BEGIN; SELECT count(*) FROM sqlite_schema")  # the moment is the first reading
        return work(Database(path, db))


def _stamps(path: Path) -> tuple[FileStamp | None, ...]:
    """Returns what the file, its log and its journal are now; None for what is not there."""
    found: list[FileStamp | None] = []
    for suffix in ("", *_LOGS):
        try:
            found.append(stamp_of(_beside(path, suffix)))
        except FileNotFoundError:
            found.append(None)
    return tuple(found)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _unreadable(path: Path, error: Exception) -> Unavailable:
    if isinstance(error, _WrittenMeanwhileError):
        reason = "it is written without a pause"
    else:
        reason = getattr(error, "strerror", None) or str(error)
    message = f"The database {path} can't be read ({reason}); check its permissions, and that the"
    return Unavailable(f"{message} agent itself can open it.", file=str(path))
