"""What the night looks at: every topic once, through the index, and the topics' blocks for writers.

Blocks on disk and costs what the memory is large; it runs at night, beside everything else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.abouts import plain_about
from turnmark_memory.grounds import grounds_of
from turnmark_memory.index_schema import BlockDoc, TopicRow
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
    blocks: dict[str, tuple[BlockDoc, ...]]
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
    blocks: dict[str, tuple[BlockDoc, ...]] = {}
    linking: set[str] = set()
    for row in rows:
        docs = index.blocks_of(row.topic)
        for doc in docs:
            linking.update(
                t for name in (doc.block, *doc.aliases) for t in index.topics_linking(name)
            )
        if row.topic != CORE:
            blocks[row.topic] = tuple(doc for doc in docs if doc.superseded_by is None)
    return Survey(topics=rows, blocks=blocks, linking=tuple(sorted(linking)))


def standings(shelf: Shelf, found: Survey) -> Iterator[Standing]:
    """Yields what speaks for each live block."""
    for topic, blocks in found.blocks.items():
        for doc in blocks:
            grounds = grounds_of(shelf.index, doc.cites)
            yield Standing(
                topic=topic,
                block=doc.block,
                latest=None if grounds.latest is None else grounds.latest.date(),
                sessions=len(grounds.sessions),
            )


def same_groups(shelf: Shelf, found: Survey) -> list[list[Resting]]:
    """Returns the groups of blocks of writers that say exactly the same, by topic."""
    groups: list[list[Resting]] = []
    for topic, blocks in found.blocks.items():
        times: defaultdict[str, int] = defaultdict(int)
        for doc in blocks:
            times[normal(doc.text)] += 1
        if any(count > 1 for count in times.values()):
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
