"""Telling the same thing again from another."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.sameness import says_the_same


@pytest.mark.parametrize(
    ("new", "old", "same"),
    [
        ("Robin prefers green tea.", 'Robin: "I really prefer green tea."', True),
        ("The deadline is 16 October.", "The deadline is 20 October.", False),
        ("Robin doesn't eat peanuts.", "Robin eats peanuts.", False),
        ("Robin has a dog called Miso and a boat.", "Robin has a dog called Miso.", False),
        ("Talker-1 says 1 in the log.", "Talker-1 says 15 in the log.", False),
        ("Talker-1 says 15 in the log.", "Talker-1 says 15 in the log now.", True),
        ("我对花生过敏。", "李雷对花生过敏。", True),
        ("我喜欢喝红茶。", "李雷不喜欢喝红茶。", False),
        ("", "Robin prefers tea.", False),
    ],
)
def test_knows_what_adds_nothing(new: str, old: str, *, same: bool) -> None:
    """Words, numbers and the sense of yes and no must all be there already."""
    assert says_the_same(new, old, restates=False) is same


def test_takes_a_repetition_at_its_word() -> None:
    """Whoever says "like I said" means a block, even in other words."""
    said = "vendored/ stays untouched, no formatting in there"
    old = "Don't ever run cargo fmt on the vendored/ folder, it stays byte identical"
    assert says_the_same(said, old, restates=True)
    assert not says_the_same(said, old, restates=False)
    assert not says_the_same(said, "Jonas lives in Bergen.", restates=True)
