"""Appends: one writer against the disk itself, and many writers against one.

Run: python benchmarks/append.py [--place DIR] [--seconds 2]

The floor is what the disk asks for: write and fdatasync of as many bytes as one commit adds to the
write-ahead log, in a file beside it. Medians over one run; the ratios are what travels to another
machine. The goals: one writer within half a millisecond of the floor, 64 writers at eight times one
writer's rate.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path
from statistics import median

from turnmark_session_store import SessionStore
from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import AppendTurns

_WRITERS = (8, 64, 256)
_WARM = 64
_SAMPLES = 400
_TEXT = "I moved to Porto last week, 我上周搬到了波尔图。 "


class Talk:
    """Appends turns that nobody said before, to one session per writer."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._said = 0

    async def say(self, session: str) -> float:
        """Appends one turn; returns the milliseconds until it was acknowledged."""
        self._said += 1
        turn = TurnIn(role="user", text=f"{_TEXT}{self._said}")
        begun = time.perf_counter()
        await self._store.append(AppendTurns(session=session, turns=[turn]))
        return (time.perf_counter() - begun) * 1_000

    async def say_many(self, writers: int, seconds: float) -> float:
        """Returns the appends per second of `writers` at once."""
        for number in range(writers):
            await self.say(f"{writers}-{number}")
        begun, before = time.perf_counter(), self._said
        ends = begun + seconds

        async def writer(number: int) -> None:
            while time.perf_counter() < ends:
                await self.say(f"{writers}-{number}")

        async with asyncio.TaskGroup() as tasks:
            for number in range(writers):
                tasks.create_task(writer(number))
        return (self._said - before) / (time.perf_counter() - begun)


def floor_ms(place: Path, size: int) -> float:
    """Returns the median milliseconds of one write and fdatasync of `size` bytes."""
    taken: list[float] = []
    file = os.open(place / "floor", os.O_CREAT | os.O_WRONLY, 0o600)
    content = os.urandom(size)
    # Like the log after its first round: the file has its length, only its content is new.
    os.write(file, bytes(size * 64))
    os.fsync(file)
    for number in range(_SAMPLES):
        begun = time.perf_counter()
        os.pwrite(file, content, number % 64 * size)
        os.fdatasync(file)
        taken.append((time.perf_counter() - begun) * 1_000)
    os.close(file)
    return median(taken)


def log_bytes(path: Path) -> int:
    """Returns the length of a database's write-ahead log."""
    return Path(f"{path}-wal").stat().st_size


async def measure(place: Path, seconds: float) -> None:
    """Prints one run's numbers."""
    path = place / "sessions.db"
    store = SessionStore.open(path, count=len, idle_ms=1_800_000)
    talk = Talk(store)
    for _ in range(_WARM):
        await talk.say("warm")
    before = log_bytes(path)
    for _ in range(_WARM):
        await talk.say("warm")
    size = (log_bytes(path) - before) // _WARM
    floor, one = floor_ms(place, size), median([await talk.say("one") for _ in range(_SAMPLES)])
    again = floor_ms(place, size)
    floor = (floor + again) / 2
    print(f"one commit adds {size:,} bytes to the log")
    print(f"write + fdatasync of them    {floor:8.3f} ms")
    print(f"one writer, one append       {one:8.3f} ms   (+{one - floor:.3f} ms)")
    alone = await talk.say_many(1, seconds)
    print(f"   1 writer    {alone:8,.0f} appends/s")
    for writers in _WRITERS:
        rate = await talk.say_many(writers, seconds)
        print(
            f"{writers:4} writers   {rate:8,.0f} appends/s   {rate / alone:5.1f} times one writer"
        )
    await store.aclose()


def main() -> None:
    """Runs the benchmark in a new directory under `--place`."""
    parser = argparse.ArgumentParser(description="appends against the disk")
    parser.add_argument("--place", default=None, help="where to put the database (default: TMPDIR)")
    parser.add_argument("--seconds", type=float, default=2.0, help="seconds per number of writers")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.place) as made:
        asyncio.run(measure(Path(made), asked.seconds))


if __name__ == "__main__":
    main()
