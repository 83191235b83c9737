"""How many turns a minute the built-in writer writes on one core."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import cycle, islice

import msgspec

from turnmark_memory.labels import label_of
from turnmark_memory.model import Batch, Evidence
from turnmark_memory.writers.builtin import BuiltinWriter
from writing.labelled import Turn

TURNS = 10_000
_IN_A_BATCH = 100


class Speed(msgspec.Struct, frozen=True, kw_only=True):
    """The writer alone, without archive and install; `first_ms` is its first batch's."""

    turns: int
    turns_a_minute: float
    first_ms: float

    def line(self) -> str:
        """Returns the measure as a sentence."""
        return (
            f"the writer alone: {self.turns_a_minute:,.0f} turns a minute of one core"
            f" ({self.turns:,} turns, {_IN_A_BATCH} a batch; the first took {self.first_ms:.0f} ms)"
        )


def speed_of(turns: Sequence[Turn]) -> Speed:
    """Returns the speed over the corpus, said over and over until there are enough turns."""
    writer = BuiltinWriter()
    spent: list[float] = []
    for batch in _batches(turns):
        began = time.thread_time()
        writer.distil(batch)
        spent.append(time.thread_time() - began)
    return Speed(turns=TURNS, turns_a_minute=TURNS / sum(spent) * 60, first_ms=spent[0] * 1_000)


def _batches(turns: Sequence[Turn]) -> Iterator[Batch]:
    said = [_evidence(turn, key) for key, turn in enumerate(islice(cycle(turns), TURNS))]
    for start in range(0, TURNS, _IN_A_BATCH):
        yield Batch(turns=tuple(said[start : start + _IN_A_BATCH]), blocks=(), topics=())


def _evidence(turn: Turn, key: int) -> Evidence:
    return Evidence(
        key=key,
        namespace="bench",
        id=f"{turn.id}-{key}",
        label=label_of("bench", f"{turn.id}-{key}"),
        session=turn.session,
        agent=turn.agent,
        project=turn.project,
        role=turn.role,
        speaker_id=turn.speaker.id if turn.speaker else None,
        speaker_name=turn.speaker.name if turn.speaker else None,
        time=datetime.fromisoformat(turn.time),
        text=turn.text,
        tokens=len(turn.text.split()),
    )
