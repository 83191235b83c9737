"""Tests of tails, the same for all agents: what is followed is what an import gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from session_store.transcripts.agents import AGENTS, Agent
from session_store.transcripts.tailing import (
    IMPATIENT,
    Tailed,
    differences,
    import_files,
    imported,
)

pytestmark = pytest.mark.anyio
CASES = [
    pytest.param(agent, seed, id=f"{agent}-{seed}") for agent in AGENTS for seed in agent.seeds
]


@pytest.mark.parametrize(("agent", "seed"), CASES)
async def test_comes_to_what_an_import_gives_in_the_end(
    tmp_path: Path, place: Path, agent: Agent, seed: int
) -> None:
    """Cut anywhere, looked at any time, begun anew any time; and then nothing is said twice."""
    chance = random.Random(f"{seed} {agent.name.partition(', ')[2]}")
    told: set[Path] = set()
    with agent.work(chance, tmp_path) as work:
        patience = agent.patiences[0]
        async with Tailed(place / "a.db", work.root, patience, follow=agent.follow) as tailed:
            for changed, is_seen in work.moments:
                told = {*changed, *(told if agent.tells_all else ())}
                if is_seen or chance.random() < agent.looks:
                    await tailed.settle(*told)
                    told = set()
                if not is_seen and chance.random() < agent.restarts:
                    tailed.renew(chance.choice(agent.patiences))
            tailed.renew(IMPATIENT)
            await tailed.settle()
            found, seq = await tailed.dag(), tailed.stage.seq
            whole = await imported(place / "i.db", work.paths(), agent.reader)
            assert differences(agent.compared(found, whole), agent.compared(whole, whole)) == []
            assert tailed.tail.status().last_error is None
            tailed.renew(IMPATIENT)
            await tailed.settle()
            assert tailed.stage.seq == seq


@pytest.mark.parametrize("agent", AGENTS, ids=str)
@pytest.mark.parametrize("first", ["import", "tail"])
async def test_an_import_and_a_tail_add_nothing_to_each_other(
    tmp_path: Path, place: Path, agent: Agent, first: str
) -> None:
    """Whichever comes first: the same turns, and no event."""
    with agent.work(random.Random(7), tmp_path) as work:
        for _ in work.moments:
            pass
        async with Tailed(place / "a.db", work.root, IMPATIENT, follow=agent.follow) as tailed:
            if first == "import":
                await import_files(tailed.stage, work.paths(), agent.reader)
            else:
                await tailed.settle()
            found, seq = await tailed.dag(), tailed.stage.seq
            await tailed.settle()
            await import_files(tailed.stage, work.paths(), agent.reader)
            assert differences(await tailed.dag(), found) == []
            assert tailed.stage.seq == seq
            assert len(found["turns"]) > 1
