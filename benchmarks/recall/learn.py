"""Learns the weights of the ranking and the floor, and prints them as the product has them.

Run: python benchmarks/recall/learn.py --locomo LOCOMO.json [--meaning]   (needs numpy)

Prints what memory/turnmark_memory/{weights,floor}.py hold: without `--meaning` the weights by words
alone, with it those beside the installed embedder (some 5,000 texts are embedded: minutes).

Learned on LoCoMo's first three conversations (categories 1 to 4) and the half `learn` of the
bilingual set, which counts less; reported on the rest, and by leaving one
conversation out at a time. For each question the weights make a distribution over its candidates
(softmax of the weighed sum); they are those that give the evidence the most of it, less a penalty
on large weights: a convex problem, solved by Newton's method, so that the same data give the same
weights. A logistic fit of the sums then gives scale and bias, so that a score is a likelihood.

The floor is learned by `floor_learned.py`, of the same questions and of some that nothing answers.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from recall import bilingual, locomo
from recall.corpus import Corpus, Half, Question
from recall.floor_fit import Sample
from recall.floor_learned import floor_lines
from recall.newton import Array, least
from turnmark_memory.candidates import gather, with_near
from turnmark_memory.dense import DocRef
from turnmark_memory.embedding.documents import of_turn
from turnmark_memory.embedding.embedder import Embedder, find_embedder
from turnmark_memory.embedding.frame import Frame
from turnmark_memory.embedding.nearness import nearness
from turnmark_memory.features import FEATURES, Ratings
from turnmark_memory.floor import Signs, signs_of, with_best
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters, TurnDoc
from turnmark_memory.nameless import nameless
from turnmark_memory.ranking import possible, sighted
from turnmark_memory.search_text import query_of

_PENALTY = 20.0
"""Of weights in units of a feature's deviation. Source: as below, 10 and 20 find as much."""

_BILINGUAL_SHARE = {False: 0.4, True: 1.0}
"""How much the bilingual set's questions count together, of what LoCoMo's do, by words and with
meaning. Source: the half `learn`, each conversation of LoCoMo and each fifth of the bilingual set
left out once: 0.2 / 0.4 / 0.65 find 84.3 / 84.4 / 84.0 % of LoCoMo's evidence in the first ten by
words, and 0.65 / 1 / 2 find 87.1 / 87.1 / 86.5 % with meaning; of English questions 72.1 / 71.5 /
72.7 and 79.7 / 80.8 / 80.8 % have their answer first."""

_NEAR = 30
"""Documents that join the candidates by meaning, as `recall.py` has it."""

_SPEAKER = FEATURES.index("speaker")
_FOREIGN = 150
_AT = 10
_WRONG_PERSON = "adversarial"
_ACROSS = "cross"
"""Questions that words alone hardly answer."""


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One question: a row of values for each candidate, and which of them are evidence.

    `kind` is what the floor counts it under: `floor_learned.EVIDENT`, or a kind of unanswerable.
    `signs` are those that need no order; `part` is what is left out together with it.
    """

    corpus: int
    group: str
    kind: str
    half: Half
    part: str
    values: Array
    answers: Array
    evidence: int
    names_speaker: bool
    signs: Signs


def examples(corpora: Sequence[Corpus], embedder: Embedder | None) -> Iterator[Example]:
    """Yields what the ranking sees of each question."""
    with tempfile.TemporaryDirectory() as directory:
        for number, corpus in enumerate(corpora):
            index = Index.open(Path(directory) / f"{number}.db")
            docs = list(_docs(corpus))
            index.rebuild(docs, (), 1)
            meant = None if embedder is None else Meant(embedder, docs)
            for question, kind in _asked(corpora, number):
                if question.group == _WRONG_PERSON or (
                    question.group == _ACROSS and embedder is None
                ):
                    continue
                yield _example(index, meant, number, question, kind)
            index.close()


class Meant:
    """The vectors of one corpus."""

    def __init__(self, embedder: Embedder, docs: Sequence[TurnDoc]) -> None:
        self._embedder = embedder
        frame = embedder.frame
        self._frame = (
            Frame.of(embedder) if frame is None else Frame.from_bytes(frame, embedder.dimension)
        )
        self._refs: list[DocRef] = [("turn", doc.label) for doc in docs]
        turns = [of_turn(d.label, d.text, speaker=d.speaker_name, at=d.time) for d in docs]
        self._rows = np.stack(
            [self._frame.middle(map(embedder.passage, turn.views)) for turn in turns]
        )

    def nearness(self, question: str) -> dict[DocRef, float]:
        """Returns how near each document is."""
        cosines = self._rows @ self._frame.seen(self._embedder.query(question))
        scale = self._embedder.scale
        return {
            ref: nearness(float(one), scale) for ref, one in zip(self._refs, cosines, strict=True)
        }


def _asked(corpora: Sequence[Corpus], number: int) -> Iterator[tuple[Question, str]]:
    """Yields a corpus's questions, and those that its memory can't answer, with their kinds."""
    corpus, both = corpora[number], len(corpora) - 1
    for question in corpus.questions:
        evident = "locomo" if number != both else question.group
        yield question, evident if question.evidence else question.group
    if number == both:
        return
    half = corpus.questions[0].half
    others = [
        msgspec.structs.replace(question, evidence=(), half=half)
        for place, other in enumerate(corpora[:both])
        if place != number
        for question in other.questions
        if question.half == half
    ]
    for question in others[:: max(len(others) // _FOREIGN, 1)]:
        yield question, "foreign"
    for question in corpora[both].questions:
        if question.group.endswith("absent") and question.half == half:
            yield question, "absent at large"


def _example(
    index: Index, meant: Meant | None, number: int, question: Question, kind: str
) -> Example:
    asked = query_of(question.text)
    found = gather(index, asked, Filters(), ("turn",))
    near: dict[DocRef, float] = {}
    if meant is not None:
        near = meant.nearness(nameless(question.text, asked, found.named))
        close = sorted(near, key=lambda doc: (-near[doc], doc))[:_NEAR]
        found = with_near(index, found, close, Filters())
    ratings = Ratings(asked, found, near)
    seen = sighted(ratings, found, near)
    values = np.array([ratings.values(one) for one, _, _ in seen]).reshape(-1, len(FEATURES))
    return Example(
        corpus=number,
        group=question.group,
        kind=kind,
        half=question.half,
        part=question.id.partition("/")[0],
        values=values,
        answers=np.array([one.found.ref in question.evidence for one, _, _ in seen], float),
        evidence=len(question.evidence),
        names_speaker=bool(found.named),
        signs=signs_of(found, seen, possible(seen, ratings, found)),
    )


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

    weights = least(loss, np.zeros(len(FEATURES)))
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

    scale, bias = least(loss, np.zeros(2))
    return float(scale), float(bias)


def recall_at(given: Sequence[Example], weights: Array, at: int = _AT) -> Array:
    """Returns, of each question, the share of its evidence among the first `at`."""
    found: list[float] = []
    for one in given:
        order = np.argsort(-(one.values @ weights), kind="stable")[:at]
        found.append(one.answers[order].sum() / one.evidence)
    return np.array(found)


def _weighed(given: Sequence[Example], both: int, share: float) -> list[tuple[Example, float]]:
    """Returns how often each counts; the questions across languages, which are few, count once."""
    apart = [one.corpus == both and one.group != _ACROSS for one in given]
    said = sum(1 for one in given if one.corpus != both)
    times = share * said / max(sum(apart), 1)
    return [(one, times if is_apart else 1.0) for one, is_apart in zip(given, apart, strict=True)]


def _samples(given: Sequence[Example], weights: Array) -> list[Sample]:
    return [
        Sample(
            kind=one.kind,
            half=one.half,
            part=one.part,
            signs=_signs(one, weights),
            found=float(recall_at([one], weights)[0]) if one.evidence else 0.0,
        )
        for one in given
    ]


def _signs(one: Example, weights: Array) -> Signs:
    if not len(one.values):
        return one.signs
    best = [float(value) for value in one.values[np.argmax(one.values @ weights)]]
    is_said = one.names_speaker and bool(best[_SPEAKER])
    return with_best(one.signs, best, is_of_named=is_said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, required=True)
    parser.add_argument("--meaning", action="store_true", help="with the installed embedder")
    wanted = parser.parse_args()
    conversations = locomo.read(wanted.locomo)
    both, share = len(conversations), _BILINGUAL_SHARE[wanted.meaning]
    embedder = find_embedder("e5") if wanted.meaning else None
    everything = list(examples([*conversations, bilingual.read()], embedder))
    given = [one for one in everything if one.evidence]
    said = [one for one in given if one.corpus != both]
    learned = [one for one in given if one.half == "learn"]
    weights, bias = learn(_weighed(learned, both, share))
    for half in ("learn", "report"):
        found = recall_at([one for one in said if one.half == half], weights)
        print(f"# LoCoMo {half}: {found.mean():.4f} of {len(found)} questions")
        for group in sorted({one.group for one in given if one.corpus == both}):
            chosen = [o for o in given if o.corpus == both and (o.group, o.half) == (group, half)]
            first, ten = (recall_at(chosen, weights, at).mean() for at in (1, _AT))
            print(f"# {group} {half}: {first:.3f} at 1, {ten:.3f} at {_AT} of {len(chosen)}")
    for line in floor_lines(_samples(everything, weights), with_meaning=wanted.meaning):
        print(line)
    left_out: list[Array] = []
    for number in range(both):
        others = [o for o in given if o.corpus not in (number, both)]
        own, _ = learn(_weighed([*others, *(o for o in learned if o.corpus == both)], both, share))
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
