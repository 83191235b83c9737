"""From candidates to an order: what speaks for each is weighed, and what says nothing is left out.

The weights are learned (`weights.py`); candidates are compared by *score*, never by rank. Below a
floor nothing is returned: a memory that says something unrelated is worse than one that says
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from operator import mul

import msgspec

from turnmark_memory import weights
from turnmark_memory.candidates import Candidates
from turnmark_memory.dense import DocRef
from turnmark_memory.features import Ratings, Seen
from turnmark_memory.floor import (
    PossibleHit,
    Sighted,
    is_of_named,
    known,
    signs_of,
    with_best,
)
from turnmark_memory.index_schema import Found, Kind
from turnmark_memory.search_text import Query

FLOOR = 0.5
"""How much must speak for an answer (`floor.known`), else nothing is returned; 0 returns all."""

HIT_SHARE = 0.1
"""The share of the best candidate's coverage that any hit must have, itself or the question that it
answers: a turn is no hit for standing beside one. 0.2 would cost 2 points of recall@10 more on
LoCoMo's first three conversations."""

LEAST_OF_BEST = 0.02
"""The part of the best hit's score that any hit must have. Source: the half `learn` of
benchmarks/recall: 0.01 / 0.02 / 0.03 / 0.05 leave 9.5 / 8.9 / 8.2 / 7.3 of ten hits about LoCoMo
and 7 / 6 / 5 / 4.5 in the bilingual set, at a cost of 0.1 / 0.1 / 0.2 / 0.5 points of recall@10 and
none."""

_TELLING = 1.0
"""Rarity of a question's words, together, from which a match tells something: that of one word in
every third document. What shares only words that most documents have scores less."""

MEANING_FLOOR = 0.3
"""Nearness in meaning from which a document that shares no word may be a hit."""

_LEAST_COVERAGE = 0.3
"""The best candidate is taken to cover that much at least when others are compared with it."""


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its place value: `score`, from 0 to 1, is how likely it answers."""

    kind: Kind
    found: Found
    score: float
    coverage: float


def rank(
    asked: Query,
    candidates: Candidates,
    nearness: Mapping[DocRef, float] | None = None,
    *,
    floored: bool = True,
) -> list[Ranked]:
    """Returns the candidates that may be shown, best first; none if none reaches the floor.

    Without a floor all are, for candidates that were chosen on other grounds.
    """
    ratings = Ratings(asked, candidates, nearness)
    near = nearness or {}
    seen = sighted(ratings, candidates, near)
    hits = possible(seen, ratings, candidates, floored=floored)
    chosen = weights.WITH_MEANING if near else weights.BY_WORDS
    likely = [_likelihood(chosen, values) for _, _, values in hits]
    if floored and not _is_known(candidates, seen, hits, likely, with_meaning=bool(near)):
        return []
    telling = 1.0 if near else min(_rarest(seen) / _TELLING, 1.0)
    least = LEAST_OF_BEST * max(likely, default=0.0) if floored else 0.0
    return _ordered(
        [
            Ranked(kind=one.kind, found=one.found, score=telling * likelihood, coverage=share)
            for (one, share, _), likelihood in zip(hits, likely, strict=True)
            if likelihood >= least
        ]
    )


def _is_known(
    candidates: Candidates,
    seen: Sequence[Sighted],
    hits: Sequence[PossibleHit],
    likely: Sequence[float],
    *,
    with_meaning: bool,
) -> bool:
    """Tells whether enough speaks for an answer at all; `likely` says it of each hit."""
    signs = signs_of(candidates, seen, hits)
    if hits:
        one, _, values = hits[likely.index(max(likely))]
        signs = with_best(signs, values, is_of_named=is_of_named(candidates, one, values))
    return known(signs, with_meaning=with_meaning) >= FLOOR


def sighted(
    ratings: Ratings, candidates: Candidates, nearness: Mapping[DocRef, float]
) -> list[Sighted]:
    """Returns each candidate with its coverage of the question and its nearness."""
    coverage = candidates.matching.coverage
    return [
        (one, coverage(one.match.bits), nearness.get((one.kind, one.found.ref), 0.0))
        for one in ratings.seen()
    ]


def possible(
    seen: Sequence[Sighted], ratings: Ratings, candidates: Candidates, *, floored: bool = True
) -> list[PossibleHit]:
    """Returns the candidates that have enough of the question or its meaning, rated."""
    best = max((share for _, share, _ in seen), default=0.0)
    least = HIT_SHARE * max(best, _LEAST_COVERAGE)
    return [
        (one, share, ratings.values(one))
        for one, share, near in seen
        if not floored
        or max(share, _coverage_of_question(one, candidates)) >= least
        or near >= MEANING_FLOOR
    ]


def _coverage_of_question(one: Seen, candidates: Candidates) -> float:
    """Returns how much of what was asked the question that a turn answers spoke about."""
    return candidates.matching.coverage(one.question_bits) if one.question_bits else 0.0


def _rarest(seen: Sequence[Sighted]) -> float:
    """Returns how rare what a candidate has of the question is together, of the one with most."""
    distinct = {one.match.bits: one.match for one, _, _ in seen}
    return max((sum(weight for weight, _ in one.times) for one in distinct.values()), default=0.0)


def _likelihood(chosen: weights.Weights, values: Sequence[float]) -> float:
    speaks_for = sum(map(mul, chosen.values, values)) + chosen.bias
    return 1.0 / (1.0 + exp(-speaks_for))


def _ordered(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Returns the candidates by score and, between equals, the newer one first."""
    return sorted(ranked, key=lambda one: (-one.score, -one.found.at_us, one.found.ref))
