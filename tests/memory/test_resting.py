"""The worker and an endpoint that fails: all conversations wait together, and none is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta

import anyio
import pytest

from memory.at_work import AtWork, Scribe, at_work, keep_each, numbered, scratch, tokens
from session_store.clock_set import say_set
from turnmark_memory.breaker import FAILURES_LIMIT, Breaker
from turnmark_memory.budget import Budget
from turnmark_memory.model import Answer, Batch
from turnmark_memory.models.metering import MeteredModel
from turnmark_memory.models.model import Question, Reply
from turnmark_memory.requests import OwedRequest
from turnmark_memory.writers.model_writer import ModelWriter
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store.requests import OpenSession
from turnmark_session_store.times import now_ms

pytestmark = pytest.mark.anyio

HOUR_SECONDS = 3_600.0
SESSIONS = numbered("s", 20)
IDS = [f"{name}x" for name in SESSIONS]


class Endpoint:
    """A far writer whose endpoint is down, busy or up."""

    def __init__(self) -> None:
        self.error: WriterFailed | None = WriterFailed("nobody answers", transport=True)

    def __call__(self, batch: Batch) -> Answer:
        if self.error is not None:
            raise self.error
        return keep_each(batch)


def far(answer: Callable[[Batch], Answer]) -> Scribe:
    """Returns a writer that is asked over the network."""
    return Scribe(answer, name="openai/far")


def over(work: AtWork) -> None:
    """Lets the endpoint's rest be over."""
    breaker = breaker_of(work)
    assert breaker.is_open
    breaker.until_ms = work.memory.worker._looked_ms + 1
    work.memory.worker._rouse()


def breaker_of(work: AtWork) -> Breaker:
    """Returns the breaker of the work's writer."""
    return work.memory.worker._breaker


async def fallen_silent(work: AtWork) -> None:
    """Lets twenty conversations of one turn each be due."""
    for name, turn in zip(SESSIONS, IDS, strict=True):
        await work.say(name, turn)
    await work.silence()
    await work.quiet()


async def test_rests_after_a_few_failures_and_asks_no_more() -> None:
    """Of twenty conversations that are due some are tried; then all wait for one deadline."""
    endpoint = Endpoint()
    async with at_work(scribe := far(endpoint)) as work:
        await fallen_silent(work)
        assert breaker_of(work).is_open
        # What was claimed before the door closed is asked, and nothing else.
        tried = len(scribe.batches)
        assert tried >= FAILURES_LIMIT
        await work.say("late", "latex")
        await work.silence()
        await work.quiet()
        assert len(scribe.batches) == tried
        assert await work.owed_count() == 21
        statistics = work.memory.statistics()
        assert statistics["resting_because"] == "nobody answers"
        assert statistics["resting_until"] is not None


async def test_sends_one_batch_after_the_rest_and_then_all() -> None:
    """A probe that fails costs one call; one that is answered lets everything go on."""
    endpoint = Endpoint()
    async with at_work(scribe := far(endpoint)) as work:
        await fallen_silent(work)
        tried = len(scribe.batches)
        over(work)
        await scribe.wait_asked(tried + 1)
        await work.quiet()
        assert len(scribe.batches) == tried + 1
        assert breaker_of(work).is_open
        endpoint.error = None
        over(work)
        await work.wait_written(*IDS)
        assert sorted(work.facts()) == IDS
        assert not breaker_of(work).is_open


async def test_flushes_in_spite_of_a_rest() -> None:
    """Who asks is answered: the endpoint is tried, and what it answers ends the rest."""
    endpoint = Endpoint()
    async with at_work(scribe := far(endpoint)) as work:
        await fallen_silent(work)
        tried = len(scribe.batches)
        answer = await work.flush(session="s001")
        assert (answer.batches, answer.left) == (1, 1)
        assert len(scribe.batches) == tried + 1
        endpoint.error = None
        assert (await work.flush(session="s001")).left == 0
        await work.wait_written(*IDS)


async def test_leaves_a_busy_endpoint_alone_and_counts_no_failure() -> None:
    """Too many requests, come back in an hour: nothing failed, everything waits and says why."""
    endpoint = Endpoint()
    endpoint.error = WriterFailed("too many requests", transport=True, retry_after_seconds=3600.0)
    async with at_work(scribe := far(endpoint)) as work:
        await work.say("s", "m1", "m2")
        await work.silence()
        await work.quiet()
        assert len(scribe.batches) == 1
        assert await work.rows("SELECT * FROM failure") == []
        (row,) = (await work.memory.owed(OwedRequest())).tips
        assert (row.state, row.reason, row.n) == ("waiting", "too many requests", 2)
        endpoint.error = None
        over(work)
        await work.wait_written("m1", "m2")
        assert scribe.offered == [["m1", "m2"]] * 2


async def test_waits_for_a_busy_endpoint_across_a_restart() -> None:
    """A rest lives in the process; the next one finds out again, and loses nothing."""
    endpoint = Endpoint()
    endpoint.error = WriterFailed("too many requests", transport=True, retry_after_seconds=3600.0)
    async with at_work(far(endpoint)) as work:
        await work.say("s", "m1")
        await work.silence()
        await work.quiet()
        endpoint.error = None
        await work.restart()
        await work.wait_written("m1")


async def test_says_in_a_flush_that_the_endpoint_is_busy() -> None:
    """The attempt counts as one for the flush, which ends, and the turns stay owed."""
    endpoint = Endpoint()
    endpoint.error = WriterFailed("too many requests", transport=True, retry_after_seconds=60.0)
    async with at_work(scribe := far(endpoint)) as work:
        await work.say("s", "m1", "m2")
        answer = await work.flush()
        assert (answer.batches, answer.left) == (1, 2)
        assert [failure.reason for failure in answer.failures] == ["too many requests"]
        assert len(scribe.batches) == 1


async def test_writes_local_sessions_while_the_far_endpoint_rests() -> None:
    """Their writer is on this machine and waits for nobody."""
    async with at_work(far(Endpoint())) as work:
        await fallen_silent(work)
        await work.store.open_session(OpenSession(session="home", memory="local"))
        await work.say("home", "h1")
        await work.silence()
        await work.wait_written("h1")
        assert await work.owed_count() == 20


async def test_halves_a_batch_that_alone_gets_no_answer() -> None:
    """The endpoint hangs up on one turn and answers all others: that turn is parked in the end."""

    def hang_up(batch: Batch) -> Answer:
        if any(turn.id == "m5" for turn in batch.turns):
            raise WriterFailed("closed the connection", transport=True)
        return keep_each(batch)

    async with at_work(far(hang_up)) as work:
        await work.say("s", *numbered("a", 4), "m5", *numbered("b", 4))
        for number in range(40):
            await work.say("other", f"o{number}")
            await work.flush()
            if (await work.marks()).get("m5") is not None:
                break
        assert (await work.marks())["m5"] == ("parked", "failed")
        await work.flush()
        assert await work.owed_count() == 1


class Costly:
    """A model behind an endpoint whose every answer costs sixty tokens."""

    name = "openai/costly"
    is_local = False

    async def ask(self, question: Question) -> Reply:
        """Keeps the first turn."""
        edit = {"op": "add", "topic": "subjects/facts", "text": "fact kept", "cites": ["t1"]}
        text = json.dumps({"edits": [{"heading": None, **edit}], "nothing": None})
        return Reply(text=text, prompt_tokens=50, answer_tokens=10)


async def test_waits_for_the_next_day_when_the_budget_is_used_up() -> None:
    """Two batches of three fit; the third waits, says why, and is written when it is tomorrow."""
    now = datetime(2026, 8, 3, 18, 0).astimezone()
    with scratch() as place:
        work = AtWork(place)
        await work.start(run=False)
        budget = Budget(work.store, 100, now=lambda: now)
        await work.stop()
        metered = MeteredModel(Costly(), budget, tokens)
        async with at_work(ModelWriter(metered, tokens), run=False, place=place) as work:
            budget._store = work.store
            await work.run()
            for name in ("a", "b", "c"):
                await work.say(name, f"{name}1")
                await work.silence()
                await work.quiet()
            assert await work.owed_count() == 1
            (row,) = (await work.memory.owed(OwedRequest())).tips
            assert row.state == "waiting"
            assert "daily budget of 100 tokens is used up" in (row.reason or "")
            assert breaker_of(work).until_ms > now_ms() + 5 * 3_600_000
            assert (await work.flush()).left == 1
            now += timedelta(hours=6)
            over(work)
            await work.wait_written("c1")
            assert (await budget.spent()).tokens == 60


@pytest.mark.parametrize("when", ["running", "at the start"])
async def test_a_pause_that_a_clock_set_which_was_ahead_is_short(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed at its content is tried again within its longest pause from now on."""
    year_ms = 365 * 86_400_000
    async with at_work(Scribe(malformed)) as work:
        await work.say("s", "m1", "m2")
        monkeypatch.setattr(work.store._writer, "_clock", lambda: now_ms() + year_ms)
        await work.flush()
        monkeypatch.undo()
        (ahead,) = await work.rows("SELECT not_before_ms FROM failure")
        assert ahead[0] > now_ms() + year_ms // 2
        if when == "running":
            timer = work.memory.worker._wake
            assert timer is not None
            say_set(timer, monkeypatch)
        else:
            await work.restart()
        far_ms = now_ms() + 2 * 3_600_000
        with anyio.fail_after(60):
            while await work.rows("SELECT 1 FROM failure WHERE not_before_ms > ?", (far_ms,)):
                await anyio.wait_all_tasks_blocked()
        assert await work.rows("SELECT 1 FROM failure") == [(1,)]


def malformed(batch: Batch) -> Answer:
    """Gives no answer that can be used."""
    del batch
    raise WriterFailed("malformed")
