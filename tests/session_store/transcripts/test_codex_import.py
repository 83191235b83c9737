"""Tests of rollouts of Codex in a store: whatever is imported first, and however often."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from session_store.stage import Stage
from session_store.transcripts.codex_rollouts import OTHER, THREAD, U1, U2, item, meta, rollout_name
from session_store.transcripts.codex_sessions import CodexRecording
from session_store.transcripts.json_records import lines, write
from session_store.transcripts.tailing import dag_of, differences, import_files, imported
from turnmark_session_store.transcripts.codex.reader import CodexReader

pytestmark = pytest.mark.anyio
CODEX = CodexReader()


@pytest.mark.parametrize("seed", range(4))
async def test_old_forks_may_come_before_their_origins(
    place: Path, tmp_path: Path, seed: int
) -> None:
    """They hold all that they rest on: a file at a time, in any order, gives the same turns."""
    chance = random.Random(seed)
    recording = CodexRecording(chance, apart=True, paginated=0.0, agents=0.0)
    recording.play(14)
    paths = recording.write_to(tmp_path / "sessions")
    whole = await imported(place / "whole.db", paths, CODEX)
    chance.shuffle(paths)
    async with Stage(place / "a.db") as stage:
        for path in paths:
            await import_files(stage, [path], CODEX)
        assert differences(await dag_of(stage), whole) == []


async def test_a_new_fork_before_its_origin_says_what_it_lost(place: Path, tmp_path: Path) -> None:
    """Together it hangs from its origin; alone it is a root, and stays one."""
    talk = [meta(ordinal=0), item("UserMessage", U1, "1", 11, "One", ordinal=1)]
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 2, "end_byte_offset": len(lines(*talk))}
    origin = write(tmp_path / rollout_name(THREAD), talk)
    fork = write(
        tmp_path / rollout_name(OTHER),
        [
            meta(OTHER, 500, ordinal=2, forked_from_id=THREAD, history_base=base),
            item("UserMessage", U2, "2", 510, "Two", ordinal=3),
        ],
    )
    whole = await imported(place / "whole.db", [fork, origin], CODEX)
    assert (whole["turns"][U2][0], whole["turns"][U2][5]) == (U1, 0)
    async with Stage(place / "a.db") as stage:
        for paths in ([fork], [origin], [fork, origin]):
            await import_files(stage, paths, CODEX)
        found = await dag_of(stage)
    assert (found["turns"][U2][0], found["turns"][U2][5]) == (None, 1)
    assert found["tips"] == [(THREAD, U1), (OTHER, U2)]
