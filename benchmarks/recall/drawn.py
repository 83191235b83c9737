"""Vectors without a model, for scale: drawn from a seed, near one another where texts begin alike.

A question costs what the real embedder's question costs; where it points is drawn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from turnmark_memory.embedding.embedder import Embedder, Scale

_DIMENSION = 384
_OWN = 0.7
_CLUSTERS = 2_000
_SPREAD = 0.3
"""How far a question lies from the turn that it was made of."""


class DrawnEmbedder:
    """Stands for `real`, whose questions it embeds for the time that takes.

    `answers` says of which text a question was made.
    """

    space = "drawn/1"
    dimension = _DIMENSION
    frame = None
    scale = Scale(unrelated=0.0, answers=0.3)

    def __init__(self, real: Embedder, answers: dict[str, str]) -> None:
        self._real = real
        self._answers = answers

    def passage(self, text: str) -> bytes:
        """Returns a vector that hangs on the text alone."""
        said = text.partition(": ")[2] or text
        cluster = _drawn(crc32(said[:2].encode()) % _CLUSTERS)
        own = _drawn(crc32(said.encode()) + _CLUSTERS)
        return _unit((1 - _OWN) * cluster + _OWN * own).tobytes()

    def query(self, text: str) -> bytes:
        """Returns a vector near that of the text which answers."""
        self._real.query(text)
        near = np.frombuffer(self.passage(f": {self._answers.get(text, text)}"), np.float32)
        return _unit(near + _SPREAD * _drawn(crc32(text.encode()))).tobytes()


def _unit(vector: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    return (vector / np.linalg.norm(vector)).astype(np.float32)


@lru_cache(maxsize=_CLUSTERS)
def _drawn(seed: int) -> NDArray[np.float32]:
    return _unit(np.random.default_rng(seed).standard_normal(_DIMENSION, np.float32))
