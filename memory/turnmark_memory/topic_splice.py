"""One change of a topic's text, read where it was made.

How a chunk is read depends on its own lines and on the one below it, so what lies further from a
change is as it was, from the first boundary on at which the new reading meets the old one. What
looks further than that (front matter, a fence or comment that is left open) is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

from turnmark_memory.topic import Heading, Raw, Segment, Topic
from turnmark_memory.topic_format import heading_path, parse_text, segment, with_headings
from turnmark_memory.topic_lines import cut, split_lines

# The neighbour above may take the new text in, and its own first line be run on where the document
# ended without a newline: the one above that has seen no more than that line's beginning.
_ABOVE: Final = 2

# Segments below a change within which the new reading has to meet the old one.
_BELOW: Final = 4


def spliced(topic: Topic, start: int, end: int, text: str) -> Topic:
    """Returns the topic with `text` in place of the segments `start` up to `end`, as it is.

    It is what `reread` gives. Costs a read of `text` and its neighbours; the rest is copied.
    """
    return read_nearby(topic, start, end, text) or reread(topic, start, end, text)


def reread(topic: Topic, start: int, end: int, text: str) -> Topic:
    """Returns what `spliced` does, by reading the whole document."""
    before = "".join(part.raw for part in topic.segments[:start])
    after = "".join(part.raw for part in topic.segments[end:])
    return parse_text(before + text + after)


def read_nearby(topic: Topic, start: int, end: int, text: str) -> Topic | None:
    """Returns the changed topic, None where more than the neighbours would have to be read."""
    parts = topic.segments
    first = start - _ABOVE
    if topic.unclosed or first <= 0 or _is_mark(parts[first - 1]):
        return None
    head = "".join(part.raw for part in parts[first:start]) + text
    below = parts[end : end + _BELOW]
    found = _read(head + "".join(part.raw for part in below))
    if found is None:
        return None
    is_last = end + len(below) == len(parts)
    count, passed = _meeting(found, len(head), below, is_last=is_last)
    if count is None:
        return None
    above = heading_path(_headings(parts[place] for place in topic.names.headings if place < first))
    new = tuple(with_headings(found[:count], above))
    last = end + passed
    if _titles(new) == _titles(parts[first:last]):
        return topic.replaced(first, last, new)
    rest = tuple(with_headings(parts[last:], [*above, *_headings(new)]))
    return topic.replaced(first, len(parts), new + rest)


def _read(text: str) -> list[Segment] | None:
    """Returns the segments of `text` inside a document; None if it may be closed further below."""
    lines = ["\n", *split_lines(text)]  # no line is the document's first
    done = cut(lines, 1)
    return None if done.warnings else [segment(lines, chunk) for chunk in done.chunks]


def _meeting(
    found: Sequence[Segment], begin: int, below: Sequence[Segment], *, is_last: bool
) -> tuple[int | None, int]:
    """Returns how many new segments, and how many old ones of `below`, end where both do.

    The old ones begin at the character `begin`. At least one of them is left, whose first line the
    new segment before it has seen, unless the document ends with them (`is_last`).
    """
    ends = {at: count for count, at in enumerate(accumulate(len(part.raw) for part in found), 1)}
    ends[0] = 0
    old = [*accumulate((len(part.raw) for part in below), initial=begin)]
    for passed, at in enumerate(old if is_last else old[:-1]):
        if at in ends:
            return ends[at], passed
    return None, 0


def _headings(parts: Iterable[Segment]) -> Iterable[Heading]:
    return (part for part in parts if isinstance(part, Heading))


def _titles(parts: Iterable[Segment]) -> list[tuple[int, str]]:
    return [(part.level, part.title) for part in _headings(parts)]


def _is_mark(part: Segment) -> bool:
    return isinstance(part, Raw) and part.kind == "mark"
