"""A batch that is too long for one question, in parts that are asked about one after the other.

Batches end with the turn that fills them, however long that one is: a log that somebody pasted is
cut, at paragraphs where it has any. Its parts are turns of one name, so an edit of any of them
cites the turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from turnmark_memory.model import Batch, Evidence

# Where a text may be cut, best first: between paragraphs, lines, sentences, words.
_SEAMS: Final = tuple(
    re.compile(pattern) for pattern in (r"\n\s*\n", r"\n", r"[.!?]\s|[。！？]", r"\s")
)

_AROUND: Final = 8
"""A seam is looked for within this fraction of a text to both sides of its middle."""


def parts_of(batch: Batch, limit_tokens: int, count: Callable[[str], int]) -> list[Batch]:
    """Returns the batch whole if it is short enough, else as several, each within the limit.

    Blocks and topics are the same for all of them. Counts the tokens of a long turn again and
    again, some twenty times at most.
    """
    if sum(turn.tokens for turn in batch.turns) <= limit_tokens:
        return [batch]
    parts: list[list[Evidence]] = []
    left_tokens = 0
    for turn in batch.turns:
        for piece in _pieces(turn, limit_tokens, count):
            if not parts or piece.tokens > left_tokens:
                parts.append([])
                left_tokens = limit_tokens
            parts[-1].append(piece)
            left_tokens -= piece.tokens
    return [msgspec.structs.replace(batch, turns=tuple(part)) for part in parts]


def _pieces(turn: Evidence, limit_tokens: int, count: Callable[[str], int]) -> Iterator[Evidence]:
    if turn.tokens <= limit_tokens:
        yield turn
        return
    for text, tokens in _halved(turn.text, limit_tokens, count):
        yield msgspec.structs.replace(turn, text=text, tokens=tokens)


def _halved(text: str, limit_tokens: int, count: Callable[[str], int]) -> Iterator[tuple[str, int]]:
    """Yields a text in its order, in pieces within the limit, each with its tokens."""
    tokens = count(text)
    if tokens <= limit_tokens or len(text) < 2:  # noqa: PLR2004  a character can't be halved
        yield text, tokens
        return
    at = _seam(text)
    for half in (text[:at], text[at:]):
        yield from _halved(half, limit_tokens, count)


def _seam(text: str) -> int:
    """Returns where to cut a text of two characters or more, near its middle."""
    middle = len(text) // 2
    around = len(text) // _AROUND
    for pattern in _SEAMS:
        ends = [found.end() for found in pattern.finditer(text, middle - around, middle + around)]
        if ends:
            return min(ends, key=lambda end: abs(end - middle))
    return middle
