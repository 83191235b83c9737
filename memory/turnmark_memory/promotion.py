"""Promotion: which blocks stand on the automatic part of the core page, and in which order.

A block's standing is the sum of what speaks for it now, each part fading with the same half-life:
its newest source, and each day on which it was used. Independent sources multiply it: a fact that
came up in several sessions is worth more than one that was said once. What is about a person or a
project counts as if it were one half-life newer. As all of it fades alike, the order stays as it is
while nothing happens, however many nights pass. Equal input gives equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from math import log2
from typing import Final

import msgspec

from turnmark_memory.apply import Applied, Sources
from turnmark_memory.core_page import arrange
from turnmark_memory.topic_format import render
from turnmark_memory.topic_path import CORE
from turnmark_memory.uses import decayed

SOURCE_WEIGHT: Final = 1.0
"""What a source of today weighs."""

USE_WEIGHT: Final = 0.5
"""What a day's single use weighs beside it: two uses are as good as being said again."""

KIND_WEIGHT: Final = 2.0
"""For people and projects: one half-life. Every agent needs them, a subject only some."""

_KINDS: Final = ("people/", "projects/")

# Standings that differ by less than this share are the same: sums of floats must not decide.
_DIGITS: Final = 9


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks for a block: `latest` is the day of its newest source, `sessions` their number.

    `latest` is None for a block without sources; `uses` is `Uses.weights`.
    """

    topic: str
    block: str
    latest: date | None
    sessions: int


def weight_of(one: Standing, uses: float, on: date) -> float:
    """Returns how much a block's standing weighs `on` a day."""
    recency = 0.0 if one.latest is None else SOURCE_WEIGHT * decayed(one.latest, on)
    independent = 1 + log2(max(1, one.sessions))
    kind = KIND_WEIGHT if one.topic.startswith(_KINDS) else 1.0
    return kind * independent * (recency + USE_WEIGHT * uses)


def ordered(
    standings: Iterable[Standing], uses: Mapping[str, float], on: date, limit: int
) -> tuple[tuple[str, str], ...]:
    """Returns at most `limit` (topic, block), the weightiest first; ties by topic and id."""
    weighed = [(weight_of(one, uses.get(one.block, 0.0), on), one) for one in standings]
    weighed.sort(key=lambda pair: (-_rounded(pair[0]), pair[1].topic, pair[1].block))
    return tuple((one.topic, one.block) for _, one in weighed[:limit])


def _rounded(weight: float) -> float:
    return float(f"{weight:.{_DIGITS}e}")


def arrangement(sources: Sources, embeds: Sequence[tuple[str, str]]) -> Applied:
    """Returns what puts `embeds` below the core's automatic line; nothing where they stand so.

    Raises:
        Refused: if the core topic's file can't be used.
    """
    core = sources.load(CORE)
    if core is None and not embeds:
        return Applied(topics={}, blocks=(), changes=())
    arranged = arrange(core, embeds)
    same = core is not None and render(arranged) == render(core)
    return Applied(topics={} if same else {CORE: arranged}, blocks=(), changes=())
