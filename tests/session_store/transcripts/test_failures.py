"""Tests of `session_store/transcripts/failures.py`: tried again, ever more seldom."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from session_store.stage import Stage
from session_store.transcripts.claude_records import SESSION, user
from session_store.transcripts.note_database import NoteReader, Notes
from session_store.transcripts.tailing import Tailed, dag_of
from session_store.transcripts.written_files import append
from turnmark_session_store.transcripts import conversation_tail, tail, tail_loop
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.failures import FIRST_SECONDS, LONGEST_SECONDS, Failures

BEGAN = 1_796_000_000.0


class Clock:
    """A clock that moves only when it is told to."""

    now = BEGAN

    def time(self) -> float:
        """The time of day."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that tails go by."""
    made = Clock()
    there = SimpleNamespace(time=made.time, monotonic=made.time)
    for module in (conversation_tail, tail, tail_loop):
        monkeypatch.setattr(module, "time", there)
    return made


def test_rests_double_up_to_some_minutes() -> None:
    """Of the same failure, whenever it was due."""
    failures, now, rests = Failures(), BEGAN, list[float]()
    for _ in range(9):
        failures.note("a", "打不开", now)
        rests.append(failures.next_try("a") - now)
        now = failures.next_try("a")
    assert rests[:4] == [FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS, 8 * FIRST_SECONDS]
    assert rests[-2:] == [LONGEST_SECONDS, LONGEST_SECONDS]


def test_a_try_that_was_not_due_lengthens_no_rest() -> None:
    """A source that is written all the time is tried with each change."""
    failures = Failures()
    failures.note("a", "shut", BEGAN)
    for second in range(4):
        failures.note("a", "shut", BEGAN + second)
        assert failures.next_try("a") == BEGAN + second + FIRST_SECONDS


def test_another_reason_begins_anew_and_is_news() -> None:
    """It may pass as fast as the first one."""
    failures = Failures()
    assert failures.note("a", "shut", BEGAN)
    due = failures.next_try("a")
    assert not failures.note("a", "shut", due)
    assert failures.note("a", "damaged", due)
    assert failures.next_try("a") == due + FIRST_SECONDS
    failures.end("a")
    assert "a" not in failures
    assert failures.last is None


def test_the_last_failure_is_told_of_those_that_are_left() -> None:
    """Whichever of them failed latest; what is gone is not tried."""
    failures = Failures()
    for at, name in enumerate("abc"):
        failures.note(name, f"{name} is shut", BEGAN + at)
    failures.end("c")
    assert failures.last is not None
    assert failures.last.reason == "b is shut"
    failures.keep_only(["a"])
    assert failures.next_tries(["a", "b"]) == {"a": BEGAN + FIRST_SECONDS}


class Shut(NoteReader):
    """A reader that can't look into its directory while it is shut."""

    is_shut = True
    looks = 0

    def databases(self, root: Path) -> Any:
        """What there is, unless it is shut."""
        self.looks += 1
        if self.is_shut:
            raise PermissionError(13, "Permission denied", str(root))
        return super().databases(root)


@pytest.fixture
def shut(stage: Stage, tmp_path: Path) -> Iterator[tuple[DatabaseTail, Shut]]:
    """A tail whose directory, with a turn in it, is shut; and its reader, to open it."""
    notes = Notes(tmp_path / "notes" / "a.db")
    notes.open("one")
    notes.say("one", "1", "hello")
    reader = Shut()
    yield DatabaseTail(stage.store, reader, tmp_path / "notes", rest_per_work=0.0), reader
    notes.close()


@pytest.mark.anyio
async def test_a_directory_is_looked_into_again_ever_more_seldom(
    stage: Stage, shut: tuple[DatabaseTail, Shut], clock: Clock
) -> None:
    """Nobody asks for it; status says when, and all is told once it can be looked into."""
    following, reader = shut
    for second in range(100):
        clock.now = BEGAN + second
        await following.deal_with_all()
    assert reader.looks == 5  # after 0, 5, 15, 35 and 75 seconds
    assert following.status().next_try == "2026-11-30T00:55:55.000Z"
    reader.is_shut, clock.now = False, BEGAN + 155
    await following.deal_with_all()
    assert len((await dag_of(stage))["turns"]) == 1
    assert (following.status().last_error, following.status().next_try) == (None, None)


@pytest.mark.anyio
async def test_a_clock_that_was_set_back_holds_up_no_try(
    stage: Stage, shut: tuple[DatabaseTail, Shut], clock: Clock
) -> None:
    """The look at everything, which a tail has then, is one."""
    following, reader = shut
    await following.deal_with_all()
    reader.is_shut, clock.now = False, BEGAN - 86_400
    await following.deal_with_all()
    assert reader.looks == 1
    following.rescan()
    await following.deal_with_all()
    assert len((await dag_of(stage))["turns"]) == 1


@pytest.mark.anyio
async def test_a_transcript_is_tried_again_long_after_it_was_dropped(
    place: Path, tmp_path: Path, clock: Clock
) -> None:
    """Also one of which no line was ever read; a change has it tried at once."""
    file = tmp_path / "projects" / "-demo" / f"{SESSION}.jsonl"
    agent = file.with_suffix("") / "subagents" / "agent-a1.jsonl"
    append(file, json.dumps(user("u1", None, 0, "Tea")).encode() + b"\n")
    append(agent, b"")
    async with Tailed(place / "a.db", tmp_path / "projects") as tailed:
        await tailed.settle()
        agent.unlink()
        agent.mkdir()
        append(file, json.dumps(user("u2", "u1", 1, "茶")).encode() + b"\n")
        await tailed.settle(file)
        for _ in range(9):
            status = tailed.tail.status()
            assert status.last_error is not None
            clock.now += LONGEST_SECONDS
            await tailed.settle()
            assert tailed.tail.status().next_try != status.next_try
        append(file, json.dumps(user("u3", "u2", 2, "Milk")).encode() + b"\n")
        await tailed.settle(file)
        assert len((await tailed.dag())["turns"]) == 3
        agent.rmdir()
        await tailed.settle()
        assert tailed.tail.status().last_error is not None
        clock.now += LONGEST_SECONDS
        await tailed.settle()
        assert tailed.tail.status().last_error is None
