"""The database file: opened, checked and migrated before anything else is done with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import apsw

from turnmark_events.errors import Unavailable
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.queries import value_of
from turnmark_session_store.schema import APPLICATION_ID, MIGRATIONS

_WAL_LIMIT_BYTES = 64 * 1024 * 1024
BUSY_MS = 5_000
"""For tools that look in while the daemon runs; the one writer never waits for another."""

_STATEMENTS = 128
"""Those in use stay compiled. The cache is searched from its start at each statement: four times
as many places cost an append a microsecond."""

_REQUIRED = {
    "journal_mode": "wal",
    "synchronous": 2,
    "foreign_keys": 1,
    "secure_delete": 1,
    "recursive_triggers": 1,
}
"""Pragmas that the promises rest on: set, then read back. FULL (2) lost nothing over power cuts;
with recursive triggers a REPLACE counts as a deletion too."""

_QUICK_CHECK_LIMIT_BYTES = 1 << 30
"""Above a gigabyte the structure check at start would take many seconds; `doctor` does it then."""


def open_writer(path: Path, migrations: Sequence[str] = MIGRATIONS) -> apsw.Connection:
    """Returns the one connection that may write, with the schema of this version.

    Blocks for the structure check of the file (about a second per 300 MB) and for migrations. A
    new database is made under another name and renamed when it is whole, so an empty file at `path`
    is a lost one and never taken for a new one.

    Raises:
        Unavailable: if the file is damaged, of a newer turnmark, not turnmark's, or not writable;
            the message says what to do.
    """
    try:
        if not path.exists():
            _create(path, migrations)
        return _open(path, migrations)
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError) as error:
        raise Unavailable(_closed_door(path, str(error)), path=str(path)) from error
    except apsw.Error as error:
        raise Unavailable(_damage(path, str(error)), path=str(path)) from error
    except OSError as error:
        raise Unavailable(_closed_door(path, error.strerror or ""), path=str(path)) from error


def _create(path: Path, migrations: Sequence[str]) -> None:
    unfinished = path.with_name(path.name + ".new")
    for leftover in ("", "-wal", "-shm", "-journal"):
        Path(f"{unfinished}{leftover}").unlink(missing_ok=True)
    unfinished.touch(0o600)
    connection = apsw.Connection(str(unfinished))
    try:
        _set_pragmas(connection, path)
        _migrate(connection, migrations)
    finally:
        connection.close()
    unfinished.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _open(path: Path, migrations: Sequence[str]) -> apsw.Connection:
    if path.is_file() and path.stat().st_size == 0:
        raise Unavailable(_damage(path, "it is empty"), path=str(path))
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=_STATEMENTS
    )
    try:
        _check_writable(connection, path)
        connection.set_busy_timeout(BUSY_MS)
        _check_identity(connection, path, len(migrations))
        _check_structure(connection, path)
        path.chmod(0o600)
        _set_pragmas(connection, path)
        _migrate(connection, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_writable(connection: apsw.Connection, path: Path) -> None:
    if connection.readonly("main"):
        raise Unavailable(_closed_door(path, "it is read-only"), path=str(path))


def open_reader(path: Path) -> apsw.Connection:
    """Returns a connection that can only read; each use should be one short transaction."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(BUSY_MS)
    return connection


def _set_pragmas(connection: apsw.Connection, path: Path) -> None:
    for name, value in _REQUIRED.items():
        connection.pragma(name, value)
        found = connection.pragma(name)
        if found != value:
            raise Unavailable(
                f"the session store {path} does not take {name} = {value} (it says {found}); "
                "move the state directory to a local file system",
                path=str(path),
            )
    connection.pragma("journal_size_limit", _WAL_LIMIT_BYTES)


def _check_identity(connection: apsw.Connection, path: Path, known: int) -> None:
    version = connection.pragma("user_version")
    identity = connection.pragma("application_id")
    empty = not connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    if not empty and identity != APPLICATION_ID:
        raise Unavailable(
            f"{path} is a database of another program; give turnmark a state directory of its own "
            "with --state",
            path=str(path),
        )
    if isinstance(version, int) and version > known:
        raise Unavailable(
            f"the session store {path} has schema {version}, this turnmark knows {known}: it was "
            "written by a newer turnmark. Install that version again; nothing was changed",
            path=str(path),
            schema=version,
        )


def _check_structure(connection: apsw.Connection, path: Path) -> None:
    if path.stat().st_size > _QUICK_CHECK_LIMIT_BYTES:
        return
    found = str(value_of(connection, "PRAGMA quick_check(1)"))
    if found != "ok":
        raise Unavailable(_damage(path, found), path=str(path))


def _closed_door(path: Path, what: str) -> str:
    return (
        f"cannot open the session store {path}: {what}. turnmark did not start and changed nothing;"
        " check that it is a file, and the owner and rights of it and of its directory"
    )


def _damage(path: Path, what: str) -> str:
    return (
        f"the session store {path} is damaged or unreadable ({what}). turnmark did not start and "
        f"changed nothing. Restore {path.name} from a backup, or move it and its -wal file aside "
        f"and save what is readable with: sqlite3 {path} .recover"
    )


def _migrate(connection: apsw.Connection, migrations: Sequence[str]) -> None:
    version = connection.pragma("user_version")
    assert isinstance(version, int)  # noqa: S101  SQLite's own header field
    for step in range(version, len(migrations)):
        failpoint("store.before_migration")
        with connection:
            connection.execute(migrations[step])
            connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("user_version", step + 1)
