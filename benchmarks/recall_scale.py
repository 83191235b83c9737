"""Recall over a growing memory: percentiles of a search, and how they grow with it.

Run: python benchmarks/recall_scale.py [--turns 10000,100000] [--questions 200]

Turns are made of a vocabulary with a natural distribution (Zipf), in English and Chinese, from a
seed; questions take a few words of a random turn. Times depend on the machine: read the ratios.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random

from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters, TurnDoc
from turnmark_memory.recall import lexical
from turnmark_memory.search_text import query_of

_SEED = 20260809
_WORDS = 30_000
_HAN = "".join(chr(0x4E00 + 7 * i) for i in range(2_500))
_START = datetime(2026, 1, 1, tzinfo=UTC)


class Speech:
    """Makes turns and questions from a seed."""

    def __init__(self) -> None:
        self._random = Random(_SEED)
        letters = "abcdefghijklmnoprstuvw"
        draw = self._random.choices
        self._words = ["".join(draw(letters, k=draw(range(3, 10))[0])) for _ in range(_WORDS)]
        self._rising = list(accumulate(1 / (rank + 10) for rank in range(_WORDS)))
        self._rising_han = list(accumulate(1 / (rank + 20) for rank in range(len(_HAN))))

    def turns(self, n: int) -> Iterator[TurnDoc]:
        """Yields `n` turns in sessions of 40, every fifth in Chinese."""
        for i in range(n):
            yield TurnDoc(
                label=f"s-{i:012x}",
                namespace="bench",
                id=str(i),
                session=f"session-{i // 40}",
                agent="bench",
                project=None,
                role="user" if i % 2 else "assistant",
                speaker_id=None,
                speaker_name="Dana" if i % 2 else None,
                time=_START + timedelta(minutes=i),
                text=self._chinese() if i % 5 == 0 else self._english(),
                path="sources/bench/session.jsonl",
                line=i + 1,
                position=i % 40,
            )

    def question(self, text: str) -> str:
        """Returns a question with a few of the words of `text`."""
        if text[0] >= "\u4e00":
            start = self._random.randrange(max(len(text) - 6, 1))
            return text[start : start + 6] + "是什么"
        return "what did Dana say about " + " ".join(self._random.sample(text.split(), 4))

    def _english(self) -> str:
        count = self._random.randint(8, 60)
        return " ".join(self._random.choices(self._words, cum_weights=self._rising, k=count))

    def _chinese(self) -> str:
        count = self._random.randint(12, 80)
        return "".join(self._random.choices(_HAN, cum_weights=self._rising_han, k=count))


def measure(turns: int, questions: int, directory: Path) -> tuple[float, float, float]:
    """Returns milliseconds: writing a turn, the median and the 95th percentile of a search."""
    speech = Speech()
    index = Index.open(directory / f"{turns}.db")
    docs = list(speech.turns(turns))
    began = time.perf_counter()
    index.rebuild(docs, (), 1)
    built = (time.perf_counter() - began) / turns * 1_000
    times: list[float] = []
    for doc in Random(_SEED).sample(docs, questions):
        asked = query_of(speech.question(doc.text))
        began = time.perf_counter()
        found = lexical(index, asked, Filters(), ("turn",))
        times.append((time.perf_counter() - began) * 1_000)
        assert found
    index.close()
    times.sort()
    return built, times[len(times) // 2], times[int(len(times) * 0.95)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", default="1000,10000,100000")
    parser.add_argument("--questions", type=int, default=200)
    given = parser.parse_args()
    first = None
    print(f"{'turns':>9} {'write ms/turn':>14} {'p50 ms':>8} {'p95 ms':>8} {'p95 ratio':>10}")
    with tempfile.TemporaryDirectory() as directory:
        for turns in (int(part) for part in given.turns.split(",")):
            built, p50, p95 = measure(turns, given.questions, Path(directory))
            first = first or p95
            print(f"{turns:>9} {built:>14.3f} {p50:>8.2f} {p95:>8.2f} {p95 / first:>10.2f}")


if __name__ == "__main__":
    main()
