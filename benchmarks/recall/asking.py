"""Asks a memory the questions of a corpus, twice: as a client does, timed, and deeper, to score."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager

import msgspec

from recall.corpus import Corpus, Half, Question
from recall.metrics import Metrics, laid_out, score
from turnmark_memory import Memory, ranking
from turnmark_memory.requests import RecallMode, RecallRequest

_TIMED_HITS = 10
_DEEP_HITS = 100
"""Enough for the rank of the first evidence and for ten sessions."""

_FLOOR_CONSTANTS = ("FLOOR", "HIT_SHARE", "LEAST_OF_BEST")


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a question; `hits` are the turns that each hit rests on, best first.

    `unfloored` are the metrics with the floor off, None for what nothing answers. `top_score` is
    that of the best hit. A recall of ten hits took `milliseconds`, on a busy machine more than the
    `cpu_milliseconds` that this process computed.
    """

    corpus: str
    view: str
    mode: str
    id: str
    group: str
    half: Half
    question: str
    evidence: tuple[str, ...]
    retrieved: tuple[str, ...]
    hits: int
    top_score: float | None
    milliseconds: float
    cpu_milliseconds: float
    metrics: Metrics | None
    unfloored: Metrics | None


async def ask(
    memory: Memory, corpus: Corpus, view: str, mode: RecallMode, questions: Iterable[Question]
) -> list[Answered]:
    """Returns what came of each question."""
    session_of = corpus.session_of
    answered: list[Answered] = []
    for question in questions:
        request = RecallRequest(query=question.text, k=_TIMED_HITS, mode=mode)
        began, computed = time.perf_counter(), time.process_time()
        await memory.recall(request)
        milliseconds = (time.perf_counter() - began) * 1_000
        cpu_milliseconds = (time.process_time() - computed) * 1_000
        deep = msgspec.structs.replace(request, k=_DEEP_HITS)
        hits, top_score = await _hits(memory, deep)
        metrics = unfloored = None
        if question.evidence:
            metrics = score(question.evidence, hits, session_of)
            with floor_off():
                open_hits, _ = await _hits(memory, deep)
            unfloored = score(question.evidence, open_hits, session_of)
        answered.append(
            Answered(
                corpus=corpus.name,
                view=view,
                mode=mode,
                id=question.id,
                group=question.group,
                half=question.half,
                question=question.text,
                evidence=question.evidence,
                retrieved=tuple(laid_out(hits)),
                hits=len(hits),
                top_score=top_score,
                milliseconds=milliseconds,
                cpu_milliseconds=cpu_milliseconds,
                metrics=metrics,
                unfloored=unfloored,
            )
        )
    return answered


@contextmanager
def floor_off() -> Generator[None]:
    """Lets recall return what it finds, however little of the question it speaks about."""
    before = {name: getattr(ranking, name) for name in _FLOOR_CONSTANTS}
    try:
        for name in _FLOOR_CONSTANTS:
            setattr(ranking, name, 0.0)
        yield
    finally:
        for name, value in before.items():
            setattr(ranking, name, value)


def foreign(corpora: Sequence[Corpus], index: int, count: int) -> list[Question]:
    """Returns `count` questions of the other corpora, for the one at `index`: it answers none."""
    others = [q for i, corpus in enumerate(corpora) if i != index for q in corpus.questions]
    half = corpora[index].questions[0].half
    step = max(len(others) // count, 1)
    return [
        Question(id=f"{corpora[index].name}<{q.id}", text=q.text, group="foreign", half=half)
        for q in others[::step][:count]
    ]


async def _hits(
    memory: Memory, request: RecallRequest
) -> tuple[list[tuple[str, ...]], float | None]:
    answer = await memory.recall(request)
    hits = [tuple(source.turn for source in hit.sources) for hit in answer.hits]
    return hits, answer.hits[0].score if answer.hits else None
