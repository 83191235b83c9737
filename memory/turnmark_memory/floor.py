"""Whether a memory knows anything of what is asked: a decision of its own, before any order.

A memory that says something unrelated is worse than one that says nothing. What tells most is how
much of the question one document speaks about, alone and with the turns around it, how near it is
in meaning, and whether the question is about somebody or something that no document ever names.
What these signs mean depends on the question: a name that everybody's turns carry says nothing
about what is asked of them ("What is Anna's blood type?"), and characters meet by chance where
words don't. So questions that name somebody are weighed apart from those that don't, and unspaced
scripts from spaced ones. A question in another script than its answer has a chance of its own.

The weights are learned by `benchmarks/recall/learn.py` on questions that a memory can and can't
answer; the thresholds cost at most 3 % of recall@10 in LoCoMo, English and Chinese each.
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
    has. With an embedder, `nearest` is the nearest one's nearness, `agreeing` the most that a
    candidate has of nearness and coverage, taken as a part of the best, and `together` the most of
    all that one candidate has; `elsewhere` is the nearness of the nearest in another script, and
    `ahead` by how much it is nearer than those in the question's (-1 to 1).

    `named` and `unspaced` say what kind of question it is.
    """

    coverage: float
    around: float
    unknown_names: float
    unknown_words: float
    about: float = 0.0
    nearest: float = 0.0
    agreeing: float = 0.0
    together: float = 0.0
    elsewhere: float = 0.0
    ahead: float = 0.0
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
        ahead=elsewhere - same if elsewhere else 0.0,
        named=matching.names_somebody,
        unspaced=unspaced,
    )


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


class Weighing(msgspec.Struct, frozen=True, kw_only=True):
    """The weights of some signs for one kind of question; a sum of 0 is the threshold."""

    of: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float

    def odds(self, signs: Signs) -> float:
        """Returns the logarithm of the odds that the memory knows, over the threshold."""
        values = (float(getattr(signs, name)) for name in self.of)
        return self.bias + sum(w * value for w, value in zip(self.weights, values, strict=True))


BY_WORDS = ("coverage", "around", "about", "unknown_names", "unknown_words")
WITH_MEANING = (*BY_WORDS, "nearest", "agreeing", "together")
ELSEWHERE = ("unknown_names", "unknown_words", "elsewhere", "ahead")
"""The signs that are weighed: by words, with meaning, and for an answer in another script. There
words that no document has are what one expects."""


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
        (False, False): (0.37, (1.04, 3.46, 1.04, 0.00, -3.04)),
        (False, True): (-1.10, (2.02, 0.69, 5.05, -9.38, 1.18)),
        (True, False): (-2.86, (3.08, 5.94, 3.08, 0.00, -2.20)),
        (True, True): (-1.40, (2.68, 0.35, 3.97, -2.99, 0.01)),
    },
)
_WITH_MEANING = _weighings(
    WITH_MEANING,
    {
        (False, False): (-2.22, (0.11, 2.21, 0.11, 0.00, -2.24, 3.95, 1.73, 2.56)),
        (False, True): (-4.68, (0.25, 0.34, 4.85, -8.30, 1.95, 2.64, 4.05, 2.31)),
        (True, False): (-5.75, (1.27, 4.30, 1.27, 0.00, -1.39, 3.38, 2.12, 3.96)),
        (True, True): (-3.57, (2.39, -1.21, 2.88, -3.15, 0.03, 0.32, 4.05, 1.57)),
    },
)
_ELSEWHERE = Weighing(of=ELSEWHERE, weights=(1.22, -1.44, 8.36, 2.67), bias=-4.16)


def known(signs: Signs, *, with_meaning: bool) -> float:
    """Returns how much speaks for an answer in the memory, 0 to 1; 0.5 is the learned threshold."""
    weighings = _WITH_MEANING if with_meaning else _BY_WORDS
    odds = weighings[signs.unspaced, signs.named].odds(signs)
    if signs.elsewhere:
        odds = max(odds, _ELSEWHERE.odds(signs))
    return 1.0 / (1.0 + exp(-odds))
