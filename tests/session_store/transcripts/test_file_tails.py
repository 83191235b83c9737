"""Tests of tails of files, the same for all agents that write lines; see `test_all_tails.py`."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import NamedTuple

import pytest

from session_store.transcripts.agents import (
    CLAUDE_CODE,
    CODEX,
    DATA,
    FILE_AGENTS,
    PI,
    SEEDS,
    FileAgent,
    written,
)
from session_store.transcripts.tailing import (
    HASTY,
    IMPATIENT,
    PATIENT,
    Dag,
    Tailed,
    differences,
    edges,
    import_files,
    imported,
    of_files,
)
from session_store.transcripts.talks import SAID, TALKS, Talk
from session_store.transcripts.written_files import Disturbed, Write, append, interleaved, torn
from turnmark_session_store.model import MemoryMode

pytestmark = pytest.mark.anyio


class Place(NamedTuple):
    """A tail on an agent's directory, and the file of its talk, which is not there yet."""

    talk: Talk
    tailed: Tailed
    file: Path


@pytest.fixture(params=TALKS, ids=str)
async def there(
    request: pytest.FixtureRequest, tmp_path: Path, place: Path
) -> AsyncIterator[Place]:
    """A store and a tail that waits long for everything."""
    talk: Talk = request.param
    root = tmp_path / "agent"
    root.mkdir()
    async with Tailed(place / "sessions.db", root, follow=of_files(talk.agent.live)) as tailed:
        yield Place(talk, tailed, root / talk.path)


def of_sessions(dag: Dag, names: Collection[str]) -> Dag:
    """A DAG, with the tips and heads of some sessions."""
    some = {part: [one for one in dag[part] if one[0] in names] for part in ("tips", "heads")}
    return {**dag, **some}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("agent", [CLAUDE_CODE, CODEX, PI], ids=str)
async def test_follows_files_that_the_program_wrote(
    tmp_path: Path, place: Path, agent: FileAgent, seed: int
) -> None:
    """Forks, sub-agents, reverts, branches; files beside each other, cut at random."""
    chance = random.Random(seed)
    files = written(agent.name)
    whole = await imported(place / "i.db", files, agent.reader)
    assert len(whole["turns"]) == {"claude-code": 8, "codex": 27, "pi": 18}[agent.name]
    top = next((DATA / agent.name).iterdir())
    lines = [
        Write(str(file.relative_to(top)), line)
        for file in files
        for line in file.read_bytes().splitlines(keepends=True)
    ]
    async with Tailed(place / "a.db", tmp_path, follow=of_files(agent.live)) as tailed:
        for piece in interleaved(chance, torn(chance, lines)):
            await tailed.settle(piece.to(tmp_path))
        tailed.renew(IMPATIENT)
        await tailed.settle()
        assert differences(await tailed.dag(), whole) == []


@pytest.mark.parametrize("seed", range(int(SEEDS or 4)))
@pytest.mark.parametrize("agent", FILE_AGENTS, ids=str)
async def test_comes_to_what_an_import_gives_whatever_becomes_of_the_files_meanwhile(
    tmp_path: Path, place: Path, agent: FileAgent, seed: int
) -> None:
    """Cut, replaced, deleted, written anew, over new starts: what is there in the end counts.

    A fork that was seen before its origin, and says nothing, comes with the first that it says.
    """
    chance = random.Random(seed)
    recording = agent.played(chance, chance.randint(0, 6))
    paths = recording.write_to(tmp_path / "whole")
    speaking = {one.session for one in agent.reader.read(paths) if one.turns}
    whole = of_sessions(await imported(place / "i.db", paths, agent.reader), speaking)
    disturbed = Disturbed(chance, tmp_path / "agent" / agent.below, recording.files())
    follow = of_files(agent.live)
    async with Tailed(place / "a.db", tmp_path / "agent", follow=follow) as tailed:
        for _ in range(400):
            if not disturbed.unfinished:
                break
            path = disturbed.step()
            if chance.random() < 0.4:
                await tailed.settle(path)
            if chance.random() < 0.05:
                tailed.renew(chance.choice((PATIENT, HASTY)))
        disturbed.finish()
        tailed.renew(IMPATIENT)
        await tailed.settle()
        assert differences(of_sessions(await tailed.dag(), speaking), whole) == []
        assert tailed.tail.status().last_error is None


async def test_a_second_reading_says_nothing_new(there: Place) -> None:
    """After a restart, by a tail that lost its checkpoints, and by an import: no event is said."""
    talk, tailed, file = there
    append(file, talk.whole)
    await tailed.settle()
    seq = tailed.stage.seq
    tailed.renew()
    await tailed.settle(file)
    await tailed.stage.store.write(lambda tx: tx.execute("DELETE FROM transcript_file"))
    tailed.renew()
    await tailed.settle()
    await import_files(tailed.stage, [file], talk.agent.reader)
    assert tailed.stage.seq == seq
    assert await tailed.said() == SAID


async def test_a_turn_is_given_when_its_line_has_ended_and_nothing_can_change_it(
    there: Place,
) -> None:
    """Never before: a torn line is whole or nothing."""
    talk, tailed, file = there
    given: list[int] = []
    for line in talk.lines:
        append(file, line[:-1])
        await tailed.settle(file)
        given.append(len(await tailed.said()))
        append(file, line[-1:])
        await tailed.settle(file)
        given.append(len(await tailed.said()))
    before = (0, *talk.given)
    assert given == [count for pair in zip(before, talk.given, strict=False) for count in pair]
    assert tailed.tail.status().held == 0


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("how", ["cut", "replaced", "gone"])
async def test_what_was_said_stays_whatever_becomes_of_the_file(
    there: Place, how: str, *, restarted: bool
) -> None:
    """Absence takes nothing back, and what comes in its place is read."""
    talk, tailed, file = there
    append(file, talk.whole)
    await tailed.settle(file)
    before = await tailed.dag()
    if how == "cut":
        os.truncate(file, len(talk.beginning))
    elif how == "replaced":
        other = file.with_suffix(".new")
        append(other, talk.beginning + b" " * 9_000 + b"\n")
        other.rename(file)
    else:
        file.unlink()
    if restarted:
        tailed.renew()
    await tailed.settle(file)
    assert list((await tailed.dag())["turns"]) == list(before["turns"])
    append(file, (talk.beginning if how == "gone" else b"") + talk.tea)
    await tailed.settle(file)
    after = await tailed.dag()
    assert list(after["turns"])[:-1] == list(before["turns"])
    assert await tailed.said() == [*SAID, "And tea."]
    assert edges(after)["And tea."] == talk.kept_end


async def test_a_torn_line_waits_and_bad_ones_are_counted(there: Place) -> None:
    """NUL, no JSON, no object; a last line that never ends is taken when its writer is gone."""
    talk, tailed, file = there
    bad = b"\0" * 9_000 + b"\n{\xff\n[]\n"
    append(file, talk.beginning + bad + b"".join(talk.lines[talk.kept :])[:-1])
    whole = await imported(tailed.root.parent / "i.db", [file], talk.agent.reader)
    await tailed.settle(file)
    assert await tailed.said() == SAID[: talk.given[-2]]
    assert tailed.tail.status().unread == 3
    os.utime(file, (0, 0))
    await tailed.settle(file)
    assert await tailed.said() == SAID
    assert differences(await tailed.dag(), whole) == []
    append(file, b"\n")
    await tailed.settle(file)
    assert await tailed.said() == SAID


@pytest.mark.parametrize("talk", TALKS, ids=str)
async def test_a_project_that_is_off_is_not_followed(
    tmp_path: Path, place: Path, talk: Talk
) -> None:
    """Neither its turns nor its session come to the store; others do. Law 15, too."""

    def memory_for(project: str | None, session: str) -> MemoryMode:
        del session
        return "off" if project == "/home/robin/secret" else "on"

    path, first, more = talk.secret
    follow = of_files(talk.agent.live)
    async with Tailed(place / "a.db", tmp_path, follow=follow, memory_for=memory_for) as tailed:
        append(tmp_path / path, first)
        append(tmp_path / talk.path, talk.whole)
        await tailed.settle()
        append(tmp_path / path, more)
        await tailed.settle(tmp_path / path)
        dag = await tailed.dag()
        assert await tailed.said() == SAID
    assert [name for name, *_ in dag["heads"]] == [talk.session]
