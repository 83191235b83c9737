"""The daily budget: counted durably, by the local day, and never passed by much."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest

from memory.at_work import LONG_MS, scratch, tokens
from turnmark_memory.budget import Budget, OverBudget, Spent
from turnmark_memory.models.metering import MeteredModel
from turnmark_memory.models.model import Question, Reply
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store import SessionStore

pytestmark = pytest.mark.anyio

QUESTION = Question(
    instructions="write edits",
    material="搬到波尔图",
    schema_name="x",
    schema={},
    max_answer_tokens=9,
)


class Said:
    """A model that says what it is told, or fails as it is told."""

    name = "said/1"
    is_local = False

    def __init__(self, cost: int = 60) -> None:
        self.cost = cost
        self.error: WriterFailed | None = None
        self.asked = 0
        self.gate: anyio.Event | None = None

    async def ask(self, question: Question) -> Reply:
        """Answers, once the gate is open."""
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Reply(text="{}", prompt_tokens=self.cost - 10, answer_tokens=10)


class Day:
    """A clock that says one moment of local time."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 28, 18, 0).astimezone()

    def __call__(self) -> datetime:
        return self.now


def opened(place: Path) -> SessionStore:
    """Opens the store of a place."""
    return SessionStore.open(place / "sessions.db", count=tokens, idle_ms=LONG_MS)


async def test_refuses_when_the_day_is_used_up_and_asks_again_the_next() -> None:
    """The last question may go over; the one after it is not asked until midnight."""
    with scratch() as place:
        store = opened(place)
        day, model = Day(), Said()
        metered = MeteredModel(model, budget := Budget(store, 100, now=day), tokens)
        await metered.ask(QUESTION)
        await metered.ask(QUESTION)
        with pytest.raises(OverBudget) as refused:
            await metered.ask(QUESTION)
        assert (model.asked, refused.value.transport) == (2, True)
        assert await budget.spent() == Spent(day="2026-03-28", tokens=120, limit_tokens=100)
        seconds = refused.value.retry_after_seconds
        assert seconds is not None
        day.now += timedelta(seconds=seconds - 1)
        with pytest.raises(OverBudget):
            await metered.ask(QUESTION)
        day.now += timedelta(seconds=1)
        await metered.ask(QUESTION)
        assert (await budget.spent()).tokens == 60
        await store.aclose()


async def test_survives_a_restart() -> None:
    """What was spent stays spent; a higher limit lets the day go on."""
    with scratch() as place:
        store = opened(place)
        await MeteredModel(Said(), Budget(store, 50, now=Day()), tokens).ask(QUESTION)
        await store.aclose()
        store = opened(place)
        with pytest.raises(OverBudget):
            await MeteredModel(Said(), Budget(store, 50, now=Day()), tokens).ask(QUESTION)
        await MeteredModel(Said(), Budget(store, 500, now=Day()), tokens).ask(QUESTION)
        await MeteredModel(Said(), Budget(store, 0, now=Day()), tokens).ask(QUESTION)
        assert (await Budget(store, 0, now=Day()).spent()).tokens == 180
        await store.aclose()


async def test_counts_a_bad_answer_by_its_question_and_silence_as_nothing() -> None:
    """A malformed answer was paid for; an endpoint that is down cost nothing."""
    with scratch() as place:
        store = opened(place)
        model = Said()
        metered = MeteredModel(model, budget := Budget(store, 100, now=Day()), tokens)
        for error, spent in ((WriterFailed("down", transport=True), 0), (WriterFailed("bad"), 8)):
            model.error = error
            with pytest.raises(WriterFailed):
                await metered.ask(QUESTION)
            assert (await budget.spent()).tokens == spent
        assert (metered.name, metered.is_local) == ("said/1", False)
        await store.aclose()


async def test_sees_the_questions_that_are_asked_at_the_same_time() -> None:
    """Ten at once don't each find the whole day left."""
    with scratch() as place:
        store = opened(place)
        model = Said()
        model.gate = anyio.Event()
        metered = MeteredModel(model, Budget(store, 16, now=Day()), tokens)
        refused = []

        async def ask() -> None:
            try:
                await metered.ask(QUESTION)
            except OverBudget as error:
                refused.append(error)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(ask)
                while len(refused) + model.asked < 10:
                    await store.write(lambda _: None)
                    await anyio.wait_all_tasks_blocked()
                model.gate.set()
        assert model.asked == 2
        assert len(refused) == 8
        await store.aclose()
