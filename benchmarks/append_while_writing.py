"""Appends beside a batch whose writer thinks for a minute: are they acknowledged as fast?

Run: python benchmarks/append_while_writing.py [--appends 2000]

Prints the median and the 99th percentile of an append's time with the worker at rest and with a
batch of the same conversation under way, and their ratio (law 9).
"""

from __future__ import annotations

import argparse
import statistics
import time
from functools import partial

import anyio
from at_memory import memory_at_work, turns

from turnmark_memory.model import Answer, Batch, Nothing
from turnmark_memory.planning import Look
from turnmark_session_store import SessionStore
from turnmark_session_store.requests import AppendTurns


class Sleeper:
    """A writer that thinks for a minute."""

    name = "sleeper/1"

    def __init__(self) -> None:
        self.began = anyio.Event()

    async def write(self, batch: Batch) -> Answer:
        """Sleeps, and keeps nothing."""
        self.began.set()
        await anyio.sleep(60)
        return Nothing(reason=f"{len(batch.turns)} turns slept through")


async def timed(store: SessionStore, name: str, appends: int) -> list[float]:
    """Returns the milliseconds of each of `appends` appends, one after the other."""
    found: list[float] = []
    for number in range(appends):
        said = turns(f"{name}-{number}", 1)
        began = time.perf_counter()
        await store.append(AppendTurns(session="s", turns=said))
        found.append((time.perf_counter() - began) * 1e3)
    return found


async def measure(appends: int) -> None:
    """Prints both distributions and their ratio."""
    sleeper = Sleeper()
    async with memory_at_work(sleeper) as (store, memory):
        await timed(store, "warm", 200)
        rest = await timed(store, "rest", appends)
        memory.worker.flush_later(Look(moved=None, whole=None, at_once=True))
        with anyio.fail_after(30):
            await sleeper.began.wait()
        beside = await timed(store, "beside", appends)
        for name, values in (("at rest", rest), ("beside a batch", beside)):
            cuts = statistics.quantiles(values, n=100)
            print(f"{name}: median {cuts[49]:.2f} ms, 99 % {cuts[98]:.2f} ms")
        print(f"ratio of medians: {statistics.median(beside) / statistics.median(rest):.2f}")


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--appends", type=int, default=2_000)
    anyio.run(partial(measure, parser.parse_args().appends))


if __name__ == "__main__":
    main()
