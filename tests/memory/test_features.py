"""What speaks for a candidate, feature by feature."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.indexed import block, turn
from turnmark_memory.candidates import gather
from turnmark_memory.features import FEATURES, rate
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters
from turnmark_memory.search_text import query_of

Said = list[tuple[str, str]]

ABOUT_ONE = 1.5
"""Weights are only comparable, and a sum only stays finite, while no feature is much larger."""


def rated(directory: Path, said: Said, question: str) -> dict[str, dict[str, float]]:
    """Returns the features by name of each candidate by label, `s-0` being the first turn."""
    index = Index.open(directory / "index.db")
    index.add_turns([turn(f"s-{i}", text, i, speaker=who) for i, (who, text) in enumerate(said)])
    index.set_topic("people/dana", "", 1, [block("b-0", "Dana has a violin teacher. 小提琴老师")])
    asked = query_of(question)
    found = rate(asked, gather(index, asked, Filters(), ("turn", "block")), {("turn", "s-0"): 0.6})
    index.close()
    return {one.found.ref: dict(zip(FEATURES, one.values, strict=True)) for one in found}


ENGLISH: Said = [
    ("Ana", "Guess what, I got a violin teacher!"),
    ("Dana", "Which violin teacher did you get?"),
]
CHINESE: Said = [("王敏", "我找到小提琴老师了！"), ("周子昂", "哪位小提琴老师？")]


@pytest.mark.parametrize(
    ("said", "question"),
    [(ENGLISH, "When did Ana get a violin teacher?"), (CHINESE, "王敏什么时候找到小提琴老师的？")],
)
def test_news_open_a_session_between_people(tmp_path: Path, said: Said, question: str) -> None:
    """To be the first of a session counts apart where the question names who speaks."""
    values = rated(tmp_path, said, question)
    assert [values[ref]["opens_named"] for ref in ("s-0", "s-1", "b-0")] == [1.0, 0.0, 0.0]
    assert {one["is_question_unnamed"] for one in values.values()} == {0.0}
    assert [values[ref]["near_named"] for ref in ("s-0", "s-1")] == [0.6, 0.0]


@pytest.mark.parametrize(
    ("said", "question"),
    [(ENGLISH, "Who is the new violin teacher?"), (CHINESE, "小提琴老师是谁？")],
)
def test_a_question_is_no_answer_where_nobody_is_named(
    tmp_path: Path, said: Said, question: str
) -> None:
    """To be a question counts apart where the memory is that of an agent's work."""
    values = rated(tmp_path, said, question)
    assert [values[ref]["is_question_unnamed"] for ref in ("s-0", "s-1")] == [0.0, 1.0]
    assert values["s-0"]["opens"] == 1.0
    assert (values["s-0"]["near"], values["s-0"]["near_named"]) == (0.6, 0.0)
    assert values["s-0"]["opens_named"] == 0.0


WORDS = ["violin", "teacher", "Ana", "when", "2026-08-09", "three", "小提琴", "老师", "我", "?"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["Ana", "王敏"]), texts), max_size=8), texts)
def test_every_feature_lies_between_nothing_and_about_one(said: Said, question: str) -> None:
    """Whatever was said and asked."""
    with TemporaryDirectory() as directory:
        for values in rated(Path(directory), said, question).values():
            assert all(0.0 <= value <= ABOUT_ONE for value in values.values()), values
