"""The core page: `core.md`, rendered from `topics/core.md` within a budget, byte for byte.

File order; a block that doesn't fit is left out and the next is tried; a heading appears only
with a block under it; labels stay, definitions, ids and notes go. Equal input, budget and counter
give equal bytes. Promotion arranges embeds below the automatic line and touches nothing above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from turnmark_memory.pins import embed_line
from turnmark_memory.topic import Block, Embed, Heading, Raw, Segment, Topic
from turnmark_memory.topic_edit import automatic_part
from turnmark_memory.topic_format import parse, parse_text

# How much two texts may cost less together than apart before a block is ruled out by its own cost
# alone. Joined at a line end, o200k_base saves at most one token, a counter that rounds up one.
_JOIN_SLACK_TOKENS: Final = 4
_SHOWN_RAW: Final = ("item", "quote", "table", "code", "html", "fence")
_SURROGATES = re.compile("[\ud800-\udfff]")

LoadBlock = Callable[[str, str], Block | None]


class CorePage(msgspec.Struct, frozen=True, kw_only=True):
    """The page and what is on it.

    `tokens` are those of exactly `text`. `blocks` are the ids shown, `left_out` those that didn't
    fit, in file order; a chunk without id is named `core#L` and its line. `missing` are embedded
    blocks that don't exist.
    """

    text: str
    tokens: int
    blocks: tuple[str, ...]
    left_out: tuple[str, ...]
    missing: tuple[str, ...] = ()


class CoreAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.core`'s answer; `counter` names what counted the tokens."""

    text: str
    tokens: int
    counter: str
    blocks: tuple[str, ...]
    left_out: tuple[str, ...]


class _Unit(msgspec.Struct, frozen=True, kw_only=True):
    """Something that fits or not: its text, its name, and the headings above it by their lines."""

    text: str
    name: str
    headings: tuple[tuple[int, Heading], ...]
    is_item: bool


def render_core(
    core: Topic | bytes,
    load_block: LoadBlock,
    budget_tokens: int,
    count: Callable[[str], int],
) -> CorePage:
    """Returns the core page; `count` gives the tokens of a text.

    A block that is superseded, or stands on the page already, is passed over. Each block costs a
    count of its own words, and of the page so far only where it may fit: the page is bounded by
    the budget, so the whole grows with the number of embeds, not its square. Fitting is decided
    by the count of the exact page.
    """
    page = _Page(budget_tokens, count)
    topic = parse(core) if isinstance(core, bytes) else core
    missing: list[str] = []
    for unit in _units(topic, load_block, missing):
        page.offer(unit)
    return CorePage(
        text=page.text,
        tokens=page.tokens,
        blocks=tuple(page.shown),
        left_out=tuple(page.left_out),
        missing=tuple(missing),
    )


class _Page:
    """The page as far as it is written."""

    def __init__(self, budget_tokens: int, count: Callable[[str], int]) -> None:
        self._budget_tokens = budget_tokens
        self._count = count
        self._overhead_tokens = count("")
        self._headings: set[int] = set()
        self._last_is_item = False
        self.text = ""
        self.tokens = 0
        self.shown: list[str] = []
        self.left_out: list[str] = []

    def offer(self, unit: _Unit) -> None:
        """Puts `unit` on the page, with headings it needs, if the whole page then fits."""
        fresh = [(line, part) for line, part in unit.headings if line not in self._headings]
        marks = [f"{'#' * part.level} {part.title}".rstrip() for _, part in fresh]
        addition = "\n\n".join([*marks, unit.text]) + "\n"
        tight = unit.is_item and self._last_is_item and not fresh
        candidate = f"{self.text}{'' if tight or not self.text else chr(10)}{addition}"
        if not self._fits(addition, candidate):
            self.left_out.append(unit.name)
            return
        self.text = candidate
        self._headings.update(line for line, _ in fresh)
        self._last_is_item = unit.is_item
        self.shown.append(unit.name)

    def _fits(self, addition: str, candidate: str) -> bool:
        apart_tokens = self.tokens + self._count(addition) - self._overhead_tokens
        if apart_tokens > self._budget_tokens + _JOIN_SLACK_TOKENS:
            return False
        tokens = self._count(candidate)
        if tokens > self._budget_tokens:
            return False
        self.tokens = tokens
        return True


def _units(topic: Topic, load_block: LoadBlock, missing: list[str]) -> Iterator[_Unit]:
    seen: set[str] = set()
    headings: tuple[tuple[int, Heading], ...] = ()
    for line, part in topic.lines():
        if isinstance(part, Heading):
            headings = (*(above for above in headings if above[1].level < part.level), (line, part))
            continue
        block = load_block(part.topic, part.block) if isinstance(part, Embed) else part
        if block is None and isinstance(part, Embed):
            missing.append(part.block)
        unit = _unit(line, part, block, headings)
        if unit is not None and unit.name not in seen:
            seen.add(unit.name)
            yield unit


def _unit(
    line: int, part: Segment, shown: Segment | None, headings: tuple[tuple[int, Heading], ...]
) -> _Unit | None:
    here = f"core#L{line}"
    if isinstance(shown, Block):
        if shown.superseded_by is not None:
            return None
        prefix = shown.prefix if shown is part else ""
        text = prefix + shown.text + "".join(f"[^{label}]" for label in shown.cites)
        is_item = shown is part and shown.kind == "item"
        return _Unit(text=text, name=shown.id or here, headings=headings, is_item=is_item)
    if isinstance(shown, Raw) and shown.kind in _SHOWN_RAW:
        text = _SURROGATES.sub("\ufffd", shown.raw.replace("\r\n", "\n").rstrip())
        return _Unit(text=text, name=here, headings=headings, is_item=shown.kind == "item")
    return None


def arrange(core: Topic | None, embeds: Sequence[tuple[str, str]]) -> Topic:
    """Returns the core topic with exactly `embeds`, (topic, block), below the automatic line.

    A block that stands above the line is not repeated. The line, and the topic, are made where
    missing; footnotes and whatever a person wrote below the line stay, after the embeds.
    """
    above, below = automatic_part(core)
    newline = core.newline if core is not None else "\n"
    person = parse_text(above)
    taken = {embed.block for embed in person.embeds()}
    taken.update(name for block in person.blocks() for name in (block.id, *block.aliases) if name)
    lines = [
        embed_line(topic, block) + newline
        for topic, block in dict.fromkeys(embeds)
        if block not in taken
    ]
    parts = [above]
    for part in ("".join(lines), _without_embeds(below, newline)):
        parts += [newline, part] if part else []
    return parse_text("".join(parts))


def _without_embeds(segments: Sequence[Segment], newline: str) -> str:
    kept: list[str] = []
    for part in segments:
        if isinstance(part, Embed):
            kept += [newline] if kept else []
        elif kept or not (isinstance(part, Raw) and part.kind == "blank"):
            kept.append(part.raw)
    text = "".join(kept)
    return text if text.strip() else ""
