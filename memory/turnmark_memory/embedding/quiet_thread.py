"""A thread for work that can wait: everything else on the machine goes first."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")

_NICE = 10
"""A tenth of what others get where the processor is fought for, all of it where it is not."""


class QuietThread:
    """Runs one thing at a time, with a low priority where threads have one (Linux)."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self._executor = executor

    async def run(self, work: Callable[[], T]) -> T:
        """Returns what `work` returns. Cancelled, it leaves the work to end by itself."""
        return await asyncio.wrap_future(self._executor.submit(work))


@asynccontextmanager
async def quiet_thread(name: str) -> AsyncGenerator[QuietThread, None]:
    """Gives a thread of its own; at the end what runs in it is waited for, not cut short."""
    executor = ThreadPoolExecutor(1, thread_name_prefix=name, initializer=_step_back)
    try:
        yield QuietThread(executor)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: executor.shutdown(cancel_futures=True))


def _step_back() -> None:
    if sys.platform != "linux":
        return  # elsewhere a priority belongs to the whole process
    with suppress(OSError):  # where it is forbidden the work is done all the same
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
