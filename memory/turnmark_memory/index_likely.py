"""Choosing, among very many documents, those that are worth a closer look.

BM25 of FTS5 costs about 1 us a match: in a large memory only the rarest terms could be looked for,
and what the others say was lost. Here the rare terms say which documents there are, every term
says how promising they are, and nothing is scored but by the terms that a document has at all: a
list of documents costs about 0.06 us each, and to follow a frequent term along a short list less
still. Times and lengths are weighed afterwards, for the few that were chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import log

import msgspec

from turnmark_memory.index_file import Database
from turnmark_memory.index_schema import Filters, Found, Kind
from turnmark_memory.index_search import documents_at, newest_rows, rarest
from turnmark_memory.search_text import match_any

MANY = 3_000
"""Documents from which on they are chosen this way; fewer are all scored by BM25."""

MOST_LISTED = 4_000
"""Documents that the rarest terms may list. Source: `benchmarks/recall_crowded.py --every 1`, asked
about LoCoMo's first three conversations among 77,000 turns drawn from their own words: 3,000 /
4,000 / 5,000 / 6,000 listed find 69.5 / 70.3 / 70.3 / 70.3 % of the evidence in the first ten; BM25
of 3,000 matches found some 7 points less."""

_MOST_FOLLOWED = 3
"""More frequent terms that are looked for in what is listed, the rarest of them first. Source: as
above; 2 / 3 / 4 / 6 find 70.0 / 70.3 / 70.2 / 69.9 %, and with none 5 points less are found."""

_FEW = 60
_LEAST_SHARE = 0.5
"""The share of the best one's rarity that a document must have, after the first few: what has less
is not the answer, and to look at it costs 10 us. Source: as above; with 0.3 / 0.4 / 0.5 / 0.6 are
found 70.1 / 69.9 / 70.3 / 69.2 %, in 9.0 / 8.6 / 7.4 / 6.9 ms."""


def likely(
    db: Database,
    kind: Kind,
    frequencies: Mapping[str, int],
    rows_of: Callable[[str], Sequence[int]],
    size: int,
    k: int,
    filters: Filters,
) -> list[Found]:
    """Returns up to `k` of `size` documents that have terms, by the rarity of those that they have.

    `rows_of` gives the newest rows of a term, `MOST_LISTED` of them. Between equals the newer one
    goes first. One that has none but frequent terms is not found.
    """
    scores = _scores(db, kind, frequencies, rows_of, size)
    rows = _best_first(scores)
    found = documents_at(db, kind, list(islice(rows, _FEW)), filters)
    while len(found) < k:
        least = _LEAST_SHARE * scores[found[0].row] if len(found) >= _FEW else 0.0
        some = list(islice(rows, k))
        found += documents_at(db, kind, [row for row in some if scores[row] >= least], filters)
        if len(some) < k or scores[some[-1]] < least:
            break
    return [msgspec.structs.replace(one, score=scores[one.row]) for one in found[:k]]


def _scores(
    db: Database,
    kind: Kind,
    frequencies: Mapping[str, int],
    rows_of: Callable[[str], Sequence[int]],
    size: int,
) -> dict[int, float]:
    """Returns, by row, the rarity together of the terms that a document has."""
    listed, followed = listing(frequencies)
    scores: dict[int, float] = {}
    for term in listed:
        rows, rarity = rows_of(term), _rarity(frequencies[term], size)
        if len(rows) > len(scores):
            # The longer list is made without a loop of ours, the shorter one added to it.
            before, scores = scores, dict.fromkeys(rows, rarity)
            for row, score in before.items():
                scores[row] = scores.get(row, 0.0) + score
        else:
            for row in rows:
                scores[row] = scores.get(row, 0.0) + rarity
    some = match_any(listed)
    for term in followed:
        rarity = _rarity(frequencies[term], size)
        for row in newest_rows(db, kind, f"({some}) AND {match_any([term])}", MOST_LISTED):
            scores[row] = scores.get(row, 0.0) + rarity
    return scores


def listing(frequencies: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Returns the terms whose documents are listed, and those that are followed along the list.

    At least one is listed, however frequent, but never more than `MOST_LISTED` of its documents.
    """
    present = rarest(frequencies)
    listed: list[str] = []
    left = MOST_LISTED
    for term in present:
        left -= frequencies[term]
        if listed and left < 0:
            break
        listed.append(term)
    return listed, present[len(listed) :][:_MOST_FOLLOWED]


def _best_first(scores: Mapping[int, float]) -> Iterator[int]:
    """Yields rows by score, newest first between equals; those with few terms have few scores."""
    rows_with: dict[float, list[int]] = defaultdict(list)
    for row, score in scores.items():
        rows_with[score].append(row)
    for score in sorted(rows_with, reverse=True):
        yield from sorted(rows_with[score], reverse=True)


def _rarity(count: int, size: int) -> float:
    return log(1 + (max(size - count, 0) + 0.5) / (count + 0.5))
