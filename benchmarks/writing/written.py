"""Lets a real memory write a conversation, session by session, and reads back what it wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import anyio.to_thread
import msgspec
from at_memory import memory_at_work

from turnmark_memory import Memory
from turnmark_memory.model import Answer, Batch
from turnmark_memory.requests import FlushRequest
from turnmark_memory.topic_format import parse
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_session_store.model import Speaker, TurnIn
from turnmark_session_store.requests import AppendTurns, OpenSession
from writing.labelled import Turn


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One block of a topic; `cites` are the ids of its turns."""

    id: str
    topic: str
    title: str
    text: str
    cites: frozenset[str]
    superseded: bool


class Timed:
    """The built-in writer, the seconds of CPU that it took, and the batches that it was asked."""

    def __init__(self) -> None:
        self._writer = BuiltinWriter()
        self.name = self._writer.name
        self.seconds = 0.0
        self.turns = 0
        self.batches: list[Batch] = []

    async def write(self, batch: Batch) -> Answer:
        """Answers as the built-in writer does."""
        return await anyio.to_thread.run_sync(self.distil, batch)

    def distil(self, batch: Batch) -> Answer:
        """Does the same, blocking."""
        began = time.thread_time()
        answer = self._writer.distil(batch)
        self.seconds += time.thread_time() - began
        self.turns += len(batch.turns)
        self.batches.append(batch)
        return answer


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What a memory holds of a conversation: after each batch, oldest first; and the batches."""

    states: tuple[tuple[Block, ...], ...]
    batches: tuple[Batch, ...]
    turns: int
    writer_seconds: float
    seconds: float

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What it holds at the end, superseded blocks too."""
        return self.states[-1]


async def write(
    turns: Sequence[Turn], place: Path, writer: Timed | None = None, *, batches: int = 1
) -> Written:
    """Returns what the built-in writer makes of `turns`; sessions fall silent one by one.

    With more `batches` each session also falls silent in between, after equal parts of its turns.
    """
    writer = writer or Timed()
    states: list[tuple[Block, ...]] = []
    began = time.perf_counter()
    async with memory_at_work(writer, place=place) as (store, memory):
        for session, said in groupby(turns, key=lambda turn: turn.session):
            part = list(said)
            first = part[0]
            opened = OpenSession(
                session=session, agent=first.agent, project=first.project, title=first.title
            )
            await store.open_session(opened)
            for cut in cuts(part, batches):
                turns_in = [turn_in(one) for one in cut]
                await store.append(AppendTurns(session=session, turns=turns_in))
                await _flush(memory)
                states.append(tuple(blocks_of(place / "memory")))
    return Written(
        states=tuple(states),
        batches=tuple(writer.batches),
        turns=writer.turns,
        writer_seconds=writer.seconds,
        seconds=time.perf_counter() - began,
    )


def cuts(turns: Sequence[Turn], parts: int) -> Iterator[Sequence[Turn]]:
    """Yields `turns` in so many parts of equal length, the first ones longer by a turn at most."""
    length, longer = divmod(len(turns), parts)
    start = 0
    for part in range(parts):
        end = start + length + (part < longer)
        if end > start:
            yield turns[start:end]
        start = end


async def _flush(memory: Memory) -> None:
    """Writes all that is owed.

    Raises:
        RuntimeError: if the writer fails; nothing that it wrote before would mean anything.
    """
    while (done := await memory.flush(FlushRequest())).left:
        if done.failures or not done.turns:
            raise RuntimeError(f"the writer failed: {done.failures}")


def turn_in(turn: Turn) -> TurnIn:
    """Returns a turn as an agent gives it."""
    who = Speaker(id=turn.speaker.id, name=turn.speaker.name) if turn.speaker else None
    return TurnIn(role=turn.role, text=turn.text, id=turn.id, speaker=who, time=turn.time)


def blocks_of(workspace: Path) -> Iterator[Block]:
    """Yields the blocks that a workspace holds, the core page's aside."""
    turn_of = dict(_labels(workspace))
    for file in sorted((workspace / "topics").rglob("*.md")):
        name = file.relative_to(workspace / "topics").with_suffix("").as_posix()
        topic = parse(file.read_bytes())
        for block in topic.blocks() if name != "core" else ():
            yield Block(
                id=block.id or "",
                topic=name,
                title=topic.title or "",
                text=block.text,
                cites=frozenset(turn_of[label] for label in block.cites),
                superseded=block.superseded_by is not None,
            )


def _labels(workspace: Path) -> Iterator[tuple[str, str]]:
    """Yields the label and the turn's id of each archived turn."""
    for file in sorted((workspace / "sources").rglob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            source = msgspec.json.decode(line)
            if "label" in source:
                yield source["label"], source["id"]
