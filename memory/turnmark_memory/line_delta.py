"""How to get from a file's newer bytes back to its older ones: the lines that differ, nothing else.

An undo puts a file back byte for byte with it. Lines that stand once in both texts are matched,
then what equals around them; so the cost grows with the length of the file, not its square, and a
moved paragraph costs its own length twice.

Source: the unique lines as anchors are those of patience diff (Bram Cohen).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec


class Hunk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In place of `drop` lines of the newer text, from line `at` on (from 0), come the bytes `put`.

    `put` is base64 in JSON: a file need not be UTF-8.
    """

    at: int
    drop: int
    put: bytes


def delta(newer: bytes, older: bytes) -> tuple[Hunk, ...]:
    """Returns the hunks that make `older` out of `newer`, in the order of the file."""
    new, old = _lines(newer), _lines(older)
    hunks: list[Hunk] = []
    at_new = at_old = 0
    for start_new, start_old, count in (*_equal_runs(new, old), (len(new), len(old), 0)):
        put = b"".join(old[at_old:start_old])
        if start_new > at_new or put:
            hunks.append(Hunk(at=at_new, drop=start_new - at_new, put=put))
        at_new, at_old = start_new + count, start_old + count
    return tuple(hunks)


def patched(newer: bytes, hunks: Sequence[Hunk]) -> bytes:
    """Returns the older text; `hunks` must be the delta of exactly these bytes."""
    lines = _lines(newer)
    parts: list[bytes] = []
    at = 0
    for hunk in hunks:
        parts += [*lines[at : hunk.at], hunk.put]
        at = hunk.at + hunk.drop
    return b"".join([*parts, *lines[at:]])


def _lines(text: bytes) -> list[bytes]:
    *whole, last = text.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _equal_runs(new: list[bytes], old: list[bytes]) -> Iterator[tuple[int, int, int]]:
    """Yields (start in new, start in old, lines) of runs that are equal, in order."""
    at_new = at_old = 0
    for anchor_new, anchor_old in (*_anchors(new, old), (len(new), len(old))):
        if anchor_new < at_new or anchor_old < at_old:
            continue  # the run before took it in
        head = _common(new, old, at_new, at_old, anchor_new, anchor_old)
        if head:
            yield at_new, at_old, head
        tail = _common_back(new, old, at_new + head, at_old + head, anchor_new, anchor_old)
        end_new, end_old = anchor_new + 1, anchor_old + 1
        if anchor_new == len(new):
            end_new, end_old = anchor_new, anchor_old
        if end_new > anchor_new - tail:
            yield anchor_new - tail, anchor_old - tail, end_new - anchor_new + tail
        at_new, at_old = end_new, end_old


def _common(
    new: list[bytes], old: list[bytes], at_new: int, at_old: int, end_new: int, end_old: int
) -> int:
    limit, count = min(end_new - at_new, end_old - at_old), 0
    while count < limit and new[at_new + count] == old[at_old + count]:
        count += 1
    return count


def _common_back(
    new: list[bytes], old: list[bytes], at_new: int, at_old: int, end_new: int, end_old: int
) -> int:
    limit, count = min(end_new - at_new, end_old - at_old), 0
    while count < limit and new[end_new - 1 - count] == old[end_old - 1 - count]:
        count += 1
    return count


def _anchors(new: list[bytes], old: list[bytes]) -> list[tuple[int, int]]:
    """Returns the longest ascending chain of lines that stand exactly once in both texts."""
    once_new, once_old = Counter(new), Counter(old)
    places = {line: at for at, line in enumerate(old) if once_old[line] == 1}
    pairs = [
        (at, places[line]) for at, line in enumerate(new) if once_new[line] == 1 and line in places
    ]
    ends: list[int] = []
    chain: list[int] = []
    previous: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(chain[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        chain[length : length + 1] = [index]
    found: list[tuple[int, int]] = []
    index = chain[-1] if chain else -1
    while index >= 0:
        found.append(pairs[index])
        index = previous[index]
    return found[::-1]
