"""The nearest among many vectors: signs first, in memory, then the numbers of the best.

Of each vector one bit a number is kept in memory, its sign: 48 bytes at 384
numbers. Those whose bits differ least from the question's are compared exactly,
out of the file of numbers, which is mapped and takes no memory of its own.

This module, `frame.py` and `space.py` need NumPy; whoever imports them has an embedder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from turnmark_memory.embedding.frame import Floats
from turnmark_memory.embedding.vector_file import DamagedVectors

Slots = NDArray[np.int64]

_EXACT = 8_000
"""Vectors that are compared exactly: below this number of documents the search is exact. Among 10^5
mixtures of real vectors it finds 99.8 % of the true first 20 and 97 % of the first 200, where 2,000
find 97 and 85 %; more cost time and find what ranks low. Source: benchmarks/vector_scale.py."""

_BLOCK = 65_536
"""Vectors whose bits are compared at once: what a processor's cache holds."""

_ROWS = 1_024
"""Vectors that are compared exactly at once, for the same reason."""

_WORD_BITS = 64
_LARGEST_CODE = 127
_TINY = 1e-6


def code_of(vector: Floats) -> bytes:
    """Returns a vector as int8, a quarter of the bytes; a cosine moves by less than 0.01."""
    largest = float(np.abs(vector).max()) or 1.0
    code: NDArray[np.int8] = np.rint(vector * (_LARGEST_CODE / largest)).astype(np.int8)
    return code.tobytes()


class Shortlist:
    """The vectors of one generation. Not for several threads at once."""

    def __init__(self, numbers: Path, dimension: int) -> None:
        self._numbers = numbers
        self._dimension = dimension
        self._words = dimension // _WORD_BITS
        self._rows: NDArray[np.int8] = np.empty((0, dimension), dtype=np.int8)
        self._bits: NDArray[np.uint64] = np.empty((self._words, 0), dtype=np.uint64)
        self._length = 0

    def add(self, slots: Sequence[int]) -> None:
        """Takes what was written into these slots since."""
        if not slots:
            return
        self._make_room(max(slots) + 1)
        at = np.asarray(slots, dtype=np.int64)
        self._bits[:, at] = _packed(self._rows[at]).T

    def nearest(self, query: Floats, limit: int, exact: int = _EXACT) -> list[tuple[int, float]]:
        """Returns the slots of the nearest vectors with their cosines, the nearest first."""
        if self._length <= exact:
            candidates = np.arange(self._length, dtype=np.int64)
        else:
            candidates = _least(self._apart(query), exact)
        cosines = self._cosines(query, candidates)
        if len(candidates) > limit:
            some = np.sort(np.argpartition(-cosines, limit)[:limit])
            candidates, cosines = candidates[some], cosines[some]
        best = np.argsort(-cosines, kind="stable")
        return list(zip(candidates[best].tolist(), cosines[best].tolist(), strict=True))

    def cosines(self, query: Floats, slots: Sequence[int]) -> list[float]:
        """Returns the cosine of the question and each of these slots; -1 where one is free."""
        at = np.asarray(slots, dtype=np.int64)
        found: list[float] = self._cosines(query, at).tolist()
        return found

    def _apart(self, query: Floats) -> NDArray[np.uint16]:
        """Returns in how many bits each vector differs from the question."""
        asked = _packed(query[np.newaxis, :])[0]
        apart = np.zeros(self._length, dtype=np.uint16)
        differing = np.empty(_BLOCK, dtype=np.uint64)
        for start in range(0, self._length, _BLOCK):
            end = min(start + _BLOCK, self._length)
            block = differing[: end - start]
            for word in range(self._words):
                np.bitwise_xor(self._bits[word, start:end], asked[word], out=block)
                apart[start:end] += np.bitwise_count(block)
        return apart

    def _cosines(self, query: Floats, slots: Slots) -> Floats:
        """Returns the cosine of the question and the vector in each slot.

        Row by row: a product of matrices would be given to the threads of BLAS, which go on
        spinning after it, for 50 ms of the other cores a question. All rows go through the same
        two pieces of memory: to be given new ones for each would cost as much as to compare.
        """
        cosines = np.empty(len(slots), dtype=np.float32)
        room = min(len(slots), _ROWS)
        codes = np.empty((room, self._dimension), dtype=np.int8)
        numbers = np.empty((room, self._dimension), dtype=np.float32)
        for start in range(0, len(slots), _ROWS):
            at = slots[start : start + _ROWS]
            rows = numbers[: len(at)]
            rows[:] = np.take(self._rows, at, axis=0, out=codes[: len(at)], mode="clip")
            sizes = np.sqrt(np.vecdot(rows, rows))
            some = np.vecdot(rows, query) / np.maximum(sizes, _TINY)
            some[sizes == 0] = -1.0  # a free slot
            cosines[start : start + _ROWS] = some
        return cosines

    def _make_room(self, length: int) -> None:
        """Maps what the file has by now; doubles where the room for bits ends."""
        if length > len(self._rows):
            self._rows = self._mapped()
            if length > len(self._rows):
                raise DamagedVectors(f"{self._numbers} is too short", path=str(self._numbers))
        if length > self._bits.shape[1]:
            room = max(1_024, 2 * self._bits.shape[1], length)
            bits = np.zeros((self._words, room), dtype=np.uint64)
            bits[:, : self._length] = self._bits[:, : self._length]
            self._bits = bits
        self._length = max(self._length, length)

    def _mapped(self) -> NDArray[np.int8]:
        try:
            content = np.memmap(self._numbers, dtype=np.int8, mode="r")
        except (OSError, ValueError) as error:  # ValueError: it is empty
            raise DamagedVectors(
                f"{self._numbers} can't be read ({error})", path=str(self._numbers)
            ) from error
        whole = len(content) // self._dimension * self._dimension
        # A view: the mapping's own class would go through Python with each operation.
        return content[:whole].reshape(-1, self._dimension).view(np.ndarray)


def _least(apart: NDArray[np.uint16], count: int) -> Slots:
    """Returns where the `count` least numbers stand, in order; of equal ones the first."""
    up_to = np.cumsum(np.bincount(apart))
    last = int(np.searchsorted(up_to, count))
    below = np.flatnonzero(apart < last)
    equal = np.flatnonzero(apart == last)[: count - len(below)]
    return np.sort(np.concatenate([below, equal]))


def _packed(rows: NDArray[np.int8] | Floats) -> NDArray[np.uint64]:
    return np.packbits(rows > 0, axis=1).view(np.uint64)
