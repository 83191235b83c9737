"""Whether a memory knows anything of what is asked: a decision of its own, before any order.

A memory that says something unrelated is worse than one that says nothing. What tells most is how
much of the question one document speaks about, alone and with the turns around it, how near it is
in meaning, whether the question is about somebody or something that no document ever names, and
whether it asks what any book of reference knows (`at_large.py`).
The candidate that is ranked first tells as well: whether the one who is asked about said it.
What these signs mean depends on the question: a name that everybody's turns carry says nothing
about what is asked of them ("What is Anna's blood type?"), and characters meet by chance where
words don't. So questions that name somebody are weighed apart from those that don't, and unspaced
scripts from spaced ones. A question in another script than its answer has a chance of its own.

The weights are learned by `benchmarks/recall/learn.py` on questions that a memory can and can't
answer; the thresholds cost about 3 % of recall@10 in LoCoMo, English and Chinese each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

import msgspec

from turnmark_memory.candidates import Candidates
from turnmark_memory.features import FEATURES, Seen
from turnmark_memory.search_text import is_unspaced

Sighted = tuple[Seen, float, float]
"""A candidate, its coverage of the question, and its nearness."""

PossibleHit = tuple[Seen, float, tuple[float, ...]]
"""A candidate that may be shown, its coverage, and its values in the order of `FEATURES`."""

_AROUND, _NEAR = FEATURES.index("share_around"), FEATURES.index("near")
_BEFORE, _AFTER = FEATURES.index("near_before"), FEATURES.index("near_after")
_SPEAKER, _WITH_BEFORE = FEATURES.index("speaker"), FEATURES.index("share_with_before")

_TOGETHER = (1.0, 0.3, 0.2, 0.3)
"""What nearness, coverage, that with the turns around and the nearness of a turn beside it count
for in one candidate. Source: their sum tells better than the best of each, or than products."""

_LOOKED_AT = 50
"""Nearest documents among which one of the other script is looked for."""


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What the candidates say together of whether one of them answers; each from 0 to 1.

    `coverage` is the share of the question that the best candidate speaks about, `around` the same
    with the turns around it, `about` the share apart from all names of the best that is by or about
    whom the question names. `unknown_names` and `unknown_words` are the shares that no document
    has. `best` is the share of the candidate that is ranked first, with the turn before it, and
    `said` whether it is by the speaker whom the question names, or a block about somebody named.

    With an embedder, `nearest` is the nearest one's nearness, `agreeing` the most that a candidate
    has of nearness and coverage, taken as a part of the best, and `together` the most of all that
    one candidate has; `elsewhere` is the nearness of the nearest in another script, `ahead` by how
    much it is nearer than those in the question's (-1 to 1), and `translated` the most that one in
    another script has of the question, in names and words in its language.

    `at_large` says that any book of reference knows it. `named` and `unspaced` say what kind of
    question it is.
    """

    coverage: float
    around: float
    unknown_names: float
    unknown_words: float
    about: float = 0.0
    best: float = 0.0
    said: float = 0.0
    nearest: float = 0.0
    agreeing: float = 0.0
    together: float = 0.0
    elsewhere: float = 0.0
    translated: float = 0.0
    ahead: float = 0.0
    at_large: bool = False
    named: bool = False
    unspaced: bool = False


def signs_of(candidates: Candidates, seen: Sequence[Sighted], hits: Sequence[PossibleHit]) -> Signs:
    """Returns the signs of the candidates, of which `hits` are those that may be shown."""
    matching = candidates.matching
    best = max((share for _, share, _ in seen), default=0.0)
    nearest = max((near for _, _, near in seen), default=0.0)
    unspaced = matching.unspaced
    same, elsewhere = _by_script(seen, unspaced=unspaced) if nearest else (0.0, 0.0)
    return Signs(
        coverage=best,
        around=max((values[_AROUND] for _, _, values in hits), default=0.0),
        about=_about(candidates, seen),
        unknown_names=matching.unknown_names,
        unknown_words=matching.unknown_words,
        nearest=nearest,
        agreeing=max(share * near for _, share, near in seen) / best if best else 0.0,
        together=_together(hits) if nearest else 0.0,
        elsewhere=elsewhere,
        translated=_translated(seen, unspaced=unspaced) if elsewhere else 0.0,
        ahead=elsewhere - same if elsewhere else 0.0,
        at_large=matching.at_large,
        named=matching.names_somebody,
        unspaced=unspaced,
    )


def with_best(signs: Signs, values: Sequence[float], *, is_of_named: bool) -> Signs:
    """Returns the signs with what the values of the candidate say that is ranked first."""
    return msgspec.structs.replace(signs, best=values[_WITH_BEFORE], said=float(is_of_named))


def is_of_named(candidates: Candidates, one: Seen, values: Sequence[float]) -> bool:
    """Tells whether a turn is by the speaker whom the question names, or a block about someone."""
    if one.kind == "block":
        return bool(one.match.bits & candidates.matching.known_names)
    return bool(candidates.named and values[_SPEAKER])


def _about(candidates: Candidates, seen: Sequence[Sighted]) -> float:
    """Returns the most that a candidate by or about whom is named has of the rest."""
    matching = candidates.matching
    known = matching.known_names
    names = [f" {name} " for name in candidates.named]
    best = 0.0
    for one, _, _ in seen:
        bits, speaker = one.match.bits, one.found.speaker_terms
        if not known or bits & known or any(name in speaker for name in names):
            best = max(best, matching.apart(bits))
    return best


def _together(hits: Sequence[PossibleHit]) -> float:
    """Returns the most that one candidate has of nearness and of the question."""
    near, covered, around, beside = _TOGETHER
    best = 0.0
    for _, share, values in hits:
        neighbour = max(values[_BEFORE], values[_AFTER])
        both = near * values[_NEAR] + covered * share
        best = max(best, both + around * values[_AROUND] + beside * neighbour)
    return best / sum(_TOGETHER)


def _by_script(seen: Sequence[Sighted], *, unspaced: bool) -> tuple[float, float]:
    """Returns how near the nearest is that is in the question's script, and in another."""
    found: dict[bool, float] = {}
    for one, _, near in sorted(seen, key=lambda sight: -sight[2])[:_LOOKED_AT]:
        found.setdefault(is_unspaced(one.found.terms) == unspaced, near)
        if len(found) > 1:
            break
    return found.get(True, 0.0), found.get(False, 0.0)


def _translated(seen: Sequence[Sighted], *, unspaced: bool) -> float:
    """Returns the most that a candidate in another script has of the question."""
    best = 0.0
    for one, share, _ in seen:
        if share > best and is_unspaced(one.found.terms) != unspaced:
            best = share
    return best


class Weighing(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of some signs for one kind of question; a sum of 0 is the threshold."""

    of: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float

    def odds(self, signs: Signs) -> float:
        """Returns the logarithm of the odds that the memory knows, over the threshold."""
        values = (float(getattr(signs, name)) for name in self.of)
        return self.bias + sum(w * value for w, value in zip(self.weights, values, strict=True))


BY_WORDS = (
    *("coverage", "around", "about", "unknown_names", "unknown_words", "best", "said", "at_large"),
)
WITH_MEANING = (*BY_WORDS, "nearest", "agreeing", "together")
ELSEWHERE = (
    *("unknown_names", "unknown_words", "elsewhere", "ahead", "translated", "at_large", "unspaced"),
)
"""The signs that are weighed: by words, with meaning, and for an answer in another script. There
words that no document has are what one expects, and how near an answer is differs by direction."""


def _weighings(
    of: tuple[str, ...], learned: Mapping[tuple[bool, bool], tuple[float, tuple[float, ...]]]
) -> Mapping[tuple[bool, bool], Weighing]:
    return {
        question: Weighing(of=of, weights=weights, bias=bias)
        for question, (bias, weights) in learned.items()
    }


# By whether the question is in an unspaced script, and whether it names somebody.
_BY_WORDS = _weighings(
    BY_WORDS,
    {
        (False, False): (-1.54, (0.88, 4.54, 0.88, 0.00, -1.63, 2.23, 0.00, -3.33)),
        (False, True): (-0.52, (1.13, 0.98, 3.30, -6.94, 0.00, 0.00, 2.30, -1.45)),
        (True, False): (-2.63, (0.28, 4.86, 0.28, 0.00, -2.92, 6.30, 0.00, -3.03)),
        (True, True): (-1.63, (1.63, 0.00, 2.96, -2.12, 0.00, 0.57, 1.44, -0.95)),
    },
)
_WITH_MEANING = _weighings(
    WITH_MEANING,
    {
        (False, False): (
            -3.83,
            (0.00, 4.35, 0.00, 0.00, -1.74, 0.00, 0.00, -2.98, 3.38, 0.99, 2.73),
        ),
        (False, True): (
            -5.97,
            (0.00, 0.82, 2.48, -4.84, 0.00, 0.00, 3.00, -0.98, 3.19, 4.16, 2.32),
        ),
        (True, False): (
            -4.51,
            (0.00, 3.92, 0.00, 0.00, -2.32, 3.57, 0.00, -2.72, 2.54, 1.74, 2.98),
        ),
        (True, True): (
            -7.03,
            (1.71, 0.00, 1.74, -0.89, -0.38, 0.00, 3.14, -0.32, 2.27, 3.17, 2.09),
        ),
    },
)
_ELSEWHERE = Weighing(
    of=ELSEWHERE, weights=(0.00, 0.00, 5.57, 2.08, 5.30, -4.13, -0.54), bias=-2.86
)


def known(signs: Signs, *, with_meaning: bool) -> float:
    """Returns how much speaks for an answer in the memory, 0 to 1; 0.5 is the learned threshold."""
    weighings = _WITH_MEANING if with_meaning else _BY_WORDS
    odds = weighings[signs.unspaced, signs.named].odds(signs)
    if signs.elsewhere:
        odds = max(odds, _ELSEWHERE.odds(signs))
    return 1.0 / (1.0 + exp(-odds))
