"""Fits of the floor's signs: from what the candidates say to the odds that one of them answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from zlib import crc32

import msgspec
import numpy as np

from recall.newton import Array, least
from turnmark_memory.floor import Signs

_AGAINST = frozenset({"unknown_names", "unknown_words", "at_large"})
"""Signs that speak against an answer; all others, but `_EITHER`, speak for one."""

_EITHER = frozenset({"unspaced"})
"""Signs that may speak for both."""

_PENALTY = 0.3
_TIMES = 300.0
"""What a kind counts for together, however many questions it has."""

_FOLDS = 6

Question = tuple[bool, bool]
"""Whether in an unspaced script, and whether it names somebody."""

Fit = tuple[float, Array]
"""A bias and the weights of the signs."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One question: its kind, its signs, and what belongs together when some is left out.

    `part` is its conversation, or itself where it is asked of several memories; `found` is its
    recall@10 without a floor.
    """

    kind: str
    half: str
    part: str
    signs: Signs
    found: float

    @property
    def question(self) -> Question:
        """What the floor tells questions apart by."""
        return self.signs.unspaced, self.signs.named


OddsOf = Callable[[Sample], float]
"""The logarithm of the odds that the memory can answer a question."""


def values(one: Sample, of: Sequence[str]) -> Array:
    """Returns the signs that are weighed."""
    return np.array([getattr(one.signs, name) for name in of], float)


def odds_by(fit: Fit, of: Sequence[str]) -> OddsOf:
    """Returns what a fit says of a question."""
    bias, weights = fit
    return lambda one: bias + float(values(one, of) @ weights)


def left_out(given: Sequence[Sample], learn: Callable[[Sequence[Sample]], OddsOf]) -> Array:
    """Returns the odds of each question by what is learned of the others, parts kept together."""
    folds = [crc32(one.part.encode()) % _FOLDS for one in given]
    found = np.zeros(len(given))
    for fold in range(_FOLDS):
        own = [place for place, other in enumerate(folds) if other == fold]
        if own:
            odds = learn([one for one, other in zip(given, folds, strict=True) if other != fold])
            found[own] = [odds(given[place]) for place in own]
    return found


def logistic(
    given: Sequence[Sample],
    of: Sequence[str],
    evident: Collection[str],
    worth: Mapping[str, float],
    counts: Counter[str],
) -> Fit:
    """Returns a fit in which no sign speaks for the opposite of what it means.

    Of kinds that are `evident` against those of some `worth`; a kind of which there are `counts`
    questions counts as much as any other, times its worth.
    """
    used = [one for one in given if one.kind in evident or worth.get(one.kind)]
    signs = np.array([values(one, of) for one in used])
    there = np.array([one.kind in evident for one in used], float)
    times = np.array([_TIMES * worth.get(one.kind, 1.0) / counts[one.kind] for one in used])
    meant = np.array([-1.0 if name in _AGAINST else float(name not in _EITHER) for name in of])
    kept = np.full(len(of), fill_value=True)
    while True:
        weights = np.zeros(len(of))
        weights[kept], bias = _least_logistic(signs[:, kept], there, times)
        wrong = kept & (weights * meant < 0)
        if not wrong.any():
            return bias, weights
        kept &= ~wrong


def _least_logistic(values: Array, there: Array, times: Array) -> tuple[Array, float]:
    signs = np.column_stack([values, np.ones(len(values))])
    penalty = np.append(np.full(values.shape[1], _PENALTY), 1e-6)

    def loss(fit: Array) -> tuple[float, Array, Array]:
        odds = signs @ fit
        likely = 1 / (1 + np.exp(-odds))
        total = float((times * (np.logaddexp(0, odds) - there * odds)).sum())
        weighed = signs * (times * likely * (1 - likely))[:, None]
        gradient = signs.T @ (times * (likely - there)) + penalty * fit
        curved = weighed.T @ signs + np.diag(penalty)
        return total + float(penalty @ fit**2) / 2, gradient, curved

    fit = least(loss, np.zeros(values.shape[1] + 1))
    return fit[:-1], float(fit[-1])
