"""Cuts the lines of a Markdown document into chunks, without judging their content.

The cut depends only on a chunk's own lines and on what kind of line may interrupt a paragraph, so
an insertion or removal between blank lines never changes how the rest is read. Two deliberate
differences from CommonMark: a line that ends in one of our block ids ends its chunk, and an
unclosed fence or comment is one line, so that a slip of the person never hides the blocks below.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from turnmark_memory.labels import BLOCK_PATTERN, LABEL_PATTERN
from turnmark_memory.topic import AUTOMATIC_LINE, TopicWarning

ChunkKind = Literal[
    "front", "blank", "line", "fence", "comment", "html", "heading", "setext", "definition",
    "embed", "rule", "quote", "item", "code", "paragraph",
]  # fmt: skip

ITEM_PREFIX = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])(?:[ \t]+|$)(?:\[[ xX]\][ \t]+)?")
QUOTE_PREFIX = re.compile(r" {0,3}>[ \t]?")
DEFINITION = re.compile(r" {0,3}\[\^([^\]\s]+)\]:")
EMBED = re.compile(
    rf"[ \t]*(?:[-+*][ \t]+)?!\[\[([^\]|#\n]+)#\^({BLOCK_PATTERN})(?:\|[^\]\n]*)?\]\][ \t]*"
)
ATX = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")

_OUR_DEFINITION = re.compile(rf" {{0,3}}\[\^{LABEL_PATTERN}\]:")
_FENCE = re.compile(r"[ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*")
# A note of ours stands in front of an id, which may have a line to itself.
_COMMENT = re.compile(r" {0,3}<!--(?! (?:was b-|superseded \d|person -->|block b-))")
_VERBATIM = re.compile(r" {0,3}<(script|pre|style|textarea)(?=[\s>]|$)", re.IGNORECASE)
_HTML = re.compile(
    r" {0,3}</?(?:address|article|aside|blockquote|body|center|details|dialog|div|dl|dt|dd"
    r"|fieldset|figure|figcaption|footer|form|h[1-6]|head|header|hr|html|iframe|li|link|main|menu"
    r"|nav|ol|option|p|section|summary|table|tbody|td|tfoot|th|thead|title|tr|track|ul)(?=[\s/>]|$)",
    re.IGNORECASE,
)
_LONE_TAG = re.compile(r" {0,3}</?[A-Za-z][A-Za-z0-9-]*(?:[ \t][^<>]*)?/?>[ \t]*")
_ENDS_IN_ID = re.compile(rf"(?:^|[ \t])\^{BLOCK_PATTERN}$")
_FIRST_ITEM = re.compile(r"[ \t]*(?:[-+*]|1[.)])[ \t]+\S")
_CODE = re.compile(r"(?: {4}| {0,3}\t)[ \t]*[^ \t\r]")
_WHITE: Final = " \t\r\n"


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Lines `start` up to `end` (exclusive) and what they look like."""

    kind: ChunkKind
    start: int
    end: int


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A document's chunks, which cover all its lines in order, and what was left open."""

    chunks: tuple[Chunk, ...]
    warnings: tuple[TopicWarning, ...]


def split_lines(text: str) -> list[str]:
    """Returns the lines with their ends; only LF ends a line, as other marks may stand in words."""
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def cut(lines: Sequence[str], start: int = 0) -> Cut:
    """Returns the chunks of `lines` from line `start` on; time grows with their number.

    What stands above `start` is not looked at, but front matter begins at line 0 alone.
    """
    scanner = _Scanner([line.rstrip("\r\n") for line in lines])
    chunks: list[Chunk] = []
    at = start
    while at < len(lines):
        kind, end = scanner.read(at)
        chunks.append(Chunk(kind=kind, start=at, end=end))
        at = end
    return Cut(chunks=tuple(chunks), warnings=tuple(scanner.warnings))


class _Scanner:
    """Reads one chunk at a time; remembers which closers don't follow, so scans stay linear."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._unclosed: dict[str, int] = {}
        self.warnings: list[TopicWarning] = []

    def read(self, at: int) -> tuple[ChunkKind, int]:
        """Returns the kind of the chunk at line `at` and where it ends."""
        line = self._lines[at]
        if at == 0 and line.rstrip(_WHITE) == "---":
            return self._front_matter()
        if not line.strip(_WHITE):
            return "blank", self._while(at, lambda other: not other.strip(_WHITE))
        return self._single(at, line) or self._enclosed(at, line) or self._running(at, line)

    def _front_matter(self) -> tuple[ChunkKind, int]:
        for index in range(1, len(self._lines)):
            if self._lines[index].rstrip(_WHITE) in ("---", "..."):
                return "front", index + 1
        self._warn(0, "the front matter is not closed; end it with a line `---`")
        return "rule", 1

    def _single(self, at: int, line: str) -> tuple[ChunkKind, int] | None:
        if line.strip(_WHITE) == AUTOMATIC_LINE:
            return "line", at + 1
        if EMBED.fullmatch(line):
            return "embed", at + 1
        if ATX.match(line):
            return "heading", at + 1
        if _RULE.fullmatch(line):
            return "rule", at + 1
        return ("definition", at + 1) if _OUR_DEFINITION.match(line) else None

    def _enclosed(self, at: int, line: str) -> tuple[ChunkKind, int] | None:
        fence = _FENCE.match(line)
        if fence:
            return "fence", self._fence_end(at, fence[1])
        if _COMMENT.match(line):
            end = self._comment_end(at, line.find("<!--") + 4)
            return ("comment", end) if end else None
        verbatim = _VERBATIM.match(line)
        if verbatim:
            return "html", self._closed(at, f"</{verbatim[1].lower()}>")
        return None

    def _running(self, at: int, line: str) -> tuple[ChunkKind, int]:
        if _HTML.match(line) or _LONE_TAG.fullmatch(line):
            return "html", self._run(at, lambda other: bool(other.strip(_WHITE)))
        if QUOTE_PREFIX.match(line):
            return "quote", self._run(at, lambda other: bool(QUOTE_PREFIX.match(other)))
        if DEFINITION.match(line):
            return "definition", self._run(at, self._continues)
        if ITEM_PREFIX.match(line):
            return "item", self._run(at, self._continues_item)
        if _CODE.match(line):
            return "code", self._run(at, lambda other: bool(_CODE.match(other)))
        return self._paragraph(at)

    def _paragraph(self, at: int) -> tuple[ChunkKind, int]:
        end = self._run(at, self._continues)
        for index in range(at + 1, end):
            if UNDERLINE.fullmatch(self._lines[index]):
                return "setext", index + 1
        open_end = end < len(self._lines) and not _ends_in_id(self._lines[end - 1])
        # `---` is a rule on its own and an underline here.
        if open_end and UNDERLINE.fullmatch(self._lines[end]):
            return "setext", end + 1
        return "paragraph", end

    def _continues(self, line: str) -> bool:
        return bool(line.strip(_WHITE)) and not _interrupts(line)

    def _continues_item(self, line: str) -> bool:
        return self._continues(line) and not ITEM_PREFIX.match(line)

    def _run(self, at: int, goes_on: Callable[[str], bool]) -> int:
        end = at + 1
        while end < len(self._lines) and not _ends_in_id(self._lines[end - 1]):
            if not goes_on(self._lines[end]):
                break
            end += 1
        return end

    def _while(self, at: int, holds: Callable[[str], bool]) -> int:
        end = at + 1
        while end < len(self._lines) and holds(self._lines[end]):
            end += 1
        return end

    def _fence_end(self, at: int, opener: str) -> int:
        mark, length = opener[0], len(opener)
        if self._unclosed.get(mark, length + 1) <= length:
            return at + 1
        for index in range(at + 1, len(self._lines)):
            closer = self._lines[index].strip(_WHITE)
            if len(closer) >= length and not closer.strip(mark):
                return index + 1
        self._unclosed[mark] = length
        self._warn(at, f"the fence {opener[:8]} is not closed")
        return at + 1

    def _comment_end(self, at: int, offset: int) -> int:
        """Returns where the comment ends, 0 if it doesn't and its opener is only words."""
        if "-->" in self._lines[at][offset:]:
            return at + 1
        for index in range(at + 1, len(self._lines)):
            line = self._lines[index]
            inner, closer = line.find("<!--"), line.find("-->")
            if inner != -1 and (closer == -1 or inner < closer):
                break  # the closer of a block's note doesn't close what a person left open
            if closer != -1:
                return index + 1
        self._warn(at, "the comment that begins here is not closed")
        return 0

    def _closed(self, at: int, closer: str) -> int:
        if closer in self._unclosed:
            return at + 1
        for index in range(at, len(self._lines)):
            if closer in self._lines[index].lower():
                return index + 1
        self._unclosed[closer] = at
        self._warn(at, f"`{closer}` is missing after this line")
        return at + 1

    def _warn(self, at: int, problem: str) -> None:
        self.warnings.append(TopicWarning(line=at + 1, problem=problem))


def _ends_in_id(line: str) -> bool:
    return _ENDS_IN_ID.search(line.rstrip(_WHITE)) is not None


def _interrupts(line: str) -> bool:
    if ATX.match(line) or _RULE.fullmatch(line) or QUOTE_PREFIX.match(line):
        return True
    if EMBED.fullmatch(line) or DEFINITION.match(line) or _FIRST_ITEM.match(line):
        return True
    return bool(_FENCE.match(line) or _COMMENT.match(line) or _HTML.match(line))
