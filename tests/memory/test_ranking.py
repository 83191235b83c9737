"""The order of candidates, and the floor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.indexed import block, turn
from turnmark_memory import ranking
from turnmark_memory.candidates import Candidates, gather
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters, Found
from turnmark_memory.matching import Matching
from turnmark_memory.ranking import LEAST_OF_BEST, rank
from turnmark_memory.recall import lexical
from turnmark_memory.search_text import query_of

MEMORY = [
    ("people/dana", "Dana leads the billing team at Acme since May 2026."),
    ("people/dana", "Dana is allergic to peanuts and likes green tea."),
    ("people/lin", "林娜在上海的一家银行做数据分析，上班坐地铁。"),
    ("people/lin", "林娜周末弹吉他，最近在学日语。"),
    (
        "projects/turnmark",
        "The store uses SQLite in WAL mode because power cuts must lose nothing.",
    ),
    ("projects/turnmark", "后端服务用Python写，部署在法兰克福的机房。"),
    ("subjects/money", "The startup raised capital from two investors in March."),
    (
        "subjects/travel",
        "The user moved from Lisbon to Porto in 2025 and rents a flat near the river.",
    ),
]
"""A small bilingual memory; the index of a block is its answer below."""

ANSWERED = [
    ("who leads billing", 0),
    ("is Dana allergic to anything?", 1),
    ("林娜在哪里上班？", 2),
    ("林娜会弹什么乐器", 3),
    ("我弹吉他的朋友是谁", 3),
    ("why do we use WAL mode?", 4),
    ("后端用什么语言写的", 5),
    ("what is the backend in Python deployed on", 5),
    ("服务部署在哪个城市", 5),
    ("who gave the startup its capital", 6),
    ("when did I move to Porto", 7),
]

UNRELATED = [
    "what is the capital of France",
    "What is the capital of France?",
    "how tall is Mount Everest",
    "who wrote Hamlet",
    "does Marcus have a sister?",
    "how do vaccines work",
    "法国的首都是哪里？",
    "今天天气怎么样",
    "珠穆朗玛峰有多高",
    "谁发明了电话",
    "地球离月亮多远",
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Index:
    index = Index.open(tmp_path_factory.mktemp("ranking") / "index.db")
    for topic in dict.fromkeys(topic for topic, _ in MEMORY):
        docs = [
            block(f"b-{i}", text, topic=topic)
            for i, (other, text) in enumerate(MEMORY)
            if other == topic
        ]
        index.set_topic(topic, "", 1, docs)
    return index


def refs(index: Index, question: str) -> list[str]:
    ranked = lexical(index, query_of(question), Filters(), ("block", "turn"))
    return [one.found.ref for one in ranked]


@pytest.mark.parametrize(("question", "answer"), ANSWERED)
def test_what_memory_knows_comes_first(memory: Index, question: str, answer: int) -> None:
    """Questions in both languages find their paragraph, though they share only some words."""
    assert refs(memory, question)[:1] == [f"b-{answer}"]


@pytest.mark.parametrize("question", ["where does Dana work?", "dana的职位是什么"])
def test_a_question_in_other_words_finds_what_is_about_the_same(
    memory: Index, question: str
) -> None:
    """Where only the name is shared, all that is known of her comes back and nothing else."""
    assert set(refs(memory, question)) == {"b-0", "b-1"}


@pytest.mark.parametrize("question", UNRELATED)
def test_what_memory_does_not_know_finds_nothing(memory: Index, question: str) -> None:
    """A shared general word, or a word in another sense, is no answer."""
    assert refs(memory, question) == []


def index_of(directory: Path, *said: tuple[str, str]) -> Index:
    index = Index.open(directory / "index.db")
    index.add_turns([turn(f"s-{i}", text, i, speaker=who) for i, (who, text) in enumerate(said)])
    return index


def test_the_answer_is_found_through_its_question(tmp_path: Path) -> None:
    """The turn after a matching question ranks first, though it shares no word with it."""
    index = index_of(
        tmp_path,
        ("Ana", "Good morning, how are you?"),
        ("Ana", "Which violin teacher did you pick?"),
        ("Dana", "Old Mister Petrov."),
        ("Ana", "Lunch was great."),
        ("Dana", "Shall we walk?"),
    )
    found = refs(index, "who is the violin teacher?")
    assert set(found[:2]) == {"s-1", "s-2"}


def test_turns_of_the_named_speaker_come_first(tmp_path: Path) -> None:
    """Of two alike, the one said by whom the question names."""
    index = index_of(
        tmp_path,
        ("Ana", "My violin lesson was fun."),
        ("Ben", "ok"),
        ("Ben", "ok"),
        ("Dana", "My violin lesson was fun."),
    )
    assert refs(index, "what did Dana say about the violin lesson")[0] == "s-3"


def candidates_of(
    question: str, turns: Sequence[Found] = (), blocks: Sequence[Found] = ()
) -> Candidates:
    """Returns candidates of which none is known to lie beside another."""
    return Candidates(
        turns={one.row: one for one in turns},
        blocks={one.row: one for one in blocks},
        before={},
        after={},
        context={},
        matching=Matching(query_of(question), {}, 10),
        named=frozenset(),
    )


def order(question: str, turns: Sequence[Found] = (), blocks: Sequence[Found] = ()) -> list[str]:
    ranked = rank(query_of(question), candidates_of(question, turns, blocks))
    return [one.found.ref for one in ranked]


def test_between_equals_the_newer_comes_first() -> None:
    """Recency decides only where nothing else does."""
    old, new = (
        Found(row=i, ref=f"b-{i}", score=1.0, terms=" violin ", at_us=i, session="a")
        for i in (1, 2)
    )
    better = Found(row=0, ref="b-0", score=2.0, terms=" violin teacher ", at_us=0, session="a")
    assert order("violin teacher", blocks=[old, new, better]) == ["b-0", "b-2", "b-1"]


def test_a_session_about_the_question_lifts_its_turns() -> None:
    """Of two equal matches, the one whose session has more of them."""
    lonely = Found(row=1, ref="s-1", score=1.0, terms=" violin ", at_us=0, session="a")
    others = [
        Found(row=i, ref=f"s-{i}", score=1.0, terms=" violin ", at_us=0, session="b")
        for i in (2, 3, 4)
    ]
    assert order("violin", [lonely, *others])[-1] == "s-1"


def test_a_rare_word_weighs_more_than_a_frequent_one() -> None:
    """A document with the rare word of a question covers more of it."""
    matching = Matching(query_of("violin meeting"), {"violin": 1, "meet": 900}, 1_000)
    rare, frequent = (matching.coverage(matching.match(t).bits) for t in (" violin ", " meet "))
    assert rare > 2 * frequent


def test_a_long_question_is_answered_by_what_covers_a_part_of_it() -> None:
    """What a person pastes must not lower every hit under the floor."""
    words = " ".join(f"word{i}" for i in range(200))
    matching = Matching(query_of(words), {}, 100)
    match = matching.match(" " + " ".join(f"word{i}" for i in range(10)) + " ")
    assert matching.coverage(match.bits) == 1.0


def test_blocks_and_turns_are_compared_by_what_they_cover() -> None:
    """The best of a kind that covers little stays behind the best of one that covers all."""
    half = Found(row=1, ref="s-1", score=9.0, terms=" violin ", at_us=0)
    whole = Found(row=1, ref="b-1", score=0.1, terms=" violin teacher ", at_us=0)
    assert order("violin teacher", [half], [whole]) == ["b-1", "s-1"]


@given(st.text(max_size=40), st.text(max_size=40))
def test_coverage_is_a_share(question: str, terms: str) -> None:
    """Between 0 and 1 for any question and document, 0 for a question without words."""
    asked = query_of(question)
    matching = Matching(asked, {}, 0)
    share = matching.coverage(matching.match(terms).bits)
    assert 0.0 <= share <= 1.0
    assert asked.units or share == 0.0


def test_nothing_found_is_nothing_ranked() -> None:
    """Empty candidates give an empty ranking."""
    assert order("") == []


def test_a_turn_beside_a_match_is_no_hit_by_itself(tmp_path: Path) -> None:
    """Only the one that answers a question which was asked about the same."""
    index = index_of(
        tmp_path,
        ("Dana", "I bought a red bicycle in Porto."),
        ("assistant", "Noted."),
        ("assistant", "Which lock did you take for the bicycle?"),
        ("Dana", "The heavy chain."),
        ("assistant", "Fine."),
    )
    assert set(refs(index, "which lock has the bicycle?")) == {"s-0", "s-2", "s-3"}


def test_a_word_that_most_documents_have_scores_low(tmp_path: Path) -> None:
    """It tells nothing apart: every match is as good as any other."""
    frequent = [("Dana", f"lesson number {word}") for word in "abcdefghij"]
    index = index_of(tmp_path, *frequent, ("Dana", "my violin"))

    def best(question: str) -> float:
        ranked = lexical(index, query_of(question), Filters(), ("turn",))
        return ranked[0].score

    assert best("lesson") < best("violin") / 2


WORDS = ["violin", "teacher", "Petrov", "lesson", "Porto", "red", "lock", "吉他", "上海", "?"]

said = st.lists(
    st.tuples(
        st.sampled_from(["Ana", "Dana"]),
        st.lists(
            st.sampled_from(
                [
                    "violin",
                    "teacher",
                    "Petrov",
                    "lesson",
                    "Porto",
                    "red",
                    "lock",
                    "吉他",
                    "上海",
                    "?",
                ]
            ),
            min_size=1,
            max_size=6,
        ).map(" ".join),
    ),
    min_size=1,
    max_size=12,
)
asked_for = st.sampled_from(
    ["violin teacher", "what did Dana say about the lesson?", "上海的吉他", "when was the red lock"]
)


@settings(max_examples=25, deadline=None)
@given(said, asked_for)
def test_an_order_depends_on_the_documents_alone(
    turns: list[tuple[str, str]], question: str
) -> None:
    """Whichever came into the index first, and however often it is asked."""
    docs = [turn(f"s-{i}", text, i, speaker=who) for i, (who, text) in enumerate(turns)]
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        index, backwards = Index.open(Path(one) / "i.db"), Index.open(Path(other) / "i.db")
        index.add_turns(docs)
        backwards.add_turns(reversed(docs))
        found = refs(index, question)
        assert found == refs(index, question) == refs(backwards, question)
        index.close()
        backwards.close()


@settings(max_examples=25, deadline=None)
@given(said, asked_for, st.floats(0, 1), st.floats(0, 1))
def test_a_higher_floor_never_lets_more_through(
    turns: list[tuple[str, str]], question: str, one: float, other: float
) -> None:
    """What passes the higher one passes the lower one, in the same order."""
    low, high = sorted((one, other))
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        index = index_of(Path(directory), *turns)
        patch.setattr(ranking, "FLOOR", high)
        above = refs(index, question)
        patch.setattr(ranking, "FLOOR", low)
        assert above in ([], refs(index, question))
        index.close()


def test_a_hit_far_below_the_best_is_left_out(tmp_path: Path) -> None:
    """It shares a word, but beside what answers it is unrelated; without a floor it is there."""
    index = Index.open(tmp_path / "index.db")
    index.add_turns(
        [
            turn(
                "s-1", "Robin lives in a red house by the old mill in Utrecht.", 0, speaker="Robin"
            ),
            *(turn(f"s-{n}", f"List the files in folder {n} by the mill.", n) for n in range(2, 9)),
        ]
    )
    asked = query_of("Which red house by the old mill does Robin live in?")
    candidates = gather(index, asked, Filters(), ("turn",))
    ranked = rank(asked, candidates)
    assert ranked[0].found.ref == "s-1"
    assert all(one.score >= LEAST_OF_BEST * ranked[0].score for one in ranked)
    assert len(rank(asked, candidates, floored=False)) > len(ranked)
