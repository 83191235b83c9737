"""The writer thread: groups, savepoints, order, and a disk that fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import apsw
import pytest

from session_store.stage import Clock
from turnmark_events.errors import Conflict, TurnmarkError, Unavailable
from turnmark_events.types import Event, Forgotten
from turnmark_session_store.database import open_writer
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.writer_thread import Settle, WriterThread

WAIT_SECONDS = 60
_FAILURES: dict[str, int] = {}


class FailingFile(apsw.VFSFile):
    """A file whose writes or syncs fail while a test wants it."""

    def xSync(self, flags: int) -> None:  # noqa: N802  SQLite's name
        """Fails like a disk that lost what it should have kept."""
        if _FAILURES.get("sync"):
            raise _error(apsw.IOError, apsw.SQLITE_IOERR_FSYNC)
        super().xSync(flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  SQLite's name
        """Fails like a disk that is full."""
        if _FAILURES.get("full"):
            raise _error(apsw.FullError, apsw.SQLITE_FULL)
        super().xWrite(data, offset)


class FailingVFS(apsw.VFS):
    """The operating system's files, each a `FailingFile`."""

    def __init__(self) -> None:
        self._name = "turnmark-test-failing"
        super().__init__(self._name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  SQLite's name
        """Opens the file below."""
        return FailingFile("", name, flags)


def _error(kind: type[apsw.Error], code: int) -> apsw.Error:
    made = kind("test")
    made.extendedresult = code
    made.result = code & 0xFF
    return made


class Gate:
    """Holds the writer thread inside a request, so that others queue up behind it."""

    def __init__(self) -> None:
        self.entered, self.may_go = threading.Event(), threading.Event()

    def __call__(self, tx: Transaction) -> None:
        self.entered.set()
        assert self.may_go.wait(WAIT_SECONDS)


class Writer:
    """A writer thread, what it delivered, and how."""

    def __init__(self, path: Path, vfs: str | None = None) -> None:
        connection = open_writer(path)
        if vfs is not None:
            connection.close()
            connection = apsw.Connection(str(path), vfs=vfs)
            connection.pragma("synchronous", "full")
        self.path = path
        self.connection = connection
        self.log: list[str] = []
        self.thread = WriterThread(connection, deliver=self.deliver, clock=Clock())

    def deliver(self, events: Sequence[Event], answers: Sequence[Settle]) -> None:
        """Notes the events and the answers in the order they come."""
        self.log += [f"event {event.seq}" for event in events]
        for settle in answers:
            self.log.append("answer")
            settle()

    def submit(
        self, write: Callable[[Transaction], Any], *, background: bool = False
    ) -> Future[Any]:
        """Queues a request."""
        return self.thread.submit(write, background=background)

    def repeatable(self, write: Callable[[Transaction], Any]) -> Future[Any]:
        """Queues a request that may be called once more."""
        answer: Future[Any] = Future()
        self.thread.submit_to(answer, write, repeatable=True)
        return answer

    def hold(self) -> Gate:
        """Returns once the thread is held up in a request."""
        gate = Gate()
        self.submit(gate)
        assert gate.entered.wait(WAIT_SECONDS)
        return gate

    def names(self) -> list[str]:
        """Returns what is stored, read from a connection of its own."""
        reader = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        found = [name for (name,) in reader.execute("SELECT name FROM namespace ORDER BY id")]
        reader.close()
        return found


@pytest.fixture
def writer(place: Path) -> Iterator[Writer]:
    """A writer thread on a new database."""
    made = Writer(place / "sessions.db")
    yield made
    made.thread.close()


@pytest.fixture
def failing(place: Path) -> Iterator[Writer]:
    """A writer thread on a disk that fails on demand."""
    vfs = FailingVFS()
    made = Writer(place / "sessions.db", "turnmark-test-failing")
    made.submit(named("before")).result(WAIT_SECONDS)
    yield made
    _FAILURES.clear()
    made.thread.close()
    vfs.unregister()


def named(name: str, log: list[str] | None = None) -> Callable[[Transaction], str]:
    """Returns a write that stores a name."""

    def write(tx: Transaction) -> str:
        tx.execute("INSERT INTO namespace (name) VALUES (?)", (name,))
        if log is not None:
            log.append(name)
        return name

    return write


def said(count: int) -> Callable[[Transaction], None]:
    """Returns a write that records events."""

    def write(tx: Transaction) -> None:
        for _ in range(count):
            tx.record(Forgotten, {"turns": 1})

    return write


def test_answers_after_the_commit(writer: Writer) -> None:
    """What was answered is there for every other connection."""
    assert writer.submit(named("a")).result(WAIT_SECONDS) == "a"
    assert writer.names() == ["a"]


def test_commits_what_is_queued_as_one_group(writer: Writer) -> None:
    """Nobody waits for a timer: what queued up behind one commit is the next one."""
    gate = writer.hold()
    answers = [writer.submit(named(f"n{number}")) for number in range(50)]
    before = writer.thread.statistics()["groups"]
    gate.may_go.set()
    assert [answer.result(WAIT_SECONDS) for answer in answers] == [f"n{n}" for n in range(50)]
    assert writer.thread.statistics()["groups"] == before + 1


def test_a_group_has_a_limit(writer: Writer) -> None:
    """Past 256 the rest makes the next group."""
    gate = writer.hold()
    answers = [writer.submit(named(f"n{number}")) for number in range(300)]
    before = writer.thread.statistics()["groups"]
    gate.may_go.set()
    for answer in answers:
        answer.result(WAIT_SECONDS)
    assert writer.thread.statistics()["groups"] == before + 2


@pytest.mark.parametrize("alone", [True, False])
def test_a_failing_request_rolls_back_itself_only(writer: Writer, alone: bool) -> None:
    """Its neighbours are stored; its own writes and events are gone."""
    gate = writer.hold()
    first = None if alone else writer.submit(named("a"))
    bad = writer.submit(conflict)
    last = None if alone else writer.submit(named("b"))
    gate.may_go.set()
    with pytest.raises(Conflict):
        bad.result(WAIT_SECONDS)
    for answer in (first, last):
        if answer is not None:
            answer.result(WAIT_SECONDS)
    assert writer.names() == ([] if alone else ["a", "b"])
    assert not any(line.startswith("event") for line in writer.log)
    assert writer.submit(named("after")).result(WAIT_SECONDS) == "after"


def conflict(tx: Transaction) -> None:
    """Writes, says something and then fails."""
    named("gone")(tx)
    said(3)(tx)
    raise Conflict("no")


@pytest.mark.parametrize("position", [0, 1, 2, 3])
def test_a_failing_request_of_repeatable_ones_rolls_back_itself_only(
    writer: Writer, position: int
) -> None:
    """Wherever it stands: neighbours and their events are stored once, in order."""

    def good(name: str) -> Callable[[Transaction], str]:
        def write(tx: Transaction) -> str:
            said(1)(tx)
            return named(name)(tx)

        return write

    writes: list[Callable[[Transaction], Any]] = [good(name) for name in "abc"]
    writes.insert(position, conflict)
    gate = writer.hold()
    answers = [writer.repeatable(write) for write in writes]
    last = writer.submit(good("last"), background=True)
    gate.may_go.set()
    with pytest.raises(Conflict):
        answers.pop(position).result(WAIT_SECONDS)
    assert [answer.result(WAIT_SECONDS) for answer in answers] == ["a", "b", "c"]
    assert last.result(WAIT_SECONDS) == "last"
    assert writer.names() == ["a", "b", "c", "last"]
    events = [line for line in writer.log if line.startswith("event")]
    assert events == ["event 1", "event 2", "event 3", "event 4"]


def test_what_failed_only_when_repeated_leaves_no_events(writer: Writer) -> None:
    """The events of a call that was rolled back are never published."""
    calls: list[int] = []

    def fails_later(tx: Transaction) -> None:
        said(2)(tx)
        calls.append(1)
        if len(calls) > 1:
            raise Conflict("later")

    gate = writer.hold()
    answers = [writer.repeatable(fails_later), writer.repeatable(conflict)]
    gate.may_go.set()
    for answer in answers:
        with pytest.raises(Conflict):
            answer.result(WAIT_SECONDS)
    assert len(calls) == 2
    assert not any(line.startswith("event") for line in writer.log)


def test_a_request_that_is_not_repeatable_is_called_once(writer: Writer) -> None:
    """Even between repeatable ones of which one fails; the order of the group stays."""
    order: list[str] = []
    gate = writer.hold()
    first = writer.repeatable(named("a", order))
    once = writer.submit(named("once", order))
    bad = writer.repeatable(conflict)
    gate.may_go.set()
    with pytest.raises(Conflict):
        bad.result(WAIT_SECONDS)
    assert (first.result(WAIT_SECONDS), once.result(WAIT_SECONDS)) == ("a", "once")
    assert order == ["a", "once"]
    assert writer.names() == ["a", "once"]


def test_a_statement_that_fails_is_the_requests_own_error(writer: Writer) -> None:
    """A constraint is a bug of that request, not of the group."""
    writer.submit(named("a")).result(WAIT_SECONDS)
    gate = writer.hold()
    bad, good = writer.submit(named("a")), writer.submit(named("b"))
    gate.may_go.set()
    with pytest.raises(apsw.ConstraintError):
        bad.result(WAIT_SECONDS)
    assert good.result(WAIT_SECONDS) == "b"


def test_agents_go_before_background(writer: Writer) -> None:
    """One slice of background work rides in each group, after those of agents."""
    order: list[str] = []
    gate = writer.hold()
    slices = [writer.submit(named(f"b{n}", order), background=True) for n in range(3)]
    agents = [writer.submit(named(f"a{n}", order)) for n in range(3)]
    gate.may_go.set()
    for answer in (*slices, *agents):
        answer.result(WAIT_SECONDS)
    assert order == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_events_come_in_order_before_the_answers(writer: Writer) -> None:
    """After the commit, all of a group in one total order."""
    gate = writer.hold()
    answers = [writer.submit(said(2)), writer.submit(said(1))]
    gate.may_go.set()
    for answer in answers:
        answer.result(WAIT_SECONDS)
    assert writer.log[-5:] == ["event 1", "event 2", "event 3", "answer", "answer"]


def test_closing_finishes_what_is_queued(writer: Writer) -> None:
    """Then nothing more is taken, and the log is in the database file."""
    gate = writer.hold()
    answers = [writer.submit(named(f"n{number}"), background=True) for number in range(5)]
    closing = threading.Thread(target=writer.thread.close)
    closing.start()
    gate.may_go.set()
    closing.join(WAIT_SECONDS)
    assert [answer.result(0) for answer in answers] == [f"n{number}" for number in range(5)]
    with pytest.raises(Unavailable, match="shutting down"):
        writer.submit(named("late")).result(0)
    assert not writer.path.with_name("sessions.db-wal").exists()


def test_a_failed_fsync_fails_the_group_and_stops_all_writing(failing: Writer) -> None:
    """Whoever waited is told; nobody tries the same file again before a restart."""
    gate = failing.hold()
    group = [failing.submit(named(f"n{number}")) for number in range(3)]
    _FAILURES["sync"] = 1
    gate.may_go.set()
    for answer in group:
        with pytest.raises(Unavailable):
            answer.result(WAIT_SECONDS)
    _FAILURES.clear()
    with pytest.raises(Unavailable, match="restart turnmark"):
        failing.submit(named("later")).result(WAIT_SECONDS)
    assert failing.thread.statistics()["broken"]
    assert failing.names() == ["before"]


def test_what_was_acknowledged_before_a_failed_fsync_is_there_after_a_restart(
    failing: Writer,
) -> None:
    """The database opens again and goes on."""
    _FAILURES["sync"] = 1
    with pytest.raises(Unavailable):
        failing.submit(named("lost")).result(WAIT_SECONDS)
    _FAILURES.clear()
    failing.thread.close()
    again = Writer(failing.path)
    again.submit(named("after")).result(WAIT_SECONDS)
    again.thread.close()
    assert {"before", "after"} <= set(again.names())


def test_a_full_disk_fails_the_group_and_writing_goes_on_later(failing: Writer) -> None:
    """Nothing is stored, the message says so, and with space again all is well."""
    gate = failing.hold()
    group = [failing.submit(named(f"n{number}")) for number in range(3)]
    _FAILURES["full"] = 1
    gate.may_go.set()
    for answer in group:
        with pytest.raises(Unavailable, match="disk is full"):
            answer.result(WAIT_SECONDS)
    assert failing.names() == ["before"]
    _FAILURES.clear()
    assert failing.submit(named("after")).result(WAIT_SECONDS) == "after"
    assert failing.names() == ["before", "after"]


def test_nothing_is_said_of_a_group_that_failed(failing: Writer) -> None:
    """Its events were never written, whoever caused them, and their numbers are given again."""
    gate = failing.hold()
    group = [failing.submit(said(2)), failing.repeatable(said(1))]
    _FAILURES["full"] = 1
    gate.may_go.set()
    for answer in group:
        with pytest.raises(Unavailable, match="disk is full"):
            answer.result(WAIT_SECONDS)
    assert [line for line in failing.log if line.startswith("event")] == []
    _FAILURES.clear()
    failing.submit(said(1)).result(WAIT_SECONDS)
    assert [line for line in failing.log if line.startswith("event")] == ["event 1"]


def test_a_bug_in_the_delivery_leaves_nobody_waiting(place: Path) -> None:
    """The group is answered with an error, and nothing more is written."""
    writer = Writer(place / "sessions.db")
    calls: list[int] = []

    def deliver(events: Sequence[Event], answers: Sequence[Settle]) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("a bug")
        for settle in answers:
            settle()

    writer.thread.deliver = deliver
    with pytest.raises(TurnmarkError):
        writer.submit(named("a")).result(WAIT_SECONDS)
    with pytest.raises(Unavailable):
        writer.submit(named("b")).result(WAIT_SECONDS)
    writer.thread.close()
