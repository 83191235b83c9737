"""Orders that graphs of records need: what each rests on first, no circle, and the ways up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush


def in_order(keys: Sequence[str], rests_on: Mapping[str, Collection[str]]) -> list[str]:
    """Returns `keys` so that each stands behind all that it rests on, else in the order given.

    A circle is entered at its first key; what a key rests on beyond `keys` is of no account.
    """
    index = {key: place for place, key in enumerate(keys)}
    waits: dict[str, int] = {}
    resting: dict[str, list[str]] = {}
    for key in keys:
        below = {other for other in rests_on.get(key, ()) if other in index and other != key}
        waits[key] = len(below)
        for other in below:
            resting.setdefault(other, []).append(key)
    ready = [index[key] for key in keys if not waits[key]]
    heapify(ready)
    ordered: dict[str, None] = {}
    next_in_circle = iter(keys)
    while len(ordered) < len(keys):
        key = keys[heappop(ready)] if ready else next(k for k in next_in_circle if k not in ordered)
        if key in ordered:
            continue
        ordered[key] = None
        for other in resting.get(key, ()):
            waits[other] -= 1
            if waits[other] == 0:
                heappush(ready, index[other])
    return list(ordered)


def parents_first(parents: Mapping[str, str | None]) -> list[str]:
    """Returns the keys of a forest so that each stands behind its parent."""
    seen: set[str | None] = {None}
    for key, parent in parents.items():
        if parent not in seen and parent != key and parent in parents:
            break
        seen.add(key)
    else:
        return list(parents)  # as nearly all files are: sorting costs ten times as much
    return in_order(
        list(parents),
        {key: (parent,) for key, parent in parents.items() if parent is not None},
    )


def upward(starts: Iterable[str | None], above: Callable[[str], str | None]) -> Iterator[str]:
    """Yields the first start and all above it, then so for the next: each key once."""
    seen: set[str | None] = {None}
    for start in starts:
        at = start
        while at is not None and at not in seen:
            seen.add(at)
            yield at
            at = above(at)


def cut_cycles(parents: dict[str, str | None], order: Sequence[str]) -> list[str]:
    """Makes a root of the last member, by `order`, of every cycle in `parents`; returns them."""
    position = {row_id: index for index, row_id in enumerate(order)}
    walked_from: dict[str, str] = {}
    cut: list[str] = []
    for start in order:
        path: list[str] = []
        at: str | None = start
        while at is not None and at not in walked_from:
            walked_from[at] = start
            path.append(at)
            at = parents[at]
        if at is not None and walked_from[at] == start:
            closing = max(path[path.index(at) :], key=position.__getitem__)
            parents[closing] = None
            cut.append(closing)
    return cut
