"""Tests of `session_store/transcripts/line_file.py`: what is read once, held back, read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_store.stage import scratch
from session_store.transcripts.written_files import append
from turnmark_session_store.transcripts.line_file import LineFile, Look


class Reading:
    """A line file with everything that it gave; rows are those of the list of public faults."""

    def __init__(self, path: Path, **options: int) -> None:
        self.lines = LineFile(path, **options)
        self.taken: list[tuple[int, object]] = []
        self.warned: list[tuple[int, str]] = []
        self.restarts = 0

    def go_on(self) -> Look:
        def restart() -> None:
            self.restarts += 1
            self.taken.clear()

        return self.lines.advance(
            lambda number, record: self.taken.append((number, record["n"])),
            warn=lambda warning: self.warned.append((warning.line, warning.reason)),
            restart=restart,
        )

    @property
    def numbers(self) -> list[object]:
        return [n for _, n in self.taken]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file will be."""
    return tmp_path / "one.jsonl"


def line(n: object) -> bytes:
    return f'{{"n": {n}}}\n'.encode()


def test_nothing_is_no_error_until_something_comes(path: Path) -> None:
    """A file may come late, and empty."""
    reading = Reading(path)
    assert reading.go_on() is Look.GONE
    append(path, b"")
    assert reading.go_on() is Look.GROWN
    assert reading.go_on() is Look.SAME
    append(path, line(1))
    assert (reading.go_on(), reading.taken) == (Look.GROWN, [(1, 1)])


def test_a_torn_line_waits_for_its_end(path: Path) -> None:
    """The position stays before it, whatever it looks like by then (rows 20, 22 and 24)."""
    reading = Reading(path)
    append(path, line(1) + b'{"n": 2}')
    reading.go_on()
    assert (reading.numbers, reading.lines.position) == ([1], len(line(1)))
    append(path, b" \n" + line(3)[:4])
    reading.go_on()
    assert reading.numbers == [1, 2]
    append(path, line(3)[4:])
    reading.go_on()
    assert reading.numbers == [1, 2, 3]
    assert reading.lines.position == path.stat().st_size


@given(st.lists(st.integers(1, 12), min_size=1, max_size=60))
def test_any_cuts_give_every_line_once(cuts: list[int]) -> None:
    """Byte by byte or in one piece, the lines and where they begin are the same."""
    data = b"".join(line(n) if n % 3 else '{"n": "咖啡\u2028"}\r\n'.encode() for n in range(9))
    with scratch() as place:
        path = place / "f.jsonl"
        reading, at = Reading(path), 0
        for cut in [*cuts, len(data)]:
            append(path, data[at : at + cut])
            at += cut
            reading.go_on()
        whole = Reading(path)
        whole.go_on()
        assert reading.taken == whole.taken
        assert len(whole.taken) == 9
        assert reading.lines.starts == whole.lines.starts
        assert reading.lines.reached == whole.lines.reached


def test_a_long_torn_line_is_found_when_it_ends(path: Path) -> None:
    """Only what is new is searched for its end; then the whole of it is read."""
    reading = Reading(path)
    append(path, line(1) + b'{"n": 2, "x": "')
    for _ in range(3):
        append(path, b"x" * 1_500_000)
        reading.go_on()
    assert (reading.numbers, reading.lines.position) == ([1], len(line(1)))
    append(path, b'"}\n' + line(3))
    reading.go_on()
    assert reading.numbers == [1, 2, 3]
    assert len(reading.lines.starts) == 3


def test_what_is_no_record_costs_only_itself(path: Path) -> None:
    """NUL blocks, bad UTF-8, no object, lone surrogates (rows 4, 18, 19 and 25)."""
    reading = Reading(path)
    append(path, line(1) + b"\0" * 4096 + b"\n" + b'{"n": "\xff"}\n' + b"[1]\n" + b"{oops\n")
    append(path, b"\0\0" + line(2) + b'{"n": "\\ud83d"}\n' + b"[" * 100_000 + b"\n" + line(3))
    reading.go_on()
    assert reading.numbers == [1, "\ufffd", 2, "\ufffd", 3]
    assert [number for number, _ in reading.warned] == [2, 4, 5, 8]


def test_a_huge_line_is_passed_over_when_it_has_ended(path: Path) -> None:
    """It is neither held in memory nor does what follows it count as lines before it ended."""
    reading = Reading(path, limit_bytes=100)
    append(path, line(1) + b"x" * 5_000)
    reading.go_on()
    append(path, b"y" * 5_000)
    reading.go_on()
    assert (reading.numbers, reading.warned, reading.lines.position) == ([1], [], len(line(1)))
    append(path, b"z\n" + line(2))
    reading.go_on()
    assert reading.numbers == [1, 2]
    assert reading.warned == [(2, "longer than 100 bytes")]


def test_a_file_that_was_cut_is_read_again(path: Path) -> None:
    """Row 27: its size is below the position."""
    reading = Reading(path)
    append(path, line(1) + line(2) + line(3))
    reading.go_on()
    os.truncate(path, len(line(1)))
    assert (reading.go_on(), reading.numbers) == (Look.REPLACED, [1])
    append(path, line(4))
    assert (reading.go_on(), reading.numbers, reading.restarts) == (Look.GROWN, [1, 4], 1)


def test_a_torn_line_may_be_cut_and_begun_anew(path: Path) -> None:
    """What is before it stands, and the line that comes in its place is read."""
    reading = Reading(path)
    append(path, line(1) + b'{"n": 123456789')
    reading.go_on()
    os.truncate(path, len(line(1)) + 3)
    reading.go_on()
    os.truncate(path, len(line(1)))
    append(path, line(6) + b"{")
    reading.go_on()
    assert (reading.numbers, reading.restarts) == ([1, 6], 0)


@pytest.mark.parametrize("size", ["same", "larger"])
def test_another_file_under_the_name_is_read_from_its_start(path: Path, size: str) -> None:
    """Row 21: renamed into place, of the same size or a larger one."""
    reading = Reading(path)
    append(path, line(1) + line(2))
    reading.go_on()
    other = path.with_suffix(".new")
    append(other, line(8) + line(9) + (line(10) if size == "larger" else b""))
    other.rename(path)
    assert reading.go_on() is Look.REPLACED
    assert reading.numbers[:2] == [8, 9]


@pytest.mark.parametrize("changed", ["first", "last"])
def test_a_rewriting_in_place_is_noticed(path: Path, changed: str) -> None:
    """The inode stays; the bytes at the start, or before the position, are others."""
    reading = Reading(path)
    append(path, line(1) + b"".join(line(n) for n in range(500)) + line(2))
    reading.go_on()
    data = path.read_bytes()
    new = line(7) + data[len(line(1)) :] if changed == "first" else data[: -len(line(2))] + line(7)
    inode = path.stat().st_ino
    path.write_bytes(new + line(3))
    assert path.stat().st_ino == inode
    assert reading.go_on() is Look.REPLACED
    assert 7 in reading.numbers
    assert reading.numbers[-1] == 3


def test_a_file_that_is_gone_may_come_again(path: Path) -> None:
    """Nothing is forgotten by its absence; the one that comes is another one."""
    reading = Reading(path)
    append(path, line(1))
    reading.go_on()
    path.unlink()
    assert (reading.go_on(), reading.numbers) == (Look.GONE, [1])
    append(path, line(2))
    assert (reading.go_on(), reading.numbers) == (Look.REPLACED, [2])


def test_the_position_counts_what_was_read_not_what_the_file_has_become(path: Path) -> None:
    """Row 23: lines that come while a file is read are for the next time, and none is lost."""
    reading = Reading(path)
    append(path, line(1))
    taken: list[object] = []

    def take(number: int, record: dict[str, object]) -> None:
        del number
        if not taken:
            append(path, line(2))
        taken.append(record["n"])

    for _ in range(2):
        reading.lines.advance(take, warn=lambda _: None, restart=lambda: None)
    assert taken == [1, 2]


def test_a_last_line_without_its_end_is_given_only_when_asked_for(path: Path) -> None:
    """And only if it is whole; its writer may have crashed."""
    reading = Reading(path)
    append(path, line(1) + b'{"n": 2')
    reading.go_on()
    assert reading.lines.has_rest
    assert reading.lines.rest() is None
    append(path, b"}")
    reading.go_on()
    assert reading.lines.rest() == {"n": 2}
    assert reading.lines.position == len(line(1))


def test_what_an_earlier_process_read_is_compared(path: Path) -> None:
    """It begins anew all the same; only whether the words may have changed is told."""
    first = Reading(path)
    append(path, line(1) + line(2))
    first.go_on()
    append(path, line(3))
    later = Reading(path)
    later.lines = LineFile(path, known=first.lines.reached)
    assert (later.go_on(), later.numbers) == (Look.GROWN, [1, 2, 3])
    path.write_bytes(line(7) + line(8) + line(9))
    again = Reading(path)
    again.lines = LineFile(path, known=later.lines.reached)
    assert (again.go_on(), again.numbers) == (Look.REPLACED, [7, 8, 9])
