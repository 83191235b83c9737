"""Calls to the event loop from a worker thread, in the middle of a computation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.from_thread

T = TypeVar("T")


def call_loop(call: Callable[[], Awaitable[T]]) -> T:
    """Runs `call` on the event loop and returns what it gives; blocks the worker thread.

    It is carried out even if the task that waits for the thread was cancelled, so it must be short:
    the thread is waited for in any case. Left to the cancelled scope, anyio's limits and locks wait
    for a cancellation that was delivered before the call began and never comes again: the loop
    spins, and a stop has no end.
    """
    given: list[T] = []

    async def shielded() -> None:
        with anyio.CancelScope(shield=True):
            given.append(await call())

    anyio.from_thread.run(shielded)
    return given[0]
