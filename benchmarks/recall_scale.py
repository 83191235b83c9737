"""Recall and context over a growing memory: what it costs to build, to keep and to ask.

Run: python benchmarks/recall_scale.py [--documents 10000,100000] [--million] [--fused]
     [--questions 200] [--keep DIR]

Four fifths of the documents are turns, one fifth blocks; words are made from a seed, in English and
Chinese, with natural frequencies, and a question takes a few words of a turn. Store, index, recall
and context are the real ones; only the worker is left out, which has nothing to do with asking.
`--fused` also asks by meaning (needs the extra e5): vectors are drawn, questions really embedded.
`--keep` leaves the memories in a directory, a later run asks what is there.
Building includes making the words (some 40 us of a turn's time). Times depend on the machine and on
what else it does: `cpu` is what this process computed for one question, in all its threads, before
it are the times that passed.
"""

from __future__ import annotations

import argparse
import logging
import resource
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import groupby, islice
from pathlib import Path
from random import Random

import anyio
import structlog
from recall.metrics import percentile
from recall.speech import TURNS_A_BLOCK, Speech

from turnmark_memory.context import Context
from turnmark_memory.dense import Dense
from turnmark_memory.embedding.embedder import Embedder, find_embedder
from turnmark_memory.index import Index
from turnmark_memory.index_schema import TurnDoc
from turnmark_memory.nameless import nameless
from turnmark_memory.recall import Recall
from turnmark_memory.relations import StoreRelations
from turnmark_memory.requests import ContextRequest, RecallMode, RecallRequest
from turnmark_memory.search_text import query_of
from turnmark_memory.tokens import load_counter
from turnmark_session_store import SessionStore
from turnmark_session_store.model import Speaker, TurnIn
from turnmark_session_store.requests import AppendTurns

_SEED = 20260809
_MILLION = 1_000_000
_ASKED_ABOUT = 5_000
_CORE_PARAGRAPHS = 40
_VECTORS_AT_ONCE = 2_000
_SHOWN = (0.5, 0.95)
_NAMED = frozenset({"dana"})
"""Whom questions of `Speech` name."""


class Asked:
    """Questions that were not asked before, so that no cache knows their answers."""

    def __init__(self, speech: Speech, turns: int) -> None:
        self._speech = speech
        self._dice = Random(_SEED)
        step = max(turns // _ASKED_ABOUT, 1)
        self._texts = [turn.text for turn in islice(speech.turns(turns), 0, None, step)]
        self.answers: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        while True:
            text = self._dice.choice(self._texts)
            question = self._speech.question(text, self._dice)
            for asked in (question, nameless(question, query_of(question), _NAMED)):
                self.answers[asked] = text  # an embedder is asked without names
            yield question


@asynccontextmanager
async def filled(directory: Path, turns: Iterable[TurnDoc]) -> AsyncGenerator[SessionStore]:
    """Gives a store that has the turns; one that is there already is taken as it is."""
    path, is_filled = directory / "sessions.db", directory / "is-filled"
    is_kept = await anyio.Path(is_filled).exists()
    store = SessionStore.open(path, count=len, idle_ms=3_600_000)
    try:
        for session, said in groupby(() if is_kept else turns, key=lambda turn: turn.session):
            given = [_turn_in(turn) for turn in said]
            await store.append(AppendTurns(session=session, turns=given, key=session))
        await anyio.Path(is_filled).touch()
        yield store
    finally:
        await store.aclose()


def _turn_in(turn: TurnDoc) -> TurnIn:
    name = turn.speaker_name
    return TurnIn(
        role="user" if turn.role == "user" else "assistant",
        text=turn.text,
        id=turn.id,
        speaker=None if name is None else Speaker(name=name),
        time=turn.time.isoformat(),
    )


def built(path: Path, speech: Speech, turns: int) -> tuple[Index, float]:
    """Returns an index of turns and blocks, and the seconds that making it took; none if kept."""
    index = Index.open(path)
    began = time.perf_counter()
    if index.revision is None:
        index.rebuild(speech.turns(turns), speech.topics(turns), 1)
    return index, time.perf_counter() - began


def meaning_of(index: Index, folder: Path, turns: Iterable[TurnDoc], embedder: Embedder) -> Dense:
    """Returns vectors of the turns, ready to be asked."""
    from turnmark_memory.embedding.documents import of_turn  # noqa: PLC0415  needs the extra
    from turnmark_memory.embedding.meaning import Meaning  # noqa: PLC0415  the same
    from turnmark_memory.embedding.space import Space  # noqa: PLC0415  the same
    from turnmark_memory.embedding.vector_file import FILE_NAME, VectorFile  # noqa: PLC0415  the same

    file = VectorFile(folder / FILE_NAME)
    if any(generation.complete for generation in file.generations()):
        return Meaning(index, file, embedder)
    space = Space.begin(file, embedder)
    documents = iter(turns)
    while some := list(islice(documents, _VECTORS_AT_ONCE)):
        made = [of_turn(t.label, t.text, speaker=t.speaker, at=t.time) for t in some]
        file.put(space.generation.id, [space.make(document) for document in made])
    file.complete(space.generation.id)
    return Meaning(index, file, embedder)


async def timed(
    questions: Iterator[str], count: int, ask: Callable[[str], Awaitable[object]]
) -> str:
    """Returns milliseconds, for a table: median and 95th percentile of `count`, then of CPU."""
    await ask(next(questions))  # loads what is loaded once
    passed: list[float] = []
    computed: list[float] = []
    for question in islice(questions, count):
        began, before = time.perf_counter(), time.process_time()
        await ask(question)
        passed.append((time.perf_counter() - began) * 1_000)
        computed.append((time.process_time() - before) * 1_000)
    return "".join(f"{percentile(times, q):>8.1f}" for times in (passed, computed) for q in _SHOWN)


async def measure(documents: int, count: int, directory: Path, real: Embedder | None) -> None:
    """Prints what a memory of so many documents costs."""
    speech = Speech()
    turns = documents * TURNS_A_BLOCK // (TURNS_A_BLOCK + 1)
    index, seconds = built(directory / "index.db", speech, turns)
    core = "\n\n".join(speech.text(in_chinese=False) for _ in range(_CORE_PARAGRAPHS))
    asked = Asked(speech, turns)
    dense = None
    if real is not None:
        dense = _meaning(index, directory, speech.turns(turns), real, asked)
    async with filled(directory, speech.turns(turns)) as store:
        relations, counter = StoreRelations(store), load_counter()
        recall = Recall(index, relations, counter.count, dense=dense)
        context = Context(recall, lambda _project: core, counter.count)
        words = await timed(iter(asked), count, lambda q: recall.recall(_request(q, "lexical")))
        fused = f"{'-':>32}"
        if dense is not None:
            fused = await timed(iter(asked), count, lambda q: recall.recall(_request(q, "hybrid")))
        packed = await timed(iter(asked), count, lambda q: context.context(ContextRequest(query=q)))
    index.close()
    sizes = [_megabytes(directory, "index.db*"), _megabytes(directory, "*vector*")]
    print(
        f"{documents:>10}{seconds:>10.1f}{1e6 * seconds / documents:>10.0f}"
        + "".join(f"{size:>12.1f}" for size in sizes)
        + words + fused + packed
        + f"{_peak_mebibytes():>10.0f}",
        flush=True,
    )  # fmt: skip


def _meaning(
    index: Index, directory: Path, turns: Iterable[TurnDoc], real: Embedder, asked: Asked
) -> Dense:
    from recall.drawn import DrawnEmbedder  # noqa: PLC0415  NumPy comes with the extra

    return meaning_of(index, directory, turns, DrawnEmbedder(real, asked.answers))


def _request(question: str, mode: RecallMode) -> RecallRequest:
    return RecallRequest(query=question, k=10, mode=mode)


def _megabytes(directory: Path, pattern: str) -> float:
    return sum(file.stat().st_size for file in directory.rglob(pattern)) / 1e6


def _peak_mebibytes() -> float:
    unit = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1_048_576


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", default="10000,100000")
    parser.add_argument("--million", action="store_true", help="10^6 documents too: many minutes")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    real = find_embedder("e5") if given.fused else None
    sizes = [int(part) for part in given.documents.split(",")]
    print(
        f"{'':>10}{'build':>10}{'':>10}{'index':>12}{'vectors':>12}"
        f"{'words, ms':>32}{'fused, ms':>32}{'context, ms':>32}{'peak':>10}\n"
        f"{'documents':>10}{'s':>10}{'us/doc':>10}{'MB':>12}{'MB':>12}"
        + f"{'p50':>8}{'p95':>8}{'cpu p50':>8}{'cpu p95':>8}" * 3
        + f"{'MiB':>10}"
    )
    for size in [*sizes, *([_MILLION] if given.million else [])]:
        with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as passing:
            directory = given.keep / str(size) if given.keep else Path(passing)
            directory.mkdir(parents=True, exist_ok=True)
            anyio.run(measure, size, given.questions, directory, real)


if __name__ == "__main__":
    main()
