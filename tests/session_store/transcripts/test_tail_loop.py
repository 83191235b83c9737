"""Tests of `session_store/transcripts/tail_loop.py`: what all tails of a daemon do together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from session_store.stage import Stage
from session_store.transcripts.claude_records import SESSION, user
from session_store.transcripts.note_database import NoteReader, Notes
from session_store.transcripts.tailing import dag_of
from session_store.transcripts.written_files import append
from turnmark_session_store.transcripts import conversation_tail, tail, tail_loop
from turnmark_session_store.transcripts.checkpoints import connected_sources
from turnmark_session_store.transcripts.claude_code.live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.pi.live import PiLiveReader
from turnmark_session_store.transcripts.tail import TranscriptTail
from turnmark_session_store.transcripts.tail_loop import Tail, connect


def tails_of(stage: Stage, root: Path) -> list[Tail]:
    """Tails of three agents, none of whom has anything to follow."""
    return [
        TranscriptTail(stage.store, ClaudeCodeLiveReader(), root),
        TranscriptTail(stage.store, PiLiveReader(), root),
        DatabaseTail(stage.store, NoteReader(), root),
    ]


@pytest.mark.anyio
async def test_all_sources_are_connected_in_one_commit_and_only_once(
    stage: Stage, tmp_path: Path
) -> None:
    """A start that finds them connected commits nothing, whether they are told or ask."""
    stage.clock.at_ms = 1_786_269_606_000
    await connect(stage.store, tails_of(stage, tmp_path))
    assert stage.store.statistics()["requests"] == 1
    known = await stage.store.read(connected_sources)
    assert (len(known), len(set(known.values()))) == (3, 1)
    stage.clock.at_ms += 1_000
    again = tails_of(stage, tmp_path)
    await connect(stage.store, again)
    for one in (*again, *tails_of(stage, tmp_path)):
        await one.deal_with_all()
    assert stage.store.statistics()["requests"] == 1
    assert await stage.store.read(connected_sources) == known


class Ticking:
    """A clock by which everything takes its time, and that can be set."""

    now = 1_796_000_000.0

    def time(self) -> float:
        """The time of day."""
        self.now += 0.01
        return self.now


def of_files(stage: Stage, root: Path) -> tuple[Tail, Callable[[int], Path]]:
    """A tail of files, and what says something more in one."""
    file = root / "-demo" / f"{SESSION}.jsonl"

    def say(number: int) -> Path:
        before = f"u{number - 1}" if number else None
        append(file, json.dumps(user(f"u{number}", before, number, "茶")).encode() + b"\n")
        return file

    return TranscriptTail(stage.store, ClaudeCodeLiveReader(), root, rest_per_work=1.0), say


def of_a_database(stage: Stage, root: Path) -> tuple[Tail, Callable[[int], Path]]:
    """A tail of a database, and what says something more in it."""
    notes = Notes(root / "a.db")
    notes.open("one")

    def say(number: int) -> Path:
        notes.say("one", f"{number}", "茶")
        return root / "a.db"

    return DatabaseTail(stage.store, NoteReader(), root, rest_per_work=1.0), say


@pytest.mark.anyio
@pytest.mark.parametrize("made", [of_files, of_a_database])
async def test_a_look_at_everything_waits_for_no_rest(
    made: Callable[[Stage, Path], tuple[Tail, Callable[[int], Path]]],
    stage: Stage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tail has one when the clock was set: a rest would last until it is right again."""
    clock = Ticking()
    there = SimpleNamespace(time=clock.time, monotonic=clock.time)
    for module in (conversation_tail, tail, tail_loop):
        monkeypatch.setattr(module, "time", there)
    following, say = made(stage, tmp_path / "root")
    for number in range(2):
        following.changed([say(number)])
        await following.deal_with_all()
        clock.now += 10.0
    following.changed([say(2)])
    await following.deal_with_all()
    clock.now -= 86_400
    following.changed([say(3)])
    await following.deal_with_all()
    assert len((await dag_of(stage))["turns"]) == 3
    following.rescan()
    await following.deal_with_all()
    assert len((await dag_of(stage))["turns"]) == 4
