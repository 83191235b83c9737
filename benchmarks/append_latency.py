"""How long an append takes: with a batch under way, without one, and next to the disk alone.

Run: python benchmarks/append_latency.py [--appends 400]

Law 9: nothing waits in the agent's turn. Two places on one disk, one at rest and one whose writer
thinks for a minute about a batch of the very session that is appended to; the appends of both and a
plain write with fdatasync take turns, so that all meet the same disk. Read the ratios.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import structlog

from turnmark_events.bus import Bus
from turnmark_memory import Memory, MemorySettings
from turnmark_memory.model import Answer, Batch, Nothing
from turnmark_memory.requests import FlushRequest
from turnmark_session_store import SessionStore
from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import AppendTurns

_TEXT = "I moved from Oslo to Porto last month. 我上个月从奥斯陆搬到了波尔图。"
_THINKING_SECONDS = 60.0


class Thinker:
    """A writer that takes a minute for anything."""

    name = "thinker/1"

    def __init__(self) -> None:
        self.asked = anyio.Event()

    async def write(self, batch: Batch) -> Answer:
        """Sleeps, and finds nothing worth keeping."""
        del batch
        self.asked.set()
        await anyio.sleep(_THINKING_SECONDS)
        return Nothing(reason="slept")


class Place:
    """A store with a memory at work beside it."""

    def __init__(self, store: SessionStore, memory: Memory) -> None:
        self.store = store
        self.memory = memory

    async def append(self, number: int) -> float:
        """Appends one turn; returns the seconds until it was acknowledged."""
        turns = [TurnIn(role="user", text=f"{_TEXT} {number}")]
        started = time.perf_counter()
        await self.store.append(AppendTurns(session="s", turns=turns))
        return time.perf_counter() - started


@asynccontextmanager
async def opened(root: Path, writer: Thinker) -> AsyncGenerator[Place, None]:
    """Opens a place and runs its worker."""
    await anyio.Path(root).mkdir()
    store = SessionStore.open(root / "sessions.db", count=len, idle_ms=1_800_000)
    bus = Bus(replay=store.events_after, last_seq=await store.last_seq())
    store.publish = bus.publish
    settings = MemorySettings(trigger_tokens=10**9, core_tokens=2_000, nightly=None)
    memory = await Memory.open(
        store, root / "memory", writer, settings, count=len, counter="characters"
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(memory.run, bus)
        yield Place(store, memory)
        tasks.cancel_scope.cancel()
    memory.close()
    await store.aclose()


def write_alone(file: int, number: int) -> float:
    """Writes as many bytes and syncs them; returns the seconds."""
    data = f"{_TEXT} {number}\n".encode()
    started = time.perf_counter()
    os.write(file, data)
    os.fdatasync(file)
    return time.perf_counter() - started


async def measure(root: Path, appends: int) -> None:
    """Takes turns, and prints medians and ratios."""
    thinker = Thinker()
    async with opened(root / "quiet", Thinker()) as quiet, opened(root / "busy", thinker) as busy:
        file = os.open(root / "alone", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number in range(20):
            await quiet.append(-number)
            await busy.append(-number)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(busy.memory.flush, FlushRequest())
            await thinker.asked.wait()
            taken: dict[str, list[float]] = {"at rest": [], "batch under way": [], "disk": []}
            for number in range(appends):
                taken["at rest"].append(await quiet.append(number))
                taken["batch under way"].append(await busy.append(number))
                taken["disk"].append(write_alone(file, number))
            under_way = busy.memory.statistics()["batches_running"]
            tasks.cancel_scope.cancel()
        os.close(file)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print(f"{appends} appends each, one after the other; {under_way} batch still under way")
    for name, median in medians.items():
        late = sorted(taken[name])[int(0.95 * appends)]
        print(f"{name:>16}: median {1e3 * median:.3f} ms, 95 % within {1e3 * late:.3f} ms")
    ratio = medians["batch under way"] / medians["at rest"]
    print(f"with a batch under way / at rest: {ratio:.2f} (target: 1)")
    print(f"append at rest / write and fdatasync alone: {medians['at rest'] / medians['disk']:.2f}")


def main() -> None:
    """Runs it in a throw-away place."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--appends", type=int, default=400)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with tempfile.TemporaryDirectory(prefix="tm-") as root:
        anyio.run(measure, Path(root), parser.parse_args().appends)


if __name__ == "__main__":
    main()
