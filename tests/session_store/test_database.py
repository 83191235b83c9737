"""Opening the file: made whole, checked before it is touched, migrated step by step."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from session_store.stage import Stage, user
from session_store.transcripts.tailing import dag_of
from turnmark_events.errors import Unavailable
from turnmark_session_store.database import open_reader, open_writer
from turnmark_session_store.schema import APPLICATION_ID, MIGRATIONS, SCHEMA_VERSION

OLD = Path(__file__).resolve().parents[1] / "data" / "turnmark" / "schema-2.db.gz"


@pytest.fixture
def path(place: Path) -> Path:
    """Where the database is."""
    return place / "sessions.db"


def test_a_new_database_is_private_and_safe(path: Path) -> None:
    """Rights 0600; WAL, FULL, foreign keys, erased pages overwritten; nothing else is left."""
    connection = open_writer(path)
    found = {name: connection.pragma(name) for name in ("journal_mode", "synchronous")}
    assert found == {"journal_mode": "wal", "synchronous": 2}
    assert connection.pragma("foreign_keys") == connection.pragma("secure_delete") == 1
    assert connection.pragma("user_version") == SCHEMA_VERSION
    assert connection.pragma("application_id") == APPLICATION_ID
    connection.execute("INSERT INTO namespace (name) VALUES ('n')")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(("sessions.db", "sessions.db-wal", "sessions.db-shm"), 0o600)
    connection.close()


def test_what_a_crash_left_of_a_new_database_is_in_nobodys_way(path: Path) -> None:
    """It was never renamed, so it never was one."""
    path.with_name("sessions.db.new").write_bytes(b"half of it")
    path.with_name("sessions.db.new-wal").write_bytes(b"rest")
    open_writer(path).close()
    assert [file.name for file in path.parent.iterdir()] == ["sessions.db"]


def test_a_reader_can_not_write(path: Path) -> None:
    """Its connection is read-only."""
    open_writer(path).close()
    reader = open_reader(path)
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("INSERT INTO namespace (name) VALUES ('n')")
    reader.close()


def refused(path: Path, match: str) -> Unavailable:
    """Returns the error of opening; the file is byte for byte what it was."""
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(Unavailable, match=match) as caught:
        open_writer(path)
    assert str(path) in caught.value.message
    if before is not None:
        assert path.read_bytes() == before
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    return caught.value


def test_a_newer_schema_is_refused(path: Path) -> None:
    """It names both versions and what to do."""
    connection = open_writer(path)
    connection.pragma("user_version", SCHEMA_VERSION + 1)
    connection.close()
    error = refused(path, "written by a newer turnmark. Install that version again")
    assert error.facts["schema"] == SCHEMA_VERSION + 1


def test_a_database_of_another_program_is_refused(path: Path) -> None:
    """And not changed: not its journal mode either."""
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    refused(path, "database of another program.*--state")


def test_an_empty_file_is_a_lost_database(path: Path) -> None:
    """Nobody starts from nothing in silence."""
    path.touch()
    refused(path, "it is empty.*[Rr]estore")


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    """It says how to save what is readable."""
    path.write_bytes(b"not a database at all, but long enough to look at " * 100)
    refused(path, r"damaged or unreadable.*\.recover")


@pytest.mark.parametrize("page", [0, 1, 4, 9])
def test_a_damaged_page_is_refused(path: Path, page: int) -> None:
    """The structure is checked before the first write."""
    connection = open_writer(path)
    connection.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
        " INSERT INTO namespace (name) SELECT 'name of a family ' || i FROM n"
    )
    connection.close()
    content = bytearray(path.read_bytes())
    start = page * 4096 + (100 if page == 0 else 0)
    content[start : start + 64] = bytes(byte ^ 0x5A for byte in content[start : start + 64])
    path.write_bytes(content)
    refused(path, "damaged or unreadable")


def test_a_cut_off_file_is_refused(path: Path) -> None:
    """Half of a database is none."""
    open_writer(path).close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    refused(path, "damaged or unreadable")


def test_a_directory_in_its_place_is_refused(path: Path) -> None:
    """It says to look at what is there."""
    path.mkdir()
    refused(path, "cannot open the session store.*check that it is a file")


def test_a_place_that_is_not_there_is_refused(path: Path) -> None:
    """It says to look at the directory."""
    refused(path.parent / "nowhere" / "sessions.db", "rights of it and of its directory")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody without rights")
@pytest.mark.parametrize(("file_mode", "directory_mode"), [(0o400, 0o500), (0o444, 0o555)])
def test_a_read_only_place_is_refused(path: Path, file_mode: int, directory_mode: int) -> None:
    """Somebody without the right to write is told, and told what to check."""
    open_writer(path).close()
    os.chown(path, 65_534, 65_534)
    os.chown(path.parent, 65_534, 65_534)
    path.chmod(file_mode)
    path.parent.chmod(directory_mode)
    child = os.fork()
    if child == 0:
        os.setuid(65_534)
        try:
            open_writer(path)
        except Unavailable as error:
            os._exit(0 if "check that it is a file, and the owner" in error.message else 2)
        except BaseException:  # noqa: BLE001  a child must not return into the tests
            os._exit(3)
        os._exit(4)
    _, status = os.waitpid(child, 0)
    path.parent.chmod(0o700)
    assert os.waitstatus_to_exitcode(status) == 0


FIRST = "CREATE TABLE one (x); INSERT INTO one VALUES (1)"
SECOND = "ALTER TABLE one ADD COLUMN y; UPDATE one SET y = x + 1"


def test_migrates_forward_step_by_step(path: Path) -> None:
    """Each step once, what is there is kept."""
    open_writer(path, [FIRST]).close()
    for _ in range(2):
        connection = open_writer(path, [FIRST, SECOND])
        assert connection.execute("SELECT x, y FROM one").fetchall() == [(1, 2)]
        assert connection.pragma("user_version") == 2
        connection.close()


def schema_of(path: Path) -> set[tuple[str, str, str]]:
    """Returns all that a database defines."""
    with closing(apsw.Connection(str(path))) as connection:
        return set(connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql <> ''"))


@pytest.fixture
def old(path: Path) -> Path:
    """A database that the last version with schema 2 wrote, its file packed."""
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    path.chmod(0o600)
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("user_version") == 2
    return path


@pytest.mark.anyio
async def test_a_store_that_an_older_version_wrote_goes_on(old: Path) -> None:
    """With forks, marks and what was taken back: all of it is there, and it grows."""
    async with Stage(old) as stage:
        dag = await dag_of(stage)
        assert {key: (row[0], row[3].decode()) for key, row in dag["turns"].items()} == {
            "u1": (None, "I moved to Porto."),
            "a1": ("u1", "Noted."),
            "u2": ("a1", "我搬到了波尔图。"),
            "u3": ("a1", "No, to Lisbon."),
            "a3": ("u3", "Lisbon it is."),
            "u5": (None, "Look it up."),
        }
        assert await stage.owes() == {"u3", "a3"}
        await stage.append(user("still here 还在", "u6"))
        assert await stage.owes() == {"u3", "a3", "u6"}
    new = old.with_name("new.db")
    open_writer(new).close()
    assert schema_of(old) == schema_of(new)
    checked = apsw.Connection(str(old))
    assert checked.pragma("integrity_check") == "ok"
    assert checked.execute("PRAGMA foreign_key_check").fetchall() == []
    assert checked.pragma("user_version") == SCHEMA_VERSION
    checked.close()


def test_a_step_that_fails_changes_nothing_of_its_own(path: Path) -> None:
    """The steps before it stand; the next start goes on from there."""
    open_writer(path, [FIRST]).close()
    broken = f"{SECOND}; SELECT no_such_function()"
    with pytest.raises(Unavailable, match="no_such_function"):
        open_writer(path, [FIRST, broken])
    connection = open_writer(path, [FIRST])
    assert connection.execute("SELECT * FROM one").fetchall() == [(1,)]
    connection.close()


@pytest.mark.parametrize(("visit", "version"), [(1, 0), (2, 1), (3, 2)])
def test_a_crash_between_two_steps_loses_none(path: Path, visit: int, version: int) -> None:
    """Killed before any step: the next start does what is left, once."""
    open_writer(path, []).close()
    third = "UPDATE one SET y = y * 10"
    code = (
        "import sys; from pathlib import Path;"
        "from turnmark_session_store.database import open_writer;"
        "open_writer(Path(sys.argv[1]), sys.argv[2:])"
    )
    environment = {**os.environ, "TURNMARK_FAILPOINT": f"store.before_migration=kill@{visit}"}
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path), FIRST, SECOND, third],
        env=environment,
        check=False,
        timeout=60,
    )
    assert ended.returncode == -9
    raw = apsw.Connection(str(path))
    assert raw.pragma("user_version") == version
    raw.close()
    connection = open_writer(path, [FIRST, SECOND, third])
    assert connection.execute("SELECT x, y FROM one").fetchall() == [(1, 20)]
    connection.close()


def test_the_schema_stands_in_a_bare_database() -> None:
    """All foreign keys point at tables that are there, and the whole is sound."""
    connection = apsw.Connection(":memory:")
    for migration in MIGRATIONS:
        connection.execute(migration)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
