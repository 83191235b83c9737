"""The idle clock: once per move of every live branch, on time, and otherwise asleep."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from session_store.clock_set import say_set
from session_store.stage import Clock, Stage, user
from turnmark_events.errors import Unavailable
from turnmark_events.types import Event, TipIdle
from turnmark_session_store import idle
from turnmark_session_store.idle import IdleClock, bring_near, fire_due, next_deadline_ms

pytestmark = pytest.mark.anyio

IDLE_MS = 150


class WallClock(Clock):
    """The real time: the timer waits for that, too."""

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000


class Ticking(Stage):
    """A stage with a running clock; `published` is set, and made anew, by every publication."""

    published: anyio.Event
    clock: IdleClock

    async def wait_armed(self) -> None:
        """Returns once the clock sleeps towards a deadline, with no look of its own under way."""
        with anyio.fail_after(60):
            await anyio.wait_all_tasks_blocked()
            while self.clock._armed_ms is None:
                await anyio.wait_all_tasks_blocked()


@asynccontextmanager
async def ticking(path: Path, idle_ms: int = IDLE_MS) -> AsyncIterator[Ticking]:
    """A stage with a running clock."""
    stage = Ticking(path, clock=WallClock(), idle_ms=idle_ms)
    async with stage, anyio.create_task_group() as tasks:
        clock = stage.clock = IdleClock(stage.store)
        stage.published = anyio.Event()

        def publish(events: Sequence[Event]) -> None:
            stage.events.extend(events)
            clock.saw(events)
            stage.published.set()
            stage.published = anyio.Event()

        stage.store.publish = publish
        tasks.start_soon(clock.run)
        yield stage
        tasks.cancel_scope.cancel()


def idles(stage: Stage) -> list[TipIdle]:
    """Returns what was said to be idle."""
    return [event for event in stage.events if isinstance(event, TipIdle)]


async def until(stage: Ticking, count: int) -> list[TipIdle]:
    """Returns the first `count` idle tips."""
    with anyio.fail_after(60):
        while len(idles(stage)) < count:
            await stage.published.wait()
    return idles(stage)


async def test_fires_when_the_deadline_has_come(place: Path) -> None:
    """For the branch, its tip and since when; not before."""
    async with ticking(place / "sessions.db") as stage:
        await stage.append("a")
        (row,) = await stage.branches()
        (said,) = await until(stage, 1)
        late_ms = time.time_ns() // 1_000_000 - stage.sql("SELECT moved_ms FROM branch")[0][0]
        assert late_ms >= IDLE_MS
        assert (said.session, said.branch, said.tip, said.since) == (
            "s",
            row.branch,
            "a",
            row.moved_at,
        )


async def test_fires_once_per_move(place: Path) -> None:
    """Each move arms anew; a move before the deadline puts it off."""
    async with ticking(place / "sessions.db") as stage:
        await stage.append("a")
        await until(stage, 1)
        await stage.append("b")
        await stage.append("c")
        await until(stage, 2)
        assert [said.tip for said in idles(stage)] == ["a", "c"]
        assert await stage.store.read(next_deadline_ms) is None


async def test_fires_for_every_live_branch(place: Path) -> None:
    """Also off the head, spawned, archived, of another session."""
    async with ticking(place / "sessions.db") as stage:
        await stage.append("a", "b")
        await stage.append("c", after="a")
        await stage.append("x", session="t")
        await stage.archive()
        assert {said.tip for said in await until(stage, 3)} == {"b", "c", "x"}


async def test_survives_a_restart(place: Path) -> None:
    """A deadline that passed while nobody ran fires at start, head first."""
    path = place / "sessions.db"
    async with Stage(path, clock=WallClock(), idle_ms=1) as stage:
        await stage.append("a", "b")
        await stage.append("c", after="a")
        await stage.checkout("b")
    async with ticking(path) as stage:
        assert [said.tip for said in await until(stage, 2)] == ["b", "c"]


async def test_what_moves_no_tip_arms_nothing(stage: Stage) -> None:
    """Checkouts, archives, marks; and merged, retired and deleted branches are disarmed."""
    await stage.workspace()
    await stage.append("a", "b")
    await stage.append("c", after="a")
    stage.clock.at_ms += 10_000
    assert await stage.write(fire_due) == 2
    await stage.checkout("b")
    await stage.archive()
    await stage.settle("a")
    assert await stage.store.read(next_deadline_ms) is None
    await stage.merge(["b", "c"], user("m", "m"))
    assert len(stage.sql("SELECT id FROM branch WHERE idle_ms IS NOT NULL")) == 1
    await stage.delete()
    assert await stage.store.read(next_deadline_ms) is None


async def test_sleeps_while_nothing_is_due(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a far deadline armed, moves wake nobody and no transaction is begun."""
    async with ticking(place / "sessions.db", idle_ms=3_600_000) as stage:
        await stage.append("a")
        await stage.wait_armed()
        reads: list[int] = []
        read = stage.store.read
        monkeypatch.setattr(stage.store, "read", lambda f: (reads.append(1), read(f))[1])
        before = stage.store.statistics()["requests"]
        for number in range(20):
            await stage.append(f"t{number}")
        await anyio.wait_all_tasks_blocked()
        assert stage.store.statistics()["requests"] == before + 20
        assert reads == []


async def test_outlives_a_disk_that_takes_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be said is said when the disk takes it; the deadline is in the store."""
    monkeypatch.setattr(idle, "_RETRY_SECONDS", 0.0)
    async with ticking(place / "sessions.db") as stage:
        write = stage.store.write
        failed: list[int] = []

        async def full_once(function: Any, **more: Any) -> Any:
            if function is fire_due and not failed:
                failed.append(1)
                raise Unavailable("the disk is full")
            return await write(function, **more)

        monkeypatch.setattr(stage.store, "write", full_once)
        await stage.append("a")
        assert [event.tip for event in await until(stage, 1)] == ["a"]
        assert failed == [1]


async def test_brings_deadlines_near_that_were_armed_ahead(stage: Stage) -> None:
    """After the clock was set back none is further away than that of a move made now."""
    await stage.append("a")
    stage.clock.at_ms -= 86_400_000
    await stage.append("x", session="t")
    near = await stage.store.read(next_deadline_ms)
    assert await stage.write(bring_near) == 1
    rows = stage.sql("SELECT idle_ms FROM branch ORDER BY id")
    assert near is not None
    assert rows == [(near + 1,), (near,)]


@pytest.mark.parametrize("when", ["running", "at the start"])
async def test_hears_that_the_clock_was_set_back(
    place: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """While it sleeps, or by the next start, it looks which deadlines are too far away."""
    path, idle_ms = place / "sessions.db", 3_600_000
    earlier_ms = time.time_ns() // 1_000_000 - idle_ms // 2
    if when == "at the start":
        async with Stage(path, clock=WallClock(), idle_ms=idle_ms) as stage:
            await stage.append("a")
        monkeypatch.setattr(idle, "now_ms", lambda: earlier_ms)
    async with ticking(path, idle_ms) as stage:
        monkeypatch.setattr(stage.store._writer, "_clock", lambda: earlier_ms)
        if when == "running":
            monkeypatch.setattr(stage.store._writer, "_clock", WallClock())
            await stage.append("a")
            await stage.wait_armed()
            monkeypatch.setattr(stage.store._writer, "_clock", lambda: earlier_ms)
            monkeypatch.setattr(idle, "now_ms", lambda: earlier_ms)
            say_set(stage.clock._timer, monkeypatch)
        with anyio.fail_after(60):
            while await stage.store.read(next_deadline_ms) != earlier_ms + idle_ms:
                await anyio.wait_all_tasks_blocked()
