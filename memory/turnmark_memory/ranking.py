"""From candidates to an order: pure functions over what the index found.

Turns are not independent documents: the answer follows the question, a session keeps to its
subject, and who is asked about tends to be who said it. Using that is worth 12 points of
recall@10 over plain BM25 on LoCoMo, more than any embedding on top of it.

Candidates are compared by *score*, never by rank. Below a floor nothing is returned: a memory that
says something unrelated is worse than one that says nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log

import msgspec

from turnmark_memory.dense import DocRef
from turnmark_memory.index_schema import Found, Kind
from turnmark_memory.search_text import Query, Unit

AFTER_A_MATCH = 0.5
BEFORE_A_MATCH = 0.4
ANSWER_TO_A_MATCH = 0.7
QUESTION_FACTOR = 0.7
SESSION_PRIOR = 0.4
SPEAKER_BOOST = 0.6
"""What a turn gets of a match before it, behind it, and before it where that match is a question;
what a question keeps of its own score; what the best session and the asked-about speaker add.

Source: LoCoMo's first five conversations, 760 questions: without the floor recall@10 is 77.5 %.
Telling questions from statements is 1.6 points of it; .4 and .3 beside a match, .3 for the session
and .4 for the speaker instead cost 0.9. Chosen on these data, in round numbers.
"""

SESSION_MATCHES = 3
"""A session is as good as its best few matches together; more would favour long sessions."""

COVERAGE_WEIGHT = 0.5
RECENCY = 0.02
"""What the newest candidate gets over the oldest: it decides between equals and nothing else."""

FLOOR = 0.3
"""The share of a question, weighted, that the best hit must speak about, else there is none.

Source: LoCoMo's first five conversations, the best coverage of each question in its own one: 98 %
reach 0.3, of questions about the other four 11 %, of general knowledge 12 %. At 0.4: 94, 3, 8 %."""

HIT_SHARE = 0.2
"""The share of the best hit's coverage that any other must have: leaves out what shares a general
word alone. With the floor it costs one point of recall@10 (77.5 to 76.5 %)."""

MEANING_WEIGHT = 0.5
"""What nearness in meaning counts beside words and structure. Source: weights of .4 to .6 for a
dense list find the same on LoCoMo within 0.3 points."""

MEANING_FLOOR = 0.5
"""Nearness in meaning from which a document that shares no word is an answer."""

_BACKGROUND = 1_000
"""Documents that the memory is imagined to be part of: in a small memory every word is rare, and
whether one is missing says less than it seems to."""

_NAME_FACTOR = 2.0
_COMMON_FACTOR = 0.3
_CHARACTER_FACTOR = 0.6
"""Two characters make about one word."""

_HALF = 0.35
"""What a character counts for without its neighbour: all of a question's characters, in any order,
just pass the floor, half of them don't."""

_NEIGHBOUR_COVERAGE = 0.8
_MOST_UNITS = 10
"""Units that can be asked for at once: a long question is answered by what covers a part of it."""


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """A question's units: what each weighs, and its terms between blanks, in full and in half.

    `total` is what full coverage would reach.
    """

    units: tuple[tuple[float, tuple[str, ...], tuple[str, ...]], ...]
    total: float


class Ranked(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its place value: `score` and `coverage` lie between 0 and about 1."""

    kind: Kind
    found: Found
    score: float
    coverage: float


def weigh(query: Query, frequencies: Mapping[str, int], size: int) -> Weighed:
    """Returns the units weighed by rarity among `size` documents, names up, general words down."""
    units = tuple(
        (_weight(unit, frequencies, size), _between_blanks(unit.full), _between_blanks(unit.half))
        for unit in query.units
    )
    heaviest = sorted((weight for weight, _, _ in units), reverse=True)[:_MOST_UNITS]
    return Weighed(units=units, total=sum(heaviest))


def coverage(weighed: Weighed, terms: str) -> float:
    """Returns the share of the question that a document with `terms` speaks about, 0 to 1."""
    if not weighed.total:
        return 0.0
    covered = 0.0
    for weight, full, half in weighed.units:
        if _has_any(terms, full):
            covered += weight
        elif _has_any(terms, half):
            covered += _HALF * weight
    return min(covered / weighed.total, 1.0)


def rank_turns(
    found: Sequence[Found],
    beside: Mapping[int, tuple[Found | None, Found | None]],
    weighed: Weighed,
    asked: frozenset[str],
) -> list[Ranked]:
    """Returns turns and their neighbours, best first.

    `beside` maps the rows of the better matches to the turns before and after them; `asked` are
    the terms of the question that are a speaker's name.
    """
    if not found:
        return []
    turns = {turn.row: turn for turn in found}
    own = {turn.row: coverage(weighed, turn.terms) for turn in found}
    shares = dict(own)
    top = max(turn.score for turn in found) or 1.0
    scores = {turn.row: turn.score / top for turn in found}
    for turn, other, part in _links(found, beside):
        turns.setdefault(other.row, other)
        scores[other.row] = scores.get(other.row, 0.0) + part * turn.score / top
        passed = _NEIGHBOUR_COVERAGE * own[turn.row]
        shares[other.row] = max(shares.get(other.row, 0.0), passed)
    for row in scores:
        scores[row] *= QUESTION_FACTOR if turns[row].asks else 1.0
    _favour_speaker(scores, turns, asked)
    _favour_sessions(scores, turns, found)
    return _ranked("turn", turns, scores, shares)


def rank_blocks(found: Sequence[Found], weighed: Weighed) -> list[Ranked]:
    """Returns blocks, best first."""
    return _ranked(
        "block",
        {block.row: block for block in found},
        {block.row: block.score for block in found},
        {block.row: coverage(weighed, block.terms) for block in found},
    )


def fuse(*rankings: Sequence[Ranked]) -> list[Ranked]:
    """Returns the candidates in one order, or nothing if none reaches the floor.

    Each ranking's scores are relative to its own best; what makes them comparable is how much of
    the question that best one covers.
    """
    best = max((_reach(ranking) for ranking in rankings), default=0.0)
    if best < FLOOR:
        return []
    merged = [
        msgspec.structs.replace(ranked, score=ranked.score * _reach(ranking))
        for ranking in rankings
        for ranked in ranking
        if ranked.coverage >= HIT_SHARE * best
    ]
    return sorted(merged, key=lambda ranked: (-ranked.score, ranked.found.ref))


def near_in_meaning(
    ranked: Sequence[Ranked], others: Sequence[Ranked], nearness: Mapping[DocRef, float]
) -> list[Ranked]:
    """Returns the candidates and `others`, found by meaning alone, in the order of both scores."""
    if not nearness:
        return list(ranked)
    known = {(one.kind, one.found.ref) for one in ranked}
    both = [*ranked, *(one for one in others if (one.kind, one.found.ref) not in known)]
    merged: list[Ranked] = []
    for one in both:
        near = min(max(nearness.get((one.kind, one.found.ref), 0.0), 0.0), 1.0)
        score = (1 - MEANING_WEIGHT) * one.score + MEANING_WEIGHT * near
        covered = max(one.coverage, near)
        merged.append(msgspec.structs.replace(one, score=score, coverage=covered))
    return sorted(merged, key=lambda ranked: (-ranked.score, ranked.found.ref))


def _links(
    found: Sequence[Found], beside: Mapping[int, tuple[Found | None, Found | None]]
) -> Iterator[tuple[Found, Found, float]]:
    """Yields a match, a turn beside it and the part of its score that goes there."""
    for turn in found:
        before, after = beside.get(turn.row, (None, None))
        if before is not None:
            yield turn, before, BEFORE_A_MATCH
        if after is not None:
            yield turn, after, ANSWER_TO_A_MATCH if turn.asks else AFTER_A_MATCH


def _reach(ranking: Sequence[Ranked]) -> float:
    return max((ranked.coverage for ranked in ranking), default=0.0)


def _ranked(
    kind: Kind,
    candidates: Mapping[int, Found],
    scores: Mapping[int, float],
    shares: Mapping[int, float],
) -> list[Ranked]:
    """Returns the candidates by score, coverage and, between equals, recency; the best is 1."""
    if not candidates:
        return []
    top = max(scores.values()) or 1.0
    newest = max(found.at_us for found in candidates.values())
    oldest = min(found.at_us for found in candidates.values())
    span = (newest - oldest) or 1
    full = 1.0 + COVERAGE_WEIGHT + RECENCY
    ranked = [
        Ranked(
            kind=kind,
            found=found,
            coverage=shares[row],
            score=(
                scores[row] / top
                + COVERAGE_WEIGHT * shares[row]
                + RECENCY * (found.at_us - oldest) / span
            )
            / full,
        )
        for row, found in candidates.items()
    ]
    return sorted(ranked, key=lambda one: (-one.score, one.found.ref))


def _favour_speaker(
    scores: dict[int, float], turns: Mapping[int, Found], asked: frozenset[str]
) -> None:
    if len(asked) != 1:
        return
    (name,) = asked
    for row in scores:
        if f" {name} " in turns[row].speaker_terms:
            scores[row] *= 1 + SPEAKER_BOOST


def _favour_sessions(
    scores: dict[int, float], turns: Mapping[int, Found], found: Sequence[Found]
) -> None:
    matches: dict[str, list[float]] = defaultdict(list)
    for turn in found:
        matches[turn.session].append(turn.score)
    priors = {s: sum(sorted(m, reverse=True)[:SESSION_MATCHES]) for s, m in matches.items()}
    best, top = max(priors.values()) or 1.0, max(scores.values()) or 1.0
    for row, score in scores.items():
        prior = priors.get(turns[row].session, 0.0) / best
        scores[row] = score / top + SESSION_PRIOR * prior


def _weight(unit: Unit, frequencies: Mapping[str, int], size: int) -> float:
    count = frequencies.get(unit.half[0] if unit.half else unit.full[0], 0)
    rarity = log((size + _BACKGROUND) / (count + 0.5)) / log((size + _BACKGROUND) / 0.5)
    factor = _NAME_FACTOR if unit.name else _COMMON_FACTOR if unit.common else 1.0
    return rarity * factor * (_CHARACTER_FACTOR if unit.half else 1.0)


def _between_blanks(terms: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f" {term} " for term in terms)


def _has_any(terms: str, wanted: tuple[str, ...]) -> bool:
    # A loop, not any(): this runs a few thousand times a search, and a generator costs half of it.
    for term in wanted:  # noqa: SIM110  see above
        if term in terms:
            return True
    return False
