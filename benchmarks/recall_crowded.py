"""Recall of LoCoMo's evidence in a crowd: its turns among many drawn from the same words.

Run: python benchmarks/recall_crowded.py --locomo FILE [--crowd 77000] [--every 2] [--keep FILE]

All conversations are in one index. The other turns have the lengths of real ones, and words drawn
as often as they stand there, so that the questions' words are as frequent as in a memory of that
size. Store and worker are left out. `--every` asks only every so many questions; `--keep` leaves
the index in a file, and a later run asks what is there. `cpu` is of this thread, for one question.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import chain
from pathlib import Path
from random import Random

from recall import locomo
from recall.corpus import Corpus, Turn
from recall.metrics import percentile

from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters, TurnDoc
from turnmark_memory.recall import lexical
from turnmark_memory.search_text import query_of

_SEED = 1
_FIRST = 10
_SESSION_TURNS = 25
_SPEAKERS = 400
_BETWEEN = timedelta(minutes=7)


def real(corpora: Sequence[Corpus]) -> Iterator[TurnDoc]:
    """Yields the turns of all conversations."""
    for corpus in corpora:
        for line, turn in enumerate(corpus.turns):
            if turn.text.strip():
                yield _document(f"{corpus.name}/{turn.id}", turn, line)


def _document(label: str, turn: Turn, line: int) -> TurnDoc:
    return TurnDoc(
        label=label,
        namespace="crowd",
        id=label,
        session=turn.session,
        agent="agent",
        project=None,
        role=turn.role,
        speaker_id=turn.speaker,
        speaker_name=turn.speaker,
        time=turn.time,
        text=turn.text,
        path="sources/agent/session.jsonl",
        line=line + 1,
        position=line,
    )


def crowd(corpora: Sequence[Corpus], number_of: int) -> Iterator[TurnDoc]:
    """Yields turns that say nothing, in the words of those that do."""
    said = [turn.text.split() for corpus in corpora for turn in corpus.turns if turn.text.strip()]
    words, lengths = list(chain.from_iterable(said)), [len(one) for one in said]
    dice, start = Random(_SEED), corpora[0].turns[0].time
    for number in range(number_of):
        session = number // _SESSION_TURNS
        turn = Turn(
            id=f"crowd-{number}",
            session=f"crowd-{session}",
            project=None,
            time=start + number * _BETWEEN,
            role="user",
            speaker=f"P{session % _SPEAKERS}",
            text=" ".join(dice.choices(words, k=dice.choice(lengths))),
        )
        yield _document(turn.id, turn, number % _SESSION_TURNS)


def asked(index: Index, corpora: Sequence[Corpus], every: int) -> tuple[list[float], list[float]]:
    """Returns the share of each question's evidence among the first ten, and its milliseconds."""
    shares: list[float] = []
    times: list[float] = []
    for corpus in corpora:
        for question in corpus.questions[::every]:
            if question.group not in locomo.HEADLINE:
                continue
            began = time.thread_time()
            ranked = lexical(index, query_of(question.text), Filters(), ("turn",))[:_FIRST]
            times.append((time.thread_time() - began) * 1_000)
            found = {one.found.ref for one in ranked}
            wanted = [f"{corpus.name}/{turn}" for turn in question.evidence]
            shares.append(sum(turn in found for turn in wanted) / len(wanted))
    return shares, times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", default=os.environ.get("LOCOMO"))
    parser.add_argument("--crowd", type=int, default=77_000)
    parser.add_argument("--every", type=int, default=2)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if not given.locomo:
        print("LoCoMo is not asked: name your copy of locomo10.json with --locomo or LOCOMO.")
        return
    corpora = locomo.read(Path(given.locomo))
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as directory:
        index = Index.open(given.keep or Path(directory) / "index.db")
        if index.revision is None:
            index.rebuild(chain(real(corpora), crowd(corpora, given.crowd)), [], 1)
        shares, times = asked(index, corpora, given.every)
        print(
            f"{index.size('turn')} turns, {len(shares)} questions: "
            f"recall@10 {100 * sum(shares) / len(shares):.1f} %, "
            f"cpu p50 {percentile(times, 0.5):.1f} ms, p95 {percentile(times, 0.95):.1f} ms"
        )
        index.close()


if __name__ == "__main__":
    main()
