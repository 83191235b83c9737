"""Says how often a writer was shown what a turn replaces. Pure: no memory, no files."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnmark_memory.model import Batch
from writing.labelled import Turn


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Of the turns that replace what an earlier batch kept: for how many it was shown."""

    found: int = 0
    wanted: int = 0

    def __add__(self, other: Shown) -> Shown:
        return Shown(found=self.found + other.found, wanted=self.wanted + other.wanted)

    def line(self) -> str:
        """Returns the measure as a sentence."""
        share = f" ({self.found / self.wanted:.2f})" if self.wanted else ""
        return (
            f"shown what a turn replaces, if an earlier batch had it:"
            f" {self.found} of {self.wanted}{share}"
        )


def shown_in(turns: Sequence[Turn], batches: Sequence[Batch], kept: frozenset[str]) -> Shown:
    """Returns the measure over one conversation; `kept` are the turns that any block cited."""
    said_by = {one.id: turn.id for turn in turns for one in turn.keep}
    label_of = {turn.id: turn.label for batch in batches for turn in batch.turns}
    asked_in = {turn.id: batch for batch in batches for turn in batch.turns}
    count = Shown()
    for turn in turns:
        for old in (said_by[one.supersedes] for one in turn.keep if one.supersedes):
            batch = asked_in[turn.id]
            if asked_in[old] is not batch and old in kept:
                cited = {label for block in batch.blocks for label in block.cites}
                count += Shown(found=int(label_of[old] in cited), wanted=1)
    return count
