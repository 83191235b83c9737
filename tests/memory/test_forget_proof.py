"""The search for words that were erased: it looks in every file, and disturbs no database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from turnmark_memory.forget_proof import search

WORDS = ("the heron sleeps in Kyōto", "苍鹭在京都睡觉")
READS_AND_GOES = (
    "import apsw, sys; apsw.Connection(sys.argv[1]).execute('SELECT * FROM said').fetchall()"
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    """A database that this process has open, with words in its log."""
    path = tmp_path / "sessions.db"
    with closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA journal_mode = wal").fetchall()
        db.execute("CREATE TABLE said (words TEXT)")
        db.execute("PRAGMA wal_checkpoint(truncate)").fetchall()
        db.execute("INSERT INTO said VALUES (?)", (WORDS[0],))
        yield path


def test_finds_words_in_a_database_and_in_its_log(database: Path, tmp_path: Path) -> None:
    """Wherever SQLite has put them so far."""
    (tmp_path / "note.md").write_text(WORDS[1], encoding="utf-8")
    _, _, found = search([tmp_path], WORDS)
    assert found == ("note.md", "sessions.db-wal")
    with closing(apsw.Connection(str(database))) as db:
        db.execute("PRAGMA wal_checkpoint(truncate)").fetchall()
    files, size, found = search([tmp_path], WORDS[:1])
    assert (files, found) == (3, ("sessions.db",))
    assert size > database.stat().st_size


def test_leaves_the_locks_of_an_open_database_alone(database: Path, tmp_path: Path) -> None:
    """Another process that opens it and goes would else take the log with it."""
    search([tmp_path], WORDS)
    subprocess.run([sys.executable, "-c", READS_AND_GOES, str(database)], check=True, timeout=60)
    assert database.with_name("sessions.db-wal").exists()


def test_a_file_that_is_no_database_is_read_all_the_same(tmp_path: Path) -> None:
    """Its name proves nothing."""
    (tmp_path / "odd.db").write_text(WORDS[0], encoding="utf-8")
    assert search([tmp_path], WORDS)[2] == ("odd.db",)
