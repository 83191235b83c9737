"""Cutting turns into sentences."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnmark_memory.writers.sentences import is_chinese, split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One is here. Two is there!", ["One is here.", "Two is there!"]),
        ("Dr. Chen comes at 3 p.m. on Tuesday.", ["Dr. Chen comes at 3 p.m. on Tuesday."]),
        ("It costs 4.50 euros, e.g. today.", ["It costs 4.50 euros, e.g. today."]),
        ("我住在上海。你呢？", ["我住在上海。", "你呢？"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("I use uv.我喜欢它。", ["I use uv.", "我喜欢它。"]),
        ("- first point\n- second point", ["first point", "second point"]),
        ("a line that is\nwrapped here.", ["a line that is wrapped here."]),
        ("Deadlines:\nit is late.", ["Deadlines:", "it is late."]),
    ],
)
def test_splits_both_languages(text: str, sentences: list[str]) -> None:
    """Sentences end at the marks of either language, not at abbreviations and numbers."""
    assert split_sentences(text) == sentences


@pytest.mark.parametrize(
    "noise",
    [
        "```python\nI moved to Porto.\n```",
        "~~~\nnever closed, I moved to Porto.",
        "2026-10-05 09:00:01 INFO worker started",
        "Traceback (most recent call last):",
        '  File "x.py", line 3, in main',
        "ValueError: invalid literal",
        "https://example.com/a https://example.com/b",
        "> I moved to Porto.",
        "| I | moved | to Porto |",
        "# I moved to Porto",
        "x = compute(1)",
        "if x == 1:",
        "import os, sys",
        "$ make test",
        "---",
        "!!! ???",
    ],
)
def test_drops_what_nobody_said(noise: str) -> None:
    """Code, logs, tables, headings, quotations and bare links hold no sentence."""
    assert split_sentences(noise) == []


def test_goes_on_after_a_code_block() -> None:
    """What stands before and after a fence is read."""
    assert split_sentences("Before it.\n```\ncode\n```\nAfter it.") == ["Before it.", "After it."]


def test_cuts_an_endless_sentence_at_a_word() -> None:
    """A sentence of a thousand words is shortened, not dropped."""
    (sentence,) = split_sentences("word " * 700)
    assert len(sentence) <= 482
    assert sentence.endswith("word …")


def test_reads_a_hostile_megabyte_in_linear_time() -> None:
    """Abbreviations and wrapped lines without an end cost no more than other text."""
    started = time.process_time()
    split_sentences("mr. x\n" * 170_000)
    split_sentences("mr. " * 250_000)
    split_sentences("a" * 1_000_000)
    assert time.process_time() - started < 20


@given(st.text())
def test_gives_sentences_of_one_line(text: str) -> None:
    """Whatever the text, a sentence has words and no end of line."""
    for sentence in split_sentences(text):
        assert len(sentence.splitlines()) == 1
        assert any(sign.isalnum() for sign in sentence)


def test_tells_the_languages_apart() -> None:
    """The majority of words decides, names in the other script do not."""
    assert is_chinese("我们决定用 Postgres。")
    assert not is_chinese("My name in Chinese is 王小明, they say.")
