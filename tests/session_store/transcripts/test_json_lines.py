"""Tests of `session_store/transcripts/json_lines.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.json_lines import read_json_lines
from turnmark_session_store.transcripts.reader import ReadWarning


def _read(
    tmp_path: Path, data: bytes, *, finished: bool = True, limit_bytes: int = 10_000_000
) -> tuple[list[tuple[int, dict[str, object]]], list[tuple[int, str]]]:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(data)
    warnings: list[ReadWarning] = []
    records = read_json_lines(
        path, warn=warnings.append, finished=finished, limit_bytes=limit_bytes
    )
    found = list(records)
    assert all(warning.file == str(path) for warning in warnings)
    assert path.read_bytes() == data
    return found, [(warning.line, warning.reason) for warning in warnings]


def test_an_empty_file_has_no_lines_and_no_warnings(tmp_path: Path) -> None:
    """Programs leave files of no bytes behind."""
    assert _read(tmp_path, b"") == ([], [])


def test_lines_end_at_the_newline_byte_alone(tmp_path: Path) -> None:
    """U+2028, U+2029, U+0085 and a carriage return inside a line do not split it."""
    text = "a\u2028b\u2029c\u0085d"
    data = f'{{"t":"{text}"}}\r\n\n \n{{"t":"二"}}\n'.encode()
    assert _read(tmp_path, data) == ([(1, {"t": text}), (4, {"t": "二"})], [])


def test_a_bad_byte_costs_one_character(tmp_path: Path) -> None:
    """Invalid UTF-8 is replaced in its line."""
    assert _read(tmp_path, b'{"t":"a\xffb"}\n{}\n') == ([(1, {"t": "a\ufffdb"}), (2, {})], [])


def test_blocks_of_nul_are_stripped_or_counted(tmp_path: Path) -> None:
    """After a power cut a record may be followed by NULs, or a line be nothing else."""
    data = b'{"a":1}' + b"\0" * 5000 + b'\n\0\0\0\n\0\0{"b":"x\\u0000y"}\n'
    assert _read(tmp_path, data) == (
        [(1, {"a": 1}), (3, {"b": "x\0y"})],
        [(2, "nothing but NUL")],
    )


def test_what_is_no_object_is_counted(tmp_path: Path) -> None:
    """Other JSON, broken JSON, deep nesting and endless numbers cost one warning each."""
    deep = b"[" * 100_000
    digits = b'{"n":' + b"9" * 5000 + b"}"
    data = b"\n".join([b"[1]", b'"s"', b"null", b"{bad", deep, digits, b'{"ok":1}', b""])
    found, warnings = _read(tmp_path, data)
    assert found == [(7, {"ok": 1})]
    assert [line for line, _ in warnings] == [1, 2, 3, 4, 5, 6]
    assert warnings[4] == (5, "nested too deeply")


def test_lone_surrogates_are_replaced_in_keys_and_values(tmp_path: Path) -> None:
    """Tools cut strings in the middle of a pair; a whole pair stays."""
    data = b'{"t":"x\\ud83d","\\udc00":[{"u":"\\ud83d\\ude00"}],"n":1}\n'
    expected = {"t": "x\ufffd", "\ufffd": [{"u": "😀"}], "n": 1}
    assert _read(tmp_path, data) == ([(1, expected)], [])


def test_a_last_line_without_newline_counts_only_when_finished(tmp_path: Path) -> None:
    """While somebody writes it may be half of a line, also where it is JSON."""
    assert _read(tmp_path, b'{"a":1}\n{"b":2}') == ([(1, {"a": 1}), (2, {"b": 2})], [])
    assert _read(tmp_path, b'{"a":1}\n{"b":2}', finished=False) == ([(1, {"a": 1})], [])
    torn = ([(1, {"a": 1})], [(2, "no complete JSON")])
    assert _read(tmp_path, b'{"a":1}\n{"b":', finished=True) == torn
    assert _read(tmp_path, b'{"a":1}\n{"b":', finished=False) == ([(1, {"a": 1})], [])


def test_a_long_line_is_read_and_one_beyond_the_limit_passed_over(tmp_path: Path) -> None:
    """The lines behind an overlong one are read, with their right numbers."""
    long = b'{"t":"' + b"x" * 3_000_000 + b'"}'
    found, warnings = _read(tmp_path, long + b'\n{"a":1}\n')
    assert [number for number, _ in found] == [1, 2]
    assert warnings == []
    data = long + b'\n{"a":1}\n' + long
    found, warnings = _read(tmp_path, data, limit_bytes=1000)
    assert found == [(2, {"a": 1})]
    assert warnings == [(1, "longer than 1000 bytes"), (3, "longer than 1000 bytes")]


def test_the_last_of_duplicate_keys_wins(tmp_path: Path) -> None:
    """As in every other reader of JSON."""
    assert _read(tmp_path, b'{"a":1,"a":2}\n') == ([(1, {"a": 2})], [])


def test_a_file_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(Unavailable, match="gone"):
        list(read_json_lines(tmp_path / "gone.jsonl", warn=lambda _: None))
