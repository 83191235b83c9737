"""Tests of `transcripts/hermes/database.py`: what is followed is what an import gives."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from session_store.transcripts.hermes_store import HermesStore
from session_store.transcripts.tailing import HASTY, Tailed, of_databases, said
from turnmark_session_store.model import MemoryMode
from turnmark_session_store.transcripts.hermes.database import HermesDatabaseReader
from turnmark_session_store.transcripts.hermes.reader import HermesReader

S = "20260921_101500_a1b2c3"
B = "20260921_105000_b7b7b7"
HERMES = HermesReader()


def follow(place: Path, root: Path, **more: Any) -> Tailed:
    """A store and a tail below a home of Hermes."""
    return Tailed(place, root, HASTY, follow=of_databases(HermesDatabaseReader), **more)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A home of Hermes."""
    return tmp_path / "hermes"


@pytest.fixture
def hermes(root: Path) -> Iterator[HermesStore]:
    """Its program, at work."""
    made = HermesStore(root / "state.db")
    yield made
    made.close()


@pytest.fixture
async def tailed(place: Path, root: Path) -> AsyncIterator[Tailed]:
    """A store and a tail on that home."""
    async with follow(place / "sessions.db", root) as made:
        yield made


@pytest.mark.anyio
async def test_a_rewinding_while_it_is_followed_takes_back(
    hermes: HermesStore, tailed: Tailed
) -> None:
    """What was rewound leaves; what is said instead hangs from what still holds."""
    hermes.begin(S)
    hermes.exchange(S, "I live in Bergen.")
    await tailed.settle()
    row = hermes.say(S, "I prefer tabs.")
    await tailed.settle(hermes.path)
    assert (await tailed.said())[-1] == "I prefer tabs."
    hermes.rewind(S, row)
    hermes.say(S, "I prefer two spaces.")
    await tailed.settle(hermes.path)
    dag = await tailed.dag()
    assert said(dag) == ["I live in Bergen.", "You said: I live in Bergen.", "I prefer two spaces."]
    assert len(dag["tips"]) == 1


@pytest.mark.anyio
async def test_an_undone_rewinding_restores_nothing(hermes: HermesStore, tailed: Tailed) -> None:
    """Only a client restores: no reading does, and what follows is followed all the same."""
    hermes.begin(S)
    hermes.exchange(S, "one")
    row = hermes.say(S, "two")
    hermes.rewind(S, row)
    await tailed.settle()
    hermes.restore(S, row)
    hermes.say(S, "three")
    await tailed.settle(hermes.path)
    assert await tailed.said() == ["one", "You said: one", "three"]
    assert tailed.tail.status().last_error is None


@pytest.mark.anyio
async def test_a_rewinding_of_what_a_branch_goes_on_from_takes_nothing_from_it(
    hermes: HermesStore, tailed: Tailed
) -> None:
    """A turn that a live branch of another session reaches is not taken back."""
    hermes.begin(S)
    hermes.exchange(S, "one")
    row = hermes.say(S, "two")
    hermes.branch(S, B)
    hermes.exchange(B, "three")
    await tailed.settle()
    before = await tailed.said()
    hermes.rewind(S, row)
    await tailed.settle(hermes.path)
    assert await tailed.said() == before


@pytest.mark.anyio
async def test_what_is_deleted_at_the_source_stays(hermes: HermesStore, tailed: Tailed) -> None:
    """A session that is pruned, or a row that is deleted, is not forgotten."""
    hermes.begin(S)
    hermes.exchange(S, "one")
    hermes.branch(S, B)
    hermes.exchange(B, "two")
    await tailed.settle()
    before = await tailed.dag()
    hermes.run("DELETE FROM messages WHERE session_id = ?", S)
    hermes.run("DELETE FROM sessions WHERE id = ?", S)
    await tailed.settle(hermes.path)
    tailed.renew(HASTY)
    await tailed.settle()
    after = await tailed.dag()
    assert after["turns"] == before["turns"]
    assert tailed.tail.status().last_error is None


@pytest.mark.anyio
async def test_a_sub_agent_waits_for_the_call_that_made_it(
    hermes: HermesStore, tailed: Tailed
) -> None:
    """Its task is nobody's words, and hangs from the turn that asked for it."""
    hermes.begin(S)
    hermes.say(S, "Find me a ferry.")
    hermes.begin(
        B, S, source="subagent", model_config={"_delegate_from": S}, started_at=time.time()
    )
    hermes.exchange(B, "Research ferry times. Report back.")
    await tailed.settle()
    assert await tailed.said() == ["Find me a ferry."]
    assert tailed.tail.status().held == 2
    hermes.call(S, goal="Research ferry times.")
    await tailed.settle(hermes.path)
    dag = await tailed.dag()
    [task] = [turn for turn in dag["turns"].values() if turn[2] == "runtime"]
    predecessor, role, _, text, recordable, _, caller = task
    assert (predecessor, role, recordable) == (None, "user", 0)
    assert text == b"Research ferry times. Report back."
    assert caller == next(iter(dag["turns"]))
    assert tailed.tail.status().held == 0


@pytest.mark.anyio
async def test_a_branch_of_a_private_project_is_as_private(
    place: Path, root: Path, hermes: HermesStore
) -> None:
    """A branch has no directory of its own: the rule about its origin's holds for the copy."""

    def memory_for(project: str | None, session: str) -> MemoryMode:
        del session
        return "off" if project == "/home/me/secret" else "on"

    hermes.begin(S, cwd="/home/me/secret")
    hermes.exchange(S, "秘密")
    hermes.branch(S, B)
    hermes.exchange(B, "more of it")
    hermes.begin("open", cwd="/home/me/open")
    hermes.exchange("open", "hello")
    async with follow(place / "a.db", root, memory_for=memory_for) as tailed:
        await tailed.settle()
        assert await tailed.said() == ["hello", "You said: hello"]


@pytest.mark.anyio
async def test_profiles_are_followed_each_in_its_own_database(
    root: Path, hermes: HermesStore, tailed: Tailed
) -> None:
    """Also one that comes while the others are followed."""
    hermes.begin(S)
    hermes.exchange(S, "one")
    await tailed.settle()
    work = HermesStore(root / "profiles" / "work" / "state.db")
    work.begin(B)
    work.exchange(B, "two")
    await tailed.settle(root / "profiles")
    work.close()
    assert await tailed.said() == ["one", "You said: one", "two", "You said: two"]
    assert tailed.tail.status().files == 2


@pytest.mark.anyio
async def test_one_database_may_be_named_by_itself(place: Path, hermes: HermesStore) -> None:
    """With a name that is not the usual one; others beside it are not looked at."""
    hermes.begin(S)
    hermes.exchange(S, "one")
    other = HermesStore(hermes.path.with_name("mine.db"))
    other.begin(B)
    other.exchange(B, "two")
    async with follow(place / "a.db", other.path) as tailed:
        assert set(tailed.tail.places) == set(tailed.tail.flat_places) == {other.path.parent}
        await tailed.settle()
        other.close()
        assert await tailed.said() == ["two", "You said: two"]


@pytest.mark.anyio
async def test_what_a_waiting_sub_agent_called_for_waits_with_it(
    hermes: HermesStore, tailed: Tailed
) -> None:
    """Both for the row that calls the one that it waits for."""
    now = time.time()
    hermes.begin(S)
    hermes.say(S, "Find me a ferry.")
    for name, origin in ((B, S), ("deeper", B)):
        config = {"_delegate_from": origin}
        hermes.begin(name, origin, source="subagent", model_config=config, started_at=now)
        hermes.say(name, f"Research for {name}.")
    await tailed.settle()
    assert (await tailed.said(), tailed.tail.status().held) == (["Find me a ferry."], 2)


@pytest.mark.anyio
async def test_a_database_whose_tables_are_unknown_is_told_of(
    root: Path, hermes: HermesStore, tailed: Tailed
) -> None:
    """A new version may keep its talks elsewhere: what was said stays, and nobody is left to guess.

    One in which there is no table yet is as good as none.
    """
    new = root / "profiles" / "new"
    new.mkdir(parents=True)
    (new / "state.db").touch()
    hermes.begin(S)
    hermes.exchange(S, "one")
    await tailed.settle()
    assert (tailed.tail.status().files, tailed.tail.status().last_error) == (2, None)
    hermes.run("ALTER TABLE messages RENAME TO other")
    await tailed.settle(hermes.path)
    assert "Hermes may be newer" in (tailed.tail.status().last_error or "")
    assert str(hermes.path) in (tailed.tail.status().last_error or "")
    hermes.run("ALTER TABLE other RENAME TO messages")
    hermes.exchange(S, "two")
    await tailed.settle(hermes.path)
    assert tailed.tail.status().last_error is None
    assert len(await tailed.said()) == 4
