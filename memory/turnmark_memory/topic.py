"""A topic in memory: its document cut into segments, each with its exact characters.

Joining the `raw` of all segments gives the document back, so whatever turnmark doesn't understand
survives untouched. `raw` is decoded with `surrogateescape`; every other string is clean Unicode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal

import msgspec

# Below it promotion arranges embeds; above is the person's.
AUTOMATIC_LINE: Final = "<!-- turnmark: below this line is arranged automatically -->"

RawKind = Literal[
    "mark",
    "blank",
    "fence",
    "code",
    "html",
    "comment",
    "rule",
    "quote",
    "item",
    "table",
    "line",
    "id",
]
BlockKind = Literal["paragraph", "item", "quote", "code", "other"]


class _Segment(msgspec.Struct, frozen=True, kw_only=True):
    raw: str


class FrontMatter(_Segment, frozen=True, kw_only=True):
    """The YAML at the top; of its keys only `about` is read."""

    about: str | None


class Heading(_Segment, frozen=True, kw_only=True):
    """A heading of either syntax, `level` 1 to 6."""

    level: int
    title: str


class Block(_Segment, frozen=True, kw_only=True):
    """One paragraph (or an item or quote that carries an id).

    `id` is None for a paragraph that a person wrote and no install has numbered yet; `anchor` is
    a person's own Obsidian id. `text` is one line without id, cites and comments. `cites` are the
    labels in order of first appearance. `headings` is the path of titles above it, `section` the
    nearest of level 2 or deeper. `prefix` is what makes it an item or a quote.
    """

    kind: BlockKind
    id: str | None
    text: str
    cites: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    section: str | None = None
    superseded_by: str | None = None
    superseded_on: date | None = None
    by_person: bool = False
    anchor: str | None = None
    prefix: str = ""

    @property
    def origin(self) -> Literal["person", "writer"]:
        """`person` for a block without cites or marked as a person's: no automatic edit of it."""
        return "person" if self.by_person or not self.cites else "writer"

    def is_named(self, id: str) -> bool:  # noqa: A002 -- the word of the format
        """Tells whether `id` is the block's id or one that was merged into it."""
        return id == self.id or id in self.aliases


class Definition(_Segment, frozen=True, kw_only=True):
    """The definition of a footnote, ours (`s-…`) or a person's."""

    label: str


class Embed(_Segment, frozen=True, kw_only=True):
    """A line that shows a block of another topic."""

    topic: str
    block: str


class Raw(_Segment, frozen=True, kw_only=True):
    """Anything else, kept as it is."""

    kind: RawKind


Segment = FrontMatter | Heading | Block | Definition | Embed | Raw


class TopicWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a document that a person should look at; nothing was changed for it."""

    line: int
    problem: str


class _Names(msgspec.Struct, frozen=True, kw_only=True):
    """Where each name stands first: blocks by id and by alias, embeds, the automatic line."""

    blocks: dict[str, int]
    aliases: dict[str, int]
    pins: dict[str, int]
    line: int | None


class Topic(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One document. `newline` is its own line end, used for what is inserted.

    `unclosed` are constructs that a person left open: what stands far below one may close it.
    Names are looked up in one pass over the segments, which is kept.
    """

    segments: tuple[Segment, ...]
    newline: str = "\n"
    unclosed: tuple[TopicWarning, ...] = ()

    @property
    def about(self) -> str | None:
        """What the topic is about, by its front matter."""
        return next((part.about for part in self.segments if isinstance(part, FrontMatter)), None)

    @property
    def title(self) -> str | None:
        """The first heading of level 1."""
        headings = (part for part in self.segments if isinstance(part, Heading))
        return next((heading.title for heading in headings if heading.level == 1), None)

    def blocks(self) -> Iterator[Block]:
        """Yields the blocks in file order, superseded ones and those without id included."""
        return (part for part in self.segments if isinstance(part, Block))

    def embeds(self) -> Iterator[Embed]:
        """Yields the embeds in file order."""
        return (part for part in self.segments if isinstance(part, Embed))

    def block(self, id: str) -> Block | None:  # noqa: A002 -- the word of the format
        """Returns the first block with `id`, else the first that has it as an alias."""
        place = self._names.blocks.get(id)
        place = self._names.aliases.get(id) if place is None else place
        part = None if place is None else self.segments[place]
        return part if isinstance(part, Block) else None

    def place_of(self, name: str) -> int | None:
        """Returns the index of the first block with the id `name`, or of its pin, if any.

        Embeds below the automatic line are arranged, not pinned, and so are none.
        """
        places = (self._names.blocks.get(name), self._names.pins.get(name))
        return min((place for place in places if place is not None), default=None)

    def line_index(self) -> int | None:
        """Returns the index of the automatic line's segment, if the document has one."""
        return self._names.line

    def lines(self) -> Iterator[tuple[int, Segment]]:
        """Yields the segments in file order, each with the number of its first line, from 1."""
        line = 1
        for part in self.segments:
            yield line, part
            line += part.raw.count("\n")

    @property
    def warnings(self) -> tuple[TopicWarning, ...]:
        """What a person should look at, by line; costs a pass over the document."""
        return _warnings(self)

    @cached_property
    def _names(self) -> _Names:
        blocks: dict[str, int] = {}
        aliases: dict[str, int] = {}
        pins: dict[str, int] = {}
        line: int | None = None
        for index, part in enumerate(self.segments):
            if isinstance(part, Raw):
                if part.kind == "line" and line is None:
                    line = index
            elif isinstance(part, Block):
                if part.id is not None:
                    blocks.setdefault(part.id, index)
                for alias in part.aliases:
                    aliases.setdefault(alias, index)
            elif isinstance(part, Embed) and line is None:
                pins.setdefault(part.block, index)
        return _Names(blocks=blocks, aliases=aliases, pins=pins, line=line)


def _warnings(topic: Topic) -> tuple[TopicWarning, ...]:
    found = list(topic.unclosed)
    defined = {part.label for part in topic.segments if isinstance(part, Definition)}
    seen: set[str] = set()
    for line, part in topic.lines():
        if isinstance(part, Raw) and part.kind == "id":
            found.append(TopicWarning(line=line, problem="a block id without words"))
        if isinstance(part, Block):
            problems = _block_problems(part, seen, defined)
            found.extend(TopicWarning(line=line, problem=problem) for problem in problems)
    return tuple(sorted(found, key=lambda warning: warning.line))


def _block_problems(block: Block, seen: set[str], defined: set[str]) -> Iterable[str]:
    for name in (*filter(None, [block.id]), *block.aliases):
        if name in seen:
            yield f"the block id {name} stands here again"
        seen.add(name)
    for label in block.cites:
        if label not in defined:
            yield f"the footnote {label} is not defined"


def block_hash(block: Block) -> str:
    """Returns 16 hex digits over words and cites: what a writer was shown, wherever it stands."""
    return words_hash(block.text, block.cites)


def words_hash(text: str, cites: tuple[str, ...]) -> str:
    """Returns the `block_hash` of a block with these words and cites."""
    seen = "\x00".join((text, *cites)).encode("utf-8", "surrogatepass")
    return blake2b(seen, digest_size=8).hexdigest()
