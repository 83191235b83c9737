"""Tests of the search among many vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.embedding.embedder import Scale
from turnmark_memory.embedding.nearness import nearness
from turnmark_memory.embedding.shortlist import Shortlist, code_of

DIMENSION = 128


def vectors(count: int, seed: int = 7) -> np.ndarray:
    """Returns unit vectors in any direction."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(count, DIMENSION))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def shortlist_of(rows: np.ndarray, path: Path) -> Shortlist:
    """Returns a shortlist over rows written one slot after the other."""
    path.write_bytes(b"".join(code_of(row) for row in rows))
    made = Shortlist(path, DIMENSION)
    made.add(list(range(len(rows))))
    return made


def test_a_search_among_few_is_exact(tmp_path: Path) -> None:
    """The same order as the full numbers give, and cosines within a hundredth."""
    rows = vectors(300)
    query = vectors(1, seed=8)[0]
    found = shortlist_of(rows, tmp_path / "v.i8").nearest(query, 10)
    truth = rows @ query
    assert [cosine for _, cosine in found] == pytest.approx(np.sort(truth)[::-1][:10], abs=0.01)
    assert set(dict(found)) >= set(np.argsort(-truth)[:5].tolist())


def test_a_search_among_many_finds_what_is_near(tmp_path: Path) -> None:
    """The signs alone lead to the few that stand out, wherever they are."""
    rows = vectors(3_000)
    wanted = rows[2_345]
    made = shortlist_of(rows, tmp_path / "v.i8")
    found = made.nearest(wanted, 3, exact=100)
    assert found[0][0] == 2_345
    assert found[0][1] == pytest.approx(1.0, abs=0.02)
    assert found[1][1] < 0.7


def test_a_search_among_equals_compares_no_more_than_it_is_told(tmp_path: Path) -> None:
    """However many signs are the same; the first of them are taken."""
    rows = np.concatenate([np.repeat(vectors(1), 500, axis=0), vectors(500, seed=8)])
    made = shortlist_of(rows, tmp_path / "v.i8")
    found = made.nearest(rows[0], 50, exact=20)
    assert [slot for slot, _ in found] == list(range(20))
    assert len(made.nearest(rows[0], 50, exact=600)) == 50


def test_free_slots_and_changed_ones(tmp_path: Path) -> None:
    """A zeroed row is never near; one that is written again counts as it is now."""
    rows = vectors(5)
    path = tmp_path / "v.i8"
    made = shortlist_of(rows, path)
    content = bytearray(path.read_bytes())
    content[DIMENSION : 2 * DIMENSION] = bytes(DIMENSION)
    content[:DIMENSION] = code_of(rows[4])
    with path.open("r+b") as file:  # in place, as the vectors' file is written
        file.write(content)
    made.add([0])
    cosines = made.cosines(rows[4], [0, 1, 4])
    assert cosines[1] == -1.0
    assert [cosines[0], cosines[2]] == pytest.approx([1.0, 1.0], abs=0.01)
    assert made.cosines(rows[4], []) == []


def test_grows_with_the_file(tmp_path: Path) -> None:
    """What is appended after it was mapped is found."""
    rows = vectors(40)
    path = tmp_path / "v.i8"
    made = shortlist_of(rows[:3], path)
    for slot in range(3, 40):
        with path.open("ab") as file:
            file.write(code_of(rows[slot]))
        made.add([slot])
    assert made.nearest(rows[39], 1)[0][0] == 39
    assert Shortlist(path, DIMENSION).nearest(rows[0], 5) == []


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_nearness_keeps_the_order(one: float, other: float) -> None:
    """Between 0 and 1, half where half are answers, and never the other way round."""
    scale = Scale(unrelated=0.3, answers=0.5)
    near = sorted([one, other])
    assert 0 <= nearness(near[0], scale) <= nearness(near[1], scale) <= 1
    assert nearness(0.3, scale) == 0
    assert nearness(0.5, scale) == 0.5
    assert nearness(1.0, scale) == 1
