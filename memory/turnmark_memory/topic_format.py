"""The Markdown of a topic: read without loss, written one block at a time.

`render(parse(x)) == x` for any bytes. A block's last line ends in its id, before that its merged
ids and other notes in HTML comments, before that its footnotes:

    Dana leads billing.[^s-8a9128075e1b] <!-- was b-1111aaaa --> ^b-af3dee4f

Open `topic.py` for the structs, `topic_lines.py` for the cut into chunks, `topic_edit.py` for
changes, `footnotes.py` for definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from typing import Final

import msgspec

from turnmark_memory.front_matter import about_of
from turnmark_memory.labels import BLOCK_PATTERN, LABEL_PATTERN, is_block_id
from turnmark_memory.topic import (
    Block,
    BlockKind,
    Definition,
    Embed,
    FrontMatter,
    Heading,
    Raw,
    RawKind,
    Segment,
    Topic,
)
from turnmark_memory.topic_lines import (
    ATX,
    DEFINITION,
    EMBED,
    ITEM_PREFIX,
    QUOTE_PREFIX,
    UNDERLINE,
    Chunk,
    cut,
    split_lines,
)
from turnmark_memory.words import join_lines

_BYTE_ORDER_MARK: Final = "\ufeff"
_ID = re.compile(r"(?:^|[ \t])\^([A-Za-z0-9-]+)$")
_UNESCAPED: Final = r"(?<!\\)((?:\\\\)*)"
CITE = re.compile(rf"{_UNESCAPED}\[\^({LABEL_PATTERN})\]")
_WAS = rf"was (?P<was>{BLOCK_PATTERN}(?: {BLOCK_PATTERN})*)"
_SUPERSEDED = rf"superseded (?P<on>\d{{4}}-\d\d-\d\d) by (?P<by>{BLOCK_PATTERN})"
_NOTE = re.compile(
    rf"{_UNESCAPED}<!-- (?:{_WAS}|{_SUPERSEDED}|(?P<person>person)|block (?P<id>{BLOCK_PATTERN}))"
    r" -->"
)
_PARSED_LIMIT: Final = 128
_CHUNKS_LIMIT: Final = 8_192
_SURROGATES = re.compile("[\ud800-\udfff]")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*(?::?-+:?[ \t]*)?)*")
_BLOCK_KINDS: Final[dict[str, BlockKind]] = {
    "paragraph": "paragraph",
    "item": "item",
    "quote": "quote",
    "code": "code",
    "html": "other",
    "comment": "other",
    "table": "other",
}


class _Notes(msgspec.Struct, kw_only=True):
    """What the comments of a block say."""

    aliases: tuple[str, ...] = ()
    superseded_by: str | None = None
    superseded_on: date | None = None
    by_person: bool = False
    id: str | None = None


@lru_cache(maxsize=_PARSED_LIMIT)
def parse(text: bytes) -> Topic:
    """Returns the document `text` as segments; never fails and loses nothing.

    The last documents are kept parsed: an install, a batch and the core page look at the same ones
    many times over. Invalid UTF-8 is kept byte for byte, and shown as U+FFFD in a block's words.
    """
    return parse_text(text.decode("utf-8", "surrogateescape"))


def render(topic: Topic) -> bytes:
    """Returns the document's bytes."""
    return render_text(topic).encode("utf-8", "surrogateescape")


def render_text(topic: Topic) -> str:
    """Returns the document as text in which bytes that are no UTF-8 are lone surrogates."""
    return "".join(part.raw for part in topic.segments)


def parse_text(text: str) -> Topic:
    """Returns the document `text`, decoded as `parse` does it."""
    mark = text[:1] if text.startswith(_BYTE_ORDER_MARK) else ""
    lines = split_lines(text[len(mark) :])
    done = cut(lines)
    segments: list[Segment] = [Raw(raw=mark, kind="mark")] if mark else []
    segments.extend(with_headings((segment(lines, chunk) for chunk in done.chunks), ()))
    return Topic(
        segments=tuple(segments),
        newline="\r\n" if lines and lines[0].endswith("\r\n") else "\n",
        unclosed=done.warnings,
    )


def segment(lines: Sequence[str], chunk: Chunk) -> Segment:
    """Returns what a chunk of `lines` says; a block has no headings yet: see `with_headings`."""
    own = lines[chunk.start : chunk.end]
    raw = "".join(own)
    first = own[0].rstrip("\r\n")
    match chunk.kind:
        case "front":
            return FrontMatter(raw=raw, about=about_of(_clean(raw)))
        case "heading" | "setext":
            return _heading(own, raw)
        case "definition":
            definition = DEFINITION.match(first)
            return Definition(raw=raw, label=_clean(definition[1] if definition else ""))
        case "embed":
            embed = EMBED.fullmatch(first)
            topic, block = (_clean(embed[1]).strip(), embed[2]) if embed else ("", "")
            return Embed(raw=raw, topic=topic.removesuffix(".md"), block=block)
        case "paragraph":
            is_table = len(own) > 1 and "|" in own[1] and _TABLE_RULE.fullmatch(own[1].rstrip())
            return _read_chunk(tuple(own), "table" if is_table else None, "paragraph")
        case "item" | "quote" | "code" | "html":
            return _read_chunk(tuple(own), chunk.kind, chunk.kind)
        case "comment" if len(own) == 1:
            return _read_chunk(tuple(own), "comment", "comment")
        case "blank" | "line" | "fence" | "rule" | "comment":
            return Raw(raw=raw, kind=chunk.kind)


def _heading(own: Sequence[str], raw: str) -> Heading:
    atx = ATX.match(own[0].rstrip("\r\n"))
    if atx:
        title = own[0][atx.end() :].strip()
        bare = title.rstrip("#")
        title = bare.strip() if not bare or bare[-1] in " \t" else title
        return Heading(raw=raw, level=len(atx[1]), title=_clean(title))
    underline = UNDERLINE.fullmatch(own[-1].rstrip("\r\n"))
    level = 1 if underline and underline[1][0] == "=" else 2
    return Heading(raw=raw, level=level, title=_clean(join_lines(own[:-1])))


@lru_cache(maxsize=_CHUNKS_LIMIT)
def _read_chunk(own: tuple[str, ...], kind: RawKind | None, chunk: str) -> Block | Raw:
    """Reads a chunk as a block if it is a paragraph (`kind` None) or carries one of our ids.

    It reads the same wherever it stands, and most of a document is as it was before an edit.
    """
    prefix = _prefix(own[0], chunk)
    body = [own[0][len(prefix) :], *own[1:]]
    if chunk == "quote":
        body = [QUOTE_PREFIX.sub("", part, count=1) for part in own]
    words = _clean(join_lines(body))
    named = _ID.search(words)
    ours = named is not None and is_block_id(named[1])
    raw = "".join(own)
    if kind is not None and not ours:
        return Raw(raw=raw, kind=kind)
    words = words[: named.start()] if named else words
    words, notes = _without_notes(words)
    cites = tuple(dict.fromkeys(found[2] for found in CITE.finditer(words)))
    text = join_lines([CITE.sub(r"\1", words)])
    if not text.strip():
        return Raw(raw=raw, kind="id" if ours else "html")
    return Block(
        raw=raw,
        kind=_BLOCK_KINDS[kind or chunk],
        id=named[1] if named and ours else notes.id,
        text=text,
        cites=cites,
        aliases=notes.aliases,
        superseded_by=notes.superseded_by,
        superseded_on=notes.superseded_on,
        by_person=notes.by_person,
        anchor=named[1] if named and not ours else None,
        prefix=prefix,
    )


def _prefix(first: str, chunk: str) -> str:
    pattern = {"item": ITEM_PREFIX, "quote": QUOTE_PREFIX}.get(chunk)
    if pattern is None:
        return first[: len(first) - len(first.lstrip(" \t"))]
    found = pattern.match(first.rstrip("\r\n"))
    return found[0] if found else ""


def _without_notes(words: str) -> tuple[str, _Notes]:
    notes = _Notes()
    for found in _NOTE.finditer(words):
        if found["was"]:
            notes.aliases = tuple(dict.fromkeys((*notes.aliases, *found["was"].split(" "))))
        elif found["by"]:
            notes.superseded_by, notes.superseded_on = found["by"], _date(found["on"])
        elif found["id"]:
            notes.id = found["id"]
        else:
            notes.by_person = True
    return _NOTE.sub(r"\1", words), notes


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:  # a person may have mistyped it; the block stays superseded
        return None


def with_headings(segments: Iterable[Segment], above: Iterable[Heading]) -> Iterable[Segment]:
    """Gives each block the titles above it; `above` are headings before the first segment.

    Every block is one of its own, though the same words may stand twice.
    """
    path = heading_path(above)
    for part in segments:
        if isinstance(part, Heading):
            path = heading_path([*path, part])
        elif isinstance(part, Block):
            section = path[-1].title if path and path[-1].level > 1 else None
            titles = tuple(heading.title for heading in path)
            yield msgspec.structs.replace(part, headings=titles, section=section)
            continue
        yield part


def heading_path(headings: Iterable[Heading]) -> list[Heading]:
    """Returns those of `headings` under which stands what follows them all."""
    path: list[Heading] = []
    for new in headings:
        path = [*(heading for heading in path if heading.level < new.level), new]
    return path


def block_line(block: Block) -> str:
    """Returns the line of a block from its fields, without a line end; `raw` is not looked at."""
    notes: list[str] = []
    if block.aliases:
        notes.append(f"<!-- was {' '.join(block.aliases)} -->")
    if block.superseded_by is not None:
        on = block.superseded_on or date.min
        notes.append(f"<!-- superseded {on.isoformat()} by {block.superseded_by} -->")
    if block.by_person:
        notes.append("<!-- person -->")
    if block.anchor is not None and block.id is not None:
        notes.append(f"<!-- block {block.id} -->")
    name = block.anchor or block.id
    tail = [*notes, f"^{name}"] if name else notes
    words = block.text + "".join(f"[^{label}]" for label in block.cites)
    return " ".join([block.prefix + words, *tail])


def _clean(text: str) -> str:
    return _SURROGATES.sub("\ufffd", text)
