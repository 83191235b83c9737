"""The list of topics, paged by name."""

from __future__ import annotations

import msgspec

from turnmark_events.errors import Refused
from turnmark_memory.index import Index
from turnmark_memory.requests import TopicsRequest

_AFTER = "after:"


class TopicSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One topic: what it is about, how many blocks it has, its size in tokens."""

    topic: str
    about: str
    blocks: int
    tokens: int
    updated_at: str | None


class TopicList(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`memory.topics`' answer."""

    topics: list[TopicSummary]
    next: str | None = None


def list_topics(index: Index, asked: TopicsRequest) -> TopicList:
    """Returns topics in the order of their names, after the one that `cursor` names.

    Raises:
        Refused: if `cursor` is not one that was given.
    """
    cursor = _AFTER if asked.cursor is None else asked.cursor
    if not cursor.startswith(_AFTER):
        raise Refused("cursor is not one that this daemon gave; begin again without it")
    rows = index.topics(after=cursor.removeprefix(_AFTER), limit=asked.limit + 1)
    page = rows[: asked.limit]
    return TopicList(
        topics=[
            TopicSummary(
                topic=row.topic,
                about=row.about,
                blocks=row.blocks,
                tokens=row.tokens,
                updated_at=row.updated_at.isoformat() if row.updated_at else None,
            )
            for row in page
        ],
        next=f"{_AFTER}{page[-1].topic}" if len(rows) > asked.limit else None,
    )
