"""The set in `benchmarks/recall/bilingual` is whole and balanced."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from recall import bilingual
from recall.bilingual import Malformed, language_of

CORPUS = bilingual.read()
ASKED = [question for question in CORPUS.questions if question.evidence]
UNANSWERABLE = [question for question in CORPUS.questions if not question.evidence]


def test_every_id_is_given_once() -> None:
    """No two turns and no two questions share an id."""
    for ids in ([turn.id for turn in CORPUS.turns], [question.id for question in CORPUS.questions]):
        assert len(ids) == len(set(ids))


def test_nothing_is_said_or_asked_twice() -> None:
    """No two turns have the same words, nor two questions."""
    for texts in (
        [turn.text for turn in CORPUS.turns],
        [question.text for question in CORPUS.questions],
    ):
        assert [text for text, count in Counter(texts).items() if count > 1] == []


def test_every_question_has_a_turn_that_answers_it() -> None:
    """Evidence names turns of the set, of a session in the question's own half."""
    session_of, halves = CORPUS.session_of, {}
    for question in ASKED:
        for turn in question.evidence:
            assert halves.setdefault(session_of[turn], question.half) == question.half


def test_no_question_repeats_its_answer() -> None:
    """A question is no part of the turn that answers it, nor the turn a part of the question."""
    text_of = {turn.id: turn.text for turn in CORPUS.turns}
    for question in ASKED:
        words = question.text.rstrip("?？")
        assert words not in text_of[question.evidence[0]]


def test_is_as_large_as_it_says() -> None:
    """At least 650 pairs, both languages alike, and 350 questions that nothing answers."""
    groups = Counter(question.group for question in ASKED)
    assert len(ASKED) >= 650
    assert min(groups["en"], groups["zh"]) >= 280
    assert groups["cross"] >= 90
    assert len(UNANSWERABLE) >= 350
    kinds = Counter(question.group for question in UNANSWERABLE)
    assert set(kinds) == {"en absent", "en near", "zh absent", "zh near"}
    assert kinds["en absent"] == kinds["zh absent"] >= 100
    assert kinds["en near"] == kinds["zh near"] >= 70


def test_halves_are_balanced() -> None:
    """No group lies in one half by more than three fifths."""
    groups = {question.group for question in CORPUS.questions}
    for group in groups:
        halves = Counter(one.half for one in CORPUS.questions if one.group == group)
        assert 0.4 <= halves["learn"] / halves.total() <= 0.6, group


def test_questions_are_in_the_language_of_their_group() -> None:
    """An unanswerable question of `zh` is Chinese; a cross-language one isn't in its turn's."""
    text_of = {turn.id: turn.text for turn in CORPUS.turns}
    for question in UNANSWERABLE:
        assert question.group.startswith(language_of(question.text))
    pure = [one for one in ASKED if one.group == "cross" and not one.id.startswith("mx-")]
    for question in pure:
        assert language_of(question.text) != language_of(text_of[question.evidence[0]])


def test_parts_are_read_alone_and_make_the_whole() -> None:
    """Every turn and question is of one part."""
    alone = [bilingual.read(only=[part]) for part in bilingual.parts()]
    assert sum(len(one.turns) for one in alone) == len(CORPUS.turns)
    assert sum(len(one.questions) for one in alone) == len(CORPUS.questions)


def test_is_told_oldest_first() -> None:
    """Turns are in the order of their times, sessions in one piece."""
    times = [turn.time for turn in CORPUS.turns]
    assert times == sorted(times)
    pieces = [session for session, _ in groupby(turn.session for turn in CORPUS.turns)]
    assert len(pieces) == len(set(pieces))


@pytest.mark.parametrize(
    ("text", "language"),
    [("Where?", "en"), ("weekly sync 是周几？", "zh"), ("いつですか", "ja"), ("어디예요?", "ko")],
)
def test_tells_languages_by_script(text: str, language: str) -> None:
    """Kana make Japanese, Hangul Korean, else one Chinese sign Chinese."""
    assert language_of(text) == language


@pytest.mark.parametrize(
    "line",
    ["? A question before any turn?", "no colon and no mark", "== a | learn | 2026-01-01T10:00"],
)
def test_names_the_line_that_is_malformed(tmp_path: Path, line: str) -> None:
    """What does not follow the format is an error with file and line."""
    start = "== s | learn | 2026-01-01T10:00 | -\n"
    (tmp_path / "set.txt").write_text(f"{start}{line}\n", encoding="utf-8")
    with pytest.raises(Malformed, match=r"set\.txt, line 2"):
        bilingual.read(tmp_path)


def test_refuses_an_unknown_half(tmp_path: Path) -> None:
    """A half is learn or report."""
    (tmp_path / "set.txt").write_text("== s | test | 2026-01-01T10:00 | -\n", encoding="utf-8")
    with pytest.raises(Malformed, match="learn or report"):
        bilingual.read(tmp_path)
