"""Two things awaited at once."""

from __future__ import annotations

import anyio
import pytest

from turnmark_events.errors import Unavailable
from turnmark_memory.together import both

GIVE_UP_SECONDS = 60


@pytest.mark.anyio
async def test_gives_what_both_give_and_lets_them_wait_for_each_other() -> None:
    """One after the other they would wait for ever."""
    met, answered = anyio.Event(), anyio.Event()

    async def first() -> int:
        met.set()
        await answered.wait()
        return 1

    async def second() -> str:
        await met.wait()
        answered.set()
        return "two"

    with anyio.fail_after(GIVE_UP_SECONDS):
        assert await both(first, second) == (1, "two")


@pytest.mark.anyio
@pytest.mark.parametrize("fails_first", [True, False])
async def test_an_error_comes_as_it_is_and_ends_the_other(*, fails_first: bool) -> None:
    """Whoever asks expects our errors, not a group of them."""
    ended: list[str] = []

    async def waits() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("waits")

    async def fails() -> None:
        await anyio.lowlevel.checkpoint()
        raise Unavailable("the disk is full; free some space")

    with anyio.fail_after(GIVE_UP_SECONDS), pytest.raises(Unavailable, match="free some space"):
        await both(*((fails, waits) if fails_first else (waits, fails)))
    assert ended == ["waits"]


@pytest.mark.anyio
async def test_a_cancellation_reaches_both() -> None:
    """Nothing goes on for a reader who went away."""
    begun, ended = anyio.Event(), list[str]()

    async def waits() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("waits")

    with anyio.fail_after(GIVE_UP_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(both, waits, waits)
            await begun.wait()
            tasks.cancel_scope.cancel()
    assert ended == ["waits", "waits"]
