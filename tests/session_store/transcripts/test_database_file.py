"""Tests of `session_store/transcripts/database_file.py`: another program's database, only read."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts import database_file
from turnmark_session_store.transcripts.database_file import (
    Database,
    begins_as_database,
    database_of,
    read_database,
)

TEXT = "Ich wohne in Bergen\x00 und mag 咖啡。"


def write(path: Path, *, journal: str = "wal") -> apsw.Connection:
    """The connection of the program whose database it is, with one row of everything."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", journal)
    db.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, text TEXT, time REAL, packed BLOB)")
    db.execute("INSERT INTO said VALUES (1, ?, 1.5, x'00ff')", (TEXT,))
    return db


def rows(db: Database) -> list[Any]:
    """All that was said."""
    return db.table("said", ["id", "text", "time", "packed"], "ORDER BY id")


def names(directory: Path) -> list[str]:
    """The files in a directory."""
    return sorted(path.name for path in directory.iterdir())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database lies, alone."""
    (tmp_path / "agent").mkdir()
    return tmp_path / "agent" / "a.db"


@pytest.fixture
def program(path: Path) -> Iterator[apsw.Connection]:
    """The program, which has its database open."""
    db = write(path)
    yield db
    db.close()


WHOLE = [(1, TEXT, 1.5, b"\x00\xff")]


def test_reads_what_stands_in_the_log_alone(path: Path, program: apsw.Connection) -> None:
    """Nothing was brought into the file yet; a text with a NUL comes out whole."""
    program.wal_autocheckpoint(0)
    assert read_database(path, rows) == WHOLE
    program.execute("INSERT INTO said (id, text) VALUES (2, 'later')")
    assert read_database(path, rows)[1:] == [(2, "later", None, None)]


def test_makes_no_file_beside_it(path: Path) -> None:
    """After a clean exit there is neither log nor shared memory, and there is none after a look."""
    write(path).close()
    before = path.read_bytes()
    assert read_database(path, rows) == WHOLE
    assert names(path.parent) == ["a.db"]
    assert path.read_bytes() == before


def test_reads_a_log_without_its_shared_memory_from_a_copy(
    path: Path, tmp_path: Path, program: apsw.Connection
) -> None:
    """As a database that was copied away is: the log holds all, and nothing is made beside it."""
    copy = tmp_path / "copied"
    copy.mkdir()
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{path}{suffix}", copy / f"a.db{suffix}")
    assert program.pragma("journal_mode") == "wal"
    assert read_database(copy / "a.db", rows) == WHOLE
    assert names(copy) == ["a.db", "a.db-wal"]


def test_reads_where_nothing_may_be_written(path: Path, tmp_path: Path) -> None:
    """A directory that is not writable, with a log that was left behind."""
    program = write(path)
    closed = tmp_path / "closed"
    shutil.copytree(path.parent, closed)
    program.close()
    closed.chmod(0o500)
    try:
        assert read_database(closed / "a.db", rows) == WHOLE
    finally:
        closed.chmod(0o700)


def test_reads_a_database_that_keeps_a_journal(path: Path) -> None:
    """The older way of writing, while the program has it open."""
    program = write(path, journal="delete")
    assert read_database(path, rows) == WHOLE
    program.close()
    assert names(path.parent) == ["a.db"]


def test_rolls_a_journal_back_in_a_copy(path: Path, tmp_path: Path) -> None:
    """A program that was killed in a transaction: what it had not committed is not there."""
    program = write(path, journal="delete")
    program.execute("PRAGMA cache_size = 1; BEGIN")
    program.execute("CREATE TABLE more (x)")
    program.executemany("INSERT INTO more VALUES (?)", [("x" * 5000,) for _ in range(50)])
    program.execute("UPDATE said SET text = 'not committed'")
    killed = tmp_path / "killed"
    shutil.copytree(path.parent, killed)
    program.execute("ROLLBACK")
    program.close()
    assert names(killed) == ["a.db", "a.db-journal"]
    assert read_database(killed / "a.db", rows) == WHOLE
    assert names(killed) == ["a.db", "a.db-journal"]


def test_waits_for_a_writer_that_keeps_everybody_out(path: Path) -> None:
    """It is read as soon as it can be."""
    program = write(path, journal="delete")
    program.execute("BEGIN EXCLUSIVE; INSERT INTO said (id) VALUES (2)")
    opened = threading.Event()
    found: list[Any] = []

    def look() -> None:
        opened.set()
        while not found:  # on a busy machine the commit may take long
            with contextlib.suppress(Unavailable):
                found.extend(read_database(path, rows))

    looking = threading.Thread(target=look)
    looking.start()
    assert opened.wait(60)
    program.execute("COMMIT")
    looking.join(60)
    program.close()
    assert [row[0] for row in found] == [1, 2]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_long_reading_keeps_no_writer_waiting(path: Path, journal: str) -> None:
    """With a log both go on; without one a copy is read."""
    program = write(path, journal=journal)
    program.set_busy_timeout(0)

    def look(db: Database) -> list[Any]:
        program.execute("INSERT OR IGNORE INTO said (id) VALUES (2)")
        return rows(db)

    assert read_database(path, look, is_long=True) == WHOLE
    assert [row[0] for row in read_database(path, rows)] == [1, 2]
    program.close()


def test_can_write_nothing(path: Path, program: apsw.Connection) -> None:
    """Whatever a reader asks for."""

    def spoil(db: Database) -> None:
        db.select(["1"], "FROM said; DELETE FROM said")

    with pytest.raises(Unavailable):
        read_database(path, spoil)
    assert program.execute("SELECT count(*) FROM said").fetchall() == [(1,)]


def test_columns_and_tables_that_are_not_there_read_as_nothing(
    path: Path, program: apsw.Connection
) -> None:
    """Programs add and drop them without a word."""

    def look(db: Database) -> list[Any]:
        return [db.table("said", ["id", "mood"]), db.table("moods", ["id"]), db.columns_of("moods")]

    assert read_database(path, look) == [[(1, None)], [], frozenset()]
    program.execute("ALTER TABLE said ADD COLUMN mood TEXT DEFAULT 'glad'")
    assert read_database(path, look)[0] == [(1, "glad")]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_bytes_that_are_no_text_are_replaced(path: Path, encoding: str) -> None:
    """One bad byte keeps nobody from the rest, nor a blob from staying one."""
    db = apsw.Connection(str(path))
    db.pragma("encoding", encoding)
    db.execute("CREATE TABLE said (id INTEGER, text TEXT, time REAL, packed BLOB)")
    db.execute(
        "INSERT INTO said VALUES (1, CAST(x'fffe41d8' AS TEXT), 1.5, x'ff'), (2, ?, 2, 3)",
        ("好" * 3,),
    )
    db.close()
    [first, second] = read_database(path, rows)
    assert "\ufffd" in first[1] or encoding != "UTF-8"
    assert first[1].encode()
    assert (first[2:], second) == ((1.5, b"\xff"), (2, "好好好", 2.0, 3))


def test_says_why_it_cannot_be_read(tmp_path: Path) -> None:
    """What is not there, what is no database, and what is damaged."""
    (tmp_path / "none.db").write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    (tmp_path / "text.db").write_text("hello" * 1000)
    for name in ("absent.db", "none.db", "text.db"):
        with pytest.raises(Unavailable, match=name):
            read_database(tmp_path / name, rows)
    assert names(tmp_path) == ["none.db", "text.db"]


def test_an_empty_file_is_an_empty_database(path: Path) -> None:
    """Programs make one before they write."""
    path.touch()
    assert read_database(path, rows) == []
    assert not begins_as_database(path)


def test_a_file_event_leads_to_its_database() -> None:
    """The shared memory is changed by whoever reads, and says nothing."""
    path = Path("/x/a.db")
    assert database_of(path) == database_of(Path("/x/a.db-wal")) == path
    assert database_of(Path("/x/a.db-journal")) == path
    assert database_of(Path("/x/a.db-shm")) is None


def test_reads_again_what_was_written_meanwhile(path: Path) -> None:
    """A program that starts while a file at rest is read: nothing half is given out."""
    write(path).close()
    looks: list[list[Any]] = []

    def look(db: Database) -> list[Any]:
        found = rows(db)
        if not looks:
            late = apsw.Connection(str(path))
            late.execute("INSERT INTO said (id, text) VALUES (2, 'meanwhile')")
            late.close()
            os.utime(path, ns=(1, 1))  # a clock that ticks too slowly to tell
        looks.append(found)
        return found

    assert [row[0] for row in read_database(path, look)] == [1, 2]
    assert len(looks) == 2


def test_an_error_that_comes_of_a_writer_is_none(path: Path) -> None:
    """What is read while somebody writes may be no database at all; one at rest is what it is."""
    write(path).close()
    looks = 0

    def look(db: Database) -> list[Any]:
        nonlocal looks
        looks += 1
        if looks == 1:
            late = apsw.Connection(str(path))
            late.execute("INSERT INTO said (id) VALUES (2)")
            late.close()
            db.select(["no_such_column"], "FROM said")
        return rows(db)

    assert [row[0] for row in read_database(path, look)] == [1, 2]
    with pytest.raises(Unavailable, match="no_such_column"):
        read_database(path, lambda db: db.select(["no_such_column"], "FROM said"))


def test_gives_up_where_somebody_writes_without_a_pause(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few tries, with a reason; nothing half is given out."""
    monkeypatch.setattr(database_file, "_WAITS_SECONDS", (0.0, 0.0))
    write(path).close()
    looks = 0

    def look(db: Database) -> list[Any]:
        nonlocal looks
        looks += 1
        os.utime(path, ns=(looks, looks))
        return rows(db)

    with pytest.raises(Unavailable, match="without a pause"):
        read_database(path, look)
    assert looks == 3


def test_a_copy_of_what_was_written_meanwhile_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File by file, it would be of two moments."""
    program = write(path, journal="delete")
    copies: list[Path] = []
    copy = shutil.copyfile

    def copy_slowly(source: Path, target: Path) -> None:
        copy(source, target)
        copies.append(target)
        if len(copies) == 1:
            program.execute("INSERT INTO said (id) VALUES (2)")

    monkeypatch.setattr(shutil, "copyfile", copy_slowly)
    assert [row[0] for row in read_database(path, rows, is_long=True)] == [1, 2]
    assert len(copies) == 2
    program.close()


def test_a_file_that_is_not_there_begins_as_nothing(tmp_path: Path) -> None:
    """It is told of by its name, and not as a database: nobody knows that it is one."""
    with pytest.raises(Unavailable, match=r"^The transcript .*absent can't be read"):
        begins_as_database(tmp_path / "absent")


def test_rows_come_one_by_one_also_behind_bytes_that_are_no_text(
    program: apsw.Connection, path: Path
) -> None:
    """Each once, however far it was read when the first such bytes came."""
    program.execute("INSERT INTO said VALUES (2, CAST(x'ff61' AS TEXT), 2.5, NULL)")
    program.execute("INSERT INTO said VALUES (3, '茶', 3.5, NULL)")

    def read(db: Database) -> list[Any]:
        found = db.each("said", ["id", "text", "gone"], "ORDER BY id")
        return [next(found), *found, *db.each("no_such_table", ["id"], "")]

    assert read_database(path, read) == [(1, TEXT, None), (2, "\ufffda", None), (3, "茶", None)]
