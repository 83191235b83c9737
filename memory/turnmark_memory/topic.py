"""A topic in memory: its document cut into segments, each with its exact characters.

Joining the `raw` of all segments gives the document back, so whatever turnmark doesn't understand
survives untouched. `raw` is decoded with `surrogateescape`; every other string is clean Unicode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property
from hashlib import blake2b
from typing import Final, Literal, TypeVar

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
_One = TypeVar("_One")
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


class Names(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for in a topic: the first block of each id and alias, blocks by their words.

    `pins` are the first embeds of blocks above the automatic line, whose place is `line`;
    `headings` are places too. `alone` says that no id, alias or pin stands twice.
    """

    blocks: dict[str, Block]
    aliases: dict[str, Block]
    said: dict[str, tuple[Block, ...]]
    pins: dict[str, Embed]
    headings: tuple[int, ...]
    line: int | None
    alone: bool


class Topic(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One document. `newline` is its own line end, used for what is inserted.

    `unclosed` are constructs that a person left open: what stands far below one may close it.
    `names` are looked for in one pass over the segments.
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
        return self.names.blocks.get(id) or self.names.aliases.get(id)

    def saying(self, text: str) -> tuple[Block, ...]:
        """Returns the blocks that say exactly `text`."""
        return self.names.said.get(text, ())

    def named(self, name: str) -> Block | Embed | None:
        """Returns the first block with the id `name`, or its pin, whichever stands first.

        Embeds below the automatic line are arranged, not pinned, and so are none.
        """
        block, pinned = self.names.blocks.get(name), self.names.pins.get(name)
        if block is None or pinned is None:
            return block or pinned
        first = next(part for part in self.segments if part is block or part is pinned)
        return block if first is block else pinned

    def line_index(self) -> int | None:
        """Returns the index of the automatic line's segment, if the document has one."""
        return self.names.line

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
    def names(self) -> Names:
        """What is looked for in the document; one pass over it, kept, and carried over changes."""
        return _names_of(self.segments)

    def replaced(self, start: int, end: int, new: tuple[Segment, ...]) -> Topic:
        """Returns the topic with `new` in place of segments `start` up to `end`; nothing is read.

        Only for what a reading of the whole document would give.
        """
        parts = self.segments
        topic = Topic(segments=(*parts[:start], *new, *parts[end:]), newline=self.newline)
        if "names" in vars(self):
            names = _names_after(self.names, start, parts[start:end], new)
            if names is not None:
                vars(topic)["names"] = names
        return topic


def _names_of(segments: tuple[Segment, ...]) -> Names:
    blocks: dict[str, Block] = {}
    aliases: dict[str, Block] = {}
    said: dict[str, tuple[Block, ...]] = {}
    pins: dict[str, Embed] = {}
    headings: list[int] = []
    line: int | None = None
    found = 0
    for index, part in enumerate(segments):
        if isinstance(part, Raw):
            line = index if part.kind == "line" and line is None else line
        elif isinstance(part, Block):
            found += len(part.aliases) + (part.id is not None)
            said[part.text] = (*said.get(part.text, ()), part)
            if part.id is not None:
                blocks.setdefault(part.id, part)
            for alias in part.aliases:
                aliases.setdefault(alias, part)
        elif isinstance(part, Heading):
            headings.append(index)
        elif isinstance(part, Embed) and line is None:
            found += 1
            pins.setdefault(part.block, part)
    return Names(
        blocks=blocks,
        aliases=aliases,
        said=said,
        pins=pins,
        headings=tuple(headings),
        line=line,
        alone=found == len(blocks) + len(aliases) + len(pins),
    )


def _names_after(
    names: Names, start: int, gone: tuple[Segment, ...], new: tuple[Segment, ...]
) -> Names | None:
    """Returns the names after a change, None where they have to be looked for again."""
    less, more = _names_of(gone), _names_of(new)
    lines = less.line is not None or more.line is not None
    if lines or less.pins or more.pins or not (names.alone and less.alone and more.alone):
        return None
    blocks = _changed(names.blocks, less.blocks, more.blocks)
    aliases = _changed(names.aliases, less.aliases, more.aliases)
    said = _changed(names.said, less.said, more.said)
    if blocks is None or aliases is None or said is None:
        return None
    end, shift = start + len(gone), len(new) - len(gone)
    return Names(
        blocks=blocks,
        aliases=aliases,
        said=said,
        pins=names.pins,
        headings=(
            *(place for place in names.headings if place < start),
            *(place + start for place in more.headings),
            *(place + shift for place in names.headings if place >= end),
        ),
        line=names.line if names.line is None or names.line < start else names.line + shift,
        alone=True,
    )


def _changed(
    there: dict[str, _One], less: dict[str, _One], more: dict[str, _One]
) -> dict[str, _One] | None:
    """Returns `there` without `less` and with `more`; None where a key is also of others."""
    if any(there[key] != one for key, one in less.items()):
        return None
    changed = dict(there)
    for key in less:
        del changed[key]
    if not changed.keys().isdisjoint(more):
        return None
    changed.update(more)
    return changed


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
