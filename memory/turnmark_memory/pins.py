"""Embeds of the core topic: pinning above the automatic line, and keeping links alive."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from turnmark_memory.topic import Embed, Topic
from turnmark_memory.topic_edit import body_end, cut_segment, insert
from turnmark_memory.topic_lines import EMBED
from turnmark_memory.topic_splice import spliced

_GONE: Final = -1


def embed_line(topic: str, block: str) -> str:
    """Returns the line that shows `block` of `topic`."""
    return f"![[{topic}#^{block}]]"


def embedded_topic(line: bytes | None) -> str | None:
    """Returns the topic that an embed's line names, None if the line is no embed."""
    found = EMBED.fullmatch("" if line is None else line.decode("utf-8", "replace"))
    return found[1].strip().removesuffix(".md") if found else None


def is_pinned(core: Topic, block: str) -> bool:
    """Tells whether the person's part embeds `block`."""
    return _place(core, block, above=True) != _GONE


def pin(core: Topic, topic: str, block: str) -> Topic:
    """Returns the core topic with `block` at the end of the person's part, and there alone."""
    if is_pinned(core, block):
        return core
    below = _place(core, block, above=False)
    core = core if below == _GONE else cut_segment(core, below)
    end = body_end(core)
    line = embed_line(topic, block)
    if end and isinstance(core.segments[end - 1], Embed):
        gap = "" if core.segments[end - 1].raw.endswith("\n") else core.newline
        return spliced(core, end, end, f"{gap}{line}{core.newline}")
    return insert(core, end, line)


def unpin(core: Topic, block: str) -> Topic:
    """Returns the core topic without embeds of `block` in the person's part."""
    while (place := _place(core, block, above=True)) != _GONE:
        core = cut_segment(core, place)
    return core


def without_embeds(core: Topic, blocks: Collection[str]) -> Topic:
    """Returns the core topic without embeds of `blocks`, the person's and those arranged."""
    for block in blocks:
        core = unpin(core, block)
        while (place := _place(core, block, above=False)) != _GONE:
            core = cut_segment(core, place)
    return core


def retarget(core: Topic, block: str, topic: str) -> Topic:
    """Returns the core topic with every embed of `block` pointing into `topic`."""
    for index, part in enumerate(core.segments):
        found = EMBED.fullmatch(part.raw.rstrip("\r\n")) if isinstance(part, Embed) else None
        if found and found[2] == block:
            raw = part.raw[: found.start(1)] + topic + part.raw[found.end(1) :]
            core = spliced(core, index, index + 1, raw)
    return core


def _place(core: Topic, block: str, *, above: bool) -> int:
    line = core.line_index()
    border = len(core.segments) if line is None else line
    indices = range(border) if above else range(border, len(core.segments))
    for index in indices:
        part = core.segments[index]
        if isinstance(part, Embed) and part.block == block:
            return index
    return _GONE
