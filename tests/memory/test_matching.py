"""What a document has of a question: its words, what may stand for them, members of a kind."""

from __future__ import annotations

import pytest

from turnmark_memory.matching import Matching
from turnmark_memory.search_text import query_of, terms_of


def shares(question: str, text: str) -> tuple[float, float]:
    """Returns the share of what the question is about, and of the question's words."""
    matching = Matching(query_of(question), {}, 100)
    bits = matching.match(f" {' '.join(terms_of(text))} ").bits
    return matching.share(bits), matching.coverage(bits)


@pytest.mark.parametrize(
    ("question", "member", "other"),
    [
        ("which pet?", "Our hamster sleeps.", "Our roof leaks."),
        ("What instruments?", "the clarinet", "the curtain"),
        ("什么颜色", "窗帘是绿色的", "窗帘是新的"),
        ("哪种乐器", "她在学吉他", "她在学开车"),
    ],
)
def test_a_member_of_the_kind_that_is_asked_for_says_where_the_answer_is(
    question: str, member: str, other: str
) -> None:
    """A part of what the question is about, as the kind itself would be the whole."""
    assert 0.0 < shares(question, member)[0] < 1.0
    assert shares(question, other)[0] == 0.0


@pytest.mark.parametrize(
    ("question", "member"), [("which pet?", "Our hamster sleeps."), ("哪种乐器", "她在学吉他")]
)
def test_a_member_is_no_sign_that_there_is_an_answer(question: str, member: str) -> None:
    """Any memory holds a dog or something green: coverage, and with it the floor, is left alone."""
    assert shares(question, member)[1] == 0.0


def test_a_word_counts_more_than_what_stands_for_it_and_that_as_much_as_a_member() -> None:
    """The order of what a document may have of a unit."""
    word, kin, member = (
        shares("which pet?", text)[0] for text in ("my pet", "no cat but a dog", "a hamster")
    )
    assert word == 1.0
    assert word > kin == member


def test_members_are_not_looked_for() -> None:
    """They would find half a memory."""
    asked = query_of("What pets does she have? 她养什么宠物？")
    assert not {"hamster", "仓鼠"} & {*asked.terms, *asked.kin, *asked.second}
