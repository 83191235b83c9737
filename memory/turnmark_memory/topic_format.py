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
    TopicWarning,
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
    segments: list[Segment] = [Raw(raw=mark, line=1, kind="mark")] if mark else []
    segments.extend(_with_headings(_segment(lines, chunk) for chunk in done.chunks))
    return Topic(
        segments=tuple(segments),
        newline="\r\n" if lines and lines[0].endswith("\r\n") else "\n",
        warnings=_warnings(segments, done.warnings),
    )


def _segment(lines: Sequence[str], chunk: Chunk) -> Segment:
    own = lines[chunk.start : chunk.end]
    raw, line = "".join(own), chunk.start + 1
    first = own[0].rstrip("\r\n")
    match chunk.kind:
        case "front":
            return FrontMatter(raw=raw, line=line, about=about_of(_clean(raw)))
        case "heading" | "setext":
            return _heading(own, raw, line)
        case "definition":
            definition = DEFINITION.match(first)
            return Definition(raw=raw, line=line, label=_clean(definition[1] if definition else ""))
        case "embed":
            embed = EMBED.fullmatch(first)
            topic, block = (_clean(embed[1]).strip(), embed[2]) if embed else ("", "")
            return Embed(raw=raw, line=line, topic=topic.removesuffix(".md"), block=block)
        case "paragraph":
            is_table = len(own) > 1 and "|" in own[1] and _TABLE_RULE.fullmatch(own[1].rstrip())
            return _block_or_raw(own, "table" if is_table else None, "paragraph", line)
        case "item" | "quote" | "code" | "html":
            return _block_or_raw(own, chunk.kind, chunk.kind, line)
        case "comment" if len(own) == 1:
            return _block_or_raw(own, "comment", "comment", line)
        case "blank" | "line" | "fence" | "rule" | "comment":
            return Raw(raw=raw, line=line, kind=chunk.kind)


def _heading(own: Sequence[str], raw: str, line: int) -> Heading:
    atx = ATX.match(own[0].rstrip("\r\n"))
    if atx:
        title = own[0][atx.end() :].strip()
        bare = title.rstrip("#")
        title = bare.strip() if not bare or bare[-1] in " \t" else title
        return Heading(raw=raw, line=line, level=len(atx[1]), title=_clean(title))
    underline = UNDERLINE.fullmatch(own[-1].rstrip("\r\n"))
    level = 1 if underline and underline[1][0] == "=" else 2
    return Heading(raw=raw, line=line, level=level, title=_clean(join_lines(own[:-1])))


def _block_or_raw(own: Sequence[str], kind: RawKind | None, chunk: str, line: int) -> Block | Raw:
    """Reads a chunk as a block if it is a paragraph (`kind` None) or carries one of our ids."""
    return msgspec.structs.replace(_read_chunk(tuple(own), kind, chunk), line=line)


@lru_cache(maxsize=_CHUNKS_LIMIT)
def _read_chunk(own: tuple[str, ...], kind: RawKind | None, chunk: str) -> Block | Raw:
    """Reads a chunk wherever it stands; after an edit all others of the document are as before."""
    line = 1
    prefix = _prefix(own[0], chunk)
    body = [own[0][len(prefix) :], *own[1:]]
    if chunk == "quote":
        body = [QUOTE_PREFIX.sub("", part, count=1) for part in own]
    words = _clean(join_lines(body))
    named = _ID.search(words)
    ours = named is not None and is_block_id(named[1])
    raw = "".join(own)
    if kind is not None and not ours:
        return Raw(raw=raw, line=line, kind=kind)
    words = words[: named.start()] if named else words
    words, notes = _without_notes(words)
    cites = tuple(dict.fromkeys(found[2] for found in CITE.finditer(words)))
    text = join_lines([CITE.sub(r"\1", words)])
    if not text.strip():
        return Raw(raw=raw, line=line, kind="id" if ours else "html")
    return Block(
        raw=raw,
        line=line,
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


def _with_headings(segments: Iterable[Segment]) -> Iterable[Segment]:
    """Gives each block the titles above it."""
    above: list[Heading] = []
    for part in segments:
        if isinstance(part, Heading):
            above = [*(heading for heading in above if heading.level < part.level), part]
        elif isinstance(part, Block):
            section = above[-1].title if above and above[-1].level > 1 else None
            titles = tuple(heading.title for heading in above)
            yield msgspec.structs.replace(part, headings=titles, section=section)
            continue
        yield part


def _warnings(
    segments: Sequence[Segment], found: tuple[TopicWarning, ...]
) -> tuple[TopicWarning, ...]:
    warnings = list(found)
    defined = {part.label for part in segments if isinstance(part, Definition)}
    seen: set[str] = set()
    for part in segments:
        if isinstance(part, Raw) and part.kind == "id":
            warnings.append(TopicWarning(line=part.line, problem="a block id without words"))
        if isinstance(part, Block):
            warnings.extend(_block_warnings(part, seen, defined))
    return tuple(sorted(warnings, key=lambda warning: warning.line))


def _block_warnings(block: Block, seen: set[str], defined: set[str]) -> Iterable[TopicWarning]:
    for name in (*filter(None, [block.id]), *block.aliases):
        if name in seen:
            yield TopicWarning(line=block.line, problem=f"the block id {name} stands here again")
        seen.add(name)
    for label in block.cites:
        if label not in defined:
            yield TopicWarning(line=block.line, problem=f"the footnote {label} is not defined")


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
