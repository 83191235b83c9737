"""Tests of `session_store/transcripts/database_tail.py`: databases that somebody writes."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from session_store.stage import Stage
from session_store.transcripts.note_database import NoteReader, Notes
from session_store.transcripts.tailing import Dag, dag_of
from turnmark_events.errors import Unavailable
from turnmark_session_store.model import MemoryMode
from turnmark_session_store.queries import rows_of
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.live import Standing


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The agent's directory."""
    return tmp_path / "notes"


@pytest.fixture
def notes(root: Path) -> Iterator[Notes]:
    """The agent's program, at work."""
    made = Notes(root / "a.db")
    yield made
    made.close()


@pytest.fixture
def reader() -> NoteReader:
    """A reader that remembers what it read."""
    return NoteReader()


@pytest.fixture
def tail(stage: Stage, root: Path, reader: NoteReader) -> DatabaseTail:
    """A tail that knows nothing but the checkpoints."""
    return DatabaseTail(stage.store, reader, root, rest_per_work=0.0)


def again(stage: Stage, root: Path, reader: NoteReader, **more: Any) -> DatabaseTail:
    """Another tail, as a new process makes one."""
    reader.reads.clear()
    return DatabaseTail(stage.store, reader, root, rest_per_work=0.0, **more)


async def settle(tail: DatabaseTail, notes: Notes) -> None:
    """Lets a tail deal with a change of the log."""
    tail.changed([notes.path.with_name(f"{notes.path.name}-wal")])
    await tail.deal_with_all()


def said(dag: Dag) -> list[str]:
    """What the live turns say, in the order in which they were appended."""
    return [turn[3].decode() for turn in dag["turns"].values()]


@pytest.mark.anyio
async def test_reads_only_the_conversations_that_changed(
    stage: Stage, notes: Notes, reader: NoteReader, tail: DatabaseTail
) -> None:
    """Another one costs no more than a look at what there is."""
    for name in ("one", "two", "三"):
        notes.open(name)
        notes.say(name, f"1{name}", f"hello {name}", time=5.0 - len(reader.reads))
    await tail.deal_with_all()
    assert sorted(reader.reads) == ["one", "two", "三"]
    reader.reads.clear()
    notes.say("two", "2", "再见")
    await settle(tail, notes)
    assert reader.reads == ["two"]
    assert said(await dag_of(stage))[-1] == "再见"
    await settle(tail, notes)
    assert reader.reads == ["two"]


@pytest.mark.anyio
async def test_the_newest_conversation_comes_first(
    notes: Notes, reader: NoteReader, tail: DatabaseTail
) -> None:
    """Whoever begins with a year of talks wants today's."""
    for name, at in (("old", 10.0), ("new", 30.0), ("middle", 20.0)):
        notes.open(name)
        notes.say(name, f"1{name}", "hello", time=at)
    await tail.deal_with_all()
    assert reader.reads == ["new", "middle", "old"]


@pytest.mark.anyio
async def test_a_new_process_reads_nothing_again(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader, tail: DatabaseTail
) -> None:
    """What is in the store as it is, is told by its checkpoint; what came since is read."""
    for name in ("one", "two"):
        notes.open(name)
        notes.say(name, f"1{name}", "hello")
    await tail.deal_with_all()
    tail = again(stage, root, reader)
    await tail.deal_with_all()
    assert reader.reads == []
    notes.say("one", "2", "while nobody looked")
    tail = again(stage, root, reader)
    await tail.deal_with_all()
    assert reader.reads == ["one"]
    assert said(await dag_of(stage))[-1] == "while nobody looked"


@pytest.mark.anyio
async def test_a_database_that_takes_the_name_of_another_is_read_whole(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader, tail: DatabaseTail
) -> None:
    """Also where each conversation looks as the old one did; nothing is there twice."""
    notes.open("one")
    notes.say("one", "1", "hello")
    await tail.deal_with_all()
    before = await dag_of(stage)
    notes.close()
    shutil.copyfile(root / "a.db", root / "moved")
    (root / "moved").rename(root / "a.db")
    reader.reads.clear()
    tail.changed([root / "a.db"])
    await tail.deal_with_all()
    assert reader.reads == ["one"]
    assert await dag_of(stage) == before
    assert tail.status().last_error is None


@pytest.mark.anyio
async def test_what_is_deleted_at_the_source_stays(
    stage: Stage, root: Path, notes: Notes, tail: DatabaseTail
) -> None:
    """A row, a session, the whole file: absence takes nothing back."""
    notes.open("one")
    notes.say("one", "1", "first")
    notes.say("one", "2", "second")
    notes.open("two")
    notes.say("two", "3", "third")
    await tail.deal_with_all()
    before = await dag_of(stage)
    notes.run("DELETE FROM note WHERE id IN ('2', '3')")
    notes.run("DELETE FROM session WHERE name = 'two'")
    await settle(tail, notes)
    assert (await dag_of(stage))["turns"] == before["turns"]
    notes.close()
    (root / "a.db").unlink()
    tail.changed([root / "a.db"])
    await tail.deal_with_all()
    tail.rescan()
    await tail.deal_with_all()
    assert (await dag_of(stage))["turns"] == before["turns"]
    assert (tail.status().files, tail.status().last_error) == (0, None)


@pytest.mark.anyio
async def test_a_row_that_is_flagged_takes_back_and_a_flag_that_goes_restores_nothing(
    stage: Stage, notes: Notes, tail: DatabaseTail
) -> None:
    """A record of the agent that says so takes back; only a client restores."""
    notes.open("one")
    notes.say("one", "1", "stays")
    notes.say("one", "2", "goes")
    await tail.deal_with_all()
    notes.run("UPDATE note SET gone = 1 WHERE id = '2'")
    await settle(tail, notes)
    assert said(await dag_of(stage)) == ["stays"]
    notes.run("UPDATE note SET gone = 0 WHERE id = '2'")
    await settle(tail, notes)
    assert said(await dag_of(stage)) == ["stays"]


@pytest.mark.anyio
async def test_a_row_that_is_reworded_supersedes(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader, tail: DatabaseTail
) -> None:
    """Each wording takes the place of the one before, also for a process that saw none of them."""
    notes.open("one")
    notes.say("one", "1", "I live in Bergen.")
    await tail.deal_with_all()
    for edits, words in ((1, "I live in Oslo."), (2, "我住在奥斯陆。")):
        notes.run("UPDATE note SET text = ?, edits = ? WHERE id = '1'", words, edits)
        tail = again(stage, root, reader)
        await tail.deal_with_all()
        assert said(await dag_of(stage)) == [words]
    dag = await dag_of(stage)
    assert list(dag["turns"]) == ["1~3"]
    assert dag["tips"] == [("one", "1~3")]


@pytest.mark.anyio
async def test_a_row_that_is_still_written_waits_until_it_is_whole(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader, tail: DatabaseTail
) -> None:
    """With all that hangs from it; a process that comes meanwhile waits as well."""
    now = time.time()
    notes.open("one")
    notes.say("one", "1", "Where do I live?", time=now)
    notes.say("one", "2", "In Ber", role="assistant", done=False, time=now + 600)
    await tail.deal_with_all()
    assert said(await dag_of(stage)) == ["Where do I live?"]
    assert tail.status().held == 1
    tail = again(stage, root, reader)
    await tail.deal_with_all()
    assert (reader.reads, tail.status().held) == (["one"], 1)
    notes.run("UPDATE note SET text = 'In Bergen.', done = 1, edits = 1 WHERE id = '2'")
    await settle(tail, notes)
    assert said(await dag_of(stage)) == ["Where do I live?", "In Bergen."]
    assert tail.status().held == 0


@pytest.mark.anyio
async def test_a_row_that_is_never_finished_is_given_out_in_the_end(
    stage: Stage, root: Path, notes: Notes, tail: DatabaseTail
) -> None:
    """Its program died; nothing changes in the database any more."""
    notes.open("one")
    notes.say("one", "1", "half a", done=False, time=time.time() + 600)
    await tail.deal_with_all()
    assert (await dag_of(stage))["turns"] == {}
    tail = DatabaseTail(stage.store, NoteReader(patience_seconds=-6_000.0), root, rest_per_work=0.0)
    await tail.deal_with_all()
    assert said(await dag_of(stage)) == ["half a"]


@pytest.mark.anyio
async def test_sessions_without_memory_are_not_read(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader
) -> None:
    """A fork of one that is off is a talk of its own; a rule that goes lets the rest in."""
    secret = "/home/me/secret"

    def memory_for(project: str | None, session: str) -> MemoryMode:
        del session
        return "off" if project == secret else "on"

    notes.open("off", project=secret)
    notes.say("off", "1", "a secret")
    notes.open("root", project=secret)
    notes.say("root", "2", "another")
    notes.open("fork", "root", project="/home/me")
    notes.say("fork", "3", "open words")
    tail = again(stage, root, reader, memory_for=memory_for)
    await tail.deal_with_all()
    assert reader.reads == ["root"]
    assert said(await dag_of(stage)) == ["open words"]
    tail = again(stage, root, reader)
    await tail.deal_with_all()
    assert sorted(reader.reads) == ["off", "root"]
    assert sorted(said(await dag_of(stage))) == ["a secret", "another", "open words"]
    assert tail.status().last_error is None


@pytest.mark.anyio
async def test_local_sessions_are_marked_as_such(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader
) -> None:
    """Their mode goes with their first turns into the store."""
    notes.open("one", project="/p")
    notes.say("one", "1", "hello")
    tail = again(stage, root, reader, memory_for=lambda _project, _session: "local")
    await tail.deal_with_all()
    modes = await stage.store.read(lambda db: rows_of(db, "SELECT name, memory FROM session"))
    assert modes == [("one", "local")]


@pytest.mark.anyio
async def test_one_bad_conversation_keeps_no_other_from_being_followed(
    stage: Stage, root: Path, notes: Notes
) -> None:
    """It is told of, and tried again as soon as it changes."""

    class Stumbling(NoteReader):
        bad = True

        def read(
            self, db: Database, conversation: Conversation, *, without: Any, now: float
        ) -> Standing:
            if self.bad and conversation.name == "bad":
                db.select(["no_such_column"], "FROM note")
            return super().read(db, conversation, without=without, now=now)

    reader = Stumbling()
    tail = DatabaseTail(stage.store, reader, root, rest_per_work=0.0)
    for name in ("bad", "good"):
        notes.open(name)
        notes.say(name, f"1{name}", f"hello {name}")
    await tail.deal_with_all()
    assert said(await dag_of(stage)) == ["hello good"]
    assert "no_such_column" in (tail.status().last_error or "")
    reader.bad = False
    await settle(tail, notes)
    assert sorted(said(await dag_of(stage))) == ["hello bad", "hello good"]
    assert tail.status().last_error is None


@pytest.mark.anyio
async def test_a_database_that_cannot_be_read_keeps_no_other_from_being_followed(
    stage: Stage, root: Path, notes: Notes, tail: DatabaseTail
) -> None:
    """One that is damaged is told of, and read when it can be."""
    (root / "b.db").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    notes.open("one")
    notes.say("one", "1", "hello")
    await tail.deal_with_all()
    assert said(await dag_of(stage)) == ["hello"]
    assert "b.db" in (tail.status().last_error or "")
    (root / "b.db").unlink()
    tail.rescan()
    await tail.deal_with_all()
    assert tail.status().last_error is None


@pytest.mark.anyio
async def test_a_directory_that_cannot_be_looked_at_loses_nothing(
    stage: Stage, root: Path, notes: Notes
) -> None:
    """What was found in it is followed all the same."""

    class Shut(NoteReader):
        is_shut = False

        def databases(self, root: Path) -> Collection[Path]:
            if self.is_shut:
                raise PermissionError(13, "Permission denied", str(root))
            return super().databases(root)

    reader = Shut()
    tail = DatabaseTail(stage.store, reader, root, rest_per_work=0.0)
    notes.open("one")
    notes.say("one", "1", "hello")
    await tail.deal_with_all()
    reader.is_shut = True
    notes.say("one", "2", "again")
    tail.rescan()
    await tail.deal_with_all()
    assert said(await dag_of(stage)) == ["hello", "again"]
    assert "Permission denied" in (tail.status().last_error or "")
    reader.is_shut = False
    tail.rescan()
    await tail.deal_with_all()
    assert tail.status().last_error is None


@pytest.mark.anyio
@pytest.mark.parametrize("failing", range(1, 5))
async def test_a_failure_in_the_middle_loses_nothing(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader, failing: int
) -> None:
    """What a conversation's sessions came to is placed a session at a time, its checkpoint last."""
    notes.open("one")
    notes.say("one", "1", "first")
    for name in ("a", "b", "c"):
        notes.open(name, "one")
        notes.say(name, f"2{name}", f"fork {name}")
    placed: list[str] = []

    def stumble(tx: Transaction, session: str, connected_ms: int) -> None:
        del tx, connected_ms
        placed.append(session)
        if len(placed) == failing:
            raise Unavailable("the disk is full")

    tail = again(stage, root, reader, placed=stumble)
    await tail.deal_with_all()
    assert "the disk is full" in (tail.status().last_error or "")
    assert len(said(await dag_of(stage))) == failing - 1
    tail = again(stage, root, reader)
    await tail.deal_with_all()
    assert (reader.reads, tail.status().last_error) == (["one"], None)
    assert said(await dag_of(stage)) == ["first", "fork a", "fork b", "fork c"]
    assert len((await dag_of(stage))["tips"]) == 4


@pytest.mark.anyio
@pytest.mark.parametrize("journal", ["wal", "delete", "truncate"])
async def test_follows_a_program_that_writes_meanwhile(
    stage: Stage, root: Path, reader: NoteReader, journal: str
) -> None:
    """From another thread, at any moment, in either way of writing: nothing is lost or doubled."""

    def write() -> None:
        notes = Notes(root / "a.db", journal=journal)
        notes.db.set_busy_timeout(60_000)
        for name in ("one", "two"):
            notes.open(name)
        for number in range(60):
            notes.say("one" if number % 3 else "two", str(number), f"words {number}")
        notes.close()

    tail = again(stage, root, reader)
    async with anyio.create_task_group() as tasks:
        written = anyio.Event()

        async def watch() -> None:
            await anyio.to_thread.run_sync(write)
            written.set()

        tasks.start_soon(watch)
        with anyio.fail_after(60):
            while not written.is_set():
                tail.rescan()
                await tail.deal_with_all()
    tail.rescan()
    await tail.deal_with_all()
    dag = await dag_of(stage)
    assert sorted(said(dag)) == sorted(f"words {number}" for number in range(60))
    assert len(dag["tips"]) == 2


@pytest.mark.anyio
async def test_waits_for_a_directory_that_is_not_there_yet(
    stage: Stage, root: Path, tail: DatabaseTail
) -> None:
    """The agent may be installed later."""
    await tail.deal_with_all()
    assert (tail.status().state, tail.status().files) == ("waiting", 0)
    notes = Notes(root / "a.db")
    notes.open("one")
    notes.say("one", "1", "hello")
    tail.changed([root])
    await tail.deal_with_all()
    notes.close()
    assert said(await dag_of(stage)) == ["hello"]
    status = tail.status()
    assert (status.state, status.files) == ("following", 1)
    assert status.bytes_done == status.bytes_total > 0


@pytest.mark.anyio
async def test_a_session_that_was_deleted_here_does_not_come_back(
    stage: Stage, notes: Notes, tail: DatabaseTail
) -> None:
    """What the user took back stays so, however often the rows are read."""
    notes.open("one")
    notes.say("one", "1", "hello")
    await tail.deal_with_all()
    await stage.delete("one")
    notes.say("one", "2", "and more")
    await settle(tail, notes)
    assert "hello" not in said(await dag_of(stage))
    assert tail.status().last_error is None


@pytest.mark.anyio
async def test_wakes_by_itself_when_something_is_due(
    stage: Stage, root: Path, notes: Notes, reader: NoteReader
) -> None:
    """Its task sleeps until a change, or until a row that nobody finishes has waited enough."""
    placed = threading.Event()

    def note(tx: Transaction, session: str, connected_ms: int) -> None:
        del tx, session, connected_ms
        placed.set()

    async def wait() -> None:
        assert await anyio.to_thread.run_sync(placed.wait, 60)
        placed.clear()
        await stage.store.write(lambda _: None)  # behind the commit of what was noted

    tail = again(stage, root, reader, placed=note)
    notes.open("one")
    async with anyio.create_task_group() as tasks:
        await tasks.start(tail.run)
        notes.say("one", "1", "hello")
        tail.changed([root / "a.db-wal"])
        await wait()
        notes.say("one", "2", "half a", done=False, time=time.time() - 59.5)
        tail.changed([root / "a.db-wal"])
        while said(await dag_of(stage)) != ["hello", "half a"]:
            await wait()
        with anyio.fail_after(60):
            await tail.catch_up()
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_says_how_far_it_is(stage: Stage, root: Path, notes: Notes) -> None:
    """While older conversations are read, by their number."""
    found: list[tuple[str, bool]] = []

    class Watched(NoteReader):
        def read(
            self, db: Database, conversation: Conversation, *, without: Any, now: float
        ) -> Standing:
            status = tail.status()
            found.append((status.state, status.bytes_done < status.bytes_total))
            return super().read(db, conversation, without=without, now=now)

    tail = DatabaseTail(stage.store, Watched(), root, rest_per_work=0.0)
    assert tail.status().state == "scanning"
    for name in ("one", "two"):
        notes.open(name)
        notes.say(name, f"1{name}", "hello")
    await tail.deal_with_all()
    assert found == [("scanning", True), ("following", False)]


@pytest.mark.anyio
async def test_many_conversations_are_followed_and_few_kept_in_memory(
    stage: Stage, notes: Notes, reader: NoteReader, tail: DatabaseTail
) -> None:
    """One that left memory goes on as any other."""
    for number in range(40):
        notes.open(f"s{number}")
        notes.say(f"s{number}", f"{number}", f"hello {number}")
    await tail.deal_with_all()
    reader.reads.clear()
    for number in range(40):
        notes.say(f"s{number}", f"{number}b", f"again {number}")
    await settle(tail, notes)
    assert len(reader.reads) == 40
    assert len(said(await dag_of(stage))) == 80
    assert len((await dag_of(stage))["tips"]) == 40
