"""A memory made of a corpus, the way a daemon makes one: store, worker, writer, archive, index."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Literal

import anyio
from at_memory import memory_at_work

from recall.corpus import Corpus, Turn
from turnmark_memory import Memory
from turnmark_memory.embedding.embedder import Embedder
from turnmark_memory.model import Answer, Batch, Nothing
from turnmark_memory.requests import FlushRequest
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_session_store import SessionStore
from turnmark_session_store.model import Speaker, TurnIn
from turnmark_session_store.requests import AppendTurns, OpenSession

View = Literal["turns", "blocks"]
"""`turns`: a memory that holds evidence alone. `blocks`: the builtin writer's blocks as well."""


class KeepsNothing:
    """A writer that finds nothing worth a block: turns are archived and indexed all the same."""

    name = "nothing/1"

    async def write(self, batch: Batch) -> Answer:
        """Answers that there is nothing to keep."""
        del batch
        return Nothing(reason="only the evidence is measured")


@asynccontextmanager
async def memory_of(
    corpus: Corpus, view: View, place: Path, embedder: Embedder | None = None
) -> AsyncGenerator[tuple[Memory, float], None]:
    """Gives a memory of the corpus under `place`, and the seconds that filling it took.

    With an embedder all of it is embedded. What is there already is not written again, so that a
    place can be kept from run to run.
    """
    await anyio.Path(place).mkdir(parents=True, exist_ok=True)
    writer = KeepsNothing() if view == "turns" else BuiltinWriter()
    async with memory_at_work(writer, place=place, embedder=embedder) as (store, memory):
        began = time.perf_counter()
        for session, turns in groupby(corpus.turns, key=lambda turn: turn.session):
            await _say(store, session, list(turns))
        while (done := await memory.flush(FlushRequest())).turns and done.left:
            pass
        if embedder is not None:
            await memory._meaning.wait_until_current()
        yield memory, time.perf_counter() - began


async def _say(store: SessionStore, session: str, turns: list[Turn]) -> None:
    await store.open_session(OpenSession(session=session, agent="bench", project=turns[0].project))
    said = [_turn_in(turn) for turn in turns if turn.text.strip()]
    await store.append(AppendTurns(session=session, turns=said, key=f"{session} once"))


def _turn_in(turn: Turn) -> TurnIn:
    speaker = None if turn.speaker is None else Speaker(id=turn.speaker, name=turn.speaker)
    return TurnIn(
        role=turn.role,
        text=turn.text,
        id=turn.id,
        speaker=speaker,
        time=turn.time.isoformat(),
    )
