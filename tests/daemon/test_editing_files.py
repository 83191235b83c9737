"""People who edit files while a real daemon runs, and while it does not."""

from __future__ import annotations

import anyio
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from memory.test_intake import with_paragraph, without
from turnmark.client import Memory

pytestmark = pytest.mark.anyio

FACTS = "topics/subjects/facts.md"


async def found(memory: Memory, query: str) -> list[str]:
    answer = await memory.recall(query, kinds=["block"])
    return [hit["text"] for hit in answer]


async def write(memory: Memory, place: DaemonPlace, words: str, part: str) -> str:
    """Says something, and returns the file that it went into: that with this part of the words."""
    await memory.append("s", role="user", text=words)
    await memory.flush()
    files = [
        path.relative_to(place.workspace).as_posix()
        for path in (place.workspace / "topics").rglob("*.md")
        if part in path.read_text(encoding="utf-8")
    ]
    return files[0]


async def test_an_edit_is_found_unasked_and_one_made_while_down_at_the_start() -> None:
    """A paragraph, then a removal while the daemon is down; its turns are owed as removed."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with place.connect() as memory:
            name = await write(memory, place, "I keep two bees in the garden.", "two bees")
            file = place.workspace / name
            async with memory.subscribe(types=["CoreRebuilt"]) as events:
                text = file.read_text(encoding="utf-8")
                file.write_text(with_paragraph(text, "The cellar key hangs in the shed."))
                with anyio.fail_after(60):
                    async for _ in events:
                        if await found(memory, "cellar key"):
                            break
        place.stop()
        text = file.read_text(encoding="utf-8")
        assert "The cellar key hangs in the shed.\n" in text
        line = next(one for one in text.splitlines() if "bees" in one)
        file.write_text(without(text, line[:10]))
        place.start()
        async with place.connect() as memory:
            assert await found(memory, "bees garden") == []
            assert await found(memory, "cellar key") == ["The cellar key hangs in the shed."]
            (row,) = (await memory.owed())["tips"]
            assert (row["state"], row["n"]) == ("removed", 1)
        place.stop()
        taken = place.logged("edit_taken_in")
        assert len(taken) == 2, taken
