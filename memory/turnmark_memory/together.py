"""Two things awaited at once, where the answer needs both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


async def both(
    first: Callable[[], Awaitable[A]], second: Callable[[], Awaitable[B]]
) -> tuple[A, B]:
    """Returns what both give, when the later one has ended. Can be cancelled, and they with it.

    If one fails the other is cancelled, and the error comes as it is, not as a group.
    """
    gave_first: list[A] = []
    gave_second: list[B] = []
    failed: list[Exception] = []
    async with anyio.create_task_group() as tasks:

        async def tried(work: Callable[[], Awaitable[T]], gave: list[T]) -> None:
            try:
                gave.append(await work())
            except Exception as error:  # noqa: BLE001  it is raised below, outside of the group
                failed.append(error)
                tasks.cancel_scope.cancel()

        tasks.start_soon(tried, first, gave_first)
        tasks.start_soon(tried, second, gave_second)
    if failed:
        raise failed[0]
    return gave_first[0], gave_second[0]
