"""A question as an embedder is asked: without who is named in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.nameless import nameless
from turnmark_memory.search_text import query_of, terms_of

SPEAKERS = frozenset(
    {*terms_of("Caroline"), *terms_of("José"), *terms_of("王敏")[:1], *terms_of("周子昂")[:2]}
)


@pytest.mark.parametrize(
    ("question", "without"),
    [
        ("When did Caroline move to Porto?", "When did move to Porto?"),
        ("What is Caroline's dog called?", "What is dog called?"),
        ("What did CAROLINE and josé plant?", "What did and plant?"),
        ("王敏的自行车是什么颜色？", "的自行车是什么颜色?"),
        ("周子昂什么时候去云南？", "什么时候去云南?"),
        ("Caroline在哪里上班？", "在哪里上班?"),
        ("Where does Caroline live, 王敏?", "Where does live, ?"),
    ],
)
def test_leaves_out_who_is_named(question: str, without: str) -> None:
    """Names with their genitive go; what is asked of them stays, in spaced and other scripts."""
    assert nameless(question, query_of(question), SPEAKERS) == without


@pytest.mark.parametrize("question", ["Who is Caroline?", "王敏", "What about José and Caroline?"])
def test_keeps_a_question_about_nothing_but_names(question: str) -> None:
    """Without them nothing would be left to look for."""
    assert nameless(question, query_of(question), SPEAKERS) == question


def test_keeps_a_question_that_names_nobody() -> None:
    """Not a letter changes, not even one that could be written otherwise."""
    question = "Ｗhere  is the café?"
    assert nameless(question, query_of(question), frozenset()) == question


WORDS = ["Caroline", "王敏", "josé", "what", "dog", "买了狗", "在哪里", "?", "周子昂的", "'s"]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS)).map(" ".join)))
def test_leaves_no_speaker_in_a_question_about_more(question: str) -> None:
    """Any text gives a text, and one that asks about more than speakers names none any more."""
    asked = query_of(question)
    without = nameless(question, asked, SPEAKERS)
    about_more = any(SPEAKERS.isdisjoint(unit.full) for unit in asked.units)
    assert without == question or about_more
    assert not about_more or SPEAKERS.isdisjoint(query_of(without).terms)
