"""Law 13: only an explicit act takes back, and only a client's act brings back."""

from __future__ import annotations

import pytest

from session_store.stage import Stage, scratch, turns

pytestmark = pytest.mark.anyio


async def test_no_shape_of_the_tree_retires() -> None:
    """Forks, retries, syncs of shorter and of other arrays, archives, closed sessions."""
    with scratch() as place:
        async with Stage(place / "sessions.db") as stage:
            await stage.append("a", "b", "c")
            await stage.append("b2", after="a")
            await stage.sync(*turns("a"))
            await stage.sync(*turns("a", "x"))
            await stage.sync(*turns("y"))
            await stage.checkout("a")
            await stage.archive()
            assert stage.retired() == set()


async def test_reading_again_brings_nothing_back() -> None:
    """An import of what was taken back leaves it taken back, however often."""
    with scratch() as place:
        async with Stage(place / "sessions.db") as stage:
            await stage.append("a", "b", "c")
            lines = await stage.export()
            await stage.rewind("a")
            for _ in range(2):
                await stage.bring(lines)
                assert stage.retired() == {"b", "c"}
                assert await stage.tips() == ["a"]
            await stage.sync(*turns("a", "b"))
            assert stage.retired() == {"c"}


async def test_forgotten_turns_stay_forgotten() -> None:
    """Appended, synced or imported again: no text comes back."""
    with scratch() as place:
        async with Stage(place / "sessions.db") as stage:
            await stage.append("a", "b")
            lines = await stage.export()
            await stage.delete()
            await stage.append("a")
            await stage.sync(*turns("a", "b"))
            await stage.bring(lines)
            assert stage.sql("SELECT count(*) FROM turn_words") == [(0,)]
            assert {turn.state for turn in await stage.line()} == {"forgotten"}
