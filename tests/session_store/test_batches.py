"""Batches and installs: claimed by one, ended once, taken over after a crash."""

from __future__ import annotations

from typing import Any

import pytest

from session_store.stage import WORKSPACE, Stage, user
from turnmark_events.errors import Busy
from turnmark_events.types import TurnsWritten
from turnmark_session_store.batches import (
    BatchResult,
    close_install,
    fail,
    open_install,
    open_installs,
    release,
    take_over,
    turns_of,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def talk(stage: Stage) -> None:
    """A conversation of four turns."""
    await stage.workspace()
    await stage.append("a", "b", "c", "d")


async def test_closing_settles_and_says_so(stage: Stage) -> None:
    """One event with exactly the batch's turns; the claim is free again."""
    batch = await stage.batch("a", "b")
    assert await stage.owes("writing") == {"a", "b"}
    assert await stage.owes("waiting") == {"c", "d"}
    assert await stage.close_batch(batch) == ["a", "b"]
    event = stage.events[-1]
    assert isinstance(event, TurnsWritten)
    assert (event.workspace, event.session, event.tip) == (WORKSPACE, "s", "b")
    assert (event.turns, event.outcome, event.blocks) == (("a", "b"), "kept", ("b-00000001",))
    assert await stage.owes() == {"c", "d"}
    await stage.batch("c", "d")


async def test_one_batch_at_a_time_per_root(stage: Stage) -> None:
    """Another of the same conversation is busy, one of another conversation is not."""
    await stage.batch("a", "b")
    with pytest.raises(Busy, match="under way"):
        await stage.batch("c")
    await stage.append("x", session="t")
    await stage.batch("x", session="t")


async def test_a_batch_over_merged_conversations_holds_each_of_them(stage: Stage) -> None:
    """Whichever of its roots another batch descends from, that one waits."""
    await stage.append("r1", session="u")
    await stage.append("r2", after=None, session="u")
    await stage.merge(["r1", "r2"], user("m", "m"), session="u")
    for root, side in (("r1", "x"), ("r2", "y")):
        await stage.append(side, after=root, session="u")
    batch = await stage.batch("r1", "r2", "m", session="u")
    for side in ("x", "y"):
        with pytest.raises(Busy, match="under way"):
            await stage.batch(side, session="u")
    await stage.close_batch(batch)
    await stage.batch("x", session="u")
    await stage.batch("y", session="u")


async def test_a_claim_looks_before_it_takes(stage: Stage) -> None:
    """Turns settled since the plan was made, and turns below an unsettled one, are busy."""
    with pytest.raises(Busy, match="moved on"):
        await stage.batch("b")
    await stage.settle("a", "b")
    with pytest.raises(Busy, match="moved on"):
        await stage.batch("a", "b", "c")
    await stage.park("a", reason="rewrite")
    await stage.batch("a", "c")


async def test_a_batch_is_closed_once(stage: Stage) -> None:
    """A late second close, or one after a take-over, settles nothing."""
    batch = await stage.batch("a", "b")
    await stage.close_batch(batch)
    seq = stage.seq
    with pytest.raises(Busy, match="is over"):
        await stage.close_batch(batch)
    assert stage.seq == seq
    taken = await stage.batch("c")
    assert await stage.write(lambda tx: take_over(tx, 1)) == []
    with pytest.raises(Busy):
        await stage.close_batch(taken)
    with pytest.raises(Busy):
        await _open_install(stage, taken)
    assert await stage.owes("waiting") == {"c", "d"}


async def test_a_released_batch_is_offered_again(stage: Stage) -> None:
    """Nothing is settled, nothing is said."""
    batch = await stage.batch("a")
    seq = stage.seq
    await stage.write(lambda tx: release(tx, batch))
    assert stage.seq == seq
    assert stage.marks() == {}
    assert await stage.batch("a") > batch


async def test_a_failing_conversation_is_counted_and_bounded(stage: Stage) -> None:
    """Failures add up per root; success forgets them and lets the bound grow until it is none."""
    for count in (1, 2, 3):
        batch = await stage.batch("a", "b")
        failed = await stage.write(
            lambda tx, batch=batch: fail(tx, batch, "timeout", not_before_ms=5, limit_turns=40)
        )
        assert failed == count
    row = (await stage.owed()).tips[0]
    assert (row.state, row.reason) == ("failing", "timeout")
    await stage.close_batch(await stage.batch("a"))
    assert await stage.owes("failing") == set()
    for turn in "bcd":
        await stage.close_batch(await stage.batch(turn))
    assert stage.sql("SELECT count(*) FROM failure") == [(0,)]


async def test_turns_taken_back_meanwhile_are_not_settled(stage: Stage) -> None:
    """And a batch of which nothing is left says nothing."""
    batch = await stage.batch("a", "b", "c")
    await stage.rewind("b")
    assert await stage.close_batch(batch) == ["a", "b"]
    late = await stage.append("e")
    assert late.new == 1
    batch = await stage.batch("e")
    await stage.rewind("b")
    seq = stage.seq
    assert await stage.close_batch(batch) == []
    assert stage.seq == seq
    assert stage.sql("SELECT count(*) FROM claim") == [(0,)]


async def test_a_turn_restored_above_a_running_batch_does_not_stop_it(stage: Stage) -> None:
    """It was retired when the batch was claimed; it is owed as `restored` when that ends."""
    await stage.append(user("b again", "b~2", supersedes="b"))
    await stage.checkout("d")
    batch = await stage.batch("a", "c", "d")
    await stage.checkout("b", restore=True)
    assert await stage.close_batch(batch) == ["a", "c", "d"]
    assert stage.marks()["b"] == ("parked", "restored")
    assert await stage.owes("waiting") == {"b", "b~2"}


async def test_an_install_ends_all_its_batches_once(stage: Stage) -> None:
    """Its revision is the marks'; its journal keeps no words; closing it again changes nothing."""
    await stage.append("x", session="t")
    batches = [await stage.batch("a", "b"), await stage.batch("x", session="t")]
    install = await _open_install(stage, *batches)
    assert await stage.write(lambda tx: open_installs(tx.db, 1)) != []
    await stage.write(lambda tx: close_install(tx, install))
    written = [event for event in stage.events if isinstance(event, TurnsWritten)]
    assert [(event.turns, event.revision) for event in written] == [(("a", "b"), 7), (("x",), 7)]
    seq = stage.seq
    await stage.write(lambda tx: close_install(tx, install))
    assert stage.seq == seq
    assert stage.sql("SELECT revision FROM workspace") == [(7,)]
    assert stage.sql("SELECT body FROM install") == [(b"",)]
    assert await stage.write(lambda tx: open_installs(tx.db, 1)) == []


async def test_what_a_dead_process_journalled_is_rolled_forward(stage: Stage) -> None:
    """Claims without an install are freed, those with one are held until it ends."""
    journalled = await stage.batch("a", "b")
    install = await _open_install(stage, journalled)
    await stage.append("x", session="t")
    await stage.batch("x", session="t")
    await stage.restart()
    (found,) = await stage.write(lambda tx: take_over(tx, 1))
    assert (found.install, found.revision, found.cause, found.body, found.batches) == (
        install,
        7,
        "test",
        b"staged",
        [journalled],
    )
    with pytest.raises(Busy):
        await stage.batch("c")
    await stage.batch("x", session="t")
    await stage.write(lambda tx: close_install(tx, install))
    assert stage.marks() == {"a": ("kept", None), "b": ("kept", None)}


async def test_the_turns_of_a_batch_come_oldest_first(stage: Stage) -> None:
    """However they were given."""
    batch = await stage.batch("b", "a")
    found = await stage.write(lambda tx: turns_of(tx.db, batch))
    assert stage.ids(found) == ["a", "b"]


async def _open_install(stage: Stage, *batches: int) -> Any:
    results = [BatchResult(batch=batch, outcome="kept", blocks=[]) for batch in batches]
    return await stage.write(
        lambda tx: open_install(tx, 1, revision=7, cause="test", body=b"staged", results=results)
    )
