"""A store with a memory beside it in a temporary directory, for benchmarks; nothing to run here."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import anyio

from turnmark_events.bus import Bus
from turnmark_memory import Memory, MemorySettings
from turnmark_memory.embedding.embedder import Embedder
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_memory.writers.writer import Writer
from turnmark_session_store import SessionStore
from turnmark_session_store.model import TurnIn

_NOUNS = [
    "garden",
    "invoice",
    "piano",
    "server",
    "recipe",
    "budget",
    "train",
    "lantern",
    "harbour",
    "violin",
]
_PLACES = ("Porto", "Oslo", "Lima", "Kyoto", "Dublin", "Quito", "Tunis", "Gdansk", "成都")


@asynccontextmanager
async def memory_at_work(
    writer: Writer | None = None,
    *,
    place: Path | None = None,
    trigger_tokens: int = 16_000,
    embedder: Embedder | None = None,
) -> AsyncGenerator[tuple[SessionStore, Memory], None]:
    """Gives an open store and a memory whose worker runs."""
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as made:
        root = place or Path(made)
        store = SessionStore.open(root / "sessions.db", count=words, idle_ms=3_600_000)
        memory = await Memory.open(
            store,
            root / "memory",
            writer or BuiltinWriter(),
            MemorySettings(trigger_tokens=trigger_tokens, core_tokens=2_000, nightly=None),
            count=words,
            counter="words",
            embedder=embedder,
        )
        bus = Bus(replay=store.events_after, last_seq=await store.last_seq())
        store.publish = bus.publish
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(memory.run, bus)
                try:
                    yield store, memory
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            memory.close()
            await store.aclose()


def words(text: str) -> int:
    """Counts words: stable, and no vocabulary to load."""
    return len(text.split())


def turns(seed: str, count: int) -> list[TurnIn]:
    """Returns a conversation of `count` turns, of users and assistants in turn."""
    dice = Random(seed)
    found: list[TurnIn] = []
    for number in range(count):
        noun, place = dice.choice(_NOUNS), dice.choice(_PLACES)
        text = f"My {noun} number {dice.randrange(10**6)} is in {place}, and I like it there."
        role = "user" if number % 2 == 0 else "assistant"
        found.append(TurnIn(role=role, text=text, id=f"{seed}-{number}"))
    return found
