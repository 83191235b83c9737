"""Terms of documents and questions, in any script."""

from __future__ import annotations

from datetime import UTC, datetime

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnmark_memory.search_text import fold, match_any, query_of, terms_of, time_terms

MIXED = st.text(
    alphabet=st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from(
            "的我是在了吗哪里什么后端服务工作今天2026年8月9日 -/,.'\"*()^:{}\x00abcMay"
        ),
    ),
    max_size=60,
)


def names(text: str) -> set[str]:
    return {term for unit in query_of(text).units if unit.name for term in unit.full}


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("Python", "python"),
        ("后端", "后端"),
        ("服务器 后端服务", "服务"),
        ("ＰＹＴＨＯＮ", "python"),
    ],
)
def test_mixed_text_has_the_terms_of_both_scripts(question: str, term: str) -> None:
    """A sentence of Chinese with an English word is found by either."""
    assert term in query_of(question).terms
    assert term in terms_of("我用Python写后端服务")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("She was running migrations", "run a migration"),
        ("Straße in São Paulo", "STRASSE sao paulo"),
        ("met on 9 August 2026", "2026-08-09"),
        ("met on August 9th, 2026", "2026年8月9日"),
        ("于2026-08-09见面", "9 Aug 2026"),
        ("it was in May", "5月"),
        ("ガス", "ｶﾞｽ"),
    ],
)
def test_spellings_of_the_same_meet(one: str, other: str) -> None:
    """Inflection, accents, width and the ways to write a date don't keep a question from a text."""
    assert set(query_of(other).terms) <= set(terms_of(one))


def test_a_time_is_found_by_its_date_in_words() -> None:
    """The day that a turn was said on is part of what it can be found by."""
    terms = set(time_terms(datetime(2026, 8, 9, tzinfo=UTC)))
    for question in ("August 2026", "2026年8月9日", "9 August", "in August"):
        assert set(query_of(question).terms) <= terms


def test_question_words_are_not_looked_for() -> None:
    """Function words of both languages say nothing about where the answer is."""
    assert query_of("where does she work?").terms == ("work",)
    assert query_of("请问她在哪里工作呢？").terms == ("工作",)


@pytest.mark.parametrize("question", ["what is it", "是什么", "我", "的", "who are you?"])
def test_a_question_of_function_words_alone_keeps_them(question: str) -> None:
    """Such a question still finds what has these very words."""
    assert query_of(question).terms
    assert set(query_of(question).terms) <= set(terms_of(question))


@pytest.mark.parametrize("word", ["吉他", "和平", "都柏林", "目的地"])
def test_words_made_with_function_characters_stay_whole(word: str) -> None:
    """Stripping 我 and 的 from a question must not take words apart."""
    assert set(query_of(f"我喜欢{word}吗").terms) & {word[i : i + 2] for i in range(len(word) - 1)}
    assert query_of(word).terms


def test_names_are_told_from_general_words() -> None:
    """A capital inside a sentence, a digit, or Latin letters in a Chinese question make a name."""
    assert names("Where does Dana live?") == {"dana"}
    assert names("Dana住在哪里") == {"dana"}
    assert names("What about invoice 4711") == {"4711"}
    assert names("Running is fun") == set()


@pytest.mark.parametrize("nothing", ["", "  \n", "\x00", '"*^(){}', "。。。", "_"])
def test_nothing_to_look_for_is_an_empty_query(nothing: str) -> None:
    """Text without a word gives no terms, and no error."""
    assert query_of(nothing).terms == ()
    assert query_of(nothing).second == ()


@given(MIXED)
@example('a" OR "b')
@example("NEAR(a b) AND NOT c* ^d col:e -f + {g}")
@example("x5月 2026-08-09z 在5月9日去")
def test_no_text_breaks_the_search(text: str) -> None:
    """Whatever is asked is a valid expression and finds the text that it is taken from."""
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(terms, tokenize='ascii')")
    db.execute("INSERT INTO words VALUES (?)", (" ".join(terms_of(text)),))
    asked = query_of(text)
    for term in (*asked.terms, *asked.second):
        found = db.execute("SELECT 1 FROM words WHERE words MATCH ?", (match_any([term]),))
        assert found.fetchone() is not None


def test_a_question_of_a_hundred_thousand_characters_is_cut_not_refused() -> None:
    """A pasted file as a question costs time in proportion to its beginning."""
    assert query_of("后端 server '\x00\" " * 10_000).terms
    assert query_of("x" * 100_000).terms == ("x" * 40,)


def test_names_fold_alike() -> None:
    """Width and case of a name don't matter."""
    assert fold(" ＤＡＮＡ ") == fold("dana")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where do I live?", "I moved to Porto in March."),
        ("where does she reside", "She relocated to Bergen."),
        ("我住在哪里", "我上个月搬到了上海。"),
    ],
)
def test_meets_answers_in_other_words(question: str, answer: str) -> None:
    """A question about living somewhere is spoken about by who moved there."""
    terms = set(terms_of(answer))
    assert any(terms & set(unit.full) for unit in query_of(question).units)


def test_asks_about_a_move_alone() -> None:
    """A question about a move is not one about living somewhere."""
    assert "live" not in query_of("when did I move?").terms


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What did she buy?", "She bought a tent."),
        ("children", "a child"),
        ("Who is his mother?", "His mom called."),
        ("backend service", "我用Python写后端服务"),
        ("后端", "I write the backend in Python"),
    ],
)
def test_another_form_or_word_for_the_same_is_looked_for(question: str, text: str) -> None:
    """Irregular forms, everyday stand-ins and the other language's word meet."""
    asked = query_of(question)
    assert {*asked.terms, *asked.kin} & set(terms_of(text))


def test_a_stand_in_is_no_word_of_the_question() -> None:
    """What the answer may say instead is kept apart from what was asked."""
    asked = query_of("Who is his mother?")
    assert "mother" in asked.terms
    assert "mom" in asked.kin
    assert "mom" not in asked.terms


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which city do I live in?", {"citi"}),
        ("What kinds of paint did we buy?", {"paint"}),
        ("我住在哪个城市？", {"城", "市"}),
        ("我对什么食物过敏？", {"食", "物"}),
        ("我在哪家公司上班", {"公", "司"}),
        ("为什么城市里这么吵", set()),
        ("What did the city decide?", set()),
        ("The city that I like", set()),
    ],
)
def test_the_kind_that_is_asked_for_is_told_from_what_is_asked(
    question: str, asked: set[str]
) -> None:
    """Only what follows "which", "what" or their like, and not the rest of the question."""
    found = [unit for unit in query_of(question).units if unit.asked]
    assert {(unit.half or unit.full)[0] for unit in found} == asked
