"""Calls from worker threads to the loop, while the task that waits for the thread is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from memory.at_work import at_work
from turnmark_memory.loop_calls import call_loop
from turnmark_session_store.requests import Rewind

# A loop that spins swallows what a signal raises in it: only another thread ends it.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120, method="thread")]


class HeldThread:
    """Holds a worker thread up at one place, so that a test can do something meanwhile."""

    def __init__(self) -> None:
        self.reached = anyio.Event()
        self.may_go = threading.Event()

    def wait(self) -> None:
        """Says that the thread is here, and waits until it may go on."""
        anyio.from_thread.run_sync(self.reached.set)
        assert self.may_go.wait(60)

    async def let_go(self) -> None:
        """Lets it go on once every task waits: what was cancelled has been told."""
        await anyio.wait_all_tasks_blocked()
        self.may_go.set()


async def test_a_call_of_a_cancelled_task_comes_back() -> None:
    """Though the cancellation was delivered before the call, and the call goes to a thread."""
    held = HeldThread()
    found: list[int] = []

    def work() -> None:
        held.wait()
        found.append(call_loop(partial(anyio.to_thread.run_sync, lambda: 7)))

    async def waits(scope: anyio.CancelScope) -> None:
        with scope:
            await anyio.to_thread.run_sync(work)
            await anyio.sleep_forever()

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(waits, scope)
        await held.reached.wait()
        scope.cancel()
        await held.let_go()
    assert found == [7]
    assert scope.cancelled_caught


async def test_a_memory_stops_while_it_takes_something_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The install asks which blocks are to go when the stop has been said already."""
    held = HeldThread()
    async with at_work(run=False) as work:
        async with anyio.create_task_group() as others, anyio.create_task_group() as tasks:
            await work.run_in(tasks)
            await work.say("s", "t1", "t2")
            await work.flush()
            carry_out = work.memory.installer.carry_out

            async def carry_out_later(make: Callable[[int], Any]) -> Any:
                def make_later(revision: int) -> Any:
                    held.wait()
                    return make(revision)

                return await carry_out(make_later)

            monkeypatch.setattr(work.memory.installer, "carry_out", carry_out_later)
            await work.store.rewind(Rewind(session="s", to="t1"))
            with anyio.fail_after(60):
                await held.reached.wait()
            tasks.cancel_scope.cancel()
            others.start_soon(held.let_go)
        await work.restart()
        await work.quiet()
        assert work.facts() == ["t1"]
