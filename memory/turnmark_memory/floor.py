"""Whether a memory knows anything of what is asked: a decision of its own, before any order.

A memory that says something unrelated is worse than one that says nothing. What tells most is how
much of the question one document speaks about, alone and with the turns around it, and whether the
question is about somebody or something that no document ever names. The weights are learned by
`benchmarks/recall/learn.py` on questions that a memory can and can't answer; the threshold loses at
most 2.5 % of those that it can, in LoCoMo, English and Chinese each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

import msgspec

from turnmark_memory.dense import DocRef
from turnmark_memory.matching import Matching


class Signs(msgspec.Struct, frozen=True, kw_only=True):
    """What the candidates say together of whether one of them answers; each from 0 to 1.

    `coverage` is the share of the question that the best candidate speaks about, `around` the same
    with the turns around it; `unknown_names` and `unknown_words` are the shares that no document
    has. With an embedder, `nearest` is the nearest one's nearness and `agreeing` the most that a
    candidate has of nearness and coverage, taken as a part of the best, together.
    """

    coverage: float
    around: float
    unknown_names: float
    unknown_words: float
    nearest: float = 0.0
    agreeing: float = 0.0


def signs_of(
    matching: Matching,
    nearness: Mapping[DocRef, float],
    candidates: Sequence[tuple[float, float]],
    around: float,
) -> Signs:
    """Returns the signs of candidates that are given as coverage and nearness each."""
    best = max((share for share, _ in candidates), default=0.0)
    agreeing = max((share * near for share, near in candidates), default=0.0)
    return Signs(
        coverage=best,
        around=around,
        unknown_names=matching.unknown_names,
        unknown_words=matching.unknown_words,
        nearest=max(nearness.values(), default=0.0),
        agreeing=agreeing / best if best else 0.0,
    )


_BY_WORDS = (7.70, 4.60, -6.77, -1.65, 0.0, 0.0)
_BY_WORDS_BIAS = -1.91
_WITH_MEANING = (3.62, 3.22, -5.85, 0.17, 9.85, 4.66)
_WITH_MEANING_BIAS = -8.83


def known(signs: Signs, *, with_meaning: bool) -> float:
    """Returns how much speaks for an answer in the memory, 0 to 1; 0.5 is the learned threshold."""
    weights = _WITH_MEANING if with_meaning else _BY_WORDS
    bias = _WITH_MEANING_BIAS if with_meaning else _BY_WORDS_BIAS
    values = msgspec.structs.astuple(signs)
    speaks_for = sum(w * value for w, value in zip(weights, values, strict=True)) + bias
    return 1.0 / (1.0 + exp(-speaks_for))
