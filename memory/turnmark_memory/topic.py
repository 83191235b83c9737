"""A topic in memory: its document cut into segments, each with its exact characters.

Joining the `raw` of all segments gives the document back, so whatever turnmark doesn't understand
survives untouched. `raw` is decoded with `surrogateescape`; every other string is clean Unicode.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
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
    line: int


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


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """One document. `newline` is its own line end, used for what is inserted."""

    segments: tuple[Segment, ...]
    newline: str = "\n"
    warnings: tuple[TopicWarning, ...] = ()

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
        exact = next((block for block in self.blocks() if block.id == id), None)
        return exact or next((block for block in self.blocks() if id in block.aliases), None)

    def line_index(self) -> int | None:
        """Returns the index of the automatic line's segment, if the document has one."""
        for index, part in enumerate(self.segments):
            if isinstance(part, Raw) and part.kind == "line":
                return index
        return None


def block_hash(block: Block) -> str:
    """Returns 16 hex digits over words and cites: what a writer was shown, wherever it stands."""
    return words_hash(block.text, block.cites)


def words_hash(text: str, cites: tuple[str, ...]) -> str:
    """Returns the `block_hash` of a block with these words and cites."""
    seen = "\x00".join((text, *cites)).encode("utf-8", "surrogatepass")
    return blake2b(seen, digest_size=8).hexdigest()
