"""The index's file and the connections to it: one that writes, a few that read."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from threading import Condition, RLock
from typing import Any, Protocol, cast

import apsw
import structlog

from turnmark_events.errors import Busy, Unavailable
from turnmark_memory.index_schema import APPLICATION_ID, PRAGMAS, SCHEMA, SCHEMA_VERSION
from turnmark_memory.search_text import fold

_BUSY_MS = 5_000
_CACHE_KIB = 8_192
"""Pages kept per connection: the hot part of the words of about 100,000 turns."""

_IDLE_READERS = 4
"""Readers kept open between reads; more are opened under load and closed afterwards."""

_WRITE_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE

Bindings = Sequence[object] | Mapping[str, object] | None

log = structlog.get_logger(__name__)


class Rows(Protocol):
    """What a statement gives."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """Returns the next row."""
        ...

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns the rows that are left."""
        ...


class Database(AbstractContextManager["Database", "bool | None"], Protocol):
    """The part of `apsw.Connection` that is used here, with the types that its stubs leave open."""

    def execute(self, statements: str, bindings: Bindings = None) -> Rows:
        """Runs statements; see apsw."""
        ...

    def executemany(self, statements: str, sequenceofbindings: Iterable[Bindings]) -> Rows:
        """Runs statements once per bindings; see apsw."""
        ...

    def pragma(self, name: str, value: str | int | None = None) -> Any:
        """Returns what a pragma says, after setting it if `value` is given."""
        ...

    def total_changes(self) -> int:
        """Returns how many rows were written since the connection was opened."""
        ...

    def last_insert_rowid(self) -> int:
        """Returns the row of the last insert."""
        ...

    def close(self) -> None:
        """Closes the connection."""
        ...


class DamagedIndex(Unavailable):
    """The index file can't be read; `Index.rebuild` replaces it, and nothing is lost."""


class IndexFile:
    """Connections to one index file, which may be exchanged for another while in use."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._write_lock = RLock()
        self._pool = Condition()
        self._idle: list[Database] = []
        self._in_use = 0
        self._exchanging = False
        self.writes = 0
        """Counts the writes of this process: what was computed at an equal number still holds."""
        self.exchanges = 0
        """Counts how often another file took the place: its rows have nothing to do with before."""
        self.on_change: Callable[[], None] = _nothing
        """Called after each write, in the thread that wrote; must return at once."""
        self.is_damaged = False
        """Tells whether something could not be read, until another file takes the place."""
        with _named_errors(path):
            self._writer = _open_or_replace(path)

    def close(self) -> None:
        """Closes every connection, after the reads that are going on."""
        with self._write_lock, self._without_readers():
            self._writer.close()

    @contextmanager
    def writing(self) -> Generator[Database]:
        """Gives the writer inside a transaction, alone; waits for the writer before."""
        with self._write_lock, self._noted_errors():
            try:
                with self._writer as db:
                    yield db
            finally:
                self.writes += 1
                self.on_change()

    @contextmanager
    def reading(self) -> Generator[Database]:
        """Gives a connection that only reads; waits for no writer, only for an exchange.

        Must not be nested in one thread: an exchange between the two would wait for itself.
        """
        with self._noted_errors():
            db = self._take()
            try:
                yield db
            finally:
                self._give_back(db)

    def truncate_log(self) -> None:
        """Moves the write-ahead log into the file and empties it, so that erased words are gone.

        Waits for readers that still see the state before.

        Raises:
            Busy: if one of them does not end in time; nothing is wrong, try again.
        """
        with self._write_lock, self._noted_errors():
            if not _truncate_log(self._writer):
                raise Busy(
                    f"the log of the index {self.path} is being read and could not be emptied; "
                    "try again",
                    path=str(self.path),
                )

    @contextmanager
    def replacing(self) -> Generator[Database]:
        """Gives a new, empty file in a transaction; it takes the place of this one at the end.

        Until then, and if the block raises, the present file stays as it is.
        """
        beside = self.path.with_name(self.path.name + ".new")
        with self._write_lock, _named_errors(self.path):
            remove(beside)
            fresh = _create(beside)
            try:
                with fresh:
                    yield fresh
                _truncate_log(fresh)
            finally:
                fresh.close()
            self._exchange(beside)

    def _exchange(self, beside: Path) -> None:
        """Old log and shared memory must not meet the new file: nobody has it open meanwhile."""
        with self._without_readers():
            self._writer.close()
            remove(self.path)
            beside.replace(self.path)
            self._writer = _connect(self.path)
            self.is_damaged = False
            self.writes += 1
            self.exchanges += 1
        self.on_change()

    @contextmanager
    def _noted_errors(self) -> Generator[None]:
        try:
            with _named_errors(self.path):
                yield
        except DamagedIndex:
            self.is_damaged = True
            raise

    def _take(self) -> Database:
        with self._pool:
            self._pool.wait_for(lambda: not self._exchanging)
            self._in_use += 1
            if self._idle:
                return self._idle.pop()
        try:
            return _connect(self.path, apsw.SQLITE_OPEN_READONLY)
        except BaseException:
            self._leave()
            raise

    def _give_back(self, db: Database) -> None:
        with self._pool:
            keep = not self._exchanging and len(self._idle) < _IDLE_READERS
            if keep:
                self._idle.append(db)
        if not keep:
            db.close()
        self._leave()

    def _leave(self) -> None:
        with self._pool:
            self._in_use -= 1
            self._pool.notify_all()

    @contextmanager
    def _without_readers(self) -> Generator[None]:
        """Closes the readers, waits for those in use and keeps new ones waiting."""
        with self._pool:
            self._exchanging = True
            self._pool.wait_for(lambda: not self._in_use)
            idle, self._idle = self._idle, []
        try:
            for db in idle:
                db.close()
            yield
        finally:
            with self._pool:
                self._exchanging = False
                self._pool.notify_all()


def _nothing() -> None:
    pass


def _truncate_log(db: Database) -> bool:
    busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return busy is not None and not busy[0]


def remove(path: Path) -> None:
    """Removes a database with its log and shared memory; a missing one is fine."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def _named_errors(path: Path) -> Generator[None]:
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise DamagedIndex(
            f"the index {path} is damaged ({error}); it is derived, and made anew from the files: "
            "try again in a moment",
            path=str(path),
        ) from error
    except apsw.Error as error:
        raise Unavailable(
            f"the index {path} can't be used ({error}); check the free space and the rights of "
            "its directory",
            path=str(path),
        ) from error


def _open_or_replace(path: Path) -> Database:
    """Returns a writer on a file of this schema: the present one, else an empty one."""
    if path.exists():
        with suppress(apsw.Error):
            db = _connect(path)
            if _is_usable(db, path):
                return db
            db.close()
        log.info("index_discarded", path=str(path))
    remove(path)
    return _create(path)


def _is_usable(db: Database, path: Path) -> bool:
    identity = db.pragma("application_id")
    if identity not in (APPLICATION_ID, 0):
        db.close()
        raise Unavailable(
            f"{path} is a database of another program; move it out of the workspace's .turnmark",
            path=str(path),
        )
    if identity == 0 or db.pragma("user_version") != SCHEMA_VERSION:
        return False
    tables = ("meta", "size", "turn", "block", "cite", "turn_words", "block_words")
    for table in tables:
        db.execute(f"SELECT * FROM {table} LIMIT 1").fetchall()
    return True


def _create(path: Path) -> Database:
    path.touch(mode=0o600)
    db = _connect(path)
    with db:
        db.execute(SCHEMA)
    return db


def _connect(path: Path, flags: int = _WRITE_FLAGS) -> Database:
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(_BUSY_MS)
    db = cast("Database", connection)
    db.pragma("cache_size", -_CACHE_KIB)
    connection.create_scalar_function("fold", _fold, 1, deterministic=True)
    if flags == _WRITE_FLAGS:
        for pragma in PRAGMAS:
            db.execute(pragma).fetchall()
    return db


def _fold(*values: object) -> str:
    """Gives SQL what `search_text.fold` is, of one value: its own lower() knows ASCII alone."""
    (value,) = values
    return fold(str(value))
