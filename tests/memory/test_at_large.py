"""Whether a question asks what any book of reference knows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.at_large import is_at_large

OF_THE_WORLD = [
    "What is the capital of France?",
    "what's the population of nigeria",
    "How tall is Mount Everest?",
    "How do I make a béchamel sauce?",
    "how to remove a stain from wool",
    "Who painted the Mona Lisa?",
    "What is a monad?",
    "What is the difference between a virus and a bacterium?",
    "What does idempotent mean?",
    "Which is the longest river in Africa?",
    "法国的首都是哪里",
    "法國的首都是哪裡",
    "宫保鸡丁怎么做？",
    "如何腌制泡菜",
    "光合作用的原理是什么？",
    "《百年孤独》是谁写的？",
    "“再见”用西班牙语怎么说？",
    "日本の首都はどこですか",
    "프랑스의 수도는 어디야?",
]
OF_THIS_MEMORY = [
    "",
    "?",
    "What is Anna allergic to?",
    "What's the recipe for grandma's cake?",
    "What is the plot of my novel?",
    "How do I run the tests?",
    "How do I deploy to staging?",
    "How do we make a release?",
    "Who wrote the release notes?",
    "What does he mean?",
    "Where did I leave my umbrella?",
    "王敏对什么过敏？",
    "我们的酱油鸡怎么做？",
    "他打算怎么做？",
    "那个项目的作者是谁？",
    "后端用什么写？",
]


@pytest.mark.parametrize("question", OF_THE_WORLD)
def test_what_any_book_knows_is_at_large(question: str) -> None:
    """Capitals, recipes, who wrote what, what a word means."""
    assert is_at_large(question)


@pytest.mark.parametrize("question", OF_THIS_MEMORY)
def test_what_is_somebodys_or_definite_is_not(question: str) -> None:
    """A name, a pronoun or *the* makes it a question of this memory."""
    assert not is_at_large(question)


def test_a_long_question_tells_of_what_it_asks() -> None:
    """A pasted text isn't looked through."""
    assert not is_at_large("What is the capital of France? " + "We were there in May. " * 20)


@given(st.text(max_size=400))
def test_any_text_can_be_asked(text: str) -> None:
    """Whatever its characters, it is judged without an error, and blanks around it don't matter."""
    assert is_at_large(f" {text}\n") == is_at_large(text)
