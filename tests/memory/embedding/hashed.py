"""An embedder for tests: a text is the words it has, each in a place of its own."""

from __future__ import annotations

import math
import struct
from hashlib import blake2b
from threading import Event

from turnmark_events.errors import Unavailable
from turnmark_memory.embedding.embedder import Scale

DIMENSION = 256


class Hashed:
    """Words to places by their hash: deterministic, without a model, blind to meaning.

    `also` are words that are taken for others, so that a test can say what is near in meaning.
    """

    def __init__(
        self, space: str = "hashed/1", *, also: dict[str, str] | None = None, broken: bool = False
    ) -> None:
        self.space = space
        self.dimension = DIMENSION
        self.frame = None
        self.scale = Scale(unrelated=0.0, answers=0.3)
        self.embedded: list[str] = []
        self.asked: list[str] = []
        self.broken = broken
        self.gate: Event | None = None
        self._also = also or {}

    def passage(self, text: str) -> bytes:
        """Returns the vector of a document; waits at the gate, if one is set."""
        if self.gate is not None:
            self.gate.wait(30)
        if self.broken:
            raise Unavailable("the model is damaged; install it anew")
        self.embedded.append(text)
        return self._vector(text)

    def query(self, text: str) -> bytes:
        """Returns the vector of a question."""
        if self.broken:
            raise Unavailable("the model is damaged; install it anew")
        self.asked.append(text)
        return self._vector(text)

    def _vector(self, text: str) -> bytes:
        numbers = [0.01] * DIMENSION
        for word in text.casefold().split():
            meant = self._also.get(word, word) + self.space
            digest = blake2b(meant.encode("utf-8", "replace"), digest_size=4).digest()
            place = int.from_bytes(digest, "big")
            numbers[place % DIMENSION] += 1.0 if place & 1 << 20 else -1.0
        size = math.sqrt(sum(number * number for number in numbers))
        return struct.pack(f"{DIMENSION}f", *(number / size for number in numbers))
