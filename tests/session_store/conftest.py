"""Fixtures of the store's tests: a database where an fsync costs nothing, and what it says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from session_store.stage import Stage, scratch


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory in memory where there is one."""
    with scratch() as made:
        yield made


@pytest.fixture
async def stage(place: Path) -> AsyncIterator[Stage]:
    """An open store and a record of all that it says."""
    async with Stage(place / "sessions.db") as made:
        yield made
