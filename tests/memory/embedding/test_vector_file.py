"""Tests of the file that keeps vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark_events.errors import Unavailable
from turnmark_memory.dense import DocRef
from turnmark_memory.embedding.vector_file import DamagedVectors, Made, VectorFile

FRAME = bytes(64 * 4)
ONE: DocRef = ("turn", "s-1")
TWO: DocRef = ("block", "b-2")


@pytest.fixture
def file(tmp_path: Path) -> Iterator[VectorFile]:
    """Gives an empty file, closed at the end."""
    made = VectorFile(tmp_path / "vectors.db")
    yield made
    made.close()


def made(ref: DocRef, number: int, digest: bytes = b"d") -> Made:
    """Returns a vector all of whose numbers are `number`."""
    return Made(ref=ref, digest=digest, code=bytes([number]) * 64)


def rows_of(file: VectorFile, generation: int) -> dict[DocRef, int]:
    """Returns the first number of each document's row on the disk."""
    numbers = file.numbers(generation).read_bytes()
    slots = file.slots_of(generation, [ref for _, ref in file.refs_after(generation, -1, 1000)])
    return {ref: numbers[slot * 64] for ref, slot in slots.items()}


def test_makes_nothing_until_something_is_kept(file: VectorFile) -> None:
    """Who has no embedder has no file, and asking or erasing makes none."""
    assert file.generations() == []
    assert file.count() == 0
    file.erase([ONE])
    assert not file.path.exists()


def test_keeps_vectors_over_a_restart(file: VectorFile) -> None:
    """With what they were made from and where they are; files are the owner's alone."""
    generation = file.begin("m", 1, 64, FRAME)
    file.put(generation.id, [made(ONE, 1, b"x"), made(TWO, 2, b"y")])
    file.close()
    again = VectorFile(file.path)
    assert again.begin("m", 1, 64, b"other").frame == FRAME
    assert again.digests(generation.id, "turn", ["s-1", "s-9"]) == {"s-1": b"x"}
    assert rows_of(again, generation.id) == {ONE: 1, TWO: 2}
    assert again.numbers(generation.id).stat().st_mode & 0o077 == 0
    assert again.path.stat().st_mode & 0o077 == 0
    again.close()


def test_a_new_vector_takes_the_place_of_the_old_one(file: VectorFile) -> None:
    """The old numbers are zeroed, their slot is used again, and readers are told what changed."""
    generation = file.begin("m", 1, 64, FRAME).id
    file.put(generation, [made(ONE, 1)])
    file.put(generation, [made(ONE, 2)])
    assert file.numbers(generation).read_bytes() == bytes(64) + bytes([2]) * 64
    file.put(generation, [made(TWO, 3)])
    assert file.numbers(generation).read_bytes() == bytes([3]) * 64 + bytes([2]) * 64
    assert file.changed_after(generation, 0, 10) == [(2, 1), (3, 0)]
    assert file.changed_after(generation, 2, 10) == [(3, 0)]
    assert file.refs_at(generation, [0, 1, 7]) == {0: TWO, 1: ONE}


def test_erases_numbers_and_names(file: VectorFile) -> None:
    """Of all generations; nothing of them is left in any file."""
    for space in ("m", "n"):
        generation = file.begin(space, 1, 64, FRAME).id
        file.put(generation, [made(("turn", "s-forgotten"), 7), made(TWO, 2)])
    file.erase([("turn", "s-forgotten")])
    assert file.count() == 2
    for path in file.path.parent.iterdir():
        content = path.read_bytes()
        assert b"s-forgotten" not in content
        assert bytes([7]) * 64 not in content


def test_zeroes_at_the_next_start_what_a_kill_left(file: VectorFile) -> None:
    """A kill between the commit that frees a slot and its zeroing leaves no numbers for good."""
    generation = file.begin("m", 1, 64, FRAME).id
    file.put(generation, [made(ONE, 7)])
    row = file.numbers(generation).read_bytes()
    file.erase([ONE])
    file.close()
    file.numbers(generation).write_bytes(row)
    assert file.count() == 0
    assert file.numbers(generation).read_bytes() == bytes(64)


def test_the_next_generation_takes_over_when_it_is_whole(file: VectorFile) -> None:
    """Both are there until then; afterwards the old one is gone from the disk."""
    old = file.begin("m", 1, 64, FRAME).id
    file.put(old, [made(ONE, 1)])
    file.complete(old)
    new = file.begin("n", 1, 128, FRAME).id
    file.put(new, [Made(ref=ONE, digest=b"d", code=bytes([5]) * 128)])
    assert [(g.space, g.complete, g.dimension) for g in file.generations()] == [
        ("n", False, 128),
        ("m", True, 64),
    ]
    assert rows_of(file, old) == {ONE: 1}
    file.complete(new)
    assert [g.space for g in file.generations()] == ["n"]
    assert not file.numbers(old).exists()
    assert file.count() == 1


@pytest.mark.parametrize("damage", ["garbage", "schema", "numbers", "missing numbers"])
def test_begins_anew_where_the_files_cannot_be_used(file: VectorFile, damage: str) -> None:
    """Garbage, another schema, numbers that are short or missing: they are made again."""
    generation = file.begin("m", 1, 64, FRAME).id
    file.put(generation, [made(ONE, 1), made(TWO, 2)])
    file.close()
    if damage == "garbage":
        file.path.write_bytes(b"no database" * 1_000)
    elif damage == "schema":
        apsw.Connection(str(file.path)).pragma("user_version", 99)
    elif damage == "numbers":
        file.numbers(generation).write_bytes(bytes(64))
    else:
        file.numbers(generation).unlink()
    assert file.generations() == []
    file.put(file.begin("m", 1, 64, FRAME).id, [made(ONE, 3)])
    assert file.count() == 1


def test_says_that_it_is_damaged(file: VectorFile) -> None:
    """What is damaged while it is in use can be told from a disk that fails; erasing discards."""
    generation = file.begin("m", 1, 64, FRAME).id
    file.put(generation, [made(("turn", f"s-{n}"), 1, b"d" * 200) for n in range(200)])
    file.close()
    file.count()
    content = bytearray(file.path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.path.write_bytes(content)
    with pytest.raises(DamagedVectors, match="derived"):
        file.refs_after(generation, -1, 1_000)
    file.erase([("turn", "s-1")])
    assert file.count() == 0


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Nothing is lost, and the message says where to look."""
    file = VectorFile(tmp_path / "missing" / "vectors.db")
    with pytest.raises(Unavailable, match="rights"):
        file.begin("m", 1, 64, FRAME)


@settings(deadline=None, max_examples=30)  # each step waits for the disk
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "erase", "reopen"]), st.lists(st.integers(0, 5))),
        max_size=12,
    )
)
def test_always_holds_what_was_put_last(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, list[int]]]
) -> None:
    """Whatever is put, replaced and erased, in whatever order; free slots hold zeros."""
    file = VectorFile(tmp_path_factory.mktemp("v") / "vectors.db")
    generation = file.begin("m", 1, 64, FRAME).id
    expected: dict[DocRef, int] = {}
    for at, (verb, names) in enumerate(steps):
        refs: list[DocRef] = [("turn", f"s-{name}") for name in dict.fromkeys(names)]
        if verb == "put":
            file.put(generation, [made(ref, at + 1) for ref in refs])
            expected.update(dict.fromkeys(refs, at + 1))
        elif verb == "erase":
            file.erase(refs)
            expected = {ref: number for ref, number in expected.items() if ref not in refs}
        else:
            file.close()
        assert rows_of(file, generation) == expected if expected else file.count() == 0
    numbers = file.numbers(generation)
    rows = numbers.read_bytes() if numbers.exists() else b""
    assert sorted(b for b in rows[::64] if b) == sorted(expected.values())
    file.close()
