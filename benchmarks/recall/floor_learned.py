"""Learns when a memory should say nothing: the weights and thresholds of `floor.py`.

For each kind of question that the floor tells apart (in which script, and whether it names
somebody) a logistic fit of its signs: questions that the memory can answer against those about
something absent from it, near misses and questions about other conversations. What a threshold
costs is counted in recall@10 by the learned weights. The thresholds of a script are those that
silence most and together cost LoCoMo, English and Chinese 3 % each at most.

An answer in another script than the question's gets a fit of its own, of the questions across
languages, with the threshold that 95 % of the absent don't reach.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

import msgspec
import numpy as np

from recall.newton import Array, least
from turnmark_memory.floor import BY_WORDS, ELSEWHERE, WITH_MEANING, Signs

EVIDENT = ("locomo", "en", "zh")
"""Kinds of questions that the memory can answer."""

_ACROSS = "cross"
_WORTH = {
    "foreign": 1.0,
    "absent at large": 0.5,
    "en absent": 1.0,
    "zh absent": 1.0,
    "en near": 0.3,
    "zh near": 0.3,
}
"""What being silent about each kind is worth. A near miss hardly differs from an answer in other
words, and who asks may want to see what is known of whom they ask about."""

_WORTH_ACROSS = {**_WORTH, "foreign": 0.0, "en near": 0.5, "zh near": 0.5}
_LOST = {"locomo": 0.03, "en": 0.03, "zh": 0.02}
"""What may be lost of recall@10. What silences 2 % of the Chinese questions is as much as 3 to 5 %
of those it wasn't learned on (left out in turn)."""

_AGAINST = ("unknown_names", "unknown_words")
"""Signs that speak against an answer; all others speak for one."""

_SILENT_ACROSS = 0.95
_PENALTY = 0.3
_TIMES = 300.0
"""What a kind counts for together, however many questions it has."""

_MARGIN = 0.05
"""By which the question that is answered reaches its threshold: numbers are rounded."""

_TRIED = 40
"""Thresholds tried of each kind of question: those between its answerable ones that reach least."""

Question = tuple[bool, bool]
"""Whether in an unspaced script, and whether it names somebody."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One question: its kind (`EVIDENT`, `cross`, or of what nothing answers) and its signs.

    `found` is its recall@10 without a floor.
    """

    kind: str
    half: str
    signs: Signs
    found: float

    @property
    def question(self) -> Question:
        """What the floor tells questions apart by."""
        return self.signs.unspaced, self.signs.named


Tried = tuple[float, float, dict[str, float]]
"""A threshold, what it silences, and what it loses of each kind."""

Fit = tuple[float, Array]
"""A bias and the weights of the signs."""


def floor_lines(given: Sequence[Sample], *, with_meaning: bool) -> Iterator[str]:
    """Yields what the floor answers, as comments, and its numbers as the product has them."""
    of = WITH_MEANING if with_meaning else BY_WORDS
    fits = _fits(given, of, _WORTH, _LOST)
    across = _fit_across(given) if with_meaning else None
    yield from _said(given, of, fits, across)
    for question, (bias, weights) in fits.items():
        yield f"        {question}: ({bias:.2f}, ({_listed(weights)})),"
    if across is not None:
        listed = f"({_listed(across[1])})"
        yield f"_ELSEWHERE = Weighing(of=ELSEWHERE, weights={listed}, bias={across[0]:.2f})"


def _fits(
    given: Sequence[Sample],
    of: Sequence[str],
    worth: Mapping[str, float],
    allowed: Mapping[str, float],
) -> dict[Question, Fit]:
    learned = [one for one in given if one.half == "learn"]
    counts = Counter(one.kind for one in learned)
    fits: dict[Question, Fit] = {}
    for unspaced in (False, True):
        sums: dict[Question, list[tuple[Sample, float]]] = {}
        for named in (False, True):
            question = (unspaced, named)
            own = [one for one in learned if one.question == question]
            fits[question] = _logistic(own, of, EVIDENT, worth, counts)
            bias, weights = fits[question]
            sums[question] = [(one, bias + float(_values(one, of) @ weights)) for one in own]
        least_of = _thresholds(list(sums.values()), worth, counts, allowed)
        for question, threshold in zip(sums, least_of, strict=True):
            bias, weights = fits[question]
            fits[question] = bias - threshold, weights
    return fits


def _logistic(
    given: Sequence[Sample],
    of: Sequence[str],
    evident: Sequence[str],
    worth: Mapping[str, float],
    counts: Mapping[str, int],
) -> Fit:
    """Returns a fit in which no sign speaks for the opposite of what it means."""
    used = [one for one in given if one.kind in evident or one.kind in worth]
    values = np.array([_values(one, of) for one in used])
    there = np.array([one.kind in evident for one in used], float)
    times = np.array([_TIMES * worth.get(one.kind, 1.0) / counts[one.kind] for one in used])
    meant = np.array([-1.0 if name in _AGAINST else 1.0 for name in of])
    kept = np.full(len(of), True)
    while True:
        weights = np.zeros(len(of))
        weights[kept], bias = _least_logistic(values[:, kept], there, times)
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


def _thresholds(
    groups: Sequence[Sequence[tuple[Sample, float]]],
    worth: Mapping[str, float],
    counts: Mapping[str, int],
    allowed: Mapping[str, float],
) -> list[float]:
    """Returns a threshold for each group that silences most at a loss that is allowed."""
    tried = [list(_tried(group, worth, counts)) for group in groups]
    possible = [
        chosen
        for chosen in product(*tried)
        if all(sum(lost[kind] for _, _, lost in chosen) <= allowed[kind] for kind in EVIDENT)
    ]
    best = max(possible, key=_silence_and_loss)
    return [at for at, _, _ in best]


def _silence_and_loss(chosen: Sequence[Tried]) -> tuple[float, float]:
    """Returns what to compare by: what is silenced and, between equals, how little is lost."""
    return (
        round(sum(gain for _, gain, _ in chosen), 9),
        -sum(sum(lost.values()) for _, _, lost in chosen),
    )


def _tried(
    group: Sequence[tuple[Sample, float]], worth: Mapping[str, float], counts: Mapping[str, int]
) -> Iterator[Tried]:
    """Yields thresholds with what they silence and what they lose of each kind."""
    reached = sorted(total for one, total in group if one.kind in EVIDENT)[:_TRIED]
    for below, above in pairwise([reached[0] - 1.0, *reached]):
        at = max((below + above) / 2, above - _MARGIN)
        lost = dict.fromkeys(EVIDENT, 0.0)
        gain = 0.0
        for one, total in group:
            if total < at and one.kind in lost:
                lost[one.kind] += one.found / counts[one.kind]
            elif total < at and one.kind in worth:
                gain += worth[one.kind] / counts[one.kind]
        yield at, gain, lost


def _fit_across(given: Sequence[Sample]) -> Fit:
    learned = [one for one in given if one.half == "learn" and one.signs.elsewhere]
    counts = Counter(one.kind for one in given if one.half == "learn")
    bias, weights = _logistic(learned, ELSEWHERE, (_ACROSS,), _WORTH_ACROSS, counts)
    absent = [one for one in learned if one.kind in ("en absent", "zh absent")]
    sums = [bias + float(_values(one, ELSEWHERE) @ weights) for one in absent]
    everywhere = counts["en absent"] + counts["zh absent"]
    few = max(everywhere - round(_SILENT_ACROSS * everywhere), 1)
    return bias - sorted(sums)[-few], weights


def _said(
    given: Sequence[Sample], of: Sequence[str], fits: Mapping[Question, Fit], across: Fit | None
) -> Iterator[str]:
    """Yields, by half and kind, the share that is answered and the recall that is lost."""
    answered: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    for one in given:
        bias, weights = fits[one.question]
        reaches = bias + float(_values(one, of) @ weights) >= 0
        if across is not None and one.signs.elsewhere:
            reaches = reaches or across[0] + float(_values(one, ELSEWHERE) @ across[1]) >= 0
        answered.setdefault((one.half, one.kind), []).append((reaches, one.found))
    for (half, kind), each in sorted(answered.items()):
        share = np.mean([reaches for reaches, _ in each])
        lost = np.mean([0.0 if reaches else found for reaches, found in each])
        cost = f", {lost:.3f} of recall lost" if kind in (*EVIDENT, _ACROSS) else ""
        yield f"# floor, {half}, {kind} ({len(each)}): {share:.3f} answered{cost}"


def _values(one: Sample, of: Sequence[str]) -> Array:
    return np.array([getattr(one.signs, name) for name in of], float)


def _listed(weights: Array) -> str:
    return ", ".join(f"{one:.2f}" for one in weights)
