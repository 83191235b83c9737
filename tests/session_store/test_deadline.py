"""The deadline timer: on time, asleep in between, and awake when the clock or the plan changes.

Setting the machine's clock is not tried here: time namespaces do not cover CLOCK_REALTIME, and a
test must not set the clock of the machine it runs on. The fallback's own check is tested with a
clock that jumps.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from turnmark_session_store.deadline import DeadlineTimer, Wake, _LongSleep, _TimerFd


class Clock:
    """The real clock, plus an offset that a test may set."""

    def __init__(self) -> None:
        self.offset = timedelta()

    def __call__(self) -> datetime:
        """The time now, as this clock has it."""
        return datetime.now(UTC) + self.offset


@pytest.fixture
def clock() -> Clock:
    """A clock that starts right."""
    return Clock()


@pytest.fixture(params=["timerfd", "long sleep"])
def timer(request: pytest.FixtureRequest, clock: Clock) -> Iterator[DeadlineTimer]:
    """The timer as it is on Linux, and as it is elsewhere."""
    with DeadlineTimer(clock) as timer:
        if request.param == "long sleep":
            timer._alarm.close()
            timer._alarm = _LongSleep(clock)
        yield timer


@pytest.mark.anyio
async def test_fires_and_never_early(timer: DeadlineTimer, clock: Clock) -> None:
    """The wake comes after the deadline; `benchmarks/events_latency.py` measures how late."""
    deadline = clock() + timedelta(milliseconds=150)
    with anyio.fail_after(60):
        assert await timer.wait_until(deadline) is Wake.DUE
    assert clock() >= deadline


@pytest.mark.anyio
async def test_past_deadline_is_due_at_once(timer: DeadlineTimer, clock: Clock) -> None:
    """What fell due while the process was down does not wait."""
    with anyio.fail_after(60):
        assert await timer.wait_until(clock() - timedelta(days=365)) is Wake.DUE


@pytest.mark.anyio
@pytest.mark.parametrize("far", [None, timedelta(days=3650)])
async def test_change_ends_the_wait(
    timer: DeadlineTimer, clock: Clock, far: timedelta | None
) -> None:
    """A new, earlier deadline is looked at without waiting for the old one."""
    woken: list[Wake] = []

    async def wait() -> None:
        woken.append(await timer.wait_until(None if far is None else clock() + far))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            timer.set_changed()
    assert woken == [Wake.CHANGED]


@pytest.mark.anyio
async def test_change_before_the_wait_is_kept(timer: DeadlineTimer, clock: Clock) -> None:
    """A change that comes between two waits ends the next one, once."""
    timer.set_changed()
    with anyio.fail_after(60):
        assert await timer.wait_until(None) is Wake.CHANGED
        assert await timer.wait_until(clock() + timedelta(milliseconds=20)) is Wake.DUE


@pytest.mark.anyio
async def test_no_change_from_another_thread_is_lost(timer: DeadlineTimer) -> None:
    """A thread that says so a thousand times, each time after the last was seen, is heard."""
    rounds = 1000
    seen = threading.Semaphore(1)

    def change() -> None:
        for _ in range(rounds):
            assert seen.acquire(timeout=60)
            timer.set_changed()

    thread = threading.Thread(target=change)
    thread.start()
    with anyio.fail_after(60):
        for _ in range(rounds):
            assert await timer.wait_until(None) is Wake.CHANGED
            seen.release()
    thread.join()


@pytest.mark.anyio
async def test_cancelled_wait_leaves_the_timer_usable(timer: DeadlineTimer, clock: Clock) -> None:
    """Cancelling loses neither a later change nor a later deadline."""
    with anyio.move_on_after(0.01):
        await timer.wait_until(None)
    timer.set_changed()
    with anyio.fail_after(60):
        assert await timer.wait_until(None) is Wake.CHANGED
        assert await timer.wait_until(clock() + timedelta(milliseconds=10)) is Wake.DUE


@pytest.mark.anyio
async def test_idle_wait_does_not_wake_up(timer: DeadlineTimer, clock: Clock) -> None:
    """In 400 ms of waiting the thread gives up the processor a handful of times, not regularly.

    What polls does so in every stretch; one that a busy machine left alone is enough.
    """
    seen: list[tuple[int, float]] = []
    for _ in range(10):
        await timer.wait_until(clock() + timedelta(milliseconds=5))
        before = resource.getrusage(resource.RUSAGE_THREAD)
        with anyio.fail_after(60):
            await timer.wait_until(clock() + timedelta(milliseconds=400))
        after = resource.getrusage(resource.RUSAGE_THREAD)
        seen.append((after.ru_nvcsw - before.ru_nvcsw, after.ru_utime - before.ru_utime))
        if seen[-1][0] <= 5 and seen[-1][1] < 0.05:
            return
    raise AssertionError(seen)


@pytest.mark.anyio
async def test_follows_an_injected_clock(timer: DeadlineTimer, clock: Clock) -> None:
    """A deadline is read on the clock that was given, not on the machine's."""
    clock.offset = timedelta(days=-1000)
    started = time.monotonic()
    with anyio.fail_after(60):
        assert await timer.wait_until(clock() + timedelta(milliseconds=50)) is Wake.DUE
    assert time.monotonic() - started >= 0.05


@pytest.mark.anyio
async def test_long_sleep_notices_a_clock_that_was_set(clock: Clock) -> None:
    """Where no kernel tells, the two clocks are compared after the sleep."""
    woken: list[Wake] = []
    with DeadlineTimer(clock) as timer:
        timer._alarm.close()
        timer._alarm = _LongSleep(clock)

        async def wait() -> None:
            woken.append(await timer.wait_until(clock() + timedelta(hours=2)))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                clock.offset = timedelta(hours=1)
                timer.set_changed()
            assert await timer.wait_until(None) is Wake.CHANGED
    assert woken == [Wake.CLOCK_SET]


def told_of(fd: int) -> str:
    """Returns what the kernel says of a descriptor."""
    return Path(f"/proc/self/fdinfo/{fd}").read_text("utf-8")


@pytest.mark.skipif(sys.platform != "linux", reason="timerfd is Linux's")
@pytest.mark.anyio
async def test_asks_the_kernel_to_be_told_of_a_set_clock() -> None:
    """Whenever it waits, for a deadline or for ever: the kernel says how the timer is armed."""
    for deadline in (datetime.now(UTC) + timedelta(hours=1), None):
        with DeadlineTimer(lambda: datetime.now(UTC)) as timer:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(timer.wait_until, deadline)
                await anyio.wait_all_tasks_blocked()
                alarm = timer._alarm
                assert isinstance(alarm, _TimerFd)
                told = told_of(alarm._fd)
                tasks.cancel_scope.cancel()
        # TFD_TIMER_ABSTIME and TFD_TIMER_CANCEL_ON_SET of include/uapi/linux/timerfd.h
        assert "settime flags: 03" in told
        assert "clockid: 0" in told
