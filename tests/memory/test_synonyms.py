"""Tests of the tables of words that say the same, in one language and between two."""

from __future__ import annotations

import pytest

from turnmark_memory.search_text import query_of, terms_of
from turnmark_memory.synonyms import SYNONYMS
from turnmark_memory.translations import TRANSLATIONS


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("when does the coach leave?", "bus"),
        ("when does the bus leave?", "coach"),
        ("告警发到哪里", "报警"),
        ("what rent do we pay?", "房租"),
        ("房租多少钱", "rent"),
    ],
)
def test_a_question_is_answered_in_other_words(question: str, said: str) -> None:
    """Both ways, and in the other language."""
    kin = {term for unit in query_of(question).units for term in unit.kin}
    assert terms_of(said)[0] in kin


def test_synonyms_are_told_from_what_is_always_looked_for() -> None:
    """In a large memory they would find half of it; they help to order what other words found."""
    assert terms_of("bus")[0] in query_of("when does the coach leave?").synonyms
    assert "房租" in query_of("what rent do we pay?").kin


def test_a_word_does_not_stand_in_for_itself() -> None:
    """And a group of one would say nothing."""
    assert not [word for word, others in SYNONYMS.items() if word in others or not others]


@pytest.mark.parametrize("table", [SYNONYMS, TRANSLATIONS])
def test_each_entry_is_one_term_of_the_index(table: dict[str, tuple[str, ...]]) -> None:
    """Of two terms, or of three characters, no document would ever have it."""
    words = {*table, *(other for others in table.values() for other in others)}
    ascii_words = [word for word in words if word.isascii()]
    assert [word for word in ascii_words if len(terms_of(word)) != 1] == []
    assert [word for word in words if not word.isascii() and len(word) > 2] == []
