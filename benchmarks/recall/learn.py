"""Learns the weights of the ranking and prints them as memory/turnmark_memory/weights.py has them.

Run: python benchmarks/recall/learn.py --locomo LOCOMO.json   (needs numpy)

Learned on LoCoMo's first three conversations (categories 1 to 4) and the half `learn` of the
bilingual set, whose questions count three times; reported on the rest, and by leaving one
conversation out at a time. For each question the weights make a distribution over its candidates
(softmax of the weighed sum); they are those that give the evidence the most of it, less a penalty
on large weights: a convex problem, solved by Newton's method, so that the same data give the same
weights. A logistic fit of the sums then gives scale and bias, so that a score is a likelihood.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from recall import bilingual, locomo
from recall.corpus import Corpus, Half
from turnmark_memory.candidates import gather
from turnmark_memory.features import FEATURES, rate
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters, TurnDoc
from turnmark_memory.search_text import query_of

_PENALTY = 3.0
"""Of weights in units of a feature's deviation. 0.3 to 30 differ by 0.2 points left out."""

_BILINGUAL_TIMES = 3
_STEPS = 60
_STILL = 1e-6
_AT = 10
_UNSEEN = frozenset({"cross", "adversarial"})
"""Groups that words alone can't answer, or that ask about the wrong person."""

Array = np.ndarray


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One question: a row of values for each candidate, and which of them are evidence."""

    corpus: int
    group: str
    half: Half
    values: Array
    answers: Array
    evidence: int


def examples(corpora: Sequence[Corpus]) -> Iterator[Example]:
    """Yields what the ranking sees of each question that something answers."""
    with tempfile.TemporaryDirectory() as directory:
        for number, corpus in enumerate(corpora):
            index = Index.open(Path(directory) / f"{number}.db")
            index.rebuild(_docs(corpus), (), 1)
            for question in corpus.questions:
                if not question.evidence or question.group in _UNSEEN:
                    continue
                asked = query_of(question.text)
                rated = rate(asked, gather(index, asked, Filters(), ("turn",)))
                answers = [one.found.ref in question.evidence for one in rated]
                yield Example(
                    corpus=number,
                    group=question.group,
                    half=question.half,
                    values=np.array([one.values for one in rated]).reshape(-1, len(FEATURES)),
                    answers=np.array(answers, float),
                    evidence=len(question.evidence),
                )
            index.close()


def _docs(corpus: Corpus) -> Iterator[TurnDoc]:
    places: Counter[str] = Counter()
    for turn in corpus.turns:
        if not turn.text.strip():
            continue
        places[turn.session] += 1
        yield TurnDoc(
            label=turn.id,
            namespace=corpus.name,
            id=turn.id,
            session=turn.session,
            agent="bench",
            project=turn.project,
            role=turn.role,
            speaker_id=turn.speaker,
            speaker_name=turn.speaker,
            time=turn.time,
            text=turn.text,
            path="",
            line=places[turn.session],
            position=places[turn.session],
        )


def learn(given: Sequence[tuple[Example, float]]) -> tuple[Array, float]:
    """Returns the weights and the bias; each example counts as often as its number says."""
    usable = [(one, times) for one, times in given if one.answers.sum()]
    deviation = np.concatenate([one.values for one, _ in usable]).std(0)
    deviation[deviation == 0] = np.inf
    scaled = [(one.values / deviation, one.answers / one.answers.sum(), n) for one, n in usable]

    def loss(weights: Array) -> tuple[float, Array, Array]:
        total = _PENALTY / 2 * float(weights @ weights)
        gradient, hessian = _PENALTY * weights, _PENALTY * np.eye(len(weights))
        for values, wanted, times in scaled:
            sums = values @ weights
            chances = _softmax(sums)
            mean = chances @ values
            total += times * (float(np.log(np.exp(sums - sums.max()).sum())) + sums.max())
            total -= times * float(wanted @ sums)
            gradient = gradient + times * (mean - wanted @ values)
            hessian += times * ((values * chances[:, None]).T @ values - np.outer(mean, mean))
        return total, gradient, hessian

    weights = _least(loss, np.zeros(len(FEATURES)))
    weights /= deviation
    scale, bias = _calibrated(
        np.concatenate([one.values @ weights for one, _ in usable]),
        np.concatenate([one.answers for one, _ in usable]),
    )
    return weights * scale, bias


def _softmax(sums: Array) -> Array:
    chances: Array = np.exp(sums - sums.max())
    chances /= chances.sum()
    return chances


def _calibrated(sums: Array, answers: Array) -> tuple[float, float]:
    at = np.stack([sums, np.ones_like(sums)], 1)

    def loss(fit: Array) -> tuple[float, Array, Array]:
        odds = at @ fit
        likely = 1 / (1 + np.exp(-odds))
        total = float((np.logaddexp(0, odds) - answers * odds).sum())
        weighed = at * (likely * (1 - likely))[:, None]
        return total, at.T @ (likely - answers), weighed.T @ at + 1e-9 * np.eye(2)

    scale, bias = _least(loss, np.zeros(2))
    return float(scale), float(bias)


def _least(loss: Callable[[Array], tuple[float, Array, Array]], at: Array) -> Array:
    """Returns where a convex function is least: Newton's method, steps halved while they rise."""
    value, gradient, hessian = loss(at)
    for _ in range(_STEPS):
        step = np.linalg.solve(hessian, gradient)
        while (found := loss(at - step))[0] > value and np.abs(step).max() > _STILL:
            step = step / 2
        at, (value, gradient, hessian) = at - step, found
        if np.abs(step).max() <= _STILL:
            break
    return at


def recall_at(given: Sequence[Example], weights: Array, at: int = _AT) -> Array:
    """Returns, of each question, the share of its evidence among the first `at`."""
    found = []
    for one in given:
        order = np.argsort(-(one.values @ weights), kind="stable")[:at]
        found.append(one.answers[order].sum() / one.evidence)
    return np.array(found)


def _weighed(given: Sequence[Example], bilingual_corpus: int) -> list[tuple[Example, float]]:
    return [(o, _BILINGUAL_TIMES if o.corpus == bilingual_corpus else 1.0) for o in given]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, required=True)
    conversations = locomo.read(parser.parse_args().locomo)
    both = len(conversations)
    given = list(examples([*conversations, bilingual.read()]))
    said = [one for one in given if one.corpus != both]
    learned = [one for one in given if one.half == "learn"]
    weights, bias = learn(_weighed(learned, both))
    for half in ("learn", "report"):
        found = recall_at([one for one in said if one.half == half], weights)
        print(f"# LoCoMo {half}: {found.mean():.4f} of {len(found)} questions")
        for group in sorted({one.group for one in given if one.corpus == both}):
            chosen = [o for o in given if o.corpus == both and (o.group, o.half) == (group, half)]
            first, ten = (recall_at(chosen, weights, at).mean() for at in (1, _AT))
            print(f"# {group} {half}: {first:.3f} at 1, {ten:.3f} at {_AT} of {len(chosen)}")
    left_out = []
    for number in range(both):
        others = [o for o in given if o.corpus not in (number, both)]
        own, _ = learn(_weighed([*others, *(o for o in learned if o.corpus == both)], both))
        left_out.append(recall_at([o for o in said if o.corpus == number], own))
        print(f"# left out {conversations[number].name}: {left_out[-1].mean():.4f}")
    print(f"# left out, all: {np.concatenate(left_out).mean():.4f}")
    print(f"_weights(\n    {bias:.3f},\n    {{")
    for name, weight in zip(FEATURES, weights, strict=True):
        if weight:
            print(f'        "{name}": {weight:.3f},')
    print("    },\n)")


if __name__ == "__main__":
    main()
