"""What the night looks at: every topic once, through the index, and the topics' blocks for writers.

Blocks on disk and costs what the memory is large; it runs at night, beside everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.abouts import plain_about
from turnmark_memory.grounds import grounds_of
from turnmark_memory.index import LiveBlock
from turnmark_memory.index_rows import moment
from turnmark_memory.index_schema import TopicRow
from turnmark_memory.model import ShownBlock
from turnmark_memory.night_pass import About
from turnmark_memory.promotion import Standing
from turnmark_memory.sameness import Resting, normal, same_words
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic import Block, block_hash
from turnmark_memory.topic_path import CORE

log = structlog.get_logger(__name__)


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The memory as the index shows it: its topics, and the live blocks of each but the core."""

    topics: tuple[TopicRow, ...]
    blocks: dict[str, tuple[LiveBlock, ...]]
    linking: tuple[str, ...]

    @property
    def size(self) -> int:
        """The number of live blocks."""
        return sum(map(len, self.blocks.values()))

    def missing_abouts(self) -> tuple[About, ...]:
        """Returns what topics that say nothing of what they are about could say."""
        return tuple(
            About(topic=row.topic, about=plain_about(row.topic), replaces=None)
            for row in self.topics
            if not row.about and row.topic != CORE
        )


def survey(shelf: Shelf) -> Survey:
    """Returns what there is."""
    index = shelf.index
    rows = tuple(index.topics())
    blocks: dict[str, list[LiveBlock]] = {row.topic: [] for row in rows if row.topic != CORE}
    for block in index.live_blocks():
        if block.topic in blocks:
            blocks[block.topic].append(block)
    return Survey(
        topics=rows,
        blocks={topic: tuple(found) for topic, found in blocks.items()},
        linking=tuple(index.linking_topics()),
    )


def standings(found: Survey) -> Iterator[Standing]:
    """Yields what speaks for each live block."""
    for topic, blocks in found.blocks.items():
        for one in blocks:
            latest = None if one.learnt_us is None else moment(one.learnt_us).date()
            yield Standing(topic=topic, block=one.block, latest=latest, sessions=one.sessions)


def same_groups(shelf: Shelf, found: Survey) -> list[list[Resting]]:
    """Returns the groups of blocks of writers that say exactly the same, by topic."""
    groups: list[list[Resting]] = []
    for topic, blocks in found.blocks.items():
        if len({normal(one.text) for one in blocks}) < len(blocks):
            groups += same_words(resting(shelf, topic))
    return groups


def resting(shelf: Shelf, topic: str) -> list[Resting]:
    """Returns a topic's live blocks of writers, in its order; none of one that can't be read."""
    try:
        found = shelf.load(topic)
    except TurnmarkError as error:
        log.warning("topic_unreadable", topic=topic, reason=error.message)
        return []
    return [
        Resting(shown=_shown(topic, block, block.id), grounds=grounds_of(shelf.index, block.cites))
        for block in _writers(() if found is None else found.blocks())
        if block.id is not None
    ]


def _writers(blocks: Iterable[Block]) -> Iterator[Block]:
    return (one for one in blocks if one.origin == "writer" and one.superseded_by is None)


def _shown(topic: str, block: Block, name: str) -> ShownBlock:
    return ShownBlock(
        block=name,
        topic=topic,
        heading=block.section,
        text=block.text,
        cites=block.cites,
        hash=block_hash(block),
    )


def saved_by_person(shelf: Shelf, topics: Iterable[str]) -> frozenset[str]:
    """Returns those of `topics` that a person has saved lately."""
    return frozenset(
        topic for topic in topics if any(base.kind == "edit" for base in shelf.bases.recent(topic))
    )
