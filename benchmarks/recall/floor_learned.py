"""Learns when a memory should say nothing: the weights and thresholds of `floor.py`.

For each kind of question that the floor tells apart (in which script, and whether it names
somebody) a logistic fit of its signs: questions that the memory can answer against those about
something absent from it, near misses and questions about other conversations. What a threshold
costs is counted in recall@10 by the learned weights, of odds that were fitted without a question's
own conversation. The thresholds of a script are those that silence most within what LoCoMo, English
and Chinese may lose each.

An answer in another script than the question's gets a fit of its own, of the questions across
languages, with the threshold that 95 % of the absent don't reach. It comes first: what it answers,
no other threshold can lose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from recall.floor_fit import Fit, OddsOf, Question, Sample, left_out, logistic, odds_by
from recall.floor_thresholds import thresholds
from recall.newton import Array
from turnmark_memory.floor import BY_WORDS, ELSEWHERE, WITH_MEANING

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
_LOST = 0.02
"""What may be lost of the recall@10 of each kind: what loses some 3 % of questions that neither
fit nor threshold knew. Source: the half `learn`, each sixth left out of it all: by words 0.02 /
0.025 / 0.03 lose 3.1 / 3.5 / 3.9 % of English and 3.3 / 3.6 / 4.1 % of Chinese questions, with
meaning 2.5 / 2.9 / 3.2 and 2.0 / 2.8 / 3.8 %."""

_SILENT_ACROSS = 0.95


def floor_lines(given: Sequence[Sample], *, with_meaning: bool) -> Iterator[str]:
    """Yields what the floor answers, as comments, and its numbers as the product has them."""
    of = WITH_MEANING if with_meaning else BY_WORDS
    learned = [one for one in given if one.half == "learn"]
    reached = np.full(len(learned), fill_value=False)
    across: Fit | None = None
    if with_meaning:
        across, reached = _fit_across(learned)
    fits = _fits(learned, of, dict.fromkeys(EVIDENT, _LOST), reached)
    yield from _said(given, of, fits, across)
    for question, (bias, weights) in fits.items():
        yield f"        {question}: ({bias:.2f}, ({_listed(weights)})),"
    if across is not None:
        listed = f"({_listed(across[1])})"
        yield f"_ELSEWHERE = Weighing(of=ELSEWHERE, weights={listed}, bias={across[0]:.2f})"


def _fits(
    learned: Sequence[Sample], of: Sequence[str], allowed: Mapping[str, float], reached: Array
) -> dict[Question, Fit]:
    """Returns a fit for each kind of question; what is `reached` is answered without it."""
    odds = left_out(learned, lambda some: _odds_by_each(_fit_each(some, of), of))
    least = thresholds(learned, np.where(reached, np.inf, odds), _WORTH, allowed)
    return {
        question: (bias - least[question], weights)
        for question, (bias, weights) in _fit_each(learned, of).items()
    }


def _fit_each(some: Sequence[Sample], of: Sequence[str]) -> dict[Question, Fit]:
    counts = Counter(one.kind for one in some)
    return {
        (unspaced, named): logistic(
            [one for one in some if one.question == (unspaced, named)], of, EVIDENT, _WORTH, counts
        )
        for unspaced, named in product((False, True), repeat=2)
    }


def _odds_by_each(fits: Mapping[Question, Fit], of: Sequence[str]) -> OddsOf:
    odds = {question: odds_by(fit, of) for question, fit in fits.items()}
    return lambda one: odds[one.question](one)


def _fit_across(learned: Sequence[Sample]) -> tuple[Fit, Array]:
    """Returns the fit of answers in another script, and which questions reach its threshold."""
    odds = left_out(learned, lambda some: odds_by(_weights_across(some), ELSEWHERE))
    odds[[not one.signs.elsewhere for one in learned]] = -np.inf
    absent = sorted(
        total
        for one, total in zip(learned, odds, strict=True)
        if one.kind in ("en absent", "zh absent")
    )
    at = absent[round(_SILENT_ACROSS * len(absent))]
    bias, weights = _weights_across(learned)
    return (bias - at, weights), odds >= at


def _weights_across(some: Sequence[Sample]) -> Fit:
    counts = Counter(one.kind for one in some)
    elsewhere = [one for one in some if one.signs.elsewhere]
    return logistic(elsewhere, ELSEWHERE, (_ACROSS,), _WORTH_ACROSS, counts)


def _said(
    given: Sequence[Sample], of: Sequence[str], fits: Mapping[Question, Fit], across: Fit | None
) -> Iterator[str]:
    """Yields, by half and kind, the share that is answered and the recall that is lost."""
    answered: dict[tuple[str, str], list[tuple[bool, float]]] = {}
    odds = _odds_by_each(fits, of)
    for one in given:
        reaches = odds(one) >= 0
        if across is not None and one.signs.elsewhere:
            reaches = reaches or odds_by(across, ELSEWHERE)(one) >= 0
        answered.setdefault((one.half, one.kind), []).append((reaches, one.found))
    for (half, kind), each in sorted(answered.items()):
        share = np.mean([reaches for reaches, _ in each])
        lost = np.mean([0.0 if reaches else found for reaches, found in each])
        cost = f", {lost:.3f} of recall lost" if kind in (*EVIDENT, _ACROSS) else ""
        yield f"# floor, {half}, {kind} ({len(each)}): {share:.3f} answered{cost}"


def _listed(weights: Array) -> str:
    return ", ".join(f"{one:.2f}" for one in weights)
