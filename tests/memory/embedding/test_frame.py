"""Tests of how an embedder's space is looked at."""

from __future__ import annotations

import numpy as np
import pytest

from turnmark_memory.embedding.embedder import Scale
from turnmark_memory.embedding.frame import Frame
from turnmark_memory.embedding.probes import PROBES

DIMENSION = 64


class Tongues:
    """An embedder as they are: a common place, one for each language, a little meaning.

    A text is `language:meaning`, or a probe.
    """

    space = "tongues/1"
    dimension = DIMENSION
    frame = None
    scale = Scale(unrelated=0.0, answers=0.3)

    def passage(self, text: str) -> bytes:
        """Returns place plus language plus meaning."""
        language, meaning = self._parted(text)
        vector = 5 * self._direction("all") + 2 * self._direction(f"tongue {language}")
        vector += self._direction(f"meaning {meaning}")
        return (vector / np.linalg.norm(vector)).astype(np.float32).tobytes()

    def query(self, text: str) -> bytes:
        """Returns the same."""
        return self.passage(text)

    def _parted(self, text: str) -> tuple[str, str]:
        for language, probes in PROBES.items():
            if text in probes:
                return language, str(probes.index(text))
        language, _, meaning = text.partition(":")
        return language, meaning

    def _direction(self, name: str) -> np.ndarray:
        return np.random.default_rng(list(name.encode())).normal(size=DIMENSION)


def cosine(frame: Frame | None, one: str, other: str) -> float:
    """Returns the cosine of two texts, seen in a frame or as they come."""
    vectors = [Tongues().passage(text) for text in (one, other)]
    if frame is None:
        seen = [np.frombuffer(vector, np.float32) for vector in vectors]
    else:
        seen = [frame.seen(vector) for vector in vectors]
    return float(seen[0] @ seen[1])


def test_a_question_finds_its_answer_and_not_its_language() -> None:
    """As they come, another text of the language is nearer than the answer in another one."""
    assert cosine(None, "en:boats", "en:taxes") > cosine(None, "en:boats", "zh:boats")
    frame = Frame.of(Tongues())
    assert cosine(frame, "en:boats", "zh:boats") > 0.9
    assert abs(cosine(frame, "en:boats", "en:taxes")) < 0.5


def test_what_is_seen_has_size_one_and_is_kept_as_bytes() -> None:
    """A frame read back sees the same."""
    frame = Frame.of(Tongues())
    again = Frame.from_bytes(frame.to_bytes(), DIMENSION)
    vector = Tongues().passage("ja:boats")
    assert np.linalg.norm(frame.seen(vector)) == pytest.approx(1.0, abs=1e-5)
    assert frame.seen(vector) == pytest.approx(again.seen(vector), abs=1e-6)


def test_the_middle_of_several_vectors_is_as_near_to_each() -> None:
    """Of size one; a single vector is its own middle."""
    frame = Frame.of(Tongues())
    boats, taxes = (Tongues().passage(f"en:{text}") for text in ("boats", "taxes"))
    middle = frame.middle([boats, taxes])
    assert np.linalg.norm(middle) == pytest.approx(1.0, abs=1e-5)
    assert middle @ frame.seen(boats) == pytest.approx(middle @ frame.seen(taxes), abs=1e-5)
    assert frame.middle([boats]) == pytest.approx(frame.seen(boats), abs=1e-6)


def test_the_probes_are_the_same_in_each_language() -> None:
    """As many in each, none twice: their middles differ by language alone."""
    assert len({len(texts) for texts in PROBES.values()}) == 1
    assert len({text for texts in PROBES.values() for text in texts}) == 4 * len(PROBES["en"])
