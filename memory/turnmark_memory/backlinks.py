"""Links to blocks that went elsewhere: they follow, in whatever topic they stand.

A block has one id in the whole workspace, so a link that names it, `[[people/dana#^b-…]]`,
`![[…]]` or `[text](../people/dana.md#^b-…)`, is put right whatever path it was written with. Of a
merge's blocks one is left, and links to the others name that one from then on. A block that moves
takes its own relative links along. Words are never touched, nor anything inside a fence; a link to
a whole topic needs nothing, since no edit renames one.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from turnmark_memory.block_change import BlockChange, change_of
from turnmark_memory.labels import BLOCK_PATTERN
from turnmark_memory.pins import embedded_topic
from turnmark_memory.topic import Block, Embed, Raw, Segment, Topic
from turnmark_memory.topic_format import parse, parse_text
from turnmark_memory.topic_path import topic_file

_WIKI = re.compile(r"(!?\[\[)([^\]\[|#\n]*)(#[^\]\[|\n]*)?((?:\|[^\]\n]*)?\]\])")
_MARKDOWN = re.compile(r"(?<=\]\()(<?)([^()\s<>#]*)(#[^()\s<>]*)?")
_BLOCK = re.compile(rf"#(?:\^|%5[Ee])({BLOCK_PATTERN})")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
_BREAKING = re.compile(r"[\s()<>%#]")
_VERBATIM: Final = ("fence", "code")

Place = tuple[str, str]
"""A topic and the id of a block in it."""


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """The topics whose links were put right, and the blocks that changed by it."""

    topics: dict[str, Topic]
    changes: tuple[BlockChange, ...]


def links_of(topic: Topic) -> tuple[str, ...]:
    """Returns the ids of the blocks that something in the document links to, each once."""
    return tuple(dict.fromkeys(block for part in topic.segments for block in links_in(part)))


def linked_from(line: bytes | None) -> tuple[str, ...]:
    """Returns the ids of the blocks that a block's line links to."""
    text = "" if line is None else line.decode("utf-8", "replace")
    return tuple(found[1] for found in _BLOCK.finditer(text))


def links_in(part: Segment) -> tuple[str, ...]:
    """Returns the ids of the blocks that a part of a document links to; in code there are none."""
    if _is_verbatim(part):
        return ()
    return tuple(found[1] for found in _BLOCK.finditer(part.raw))


def mend_links(
    changes: Sequence[BlockChange],
    *,
    load: Callable[[str], Topic | None],
    linking: Callable[[str], Iterable[str]],
    known: Mapping[str, Place] | None = None,
) -> Mended:
    """Returns the topics in which links have to follow what `changes` moved or merged.

    `linking` names the topics that link to a block; `load` gives a topic as the changes leave it,
    None for one to leave alone. `known` are places of blocks that lines which came back may link to
    from a time when they stood elsewhere. Costs a look for each block that came to a place, and a
    read of the topics that link to it.
    """
    blocks = [change for change in changes if not _is_embed(change)]
    places, origins = _places(blocks), _origins(blocks)
    names = dict.fromkeys(change.topic for change in changes)
    names.update(dict.fromkeys(topic for block in places for topic in linking(block)))
    places = {**(known or {}), **places}
    if not places:
        return Mended(topics={}, changes=())
    topics: dict[str, Topic] = {}
    found: list[BlockChange] = []
    for name in names:
        topic = load(name)
        mended = None if topic is None else _mended(topic, name, places, origins)
        if topic is not None and mended is not None:
            topics[name] = mended
            ids = [part.id for part in topic.blocks() if part.id is not None]
            pins = [part.block for part in topic.embeds()]
            every = (change_of(topic, mended, name, block) for block in [*ids, *pins])
            found += [change for change in every if change is not None]
    return Mended(topics=topics, changes=tuple(found))


def relinked(topic: Topic, name: str, place_of: Callable[[str], Place | None]) -> Topic | None:
    """Returns the topic `name` with its links to blocks put right; None if they are.

    Embeds and blocks of writers are looked at, what a person wrote is not. `place_of` says where a
    block is, by id or alias; a link to one that is nowhere stays as it is.
    """
    parts: list[str] = []
    for part in topic.segments:
        is_ours = isinstance(part, Embed) or (isinstance(part, Block) and part.origin == "writer")
        found = {block: place_of(block) for block in links_in(part)} if is_ours else {}
        places = {block: place for block, place in found.items() if place is not None}
        parts.append(_followed(part.raw, name, name, places) if places else part.raw)
    text = "".join(parts)
    return None if text == "".join(part.raw for part in topic.segments) else parse_text(text)


def _is_embed(change: BlockChange) -> bool:
    return any(map(embedded_topic, (change.before, change.after)))


def _places(changes: Sequence[BlockChange]) -> dict[str, Place]:
    """Returns where links to a block have to point, for those that came to a new place."""
    places: dict[str, Place] = {}
    for change in changes:
        if change.after is None:
            continue
        if change.before is None:
            places[change.block] = (change.topic, change.block)
        merged = set(_aliases(change.after)).difference(_aliases(change.before))
        places.update(dict.fromkeys(merged, (change.topic, change.block)))
    for change in changes:  # a block whose old id came back is itself again
        if change.after is not None and change.before is None:
            places[change.block] = (change.topic, change.block)
    return places


def _origins(changes: Sequence[BlockChange]) -> dict[str, str]:
    """Returns the topic that each block left, for those that stand in another now."""
    left = {change.block: change.topic for change in changes if change.after is None}
    came = {change.block for change in changes if change.before is None}
    return {block: topic for block, topic in left.items() if block in came}


def _aliases(line: bytes | None) -> tuple[str, ...]:
    if line is None:
        return ()
    return tuple(name for block in parse(line).blocks() for name in block.aliases)


def _mended(
    topic: Topic, name: str, places: Mapping[str, Place], origins: Mapping[str, str]
) -> Topic | None:
    parts: list[str] = []
    for part in topic.segments:
        origin = origins.get(part.id or "", name) if isinstance(part, Block) else name
        raw = part.raw if _is_verbatim(part) else _followed(part.raw, name, origin, places)
        parts.append(raw)
    text = "".join(parts)
    return None if text == "".join(part.raw for part in topic.segments) else parse_text(text)


def _is_verbatim(part: Segment) -> bool:
    return isinstance(part, Raw) and part.kind in _VERBATIM


def _followed(raw: str, topic: str, origin: str, places: Mapping[str, Place]) -> str:
    """Returns `raw`, which was written in `origin` and stands in `topic`, with its links right."""
    if "](" in raw:
        raw = _MARKDOWN.sub(lambda found: _markdown(found, topic, origin, places), raw)
    return _WIKI.sub(lambda found: _wiki(found, topic, origin, places), raw)


def _wiki(found: re.Match[str], topic: str, origin: str, places: Mapping[str, Place]) -> str:
    opening, path, anchor, end = found[1], found[2], found[3] or "", found[4]
    block = _BLOCK.fullmatch(anchor)
    place = places.get(block[1]) if block else None
    if place is not None:
        target, name = place
        anchor = f"#^{name}"
        if not (_names(path, target) if path else target == topic):
            path = _styled(target, path)
    elif not path and anchor and origin != topic:
        path = origin
    return f"{opening}{path}{anchor}{end}"


def _names(path: str, target: str) -> bool:
    plain = path.strip().removesuffix(".md").removeprefix("topics/")
    return plain in (target, target.rsplit("/", 1)[-1])


def _styled(target: str, like: str) -> str:
    before = "topics/" if like.strip().startswith("topics/") else ""
    return f"{before}{target}{'.md' if like.strip().endswith('.md') else ''}"


def _markdown(found: re.Match[str], topic: str, origin: str, places: Mapping[str, Place]) -> str:
    bracket, path, anchor = found[1], found[2], found[3] or ""
    if _ELSEWHERE.match(path) or not (path or anchor):
        return found[0]
    written_in = topic_file(origin)
    there = _joined(written_in, unquote(path)) if path else written_in
    block = _BLOCK.fullmatch(anchor)
    place = places.get(block[1]) if block else None
    target = there if place is None else topic_file(place[0])
    if place is not None and block is not None:
        anchor = anchor[: block.start(1)] + place[1]
    if target == there and (origin == topic or posixpath.isabs(target)):
        return f"{bracket}{path}{anchor}"
    here = topic_file(topic)
    if target == here and not path:
        return f"{bracket}{anchor}"
    way = posixpath.relpath(target, posixpath.dirname(here))
    return f"{bracket}{_quoted(way, like=path)}{anchor}"


def _joined(file: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(file), path))


def _quoted(path: str, like: str) -> str:
    """Returns a path that ends no link; percent signs in plenty only where there were some."""
    if "%" in like:
        return quote(path, safe="/")
    return _BREAKING.sub(lambda sign: quote(sign[0]), path)
