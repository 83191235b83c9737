"""Taking a block apart into its facts, and putting together what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.writers.gists import gist_of
from turnmark_memory.writers.standing_facts import clauses_of, left_of, parts_of

SERVICE = (
    "The service collects yield reports from about 230 farms, Postgres 15 behind it,"
    " deployed on Hetzner with docker compose."
)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("Robin has a dog.", ["Robin has a dog."]),
        ("Robin has a dog. It's 3. Robin sails.", ["Robin has a dog. It's 3. ", "Robin sails."]),
        ("Robin has a dog, Miso.", ["Robin has a dog, Miso."]),
        (SERVICE, [SERVICE]),
        ("李雷养了狗。它三岁。李雷会开船。", ["李雷养了狗。它三岁。", "李雷会开船。"]),
    ],
)
def test_takes_a_block_apart(words: str, parts: list[str]) -> None:
    """By sentence; what points back stays with what it points at."""
    assert parts_of(words) == parts


@pytest.mark.parametrize(
    ("fact", "new", "left"),
    [
        ("Robin has a dog.", "Robin sold the dog.", ""),
        (SERVICE, "We moved from Hetzner to OVH.", SERVICE.partition(", deployed")[0] + "."),
        (SERVICE, "Postgres is gone.", SERVICE.replace(" Postgres 15 behind it,", "")),
        (SERVICE, "The service collects no reports any more.", ""),
        (
            "周敏的新绘本《月亮的口袋》定了，插画是宋遥，印量一万册，六月一号上市。",
            "《月亮的口袋》推迟到 6 月 15 号上市",
            "周敏的新绘本《月亮的口袋》定了，插画是宋遥，印量一万册。",
        ),
        (
            "赵建国的儿子赵磊在天津搞建筑设计，孙女朵朵今年八岁，学钢琴，喜欢画画。",
            "赵磊不在天津了，调回石家庄设计院了",
            "孙女朵朵今年八岁，学钢琴，喜欢画画。",
        ),
    ],
)
def test_leaves_what_goes_on_holding(fact: str, new: str, left: str) -> None:
    """One clause of a long sentence ends alone; one that says nothing without it goes, too."""
    assert left_of(fact, gist_of(new)) == left


@given(st.text("Robin likes tea, and Oslo. It's 李雷喜欢茶，在杭州。那 \n"))
def test_loses_no_word(words: str) -> None:
    """The parts joined are the words, whatever they are."""
    assert "".join(parts_of(words)) == words
    assert "".join(clauses_of(words)) == words
