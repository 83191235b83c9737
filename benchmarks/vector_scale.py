"""How long the nearest among many vectors take to find, and how many of the true ones are found.

Run: python benchmarks/vector_scale.py [--vectors 100000] [--dimension 384]

The vectors are made up: a few thousand subjects, around each texts about it, as an embedder's lie.
The search is the one that recall uses: signs in memory, then the numbers of the best out of the
file, then whose they are. What it misses shows against a comparison with every vector. One thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_LIMIT = 200
_QUESTIONS = 50
_SUBJECTS = 3_000
_AT_ONCE = 5_000
_CANDIDATES = (2_000, 4_000, 8_000, 16_000)


def main() -> None:
    """Prints a row for each number of candidates that are compared exactly."""
    try:
        import numpy as np  # noqa: PLC0415  the extra
    except ImportError:
        print("skipped: NumPy is not installed (pip install 'turnmark[e5]')")
        return
    from turnmark_memory.embedding.shortlist import Shortlist  # noqa: PLC0415  needs NumPy
    from turnmark_memory.embedding.vector_file import VectorFile  # noqa: PLC0415  as above

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    asked = parser.parse_args()
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="turnmark-bench-") as made:
        file = VectorFile(Path(made) / "vectors.db")
        subjects = random.normal(size=(_SUBJECTS, asked.dimension)).astype(np.float32)
        began = time.perf_counter()
        generation = _fill(file, subjects, asked.vectors, random)
        print(f"{asked.vectors:,} vectors kept in {time.perf_counter() - began:.1f} s")
        found = Shortlist(file.numbers(generation), asked.dimension)
        began, change = time.perf_counter(), 0
        while slots := file.changed_after(generation, change, 10_000):
            found.add([slot for _, slot in slots])
            change = slots[-1][0]
        print(f"loaded in {time.perf_counter() - began:.2f} s")
        questions = [_near(subjects, 1, random)[0] for _ in range(_QUESTIONS)]
        everything = np.fromfile(file.numbers(generation), dtype=np.int8)
        truth = _truth(everything.reshape(-1, asked.dimension), questions)
        for candidates in _CANDIDATES:
            _measure(file, generation, found, questions, truth, candidates)
        file.close()


def _near(subjects: Any, count: int, random: Any) -> Any:
    """Returns unit vectors, each about one subject and somewhat about another."""
    import numpy as np  # noqa: PLC0415  as in main

    chosen = random.integers(len(subjects), size=(2, count))
    rows = subjects[chosen[0]] + 0.6 * subjects[chosen[1]]
    rows += 0.8 * random.normal(size=rows.shape).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _fill(file: Any, subjects: Any, count: int, random: Any) -> int:
    from turnmark_memory.embedding.shortlist import code_of  # noqa: PLC0415  as in main
    from turnmark_memory.embedding.vector_file import Made  # noqa: PLC0415  as in main

    generation: int = file.begin("made up", 1, subjects.shape[1], b"").id
    for start in range(0, count, _AT_ONCE):
        rows = _near(subjects, min(_AT_ONCE, count - start), random)
        file.put(
            generation,
            [
                Made(ref=("turn", f"s-{start + at:012x}"), digest=bytes(8), code=code_of(row))
                for at, row in enumerate(rows)
            ],
        )
    return generation


def _truth(codes: Any, questions: list[Any]) -> list[list[int]]:
    """Returns the nearest slots of each question, by comparing all, in their order."""
    import numpy as np  # noqa: PLC0415  as in main

    cosines = []
    for start in range(0, len(codes), _AT_ONCE):
        rows = codes[start : start + _AT_ONCE].astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        cosines.append(rows @ np.array(questions).T)
    order = np.argsort(-np.concatenate(cosines), axis=0)[:_LIMIT]
    return [[int(slot) for slot in column] for column in order.T]


def _measure(
    file: Any, generation: int, found: Any, questions: list[Any], truth: list[Any], exact: int
) -> None:
    times, first, all_of = [], [], []
    for question, true in zip(questions, truth, strict=True):
        began = time.perf_counter()
        near = dict(found.nearest(question, _LIMIT, exact))
        file.refs_at(generation, list(near))
        times.append(1_000 * (time.perf_counter() - began))
        first.append(sum(slot in near for slot in true[:20]) / 20)
        all_of.append(sum(slot in near for slot in true) / len(true))
    times.sort()
    print(
        f"{exact:>6,} compared exactly: p50 {times[len(times) // 2]:.1f} ms,"
        f" p95 {times[len(times) * 95 // 100]:.1f} ms;"
        f" of the first 20 {sum(first) / len(first):.1%}, of the first {_LIMIT}"
        f" {sum(all_of) / len(all_of):.1%}"
    )


if __name__ == "__main__":
    sys.exit(main())
