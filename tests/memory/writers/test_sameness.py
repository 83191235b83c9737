"""Telling the same thing again from a thing that has changed."""

from __future__ import annotations

import pytest

from turnmark_memory.writers.sameness import gives_another_value, nearest, says_the_same


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


@pytest.mark.parametrize(
    ("new", "number"),
    [
        ("Robin moved from Oslo to Bergen.", 0),
        ("The booking page deadline is pushed back to 30 September.", 1),
        ("胃镜改到周五了。", 2),
        ("The team meets at noon.", None),
    ],
)
def test_finds_what_is_replaced(new: str, number: int | None) -> None:
    """The text that shares the words few others have; none where no word is shared."""
    others = (
        "Robin lives in Oslo.",
        "The deadline for the booking page is 21 August.",
        "李雷下周三（2026-05-13）要去医院做胃镜。",
        "Robin works as a nurse in Lisbon.",
    )
    assert nearest(new, others, ("Robin",)) == number


def test_ends_no_five_facts_for_one() -> None:
    """A long text of which one word is said again is not replaced."""
    long = (
        "It collects yield reports from about 230 farms, Postgres behind it, deployed on Hetzner"
        " with docker compose, staging has its own subdomain, prod deploys from tags alone"
    )
    assert nearest("prod left Hetzner", [long]) is None


@pytest.mark.parametrize(
    ("new", "old", "other"),
    [
        ("The class fee is 42 euros a session.", "The class fee is 35 euros a session.", True),
        ("房租一个月 4800，押一付三", "房租一个月 3200，押一付三", True),
        ("The class fee is 35 euros a session.", "The class fee is 35 euros a session.", False),
        ("The hall seats 40 people.", "The class fee is 35 euros a session.", False),
        ("The class fee is not 42 euros a session.", "The class fee is 35 euros a session.", False),
    ],
)
def test_tells_another_value_of_the_same(new: str, old: str, *, other: bool) -> None:
    """The same words with another number or date; a no is another statement."""
    assert gives_another_value(new, old) is other
