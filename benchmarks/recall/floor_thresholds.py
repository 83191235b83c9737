"""From which odds a memory answers: what silences most at a loss of recall that is allowed.

Chosen on odds that left a question's own part out, and on many draws of the questions: the mean of
what each draw would choose. A threshold that is the best of few questions costs more of others
than it did of those: within 2 % of recall it lost 3 % of English questions left out, the mean of 20
draws 2.5 to 3 %, and silenced more (`floor_learned.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from recall.floor_fit import Question, Sample
from recall.newton import Array

_DRAWS = 20
_SEED = 5

_MARGIN = 0.05
"""By which the question that is answered reaches its threshold: numbers are rounded."""

_TRIED = 40
"""Thresholds tried of each kind of question: those between its answerable ones that reach least."""

_SLIGHTLY = 1e-6
"""What loss counts against silence: it decides between equals."""

Tried = tuple[Array, Array, Array]
"""Thresholds, what each silences, and what it loses of each kind that `allowed` names."""


def thresholds(
    given: Sequence[Sample], odds: Array, worth: Mapping[str, float], allowed: Mapping[str, float]
) -> dict[Question, float]:
    """Returns a threshold for each kind of question; what has infinite odds is answered anyway."""
    random = np.random.default_rng(_SEED)
    found: dict[Question, list[float]] = {}
    for _ in range(_DRAWS):
        times = random.poisson(1.0, len(given)).astype(float)
        for unspaced in (False, True):
            tried = [
                _tried(given, odds, times, (unspaced, named), worth, allowed)
                for named in (False, True)
            ]
            chosen = _most_silent(tried[0], tried[1], list(allowed.values()))
            for named, at in enumerate(chosen):
                found.setdefault((unspaced, bool(named)), []).append(at)
    return {question: float(np.mean(each)) for question, each in found.items()}


def _tried(
    given: Sequence[Sample],
    odds: Array,
    times: Array,
    question: Question,
    worth: Mapping[str, float],
    allowed: Mapping[str, float],
) -> Tried:
    """Returns thresholds for one kind of question, each question counted `times`."""
    kinds = np.array([one.kind for one in given])
    own = np.array([one.question == question for one in given])
    reached = np.sort(odds[own & np.isin(kinds, list(allowed)) & np.isfinite(odds)])[:_TRIED]
    before = np.append(reached[0] - 1.0, reached[:-1])
    at = np.maximum((before + reached) / 2, reached - _MARGIN)
    below = (odds[None] < at[:, None]) & own
    found = np.array([one.found for one in given])
    gain = np.zeros(len(at))
    for kind, count in worth.items():
        gain += count * _share(below, times, kinds == kind)
    lost = [_share(below, times, kinds == kind, found) for kind in allowed]
    return at, gain, np.column_stack(lost)


def _share(below: Array, times: Array, of: Array, each: Array | float = 1.0) -> Array:
    """Returns what share of a kind, or of what was found of it, is below each threshold."""
    counted = times * of
    share: Array = below @ (counted * each) / max(float(counted.sum()), 1.0)
    return share


def _most_silent(one: Tried, other: Tried, allowed: Sequence[float]) -> tuple[float, float]:
    """Returns the pair that silences most, of those that lose no more of any kind together."""
    lost = one[2][:, None] + other[2][None]
    gain = np.round(one[1][:, None] + other[1][None], 9) - _SLIGHTLY * lost.sum(2)
    gain[(lost > np.array(allowed)).any(2)] = -np.inf
    first, second = np.unravel_index(int(gain.argmax()), gain.shape)
    return float(one[0][first]), float(other[0][second])
