"""Changes of one topic, each a new topic in which every other byte is as it was.

A change is made on the raw text and read again, so a topic never claims what its file wouldn't
say. Cost: a read of the new text and its neighbours (see `topic_splice`), and a look at the kind of
each segment. Words pass `clean_words`; whether a change is
*allowed* is for `validate` and `apply`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Final

import msgspec

from turnmark_events.errors import NotFound
from turnmark_memory.front_matter import about_line, with_about
from turnmark_memory.labels import is_label
from turnmark_memory.topic import (
    AUTOMATIC_LINE,
    Block,
    Definition,
    Embed,
    FrontMatter,
    Heading,
    Raw,
    Segment,
    Topic,
)
from turnmark_memory.topic_format import block_line, parse_text
from turnmark_memory.topic_path import first_about, title_of
from turnmark_memory.topic_splice import spliced
from turnmark_memory.words import clean_title, clean_words

_SUPERSEDED_NOTE = re.compile(r"<!-- superseded [^<>]* --> ?")
# Blocks that begin with a mark of their own, so no line above takes them in.
_MARKED: Final = ("item", "quote", "code")
# What takes in the line below it unless that looks like a beginning.
_OPEN: Final = ("item", "table", "html")


def new_topic(path: str, about: str | None = None, *, chinese: bool = False) -> Topic:
    """Returns a topic for `path` with front matter and a title, and nothing under it.

    Without `about` it says itself what it is about, in Chinese if the title is or `chinese` asks.
    """
    front = about_line(clean_title(about or first_about(path, chinese=chinese)))
    return parse_text(f"---\n{front}\n---\n# {title_of(path)}\n")


def set_about(topic: Topic, about: str) -> Topic:
    """Returns the topic with `about` in its front matter, which is added if there is none."""
    newline = topic.newline
    for index, part in enumerate(topic.segments):
        if isinstance(part, FrontMatter):
            raw = with_about(part.raw, clean_words(about), newline)
            return spliced(topic, index, index + 1, raw)
    start = 1 if _kind(topic, 0) == "mark" else 0
    front = f"---{newline}{about_line(clean_words(about))}{newline}---{newline}"
    return spliced(topic, start, start, front)


def add_block(
    topic: Topic,
    *,
    text: str,
    cites: Sequence[str],
    id: str,  # noqa: A002 -- the word of the format
    heading: str | None = None,
) -> Topic:
    """Returns the topic with a new block at the end of `heading`.

    None is the part above the first heading of level 2. A heading that isn't there is added at
    the end, before the footnotes and the automatic part.

    Raises:
        Refused: if `text` or `heading` is empty or has several paragraphs.
    """
    block = Block(raw="", kind="paragraph", id=id, text=text, cites=tuple(dict.fromkeys(cites)))
    return put_block(topic, block, heading)


def put_block(topic: Topic, block: Block, heading: str | None = None) -> Topic:
    """Returns the topic with `block` as a paragraph at the end of `heading`, as `add_block`.

    Id, aliases, cites and notes are kept; a prefix is dropped.
    """
    line = block_line(msgspec.structs.replace(block, text=clean_words(block.text), prefix=""))
    title = clean_title(heading) if heading is not None else None
    end = _region_end(topic, title)
    if end is None:
        return insert(topic, body_end(topic), f"## {title}{topic.newline * 2}{line}")
    return insert(topic, end, line)


def replace_block(
    topic: Topic,
    id: str,  # noqa: A002 -- the word of the format
    *,
    text: str,
    cites: Sequence[str],
    aliases: Sequence[str] | None = None,
) -> Topic:
    """Returns the topic with other words and cites in the block's place; notes and id stay.

    Raises:
        NotFound: if the topic has no such block.
        Refused: as `add_block`.
    """
    block = found(topic, id)
    names = block.aliases if aliases is None else tuple(dict.fromkeys(aliases))
    new = msgspec.structs.replace(
        block, text=clean_words(text), cites=tuple(dict.fromkeys(cites)), aliases=names
    )
    return _rewritten(topic, block, new)


def supersede_block(topic: Topic, id: str, *, by: str, on: date) -> Topic:  # noqa: A002
    """Returns the topic with the block kept as history, dated, naming the block that holds now.

    Raises:
        NotFound: if the topic has no such block.
    """
    block = found(topic, id)
    return _noted(topic, block, f"<!-- superseded {on.isoformat()} by {by} -->")


def mark_person(topic: Topic, id: str) -> Topic:  # noqa: A002 -- the word of the format
    """Returns the topic with the block marked as a person's, so that no automatic edit changes it.

    For a block that a person reworded and that still cites turns; the mark stands in the file, so
    it survives the loss of any index. Its own line stays as the person wrote it.

    Raises:
        NotFound: if the topic has no such block.
    """
    block = found(topic, id)
    if block.origin == "person":
        return topic
    return _noted(topic, block, "<!-- person -->")


def remove_block(topic: Topic, id: str) -> Topic:  # noqa: A002 -- the word of the format
    """Returns the topic without the block.

    Raises:
        NotFound: if the topic has no such block.
    """
    return cut_segment(topic, _index(topic, found(topic, id)))


def insert_after(topic: Topic, id: str, block: Block) -> Topic:  # noqa: A002
    """Returns the topic with `block` right after the block `id`, as an item if that is one.

    Raises:
        NotFound: if the topic has no block `id`.
    """
    before = found(topic, id)
    prefix = before.prefix if before.kind == "item" else ""
    new = msgspec.structs.replace(block, text=clean_words(block.text), prefix=prefix)
    index = _index(topic, before) + 1
    if before.kind != "item":
        return insert(topic, index, block_line(new))
    gap = "" if before.raw.endswith("\n") else topic.newline
    return spliced(topic, index, index, f"{gap}{block_line(new)}{topic.newline}")


def restore_block(topic: Topic, id: str, line: str, heading: str | None) -> Topic:  # noqa: A002
    """Returns the topic with `line` as the block `id` again: in its place, else under `heading`."""
    block = topic.block(id)
    if block is not None and block.id == id:
        ending = block.raw[len(block.raw.rstrip("\r\n")) :]
        return _replaced(topic, block, line.rstrip("\r\n") + ending)
    title = clean_title(heading) if heading is not None else None
    end = _region_end(topic, title)
    if end is None:
        heading_line = f"## {title}{topic.newline * 2}"
        return insert(topic, body_end(topic), heading_line + line.rstrip("\r\n"))
    return insert(topic, end, line.rstrip("\r\n"))


def with_ids(topic: Topic, fresh: Callable[[Block], str]) -> Topic:
    """Returns the topic with an id from `fresh` at each paragraph that has none.

    Nothing but the id is added. A person's own Obsidian id stays the last on its line. A
    paragraph that would be read otherwise with an id (its last line is a lone `-`) gets none.
    """
    parts: list[str] = []
    for part in topic.segments:
        if isinstance(part, Block) and part.id is None:
            parts.append(raw_with_id(part, fresh(part)))
        else:
            parts.append(part.raw)
    return parse_text("".join(parts))


def raw_with_id(block: Block, id: str) -> str:  # noqa: A002 -- the word of the format
    """Returns a block's own characters with an id; as they are if they would read otherwise."""
    words = block.raw.rstrip(" \t\r\n")
    tail = block.raw[len(words) :]
    if block.anchor is None:
        raw = f"{words} ^{id}{tail}"
    else:
        start = len(words) - len(block.anchor) - 1
        raw = f"{words[:start]}<!-- block {id} --> {words[start:]}{tail}"
    # Read behind a blank line, where nothing is taken for a byte order mark or front matter.
    _, *read = parse_text(f"\n{raw}").segments
    return raw if len(read) == 1 and _text(read[0]) == block.text else block.raw


def _text(part: Segment) -> str | None:
    return part.text if isinstance(part, Block) else None


def found(topic: Topic, id: str) -> Block:  # noqa: A002 -- the word of the format
    """Returns the block `id`.

    Raises:
        NotFound: if the topic has no such block.
    """
    block = topic.block(id)
    if block is None:
        raise NotFound(f"there is no block {id} in this topic; look at it again", block=id)
    return block


def body_end(topic: Topic) -> int:
    """Returns where the body ends: before the automatic line and the footnotes at the end."""
    line = topic.line_index()
    return _stepped_back(topic, len(topic.segments) if line is None else line)


def insert(topic: Topic, index: int, text: str) -> Topic:
    """Returns the topic with `text` before segment `index`, a blank line on either side."""
    newline = topic.newline
    before = topic.segments[index - 1] if index else None
    lead = ""
    if before is not None and _kind(topic, index - 1) != "mark":
        lead = "" if before.raw.endswith("\n") else newline
        lead += "" if _kind(topic, index - 1) == "blank" else newline
    follows = index < len(topic.segments) and _kind(topic, index) != "blank"
    return spliced(topic, index, index, lead + text + newline + (newline if follows else ""))


def cut_segment(topic: Topic, index: int) -> Topic:
    """Returns the topic without segment `index` and without a blank line too many.

    A blank line stays where the neighbours would otherwise be read as one.
    """
    last = len(topic.segments) - 1
    opens = index == 0 or _kind(topic, index - 1) == "mark"
    before_blank = not opens and _kind(topic, index - 1) == "blank"
    after_blank = index < last and _kind(topic, index + 1) == "blank"
    if before_blank and after_blank:
        return spliced(topic, index, index + 2, "")
    if before_blank or after_blank or index == last or _between_alike(topic, index):
        return spliced(topic, index, index + 1, "")
    return spliced(topic, index, index + 1, topic.newline)


def _between_alike(topic: Topic, index: int) -> bool:
    """Tells whether the neighbours are items or embeds, which stand close without harm."""
    if index == 0:
        return False
    kinds = {_kind(topic, index - 1), _kind(topic, index + 1)}
    return kinds in ({"item"}, {"embed"})


def _kind(topic: Topic, index: int) -> str | None:
    if not 0 <= index < len(topic.segments):
        return None
    part = topic.segments[index]
    if isinstance(part, (Raw, Block)):
        return part.kind
    return "embed" if isinstance(part, Embed) else None


def _region_end(topic: Topic, title: str | None) -> int | None:
    """Returns where a block under `title` goes; None if there is no such heading."""
    line = topic.line_index()
    limit = len(topic.segments) if line is None else line
    headings = [
        (place, part)
        for place in topic.names.headings
        if place < limit and isinstance(part := topic.segments[place], Heading)
    ]
    if title is None:
        below = (place for place, part in headings if part.level > 1)
    else:
        wanted = title.casefold()
        named = (place for place, part in headings if part.title.casefold() == wanted)
        start = next(named, None)
        if start is None:
            return None
        below = (place for place, _ in headings if place > start)
    return _stepped_back(topic, next(below, limit))


def _stepped_back(topic: Topic, end: int) -> int:
    while end > 0 and (
        isinstance(topic.segments[end - 1], Definition) or _kind(topic, end - 1) == "blank"
    ):
        end -= 1
    return end


def _index(topic: Topic, block: Block) -> int:
    return topic.segments.index(block)  # the first of several that are alike, as `found` gives it


def _rewritten(topic: Topic, old: Block, new: Block) -> Topic:
    if new == old:
        return topic
    ending = old.raw[len(old.raw.rstrip("\r\n")) :]
    return _replaced(topic, old, block_line(new) + ending)


def _noted(topic: Topic, block: Block, note: str) -> Topic:
    """Puts `note` before the block's id and leaves its words as they are written."""
    line = block.raw.rstrip(" \t\r\n")
    words, _, name = line.rpartition("^")
    if block.superseded_by is not None:
        words = _SUPERSEDED_NOTE.sub("", words)
    return _replaced(topic, block, f"{words}{note} ^{name}{block.raw[len(line) :]}", as_is=True)


def _replaced(topic: Topic, old: Block, raw: str, *, as_is: bool = False) -> Topic:
    index = _index(topic, old)
    # What began with HTML or a comment becomes plain words, which an open line above would take in.
    apart = not as_is and old.kind not in _MARKED and index > 0 and _is_open(topic, index - 1)
    return spliced(topic, index, index + 1, (topic.newline if apart else "") + raw)


def _is_open(topic: Topic, index: int) -> bool:
    part = topic.segments[index]
    if isinstance(part, Definition):
        return not is_label(part.label)
    if isinstance(part, Block):
        return part.id is None or part.anchor is not None  # only our id ends a paragraph
    return _kind(topic, index) in _OPEN


def automatic_part(topic: Topic | None) -> tuple[str, tuple[Segment, ...]]:
    """Returns the text up to and including the automatic line, and the segments below it.

    The line is added at the end of the body where it is missing.
    """
    topic = new_topic("core") if topic is None else topic
    index = topic.line_index()
    if index is None:
        topic = insert(topic, body_end(topic), AUTOMATIC_LINE)
        index = topic.line_index() or 0
    above = "".join(part.raw for part in topic.segments[: index + 1])
    return above if above.endswith("\n") else above + topic.newline, topic.segments[index + 1 :]
