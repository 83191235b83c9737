"""Frames: the same whatever the chunks, and no bytes that break the reader."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark.rpc.framing import FramingLost, LineBuffer, Oversize, why_not_json
from turnmark.rpc.messages import BadFrame, decode_request

_LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=30))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """The data in pieces, cut at these places."""
    marks = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in itertools.pairwise(marks)]


@settings(deadline=None)
@given(lines=_LINES, places=st.lists(st.integers(0, 10_000)), ending=st.sampled_from("\n|\r\n"))
def test_chunks_do_not_matter(lines: list[str], places: list[int], ending: str) -> None:
    """However the bytes arrive, the frames are the lines that are not blank, within the limit."""
    limit = 40
    ending = "\r\n" if ending.startswith("\r") else "\n"
    data = "".join(line + ending for line in lines).encode()
    buffer = LineBuffer(limit)
    frames = [frame for chunk in cut(data, places) for frame in buffer.feed(chunk)]
    bare = [line.encode().strip(b" \t\r") for line in lines]
    assert [frame for frame in frames if isinstance(frame, bytes)] == [
        line for line in bare if line and len(line) <= limit
    ]
    assert buffer.finish() == b""


@given(size=st.integers(1, 200), step=st.integers(1, 50))
def test_one_report_for_one_line_over_the_limit(size: int, step: int) -> None:
    """A line is over the limit once, however often it is fed, and the next one is read."""
    data = b"a" * size + b"\n" + b"next\n"
    buffer = LineBuffer(20)
    frames = [f for i in range(0, len(data), step) for f in buffer.feed(data[i : i + step])]
    assert frames[:-1] == ([Oversize(limit=20)] if size > 20 else [b"a" * size])
    assert frames[-1] == b"next"


def test_memory_is_bounded_while_a_line_is_discarded() -> None:
    """Nothing of a line over the limit is kept, and after 64 MiB it is given up."""
    buffer = LineBuffer(100)
    chunk = b"a" * (1 << 20)
    assert list(buffer.feed(chunk)) == [Oversize(limit=100)]
    with pytest.raises(FramingLost, match="no newline"):  # noqa: PT012 - which chunk is too much is not the point
        for _ in range(64):
            assert list(buffer.feed(chunk)) == []
            assert buffer.finish() == b""


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
            lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
        ).map(lambda value: json.dumps({"jsonrpc": "2.0", "method": "m", "id": value}).encode()),
    )
)
def test_no_bytes_raise_anything_but_a_bad_frame(data: bytes) -> None:
    """Whatever comes is a request or a failure with a code and a sentence."""
    failure = None
    try:
        assert decode_request(data).method == "m"
    except BadFrame as bad:
        failure = bad.failure
    if failure is not None:
        assert failure.code in {-32700, -32600}
        assert failure.message
        position = (failure.data or {}).get("position")
        assert position is None or 0 <= position <= len(data)


@given(before=st.text(max_size=20), half=st.sampled_from(["\\ud800", "\\uDFFF", "\\uDbff\\u0041"]))
def test_half_pairs_are_found_behind_any_text(before: str, half: str) -> None:
    """The byte of the escape is named, counted in bytes and not in characters."""
    head = '{"text":' + json.dumps(before + "好", ensure_ascii=False)[:-1]
    frame = (head + half + '"}').encode()
    message, byte = why_not_json(frame, ValueError("Input data was truncated"))
    assert byte == len(head.encode())
    assert "surrogate" in message
