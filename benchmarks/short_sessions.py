"""Many short sessions that fall due together: how long, and in how many installs they are written.

Run: python benchmarks/short_sessions.py [--sessions 1000] [--turns 2]

Uses the built-in writer, a real store and a real workspace in a temporary directory.
"""

from __future__ import annotations

import argparse
import time
from functools import partial

import anyio
from at_memory import memory_at_work, turns

from turnmark_memory.requests import FlushRequest
from turnmark_session_store.requests import AppendTurns


async def measure(sessions: int, count: int) -> None:
    """Prints what one flush of all of them costs."""
    async with memory_at_work() as (store, memory):
        for number in range(sessions):
            said = turns(f"s{number}", count)
            await store.append(AppendTurns(session=f"s{number}", turns=said))
        began = time.perf_counter()
        answer = await memory.flush(FlushRequest())
        seconds = time.perf_counter() - began
        print(
            f"{sessions} sessions, {answer.turns} turns: {answer.batches} batches,"
            f" {answer.blocks} blocks, {memory.installer.installs} installs in {seconds:.1f} s,"
            f" {seconds / sessions * 1e3:.1f} ms a session; left {answer.left}"
        )


def main() -> None:
    """Reads the arguments and measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1_000)
    parser.add_argument("--turns", type=int, default=2)
    asked = parser.parse_args()
    anyio.run(partial(measure, asked.sessions, asked.turns))


if __name__ == "__main__":
    main()
