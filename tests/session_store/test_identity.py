"""Tests of `session_store/identity.py`: digests that are stored must never come out differently."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from turnmark_session_store.identity import content_digest, hashed_id

_PARTS = st.text(st.sampled_from("a密\x00\x01\ud800"), max_size=6)


def _digest_of(*parts: str) -> bytes:
    """Every part with its own NUL signs made two signs, then joined by NUL: as it was defined."""
    joined = b"\x00".join(
        part.encode("utf-8", "surrogatepass").replace(b"\x00", b"\x00\x01") for part in parts
    )
    return hashlib.blake2b(joined, digest_size=16).digest()


@given(_PARTS, _PARTS, _PARTS)
def test_keeps_the_parts_of_a_digest_apart(speaker: str, text: str, origin: str) -> None:
    """A NUL inside a part is never taken for the border between two."""
    content = content_digest("user", "turn", speaker, text)
    assert content == _digest_of("user", "turn", speaker, text)
    expected = "h-" + _digest_of("family:s", speaker, origin, content.hex()).hex()
    assert expected == hashed_id(
        namespace="family:s", predecessor=speaker, origin=origin, digest=content
    )


def test_gives_the_ids_that_it_gave_before() -> None:
    """The id of a turn without one is the same for ever: stores and exports hold it."""
    content = content_digest("user", "turn", None, "I moved to Porto. 我搬到了波尔图。")
    made = hashed_id(namespace="family:robin", predecessor=None, origin="", digest=content)
    assert (content.hex(), made) == (
        "f263cdae1b1cd83bda4f640b6c36b7bd",
        "h-c813a0a7cf97d5d9c64c13ee57931930",
    )
