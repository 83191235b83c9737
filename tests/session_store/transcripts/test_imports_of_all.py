"""Tests of imports, the same for all agents: whatever is imported first, and however often."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from session_store.stage import Stage
from session_store.transcripts.agents import DATA, GIVEN
from session_store.transcripts.codex_sessions import CodexRecording
from session_store.transcripts.pi_sessions import PiRecording
from session_store.transcripts.tailing import (
    dag_of,
    differences,
    humans,
    import_files,
    texts_in,
)
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.hermes.reader import HermesReader
from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader
from turnmark_session_store.transcripts.opencode.reader import OpencodeReader
from turnmark_session_store.transcripts.pi.reader import PiReader
from turnmark_session_store.transcripts.reader import Reader
from turnmark_session_store.transcripts.recognise import find_transcripts

pytestmark = pytest.mark.anyio

# How many prompts of people, turns and tips the programs wrote that are in `tests/data`.
WRITTEN: dict[Reader, tuple[int, int, int]] = {
    ClaudeCodeReader(): (4, 8, 5),
    CodexReader(): (13, 27, 6),
    HermesReader(): (9, 23, 7),
    OpenClawReader(): (4, 10, 1),
    OpencodeReader(): (7, 17, 4),
    PiReader(): (9, 18, 9),
}
GIVEN_SETS = [
    pytest.param(reader, place / reader.agent, id=f"{reader.agent}-{place.name}")
    for reader in WRITTEN
    for place in (DATA, GIVEN)
    if (place / reader.agent).is_dir()
]


def found_below(directory: Path, reader: Reader) -> list[Path]:
    """The transcripts that a reader recognises."""
    [found] = find_transcripts([directory], readers=[reader]).found
    assert found.agent == reader.agent
    return list(found.paths)


@pytest.mark.parametrize("reader", WRITTEN, ids=lambda reader: reader.agent)
async def test_what_the_program_wrote_is_there_once_however_often_it_is_imported(
    place: Path, reader: Reader
) -> None:
    """Together, in another order, and a file at a time."""
    paths = found_below(DATA / reader.agent, reader)
    async with Stage(place / "a.db") as stage:
        await import_files(stage, paths, reader)
        found, seq = await dag_of(stage), stage.seq
        assert (humans(found), len(found["turns"]), len(found["tips"])) == WRITTEN[reader]
        await import_files(stage, reversed(paths), reader)
        for path in paths:
            await import_files(stage, [path], reader)
        assert await dag_of(stage) == found
        assert stage.seq == seq


@pytest.mark.parametrize(("reader", "directory"), GIVEN_SETS)
async def test_all_that_is_given_is_read_without_a_warning_and_once(
    place: Path, reader: Reader, directory: Path
) -> None:
    """More of it with TURNMARK_TRANSCRIPTS."""
    paths = found_below(directory, reader)
    sessions = list(reader.read(paths))
    assert [warning for one in sessions for warning in one.warnings] == []
    async with Stage(place / "a.db") as stage:
        await import_files(stage, paths, reader)
        found, seq = await dag_of(stage), stage.seq
        turns = sum(len(one.turns) - len(one.taken_back) for one in sessions)
        assert len(found["turns"]) == turns > 0
        await import_files(stage, reversed(paths), reader)
        assert stage.seq == seq


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    ("reader", "begin", "steps"),
    [(CodexReader(), CodexRecording, 10), (PiReader(), PiRecording, 16)],
    ids=["codex", "pi"],
)
async def test_files_may_be_imported_together_and_again(
    place: Path,
    tmp_path: Path,
    reader: Reader,
    begin: Callable[[random.Random], CodexRecording | PiRecording],
    steps: int,
    seed: int,
) -> None:
    """The same turns, tips and heads, and no event the second time."""
    chance = random.Random(seed)
    recording = begin(chance)
    recording.play(steps)
    paths = recording.write_to(tmp_path / "sessions")
    async with Stage(place / "a.db") as stage:
        await import_files(stage, paths, reader)
        found, seq = await dag_of(stage), stage.seq
        texts = await texts_in(stage)
        assert texts == recording.said
        assert humans(found) == len(recording.humans.intersection(texts))
        for path in chance.sample(paths, len(paths)):
            await import_files(stage, [path], reader)
        await import_files(stage, paths, reader)
        assert differences(await dag_of(stage), found) == []
        assert stage.seq == seq
