"""The worker against a real store and a real workspace: what it offers, when, and how often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date
from math import log2

import anyio
import pytest

from memory.at_work import (
    NOTHING,
    AtWork,
    Hold,
    Poisoned,
    Scribe,
    at_work,
    keep_each,
    numbered,
)
from turnmark_events.errors import Unavailable
from turnmark_events.types import Event
from turnmark_memory.model import Add, Answer, Batch, Edits
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store.marks import settle, workspace_key
from turnmark_session_store.requests import Archive, Checkout, Rewind

pytestmark = pytest.mark.anyio


async def forked(work: AtWork) -> tuple[str, str, list[str], list[str], list[str]]:
    """A written trunk of nine turns, then branches of five and of eleven turns from its third."""
    trunk = numbered("m", 9)
    await work.say("s", *trunk)
    await work.flush()
    short, long = numbered("a", 5), numbered("b", 11)
    first = await work.say("s", *short, after="m003")
    second = await work.say("s", *long, after="m003")
    return first.branch, second.branch, trunk, short, long


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_offers_both_branches_whole_and_the_trunk_once(order: tuple[int, int]) -> None:
    """Five and eleven turns of two branches are written, whichever tip falls silent first."""
    async with at_work() as work:
        *branches, trunk, short, long = await forked(work)
        for place in order:
            await work.silence(branches[place])
            await work.wait_written(*((short, long)[place]))
        await work.quiet()
        assert work.scribe.offered == [trunk, *((short, long)[place] for place in order)]
        assert sorted(work.facts()) == sorted([*trunk, *short, *long])
        assert await work.owed_count() == 0


async def test_offers_both_branches_when_they_fall_silent_at_once() -> None:
    """Two tips of one conversation that race are written one after the other, nothing twice."""
    async with at_work() as work:
        _, _, trunk, short, long = await forked(work)
        await work.silence()
        await work.wait_written(*short, *long)
        await work.quiet()
        assert sorted(map(len, work.scribe.offered)) == [5, 9, 11]
        assert sorted(work.scribe.offered_ids) == sorted([*trunk, *short, *long])


async def test_ignores_the_marks_of_another_workspace() -> None:
    """What another memory has settled is owed here all the same."""
    async with at_work() as work:
        ids = numbered("m", 4)
        await work.say("s", *ids)

        def mark(tx: object) -> None:
            other = workspace_key(tx, "w-00000000000000ff")  # type: ignore[arg-type]
            settle(tx, other, [1, 2, 3, 4], outcome="kept", writer="x", revision=1)  # type: ignore[arg-type]

        await work.store.write(mark)
        await work.flush()
        assert work.scribe.offered == [ids]


def reject_all(batch: Batch) -> Answer:
    """An answer whose every edit cites what it was not given."""
    return Edits(
        edits=tuple(
            Add(topic="subjects/x", text="words", cites=("s-000000000000",)) for _ in range(3)
        )
    )


async def test_marks_nothing_when_every_edit_is_rejected_and_offers_half() -> None:
    """A rejected batch of twenty turns settles none; the next attempt has ten."""
    async with at_work(Scribe(reject_all)) as work:
        await work.say("s", *numbered("m", 20))
        answer = await work.flush()
        assert (answer.batches, answer.turns, answer.left) == (1, 0, 20)
        assert len(answer.failures) == 1
        assert await work.marks() == {}
        await work.flush()
        assert [len(turns) for turns in work.writer.offered] == [20, 10]  # type: ignore[attr-defined]
        assert await work.marks() == {}


async def test_settles_a_batch_judged_empty_and_asks_no_second_time() -> None:
    """An honest `nothing` is an outcome."""
    async with at_work() as work:
        work.scribe.answer = lambda _: NOTHING
        await work.say("s", *numbered("m", 3))
        await work.flush()
        await work.flush()
        assert len(work.scribe.batches) == 1
        assert set((await work.marks()).values()) == {("nothing", NOTHING.reason)}
        assert await work.owed_count() == 0


@pytest.mark.parametrize("poison", ["m001", "m037", "m064", "m100"])
async def test_parks_one_poisoned_turn_and_writes_the_others_in_the_background(poison: str) -> None:
    """Ninety-nine of a hundred turns are written, one is parked, in a bounded number of calls."""
    async with at_work(first_backoff_ms=1) as work:
        work.scribe.answer = Poisoned(poison)
        ids = numbered("m", 100)
        await work.say("s", *ids)
        await work.silence()
        others = [one for one in ids if one != poison]
        await work.wait_written(*others)
        await work.quiet()
        marks = await work.marks()
        assert marks.pop(poison) == ("parked", "failed")
        assert {outcome for outcome, _ in marks.values()} == {"kept"}
        assert sorted(work.facts()) == others
        assert len(work.scribe.batches) <= 2 * log2(100) + 4


async def test_tries_a_parked_turn_again_on_a_new_day_and_writes_nothing_else_early() -> None:
    """Where no night does it: the parked turn is tried; what waits for silence goes on waiting."""
    async with at_work() as work:
        work.scribe.answer = poison = Poisoned("m1")
        await work.say("s", "m1")
        await work.flush()
        await work.flush()
        assert (await work.marks())["m1"] == ("parked", "failed")
        await work.say("s", "m2")
        await work.say("other", "o1")
        poison.poison.clear()
        await work.memory._begin_day(date(2026, 12, 1))
        await work.wait_written("m1")
        await work.quiet()
        assert sorted(work.facts()) == ["m1"]
        assert await work.owed_count() == 2


@pytest.mark.parametrize("error", [WriterFailed("unreachable", transport=True), Unavailable("net")])
async def test_neither_parks_nor_halves_for_a_failing_transport(error: Exception) -> None:
    """An endpoint that is down changes nothing about the batch, however often it is tried."""
    async with at_work() as work:

        def fail(batch: Batch) -> Answer:
            raise error

        work.scribe.answer = fail
        await work.say("s", *numbered("m", 8))
        await work.say("alone", "x1")
        for _ in range(4):
            await work.flush()
        assert {len(turns) for turns in work.scribe.offered} == {8, 1}
        assert await work.marks() == {}
        work.scribe.answer = keep_each
        assert (await work.flush()).left == 0


async def test_survives_a_bug_of_the_writer() -> None:
    """An exception that no writer should raise is that batch's failure, and no more."""
    async with at_work() as work:

        def break_down(batch: Batch) -> Answer:
            raise ZeroDivisionError

        work.scribe.answer = break_down
        await work.say("s", "m1")
        answer = await work.flush()
        assert "ZeroDivisionError" in answer.failures[0].reason
        work.scribe.answer = keep_each
        assert (await work.flush()).left == 0


def drop(events: Sequence[Event]) -> list[Event]:
    return []


def double(events: Sequence[Event]) -> list[Event]:
    return [event for event in events for _ in range(2)]


def backwards(events: Sequence[Event]) -> list[Event]:
    return list(reversed(events))


@pytest.mark.parametrize("deliver", [None, drop, double, backwards])
async def test_comes_to_the_same_however_events_are_delivered(deliver: object) -> None:
    """Lost, doubled or reordered events: the same marks and blocks, none of them twice."""
    async with at_work(deliver=deliver, trigger_tokens=20) as work:
        work.deliver = deliver  # type: ignore[assignment]
        await work.say("s", *numbered("m", 9))
        await work.say("s", *numbered("a", 12), after="m003")
        await work.say("t", *numbered("t", 30))
        await work.silence()
        if deliver is drop:
            await work.restart()
        await work.quiet()
        await work.flush()
        ids = sorted([*numbered("m", 9), *numbered("a", 12), *numbered("t", 30)])
        assert sorted(work.facts()) == ids
        assert await work.marks() == dict.fromkeys(ids, ("kept", None))
        assert sorted(work.scribe.offered_ids) == ids


async def test_finds_at_a_restart_what_fell_silent_unheard() -> None:
    """Nobody asks and no event comes: the start alone finds what is owed."""
    async with at_work(deliver=drop) as work:
        await work.say("s", *numbered("m", 5))
        await work.silence()
        await work.quiet()
        assert work.scribe.batches == []
        await work.restart()
        await work.quiet()
        assert sorted(work.facts()) == numbered("m", 5)


async def test_writes_the_oldest_turns_that_reach_the_trigger_again_and_again() -> None:
    """Ten tokens make a batch: of twenty-five tokens two batches are written, five stay."""
    async with at_work(trigger_tokens=10) as work:
        ids = numbered("m", 12)  # two words each
        await work.say("s", *ids)
        await work.wait_written(*ids[:10])
        await work.quiet()
        assert work.scribe.offered == [ids[:5], ids[5:10]]
        assert await work.owed_count() == 2
        await work.silence()
        await work.wait_written(*ids)


async def test_leaves_a_moving_branch_alone_while_another_conversation_is_busy() -> None:
    """A silence that was dealt with is over: the next turn waits for the next silence."""
    async with at_work() as work:
        hold = Hold()

        async def hold_busy(batch: Batch) -> None:
            if batch.turns[0].session == "busy":
                await hold(batch)

        work.scribe.before = hold_busy
        await work.say("busy", "x1")
        await work.silence()
        await hold.began.wait()
        await work.say("s", "m1")
        await work.silence()
        await work.wait_written("m1")
        await work.say("s", "m2")
        await work.say("other", "o1")
        await work.silence(await branch_of(work, "other"))
        await work.wait_written("o1")
        assert ["m2"] not in work.scribe.offered
        hold.end.set()
        await work.wait_written("x1")
        await work.quiet()
        assert await work.owed_count() == 1


async def branch_of(work: AtWork, session: str) -> str:
    rows = await work.rows(
        "SELECT branch.name FROM branch JOIN session ON session.id = branch.session"
        " WHERE session.name = ?",
        (session,),
    )
    return str(rows[0][0])


async def test_writes_branches_that_are_no_head_and_archived_ones() -> None:
    """Archiving hides, and the head is one tip of many: all are written when they fall silent."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        side = await work.say("s", "a1", after="m1", move_head=False)
        await work.store.archive(Archive(session="s", branch=side.branch))
        await work.silence(side.branch)
        await work.wait_written("m1", "a1")
        await work.quiet()
        assert work.scribe.offered == [["m1", "a1"]]
        await work.silence()
        await work.wait_written("m2")


async def test_writes_what_a_closed_session_owes() -> None:
    """Closing returns at once, and the worker writes every branch of the session and no other."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.say("s", "a1", after="m1")
        await work.say("other", "o1")
        await work.close_session("s")
        await work.wait_written("m1", "m2", "a1")
        await work.quiet()
        assert await work.owed_count() == 1


async def test_frees_the_claims_of_a_worker_that_was_cancelled() -> None:
    """Ended in the middle of a batch; the next start offers the same turns, once."""
    async with at_work() as work:
        work.scribe.before = hold = Hold()
        await work.say("s", "m1", "m2")
        await work.silence()
        await hold.began.wait()
        await work.restart(run=False)
        work.scribe.before = None
        assert await work.rows("SELECT * FROM claim") == []
        await work.run()
        await work.wait_written("m1", "m2")
        await work.quiet()
        assert work.scribe.offered == [["m1", "m2"], ["m1", "m2"]]
        assert sorted(work.facts()) == ["m1", "m2"]


async def test_sleeps_while_a_batch_that_failed_before_is_under_way() -> None:
    """A back-off that is over is looked at once, not over and over until its batch is done."""
    async with at_work(first_backoff_ms=1) as work:
        work.scribe.answer = Poisoned("m1")
        await work.say("s", "m1", "m2")
        await work.flush()
        work.scribe.answer = keep_each
        work.scribe.before = hold = Hold()
        await work.silence()
        await hold.began.wait()
        looks = []
        look = work.memory.worker._look

        async def counted(tasks: object) -> None:
            looks.append(1)
            await look(tasks)  # type: ignore[arg-type]

        work.memory.worker._look = counted  # type: ignore[method-assign, assignment]
        for _ in range(20):
            await work.store.write(lambda _: None)
            await anyio.wait_all_tasks_blocked()
        assert len(looks) <= 1
        hold.end.set()
        await work.wait_written("m1")


async def test_goes_on_when_turns_are_restored_under_a_batch() -> None:
    """What is restored while a batch is under way is owed again and written."""
    async with at_work() as work:
        await work.say("s", "m1", "m2", "m3")
        await work.store.rewind(Rewind(session="s", to="m1"))
        await work.flush()
        assert sorted(work.facts()) == ["m1"]
        await work.store.checkout(Checkout(session="s", tip="m3", restore=True))
        await work.flush()
        assert sorted(work.facts()) == ["m1", "m2", "m3"]


async def test_writes_three_hundred_short_sessions_in_a_few_installs() -> None:
    """Sessions that fall due together share installs."""
    async with at_work() as work:
        sessions = numbered("s", 300)
        for name in sessions:
            await work.say(name, f"{name}x")
        await work.silence()
        await work.wait_written(*(f"{name}x" for name in sessions))
        await work.quiet()
        assert len(work.facts()) == 300
        assert work.memory.installer.installs <= 8


@pytest.mark.parametrize("seed", range(6))
async def test_reaches_every_turn_of_every_live_branch_once(seed: int) -> None:
    """Random forks, rewinds, merges and restarts: each live turn is offered, none twice."""
    dice = random.Random(seed)
    async with at_work(trigger_tokens=14) as work:
        ids: list[str] = []
        await work.say("s", "m000")
        ids.append("m000")
        for number in range(1, 40):
            name = f"m{number:03}"
            live = await live_ids(work)
            await work.say("s", name, after=dice.choice(live))
            ids.append(name)
            if dice.random() < 0.1:
                await work.silence()
            if dice.random() < 0.05:
                await work.quiet()
                await work.restart()
        await work.silence()
        await work.quiet()
        assert await work.owed_count() == 0
        assert sorted(work.scribe.offered_ids) == ids
        assert sorted(work.facts()) == ids


async def live_ids(work: AtWork) -> list[str]:
    rows = await work.rows(
        "SELECT key FROM turn WHERE NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = turn.id)"
    )
    return [key for (key,) in rows]
