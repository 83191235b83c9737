"""Tests of `session_store/transcripts/openclaw/database.py`: tails and imports agree."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.openclaw_gateway import EPOCH_MS, MAIN, Gateway
from session_store.transcripts.openclaw_play import Player
from session_store.transcripts.tailing import IMPATIENT, Tailed, imported, of_databases, said
from turnmark_session_store.transcripts.live import Patience
from turnmark_session_store.transcripts.openclaw.database import OpenClawDatabaseReader
from turnmark_session_store.transcripts.openclaw.reader import OpenClawReader
from turnmark_session_store.transcripts.openclaw.tables import NAME

OPENCLAW = OpenClawReader()
# More with `SEEDS=400 pytest -k comes_to`.
SEEDS = int(os.environ.get("SEEDS", "10"))
# So near to now that an orphan's minute is not over.
NEVER_MS = 4_000_000_000_000


def follow(place: Path, root: Path, **more: Any) -> Tailed:
    """A store and a tail on a state directory."""
    return Tailed(place, root, follow=of_databases(OpenClawDatabaseReader), **more)


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    """The program, with an empty database."""
    return Gateway(tmp_path / "state" / "agents" / "main" / "agent" / NAME)


@pytest.fixture
async def tailed(gateway: Gateway, place: Path) -> AsyncIterator[Tailed]:
    """A store and a tail on the program's state directory."""
    async with follow(place / "sessions.db", gateway.path.parents[3]) as made:
        yield made


def log_of(gateway: Gateway) -> Path:
    """Where the program writes first."""
    return gateway.path.with_name(NAME + "-wal")


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(SEEDS // 2))
async def test_what_is_taken_out_of_memory_is_live_only_where_others_go_on_from_it(
    tmp_path: Path, place: Path, seed: int
) -> None:
    """It was in the store before; an import reads nothing of it."""
    chance = random.Random(seed)
    gateway = Gateway(tmp_path / "agents" / "main" / "agent" / NAME, chance=chance)
    player = Player(chance, gateway)
    for _ in range(chance.randint(1, 15)):
        player.play()
    async with follow(place / "a.db", tmp_path) as tailed:
        await tailed.settle()
        for _ in range(chance.randint(1, 3)):
            player.withdraw()
            await tailed.settle(log_of(gateway))
        whole = await imported(place / "i.db", [gateway.path], OPENCLAW)
        dag = await tailed.dag()
    continued = {above for above, *_ in dag["turns"].values()}
    assert whole["turns"].keys() <= dag["turns"].keys()
    assert dag["turns"].keys() - whole["turns"].keys() <= continued


@pytest.mark.anyio
async def test_a_rewind_retires_and_a_switch_back_does_not_restore(
    gateway: Gateway, tailed: Tailed
) -> None:
    """Only a client restores what was taken back (law 13)."""
    gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    second = gateway.user("two")
    await tailed.settle(gateway.path)
    assert said(await tailed.dag()) == ["one", "a", "two"]
    gateway.rewind(MAIN, second)
    await tailed.settle(gateway.path)
    dag = await tailed.dag()
    assert said(dag) == ["one", "a"]
    gateway.switch(MAIN, second)
    gateway.user("three")
    await tailed.settle(gateway.path)
    assert said(await tailed.dag()) == ["one", "a", "three"]
    assert len((await tailed.dag())["tips"]) == 1


@pytest.mark.anyio
async def test_a_session_that_is_taken_out_of_memory_is_retired(
    gateway: Gateway, tailed: Tailed
) -> None:
    """Its words were in the store, and no session of it is left that is live."""
    gateway.begin()
    gateway.user("My secret.")
    gateway.answer("Noted.")
    await tailed.settle(gateway.path)
    assert len(said(await tailed.dag())) == 2
    gateway.insert(
        "memory_session_tombstones",
        session_id=gateway.current[MAIN],
        agent_id="main",
        reason="forgotten",
        created_at=0,
    )
    await tailed.settle(gateway.path)
    dag = await tailed.dag()
    assert (dag["turns"], dag["tips"]) == ({}, [])


@pytest.mark.anyio
async def test_rows_that_vanish_take_nothing_back(gateway: Gateway, tailed: Tailed) -> None:
    """Deleted, pruned, archived: absence at the source is no take-back."""
    session = gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    gateway.user("two")
    await tailed.settle(gateway.path)
    before = await tailed.dag()
    gateway.run("DELETE FROM transcript_events WHERE session_id = ? AND seq > 2", session)
    await tailed.settle(gateway.path)
    assert said(await tailed.dag()) == said(before)
    gateway.run("DELETE FROM session_windows WHERE session_id = ?", session)
    await tailed.settle(gateway.path)
    assert said(await tailed.dag()) == said(before)
    gateway.close()
    gateway.path.unlink()
    await tailed.settle(gateway.path)
    dag = await tailed.dag()
    assert (dag["turns"], dag["tips"]) == (before["turns"], before["tips"])


@pytest.mark.anyio
async def test_a_rewritten_transcript_supersedes_what_changed(
    gateway: Gateway, tailed: Tailed
) -> None:
    """The same entry with other words: the newer ones count, the rest stays as it is."""
    session = gateway.begin()
    gateway.user("one")
    gateway.answer("a")
    last = gateway.user("two")
    await tailed.settle(gateway.path)
    events = gateway.events(session)
    events[-1] = {**events[-1], "message": {"role": "user", "content": "two, redacted"}}
    gateway.replace(session, events)
    await tailed.settle(gateway.path)
    dag = await tailed.dag()
    assert said(dag) == ["one", "a", "two, redacted"]
    assert dag["tips"] == [(session, f"{last}~2")]


@pytest.mark.anyio
async def test_a_database_that_is_made_anew_is_read_from_its_beginning(
    gateway: Gateway, tailed: Tailed
) -> None:
    """What the old one said stays."""
    gateway.begin()
    gateway.user("one")
    await tailed.settle(gateway.path)
    gateway.close()
    gateway.path.unlink()
    again = Gateway(gateway.path, chance=random.Random(8))
    again.begin()
    again.user("two")
    await tailed.settle(gateway.path)
    assert said(await tailed.dag()) == ["one", "two"]


@pytest.mark.anyio
async def test_an_orphan_waits_for_a_minute(gateway: Gateway, tailed: Tailed) -> None:
    """Then it is a root that lost its predecessor; what claims to be of the future doesn't wait."""
    gateway.begin()
    await tailed.settle(gateway.path)
    tailed.renew(Patience(orphan_seconds=NEVER_MS / 1_000))
    message = {"role": "user", "content": "lost"}
    orphan = {"type": "message", "id": "o", "parentId": "nowhere", "timestamp": EPOCH_MS}
    gateway.append({**orphan, "message": message})
    await tailed.settle(gateway.path)
    assert (said(await tailed.dag()), tailed.tail.status().held) == ([], 1)
    gateway.append({**orphan, "id": "f", "timestamp": NEVER_MS, "message": message})
    await tailed.settle(gateway.path)
    assert said(await tailed.dag()) == ["lost"]
    tailed.renew(IMPATIENT)
    await tailed.settle()
    dag = await tailed.dag()
    assert said(dag) == ["lost", "lost"]
    assert all(turn[5] for turn in dag["turns"].values())


@pytest.mark.anyio
async def test_what_must_not_be_remembered_is_left_out(gateway: Gateway, place: Path) -> None:
    """By the rules of a project or a session; a fork of it says what it copied itself."""
    first = gateway.begin()
    gateway.user("one")
    last = gateway.user("two")
    gateway.fork(MAIN, last, "agent:main:fork")
    gateway.user("other", "agent:main:fork")

    def memory_for(project: str | None, session: str) -> Any:
        assert project == "/home/robin/.openclaw/workspace"
        return "off" if session == first else "on"

    root = gateway.path.parents[3]
    async with follow(place / "off.db", root, memory_for=memory_for) as tailed:
        await tailed.settle(gateway.path)
        dag = await tailed.dag()
    assert said(dag) == ["one", "other"]
    assert [session for session, _ in dag["tips"]] != [first]


@pytest.mark.anyio
async def test_every_agents_database_is_found_and_no_other_file(
    gateway: Gateway, tailed: Tailed
) -> None:
    """Siblings have names that begin alike."""
    gateway.begin()
    gateway.user("one")
    agents = gateway.path.parents[2]
    other = Gateway(agents / "coder" / "agent" / NAME, chance=random.Random(9))
    other.begin("agent:coder:main")
    other.user("two", "agent:coder:main")
    beside = Gateway(gateway.path.with_name("openclaw-agent.reindex-lock.sqlite"))
    beside.begin()
    beside.user("no")
    await tailed.settle()
    assert sorted(said(await tailed.dag())) == ["one", "two"]
    assert tailed.tail.status().files == 2
