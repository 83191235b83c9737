"""Tests of which words are embedded."""

from __future__ import annotations

from datetime import UTC, datetime

from turnmark_memory.embedding.documents import of_block, of_turn

AT = datetime(2026, 8, 9, 12, 0, tzinfo=UTC)


def test_a_turn_is_embedded_as_said_and_bare() -> None:
    """Day and name tell about it, and draw its vector away from what it says."""
    document = of_turn("s-1", "那只猫怕打雷。", speaker="Dana", at=AT)
    assert document.views == ("[9 August 2026] Dana: 那只猫怕打雷。", "那只猫怕打雷。")


def test_a_long_turn_is_embedded_once() -> None:
    """Its bytes count: a Chinese text of a hundred characters takes as long as an English page."""
    assert len(of_turn("s-1", "猫" * 100, speaker=None, at=AT).views) == 2
    assert len(of_turn("s-1", "猫" * 101, speaker=None, at=AT).views) == 1


def test_a_block_is_embedded_under_its_topic_alone() -> None:
    """A block may leave out what its heading says."""
    document = of_block("b-1", "Plays it on Mondays.", topic="people/dana", heading="Violin")
    assert document.views == ("dana, Violin: Plays it on Mondays.",)
