"""Word lists as they are read best: words with spaces between them."""

from __future__ import annotations


def listed(words: str) -> frozenset[str]:
    """Returns the words of a text."""
    return frozenset(words.split())
