"""A person's document as memory reads it: with ids, without doubles, with what they changed marked.

Nothing but ids and notes is added, each at the end of its paragraph; every other byte stays. The
result waits beside the file until it is written (see `bases.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

from turnmark_memory.labels import BLOCK_PATTERN
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_edit import raw_with_id, with_ids
from turnmark_memory.topic_format import parse_text

_WAS_NOTE = re.compile(rf"<!-- was {BLOCK_PATTERN}(?: {BLOCK_PATTERN})* --> ?")


def numbered(topic: Topic, known: Mapping[int, str], fresh: Callable[[Block], str]) -> Topic:
    """Returns the topic with an id at each paragraph: from `known`, by place, else a fresh one."""
    if all(block.id is not None for block in topic.blocks()):
        return topic
    nameless = [
        known.get(place) or fresh(block)
        for place, block in enumerate(topic.blocks())
        if block.id is None
    ]
    names = iter(nameless)
    return with_ids(topic, lambda _: next(names))


def with_known_ids(topic: Topic, known: Mapping[int, str]) -> Topic:
    """Returns the topic with the ids in `known`, by place, at paragraphs that have none."""
    if not known:
        return topic
    parts: list[str] = []
    place = -1
    for part in topic.segments:
        raw = part.raw
        if isinstance(part, Block):
            place += 1
            if place in known and part.id is None:
                raw = raw_with_id(part, known[place])
        parts.append(raw)
    return parse_text("".join(parts))


def with_notes(topic: Topic, renamed: Mapping[int, str], marked: AbstractSet[int]) -> Topic:
    """Returns the topic with other ids at the places in `renamed`, and marks at those in `marked`.

    One read of the document, however many. A place is a block's among the blocks; its id must be
    there. Merged ids of a renamed block are dropped: they are the original's.
    """
    if not renamed and not marked:
        return topic
    parts: list[str] = []
    place = -1
    for part in topic.segments:
        raw = part.raw
        if isinstance(part, Block):
            place += 1
            if place in renamed:
                raw = _renamed(part, raw, renamed[place])
            if place in marked and part.id is not None and part.origin != "person":
                raw = _marked(raw)
        parts.append(raw)
    return parse_text("".join(parts))


def _renamed(block: Block, raw: str, name: str) -> str:
    line = raw.rstrip(" \t\r\n")
    tail = raw[len(line) :]
    line = _WAS_NOTE.sub("", line)
    if line.endswith(f"^{block.id}"):
        return f"{line[: -len(block.id or '')]}{name}{tail}"
    return line.replace(f"<!-- block {block.id} -->", f"<!-- block {name} -->") + tail


def _marked(raw: str) -> str:
    line = raw.rstrip(" \t\r\n")
    words, _, name = line.rpartition("^")
    return f"{words}<!-- person --> ^{name}{raw[len(line) :]}"
