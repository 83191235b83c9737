"""Once a day the index is brought into one piece."""

from __future__ import annotations

from datetime import date

import pytest

from memory.at_work import NOTHING, AtWork, at_work, user
from turnmark_events.errors import Unavailable
from turnmark_memory.index import Index

DAY = date(2026, 8, 9)


async def say_bit_by_bit(work: AtWork) -> None:
    """Says a few things, each archived by itself."""
    work.scribe.answer = lambda _batch: NOTHING
    for number in range(6):
        await work.append("s1", [user(f"apples number {number}, 苹果")])
        await work.flush()


@pytest.mark.anyio
@pytest.mark.parametrize("turn_of_day", ["_begin_day", "_run_night"])
async def test_the_day_merges_what_the_index_was_written_in(
    turn_of_day: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a night and without one."""
    compacted: list[Index] = []

    def note(index: Index) -> None:
        compacted.append(index)

    monkeypatch.setattr(Index, "compact", note)
    async with at_work() as work:
        await say_bit_by_bit(work)
        await getattr(work.memory, turn_of_day)(DAY)
        assert compacted == [work.memory._shelf.index]


@pytest.mark.anyio
async def test_a_disk_that_fails_stops_no_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again on the next one; the index works as it is."""

    def full(_index: Index) -> None:
        raise Unavailable("the disk is full; free some space")

    monkeypatch.setattr(Index, "compact", full)
    async with at_work() as work:
        await say_bit_by_bit(work)
        await work.memory._begin_day(DAY)
