"""Flushes: a moment's snapshot, one attempt a batch, and what is left."""

from __future__ import annotations

from math import log2

import anyio
import pytest

from memory.at_work import (
    Hold,
    Poisoned,
    at_work,
    numbered,
)
from turnmark_memory.model import Batch
from turnmark_memory.requests import FlushRequest

pytestmark = pytest.mark.anyio


async def test_parks_one_poisoned_turn_through_repeated_flushes() -> None:
    """Flushes alone, without a back-off's end, come to the same."""
    async with at_work() as work:
        work.scribe.answer = poison = Poisoned("m037")
        ids = numbered("m", 100)
        await work.say("s", *ids)
        flushes = 0
        while (await work.flush()).left > 1:
            flushes += 1
            assert flushes <= 2 * log2(100) + 4
        assert (await work.marks())["m037"] == ("parked", "failed")
        assert len(work.facts()) == 99
        asked = len(work.scribe.batches)
        answer = await work.flush()
        assert (answer.batches, answer.left, len(work.scribe.batches)) == (1, 1, asked + 1)
        poison.poison.clear()
        answer = await work.flush()
        assert (answer.batches, answer.turns, answer.left) == (1, 1, 0)
        assert sorted(work.facts()) == ids


async def test_tries_each_parked_turn_of_a_conversation_in_one_flush() -> None:
    """A parked turn that fails again doesn't keep the others from their attempt."""
    async with at_work() as work:
        work.scribe.answer = poison = Poisoned("m2", "m4")
        await work.say("s", "m1", "m2", "m3", "m4")
        for _ in range(12):
            await work.flush()
        assert sorted(work.facts()) == ["m1", "m3"]
        poison.poison.remove("m4")
        answer = await work.flush()
        assert (answer.batches, answer.turns, answer.left) == (2, 1, 1)
        assert sorted(work.facts()) == ["m1", "m3", "m4"]


async def test_doesnt_wait_for_turns_said_during_a_flush() -> None:
    """A flush is of a moment: what comes later is another's, and `left` doesn't count it."""
    async with at_work() as work:
        work.scribe.before = hold = Hold()
        await work.say("s", "m1", "m2")
        answers = []

        async def flush() -> None:
            answers.append(await work.flush())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flush)
            await hold.began.wait()
            await work.say("s", "m3")
            await work.say("later", "x1")
            hold.end.set()
        assert (answers[0].turns, answers[0].left, answers[0].batches) == (2, 0, 1)
        assert work.scribe.offered == [["m1", "m2"]]
        assert await work.owed_count() == 2


async def test_joins_a_batch_that_is_under_way() -> None:
    """A flush during a batch of the same turns waits for it and asks nobody again."""
    async with at_work() as work:
        work.scribe.before = hold = Hold()
        await work.say("s", "m1", "m2")
        await work.silence()
        await hold.began.wait()
        done = []

        async def flush() -> None:
            answer = await work.flush()
            done.append((answer.left, len(work.written_ids())))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flush)
            await anyio.wait_all_tasks_blocked()
            assert done == []
            hold.end.set()
        assert done == [(0, 2)]
        assert len(work.scribe.batches) == 1


async def test_flushes_one_session_while_another_is_held() -> None:
    """A flush in the scope of a session doesn't wait for the batches of others."""
    async with at_work() as work:
        hold = Hold()

        async def hold_other(batch: Batch) -> None:
            if batch.turns[0].session == "other":
                await hold(batch)

        work.scribe.before = hold_other
        await work.say("other", "o1")
        await work.silence()
        await hold.began.wait()
        await work.say("s", "m1")
        assert (await work.flush(session="s")).left == 0
        hold.end.set()
        await work.wait_written("o1")


async def test_ignores_the_back_off_in_a_flush_and_makes_one_attempt_a_batch() -> None:
    """A failing conversation is tried once per flush, beside others that are written."""
    async with at_work() as work:
        work.scribe.answer = Poisoned("m1")
        await work.say("s", "m1", "m2")
        await work.say("t", "t1")
        answer = await work.flush()
        assert (answer.batches, answer.turns, answer.left) == (2, 1, 2)
        assert [one.session for one in answer.failures] == ["s"]
        await work.flush()
        assert [turns for turns in work.scribe.offered if turns != ["t1"]] == [["m1", "m2"], ["m1"]]


async def test_says_what_a_flush_would_do_and_does_nothing() -> None:
    """A dry run has the plan's numbers and asks no writer; without `wait` it is the same plan."""
    async with at_work(trigger_tokens=10) as work:
        await work.say("s", *numbered("m", 4))
        await work.say("t", *numbered("t", 2))
        dry = await work.flush(dry_run=True)
        assert (dry.batches, dry.turns, dry.tokens, dry.left) == (2, 6, 12, 6)
        assert work.scribe.batches == []
        one = await work.flush(dry_run=True, session="t")
        assert (one.batches, one.turns, one.left) == (1, 2, 2)
        later = await work.flush(wait=False)
        assert later.left == 6
        await work.wait_written(*numbered("m", 4), *numbered("t", 2))


async def test_tells_progress_of_a_flush() -> None:
    """Each batch that is done is told, and the last word is all turns."""
    async with at_work(trigger_tokens=4) as work:
        work.scribe.before = hold = Hold()
        hold.end.set()
        await work.say("s", "m1")
        await work.say("t", "t1")
        told: list[tuple[float, float | None]] = []
        await work.memory.flush(
            FlushRequest(), lambda done, total, _what: told.append((done, total))
        )
        assert told[-1] == (2, 2)
        assert told == sorted(told)


async def test_loses_nothing_when_a_flush_is_cancelled() -> None:
    """Who waits may go: the batch goes on, and the next flush finds nothing left."""
    async with at_work() as work:
        work.scribe.before = hold = Hold()
        await work.say("s", "m1", "m2")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work.flush)
            await hold.began.wait()
            tasks.cancel_scope.cancel()
        hold.end.set()
        await work.wait_written("m1", "m2")
        await work.quiet()
        assert len(work.scribe.batches) == 1
        assert (await work.flush()).left == 0


async def test_offers_a_parked_turn_to_another_writer() -> None:
    """The configuration changed: what failed alone is due again, without anybody asking."""
    async with at_work() as work:
        work.scribe.answer = poison = Poisoned("m1")
        await work.say("s", "m1")
        await work.flush()
        await work.flush()
        await work.silence()
        await work.restart()
        await work.quiet()
        assert (await work.marks())["m1"] == ("parked", "failed")
        work.scribe.name = "scribe/2"
        poison.poison.clear()
        await work.restart()
        await work.wait_written("m1")
        assert work.facts() == ["m1"]
