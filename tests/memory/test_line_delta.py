"""The way back from a file's newer bytes to its older ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.line_delta import delta, patched

LINES = st.lists(
    st.sampled_from([b"", b"", b"a", b"b", b"# x", "税".encode(), b"\xff\xfe", b"end\r"]),
    max_size=14,
).map(b"\n".join)
TEXTS = st.one_of(LINES, LINES.map(lambda text: text + b"\n"), st.binary(max_size=60))


@given(TEXTS, TEXTS)
def test_delta_gives_the_older_bytes_back(newer: bytes, older: bytes) -> None:
    """Whatever the two texts are, also without a final newline and not UTF-8."""
    assert patched(newer, delta(newer, older)) == older


@given(TEXTS)
def test_equal_texts_differ_in_nothing(text: bytes) -> None:
    """The delta of a file that did not change is empty."""
    assert delta(text, text) == ()


def test_delta_of_one_changed_line_holds_that_line_alone() -> None:
    """In a file of many equal blank lines, however long it is."""
    lines = [f"line {number}\n\n".encode() for number in range(20_000)]
    older = b"".join(lines)
    lines[7_000] = "另一行\n\n".encode()
    newer = b"".join(lines)
    (hunk,) = delta(newer, older)
    assert (hunk.at, hunk.drop, hunk.put) == (14_000, 1, b"line 7000\n")
