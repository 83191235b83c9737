"""What is counted, per question and over many: pure functions.

Ranks count turns: a hit that rests on several is laid out as these turns, in its order, and what
comes again is not counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log2
from random import Random

KS = (1, 5, 10, 20)
_GAIN_DEPTH = 10
_SESSION_DEPTH = 10
_SEED = 20260809
_RESAMPLES = 1_000
_OUTSIDE = 0.025
"""The share of resamples that lie on either side of a 95 % interval."""

Metrics = dict[str, float]


def laid_out(hits: Iterable[Sequence[str]]) -> list[str]:
    """Returns the turns of hits in their order, each once."""
    return list(dict.fromkeys(turn for hit in hits for turn in hit))


def score(
    evidence: Sequence[str], hits: Sequence[Sequence[str]], session_of: Mapping[str, str]
) -> Metrics:
    """Returns the metrics of one answer: each hit is the turns that it rests on.

    `recall@k` is the share of the evidence among the first `k` turns, `any@k` and `all@k` say
    whether one or every turn of it is there; `first` whether the first hit rests on one of them;
    `mrr` is 1 / the rank of the first one; `session@10` whether one of the evidence's sessions is
    among the first ten, a session standing where its first turn stands.
    """
    wanted, turns = set(evidence), laid_out(hits)
    ranks = [rank for rank, turn in enumerate(turns, 1) if turn in wanted]
    found: Metrics = {}
    for k in KS:
        count = sum(rank <= k for rank in ranks)
        found[f"recall@{k}"] = count / len(wanted)
        found[f"any@{k}"] = float(count > 0)
        found[f"all@{k}"] = float(count == len(wanted))
    ideal = sum(1 / log2(rank + 1) for rank in range(1, min(len(wanted), _GAIN_DEPTH) + 1))
    gained = sum(1 / log2(rank + 1) for rank in ranks if rank <= _GAIN_DEPTH)
    found["ndcg@10"] = gained / ideal
    found["mrr"] = 1 / ranks[0] if ranks else 0.0
    found["first"] = float(bool(hits) and not wanted.isdisjoint(hits[0]))
    sessions = laid_out([[session_of[turn] for turn in turns]])[:_SESSION_DEPTH]
    found["session@10"] = float(any(session_of[turn] in sessions for turn in wanted))
    return found


def mean(values: Sequence[float]) -> float:
    """Returns the mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Returns the value below which `share` of them lie, 0 of nothing."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % bootstrap interval of the mean, questions drawn anew."""
    return _resampled(lambda dice: mean(dice.choices(values, k=len(values))), bool(values))


def clustered_interval(clusters: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Returns the 95 % bootstrap interval of the mean, whole conversations drawn anew.

    With two or three conversations it says little more than how far these lie apart.
    """

    def draw(dice: Random) -> float:
        drawn = dice.choices(clusters, k=len(clusters))
        return mean([value for cluster in drawn for value in cluster])

    return _resampled(draw, any(clusters))


def _resampled(draw: Callable[[Random], float], anything: bool) -> tuple[float, float]:
    if not anything:
        return 0.0, 0.0
    dice = Random(_SEED)
    means = sorted(draw(dice) for _ in range(_RESAMPLES))
    return means[int(_OUTSIDE * _RESAMPLES)], means[int((1 - _OUTSIDE) * _RESAMPLES) - 1]
