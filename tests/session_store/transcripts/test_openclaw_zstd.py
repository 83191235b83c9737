"""Tests of `transcripts/openclaw/zstd.py`."""

from __future__ import annotations

import sys

import pytest

from session_store.transcripts.zstd_frames import compressed
from turnmark_session_store.transcripts.openclaw.zstd import unpack

LIMIT_BYTES = 1_000


def test_what_was_packed_comes_out() -> None:
    """Whatever it was, up to the limit itself."""
    assert unpack(compressed("咖啡".encode()), limit_bytes=LIMIT_BYTES) == "咖啡".encode()
    assert unpack(compressed(b"a" * LIMIT_BYTES), limit_bytes=LIMIT_BYTES) == b"a" * LIMIT_BYTES


@pytest.mark.parametrize(
    "packed", [b"", b"no frame", compressed(b"a" * 90)[:-3], compressed(b"a" * 1_000_000)]
)
def test_what_is_damaged_or_too_long_is_told(packed: bytes) -> None:
    """A frame of a few bytes may hold gigabytes."""
    found = unpack(packed, limit_bytes=LIMIT_BYTES)
    assert isinstance(found, str)
    assert "damaged" in found


def test_without_a_decoder_the_reason_says_what_brings_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.11 has none."""
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    found = unpack(b"x", limit_bytes=LIMIT_BYTES)
    assert isinstance(found, str)
    assert "extra zstd" in found
