"""Tests of `session_store/transcripts/conversation_tail.py`: its share, its memory, its crashes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest
from structlog.testing import capture_logs

from session_store.stage import Stage
from session_store.transcripts.note_database import NoteReader, Notes
from session_store.transcripts.tailing import Dag, dag_of
from turnmark_events.errors import Unavailable
from turnmark_session_store import failpoints
from turnmark_session_store.model import MemoryMode
from turnmark_session_store.transcripts import (
    conversation_sources,
    conversation_tail,
    tail_loop,
)
from turnmark_session_store.transcripts.claude_code.live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.known import Known
from turnmark_session_store.transcripts.live import Standing
from turnmark_session_store.transcripts.tail import TranscriptTail


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


def tail_of(stage: Stage, root: Path, reader: NoteReader | None = None) -> DatabaseTail:
    """A tail that knows nothing but the checkpoints."""
    return DatabaseTail(stage.store, reader or NoteReader(), root, rest_per_work=0.0)


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_796_000_000.0

    def time(self) -> float:
        """Returns the time, of day or not."""
        return self.now

    def pass_by(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that tails go by."""
    made = Clock()
    there = SimpleNamespace(time=made.time, monotonic=made.time)
    for module in (conversation_tail, tail_loop):
        monkeypatch.setattr(module, "time", there)
    return made


class Slow(NoteReader):
    """A reader of which a look and a reading take their time; `busy` is how long, together."""

    def __init__(self, clock: Clock, *, look: float, reading: float) -> None:
        super().__init__()
        self.busy = 0.0
        self._clock = clock
        self._look = look
        self._reading = reading

    def conversations(self, db: Database) -> Any:
        """What there is, after a while."""
        self._spend(self._look)
        return super().conversations(db)

    def read(
        self, db: Database, conversation: Conversation, *, without: Any, now: float
    ) -> Standing:
        """What one holds, after a while."""
        self._spend(self._reading)
        return super().read(db, conversation, without=without, now=now)

    def _spend(self, seconds: float) -> None:
        self._clock.pass_by(seconds)
        self.busy += seconds


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("conversations", "look", "reading", "share"),
    [(1, 0.01, 0.05, 0.25), (8, 0.05, 0.1, 0.25), (1, 0.1, 9.0, 0.5), (8, 1.0, 2.0, 0.5)],
    ids=["small", "many small", "large", "many large"],
)
async def test_a_writer_that_never_rests_takes_its_share_and_no_more(
    stage: Stage,
    root: Path,
    notes: Notes,
    clock: Clock,
    conversations: int,
    look: float,
    reading: float,
    share: float,
) -> None:
    """However many of its conversations change: a quarter of the time, of long readings half."""
    reader = Slow(clock, look=look, reading=reading)
    tail = DatabaseTail(stage.store, reader, root)
    for number in range(conversations):
        notes.open(f"s{number}")
        notes.say(f"s{number}", f"{number}", "hello 你好")
    await tail.deal_with_all()
    began, reader.busy = clock.now, 0.0
    readings = len(reader.reads)
    while clock.now < began + 40 * conversations * reading:
        notes.run("UPDATE note SET edits = edits + 1")
        tail.changed([root / "a.db-wal"])
        await tail.deal_with_all()
        clock.pass_by(0.2)
    assert len(reader.reads) - readings >= 4 * conversations
    assert reader.busy <= share * (clock.now - began) + look + conversations * reading


@pytest.mark.anyio
async def test_few_conversations_are_in_memory_while_all_are_read(
    stage: Stage, root: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first look at a year of talks costs no more of it than a day's.

    Those that must not be remembered, as all that turnmark's own writer says, cost none.
    """
    there: WeakSet[Known] = WeakSet()
    counts: list[int] = []

    def memory_for(project: str | None, session: str) -> MemoryMode:
        del session
        return "off" if project == "/state/writer" else "on"

    class Counted(Known):
        def __init__(self) -> None:
            super().__init__()
            there.add(self)
            counts.append(len(there))

    monkeypatch.setattr(conversation_sources, "Known", Counted)
    for number in range(100):
        notes.open(f"s{number}")
        notes.say(f"s{number}", f"{number}", f"hello {number}")
        notes.open(f"own{number}", project="/state/writer")
        notes.say(f"own{number}", f"own{number}", "Write this up.")
    tail = DatabaseTail(stage.store, NoteReader(), root, rest_per_work=0.0, memory_for=memory_for)
    await tail.deal_with_all()
    assert len(counts) == 100
    assert max(counts) <= 40


@pytest.mark.anyio
async def test_a_commit_that_is_seen_after_it_was_told_is_read(
    stage: Stage, root: Path, notes: Notes, clock: Clock
) -> None:
    """The log is written, its event told and looked at, and only then does the disk have it."""
    reader = NoteReader()
    tail = tail_of(stage, root, reader)
    notes.open("one")
    await tail.deal_with_all()
    clock.pass_by(10.0)
    await tail.deal_with_all()
    notes.run("BEGIN IMMEDIATE")
    notes.say("one", "1", "good night 晚安")
    tail.changed([root / "a.db-wal"])
    await tail.deal_with_all()
    notes.run("COMMIT")
    assert (await dag_of(stage))["turns"] == {}
    looks = reader.looks
    for _ in range(3):
        clock.pass_by(10.0)
        await tail.deal_with_all()
    assert list((await dag_of(stage))["turns"]) == ["1"]
    assert reader.looks == looks + 1


@pytest.mark.anyio
async def test_what_is_not_installed_is_no_news_and_a_failure_is_told_once(
    stage: Stage, root: Path
) -> None:
    """Until it fails for another reason, or again after it was well."""

    class Failing(NoteReader):
        reason: str | None = None

        def conversations(self, db: Database) -> Any:
            if self.reason is not None:
                raise Unavailable(self.reason)
            return super().conversations(db)

    reader = Failing()
    tails = [
        tail_of(stage, root, reader),
        TranscriptTail(stage.store, ClaudeCodeLiveReader(), root / "projects"),
    ]
    with capture_logs() as logs:
        for tail in tails:
            await tail.deal_with_all()
    assert [entry["log_level"] for entry in logs] == ["debug", "debug"]
    notes = Notes(root / "a.db")
    notes.open("one")
    told: list[tuple[str, str]] = []
    for reader.reason in (None, "a", "a", "b", None, "b"):
        tails[0].rescan()
        with capture_logs() as logs:
            await tails[0].deal_with_all()
        told += [(entry["event"], entry.get("reason", entry["log_level"])) for entry in logs]
    scan, failed = ("databases_scanned", "info"), "transcript_not_followed"
    assert told == [
        *(scan, scan, (failed, "a"), scan, scan, (failed, "b"), scan, scan, (failed, "b"))
    ]
    notes.close()


@pytest.mark.anyio
async def test_a_crash_between_any_two_commits_loses_nothing_and_doubles_nothing(
    stage: Stage, root: Path, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store as each commit leaves it is what a killed daemon finds, and goes on from."""
    tail, images = tail_of(stage, root), tmp_path / "images"

    def keep(name: str) -> None:
        if name == "store.after_commit":
            image = images / f"{len(list(images.iterdir())):03}"
            image.mkdir()
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{stage.path}{suffix}", image / f"sessions.db{suffix}")

    async def follow(commits: int) -> Dag:
        images.mkdir()
        monkeypatch.setattr(failpoints, "hook", keep)
        tail.changed([root / "a.db-wal"])
        await tail.deal_with_all()
        monkeypatch.setattr(failpoints, "hook", None)
        whole = await dag_of(stage)
        found = sorted(images.iterdir())
        assert len(found) >= commits
        for image in found:
            assert await followed_from(image, root) == whole, image.name
        shutil.rmtree(images)
        return whole

    notes.open("one")
    for number in range(450):  # more than are placed in one transaction
        notes.say("one", f"1.{number}", f"words {number}")
    notes.open("fork", "one")
    notes.say("fork", "2.1", "另一种说法")
    notes.open("other")
    notes.say("other", "3.1", "half")
    assert len((await follow(commits=7))["turns"]) == 452
    notes.run("UPDATE note SET text = 'other words', edits = 1 WHERE id = '1.7'")
    notes.run("UPDATE note SET gone = 1, edits = 1 WHERE id = '2.1'")
    notes.say("one", "1.450", "the last")
    notes.say("other", "3.2", "more")
    after = await follow(commits=3)
    assert len(after["turns"]) == 453
    assert "1.7~2" in after["turns"]


async def followed_from(image: Path, root: Path) -> Dag:
    """Follows what there is into a store that a crash left."""
    async with Stage(image / "sessions.db") as stage:
        await tail_of(stage, root).deal_with_all()
        return await dag_of(stage)
