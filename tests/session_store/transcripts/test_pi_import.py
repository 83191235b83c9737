"""Tests of transcripts of pi in a store: whatever is imported first, and however often."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from session_store.stage import Stage
from session_store.transcripts.json_records import Record, write
from session_store.transcripts.pi_records import (
    OTHER,
    SESSION,
    THIRD,
    answer,
    file_name,
    given_ids,
    header,
    user,
    without_ids,
)
from session_store.transcripts.pi_sessions import PiRecording
from session_store.transcripts.tailing import dag_of, humans, import_files, texts_in
from turnmark_session_store.transcripts.pi.reader import PiReader

pytestmark = pytest.mark.anyio
DATA = Path(__file__).resolve().parents[2] / "data" / "pi"
PI = PiReader()


def below(directory: Path) -> list[Path]:
    """The transcripts below a directory."""
    return sorted(directory.rglob("*.jsonl"))


async def test_what_the_program_wrote_is_there_once_however_often_it_is_imported(
    place: Path,
) -> None:
    """Seven prompts on four tips and two roots; a branched file and a fork add one each."""
    paths = below(DATA)
    async with Stage(place / "a.db") as stage:
        await import_files(stage, paths[:1], PI)
        found = await dag_of(stage)
        assert (humans(found), len(found["turns"]), len(found["tips"])) == (7, 14, 4)
        assert [turn[0] for turn in found["turns"].values()].count(None) == 2
        await import_files(stage, paths, PI)
        found, seq = await dag_of(stage), stage.seq
        assert (humans(found), len(found["turns"])) == (9, 18)
        await import_files(stage, reversed(paths), PI)
        for path in paths:
            await import_files(stage, [path], PI)
        assert await dag_of(stage) == found
        assert stage.seq == seq


@pytest.mark.parametrize("seed", range(6))
async def test_forks_may_come_before_their_origins(place: Path, tmp_path: Path, seed: int) -> None:
    """A file at a time, in any order, gives the same turns: what is copied is there once."""
    chance = random.Random(seed)
    recording = PiRecording(chance)
    recording.play(20)
    paths = recording.write_to(tmp_path / "sessions")
    chance.shuffle(paths)
    async with Stage(place / "a.db") as stage:
        for path in paths:
            await import_files(stage, [path], PI)
        assert await texts_in(stage) == sorted(recording.before)
        await import_files(stage, paths, PI)
        assert await texts_in(stage) == sorted(recording.before)


async def test_an_old_file_that_is_written_anew_adds_only_what_was_said_since(
    place: Path, tmp_path: Path
) -> None:
    """Its entries had no ids at the first import."""
    talk = [user("aaaa0001", None, "Hi", 1), answer("aaaa0002", "aaaa0001", "Hello.", 2)]
    old = [without_ids(record) for record in talk]
    first = header()
    del first["version"]
    path = write(tmp_path / file_name(), [first, *old])
    async with Stage(place / "a.db") as stage:
        await import_files(stage, [path], PI)
        before = await dag_of(stage)
        given = given_ids(old, ["bbbb0001", "bbbb0002"])
        write(path, [{**first, "version": 3}, *given, user("bbbb0003", "bbbb0002", "Tea?", 3)])
        await import_files(stage, [path], PI)
        after = await dag_of(stage)
    assert list(after["turns"])[:2] == list(before["turns"])
    assert [turn[3].decode() for turn in after["turns"].values()] == ["Hi", "Hello.", "Tea?"]
    assert len(after["tips"]) == 1


async def test_sessions_that_have_nothing_to_do_with_each_other_share_no_turn(
    place: Path, tmp_path: Path
) -> None:
    """The same ids, at the same moment, the same words."""
    async with Stage(place / "a.db") as stage:
        for session in (SESSION, OTHER):
            path = tmp_path / file_name(session)
            write(path, [header(session), user("aaaa0001", None, "Yes", 1)])
        await import_files(stage, below(tmp_path), PI)
        await import_files(stage, below(tmp_path)[:1], PI)
        assert await texts_in(stage) == ["Yes", "Yes"]


def family(tmp_path: Path) -> list[Path]:
    """A session, a fork of it and a fork of that one, each with a turn of its own."""
    records: list[Record] = []
    paths: list[Path] = []
    for number, session in enumerate((SESSION, OTHER, THIRD)):
        fields = {"parentSession": str(paths[-1])} if paths else {}
        key, above = f"aaaa000{number}", records[-1]["id"] if records else None
        records = [*records, user(key, above, f"Say {number}", 10 * number + 5)]
        path = tmp_path / file_name(session, 10 * number)
        paths.append(write(path, [header(session, 10 * number, **fields), *records]))
    return paths


async def test_a_file_that_is_gone_by_the_next_reading_changes_no_family(
    place: Path, tmp_path: Path
) -> None:
    """What a fork of a fork says later belongs where the rest of it is."""
    first, second, third = family(tmp_path)
    async with Stage(place / "a.db") as stage:
        await import_files(stage, [first, second, third], PI)
        assert await texts_in(stage) == ["Say 0", "Say 1", "Say 2"]
        second.unlink()
        write(third, [*third.read_text().splitlines(), user("aaaa0010", "aaaa0002", "More", 40)])
        await import_files(stage, [third], PI)
        found = await dag_of(stage)
    assert [turn[3].decode() for turn in found["turns"].values()].count("Say 0") == 1
    assert {turn[0] is None for turn in found["turns"].values() if turn[3] == b"More"} == {False}


async def test_a_new_fork_of_what_is_gone_is_of_the_family_that_the_store_knows(
    place: Path, tmp_path: Path
) -> None:
    """The header names a session whose own origin nobody can tell any more."""
    first, second, third = family(tmp_path)
    async with Stage(place / "a.db") as stage:
        await import_files(stage, [first, second], PI)
        second.unlink()
        await import_files(stage, [third], PI)
        assert await texts_in(stage) == ["Say 0", "Say 1", "Say 2"]
