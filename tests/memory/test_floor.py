"""Whether a memory knows anything of what is asked."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from memory.indexed import block, turn
from turnmark_memory.candidates import Candidates, gather
from turnmark_memory.dense import DocRef
from turnmark_memory.features import Ratings
from turnmark_memory.floor import Signs, is_of_named, known, signs_of
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters
from turnmark_memory.matching import Matching
from turnmark_memory.ranking import possible, rank, sighted
from turnmark_memory.search_text import query_of

THRESHOLD = 0.5

SAID = [
    ("Anna", "I moved from Lisbon to Porto and rent a flat near the river."),
    ("Anna", "My blood pressure tablets are in the blue box, take one each morning."),
    ("Anna", "I am allergic to peanuts, but walnuts are fine."),
    ("Ben", "The startup raised capital from two investors in March."),
    ("Ben", "Our backend is written in Rust and deployed on Fridays."),
    ("Ben", "The dog got its rabies shot from the vet in Mill Street."),
    ("王敏", "我对花生过敏，核桃没有关系。"),
    ("王敏", "暖气片是孙师傅修的，他每两年来一次。"),
    ("李雷", "后端服务用 Go 写，部署在杭州的机房。"),
    ("李雷", "国庆节我们去黄山，住在山顶的酒店。"),
]
"""A small bilingual memory of two pairs of people."""

UNRELATED = [
    "What is the capital of France?",
    "How tall is Mount Everest?",
    "How do I make a béchamel sauce?",
    "法国的首都是哪里",
    "珠穆朗玛峰有多高？",
    "宫保鸡丁怎么做？",
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Index:
    index = Index.open(tmp_path_factory.mktemp("floor") / "index.db")
    index.add_turns([turn(f"s-{i}", text, i, speaker=who) for i, (who, text) in enumerate(SAID)])
    return index


def found(index: Index, question: str, near: dict[int, float] | None = None) -> list[str]:
    """Returns what is found; `near` is the nearness of some turns, that of the others is 0.2."""
    asked = query_of(question)
    candidates = everything(index, question) if near else lexical(index, question)
    return [one.found.ref for one in rank(asked, candidates, near and nearness(near))]


def lexical(index: Index, question: str) -> Candidates:
    return gather(index, query_of(question), Filters(), ("turn",))


def everything(index: Index, question: str) -> Candidates:
    """Returns all turns as candidates, as in a memory in which all are near enough to look at."""
    gathered = lexical(index, question + " " + " ".join(text for _, text in SAID))
    asked = lexical(index, question)
    return Candidates(
        turns=gathered.turns,
        blocks={},
        before=gathered.before,
        after=gathered.after,
        context=gathered.context,
        matching=asked.matching,
        named=asked.named,
    )


def nearness(near: dict[int, float]) -> dict[DocRef, float]:
    return {("turn", f"s-{i}"): near.get(i, 0.2) for i in range(len(SAID))}


def signs(**given: float) -> Signs:
    zero = {"coverage": 0.0, "around": 0.0, "unknown_names": 0.0, "unknown_words": 0.0}
    return Signs(**{**zero, **given})


KINDS = list(product([False, True], repeat=3))


@pytest.mark.parametrize(("with_meaning", "named", "unspaced"), KINDS)
def test_a_document_about_the_whole_question_is_enough(
    with_meaning: bool, named: bool, unspaced: bool
) -> None:
    """What has every word and is near is known; nothing of both is not."""
    kind = {"named": named, "unspaced": unspaced}
    whole = signs(
        coverage=1.0, around=1.0, about=1.0, nearest=0.8, agreeing=0.8, together=0.8, **kind
    )
    assert known(whole, with_meaning=with_meaning) > THRESHOLD
    nothing = signs(unknown_names=0.5, unknown_words=0.5, **kind)
    if not named:
        nothing = signs(unknown_words=1.0, **kind)
    assert known(nothing, with_meaning=with_meaning) < THRESHOLD


@pytest.mark.parametrize("with_meaning", [False, True])
@pytest.mark.parametrize("unspaced", [False, True])
def test_a_name_that_no_document_has_speaks_against_it(with_meaning: bool, unspaced: bool) -> None:
    """A question about a stranger is answered less readily."""
    half = {"coverage": 0.5, "around": 0.5, "about": 0.5, "nearest": 0.6, "together": 0.5}
    some = signs(**half, named=True, unspaced=unspaced)
    stranger = signs(**half, unknown_names=0.5, named=True, unspaced=unspaced)
    assert known(stranger, with_meaning=with_meaning) < known(some, with_meaning=with_meaning)


@pytest.mark.parametrize("question", UNRELATED)
def test_an_unrelated_memory_says_nothing_by_words(memory: Index, question: str) -> None:
    """One general word in another sense (*capital*) is no knowledge."""
    assert found(memory, question) == []


@pytest.mark.parametrize("question", UNRELATED)
def test_an_unrelated_memory_says_nothing_with_meaning(memory: Index, question: str) -> None:
    """Nor is something a little nearer than the rest."""
    assert found(memory, question, {3: 0.36, 9: 0.36}) == []


@pytest.mark.parametrize(
    ("question", "turn_of"),
    [
        ("What is Anna allergic to?", 2),
        ("Who repaired the dog's rabies shot at the vet?", 5),
        ("王敏对什么过敏？", 6),
        ("李雷的后端用什么写？", 8),
    ],
)
def test_what_is_known_is_found_by_words_and_with_meaning(
    memory: Index, question: str, turn_of: int
) -> None:
    """The same memory answers what it was told."""
    assert found(memory, question)[0] == f"s-{turn_of}"
    assert found(memory, question, {turn_of: 0.7})[0] == f"s-{turn_of}"


@pytest.mark.parametrize("with_meaning", [False, True])
@pytest.mark.parametrize("unspaced", [False, True])
def test_what_any_book_knows_needs_more_to_be_answered(with_meaning: bool, unspaced: bool) -> None:
    """A word or two that a turn shares with it are too little, all of them are enough."""
    some = {"coverage": 0.4, "around": 0.4, "about": 0.4, "best": 0.4, "unspaced": unspaced}
    near = {"nearest": 0.5, "agreeing": 0.5, "together": 0.5}
    assert known(signs(**some, **near), with_meaning=with_meaning) > THRESHOLD
    assert known(signs(**some, **near, at_large=True), with_meaning=with_meaning) < THRESHOLD
    whole = {"coverage": 1.0, "around": 1.0, "about": 1.0, "best": 1.0, "unspaced": unspaced}
    near = {"nearest": 0.8, "agreeing": 0.8, "together": 0.8}
    assert known(signs(**whole, **near, at_large=True), with_meaning=with_meaning) > THRESHOLD


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("The capital of France is where my aunt lives.", "What is the capital of France?"),
        ("法国的首都我去过两次，最喜欢那里的面包。", "法国的首都是哪里？"),
    ],
)
def test_what_any_book_knows_is_found_if_it_was_said(
    tmp_path: Path, text: str, question: str
) -> None:
    """The memory answers what it was told, though one could look it up."""
    index = Index.open(tmp_path / "index.db")
    told = turn("s-10", text, 10, speaker="Anna")
    index.add_turns(
        [*(turn(f"s-{i}", said, i, speaker=who) for i, (who, said) in enumerate(SAID)), told]
    )
    assert found(index, question)[:1] == ["s-10"]
    index.close()


@pytest.mark.parametrize(
    "question",
    ["What is Ben's shoe size?", "Which university did Anna attend?", "王敏毕业于哪所大学？"],
)
def test_a_near_miss_is_told_by_what_is_asked_of_whom(memory: Index, question: str) -> None:
    """Somebody known, and nothing near of what was never said of them."""
    assert found(memory, question, dict.fromkeys(range(len(SAID)), 0.25)) == []


@pytest.mark.parametrize(
    ("question", "turn_of"),
    [("Which mountain do they visit on the national holiday?", 9), ("谁给小狗打了狂犬疫苗？", 5)],
)
def test_an_answer_in_another_language_has_a_chance_of_its_own(
    memory: Index, question: str, turn_of: int
) -> None:
    """Its words are in no document: where it is nearest by far, that isn't held against it."""
    assert found(memory, question, {turn_of: 0.66})[:1] == [f"s-{turn_of}"]
    assert found(memory, question, {turn_of: 0.36}) == []


def test_what_no_document_has_is_told_by_name_and_word() -> None:
    """A name is told from other words; what a stand-in says is not unknown."""
    asked = query_of("Where did my mother meet Valentina?")
    matching = Matching(asked, {"mom": 3}, 10)
    assert matching.unknown_names > matching.unknown_words > 0
    everything_known = Matching(asked, {"mom": 3, "meet": 1, "valentina": 1}, 10)
    assert (everything_known.unknown_names, everything_known.unknown_words) == (0.0, 0.0)


def test_what_is_asked_is_told_apart_from_whom_it_is_asked_of() -> None:
    """A turn of hers has nothing of the rest; a speaker is a name however it is written."""
    asked = query_of("what is the blood type of anna")
    matching = Matching(asked, {"anna": 3, "blood": 1}, 10, frozenset({"anna"}))
    assert matching.names_somebody
    assert matching.known_names == matching.match(" anna moved ").bits
    assert matching.apart(matching.match(" anna moved ").bits) == 0.0
    assert matching.apart(matching.match(" blood type ").bits) == 1.0
    assert matching.coverage(matching.match(" anna moved ").bits) > 0.3


def test_a_question_that_is_but_a_name_is_about_whoever_it_names() -> None:
    """Nothing is left to be covered then."""
    matching = Matching(query_of("who is Anna"), {"anna": 3}, 10, frozenset({"anna"}))
    assert matching.apart(matching.match(" anna moved ").bits) == 1.0


@pytest.mark.parametrize(
    ("question", "unspaced"),
    [
        ("green tea", False),
        ("绿茶在哪里", True),
        ("Dana在哪里工作", True),
        ("緑茶は好きですか", True),
    ],
)
def test_tells_in_which_kind_of_script_a_question_is(question: str, unspaced: bool) -> None:
    """A name in another script makes no difference."""
    assert Matching(query_of(question), {}, 10).unspaced is unspaced


def test_words_and_nearness_agree_where_one_candidate_has_both(tmp_path: Path) -> None:
    """The nearest that shares no word agrees with nothing."""
    index = Index.open(tmp_path / "index.db")
    index.add_turns([turn("s-0", "green is my wall", 0), turn("s-1", "coffee at noon", 1)])
    asked, near = query_of("green tea"), {("turn", "s-0"): 0.4, ("turn", "s-1"): 0.9}
    candidates = gather(index, asked, Filters(), ("turn",))
    ratings = Ratings(asked, candidates, near)
    seen = sighted(ratings, candidates, near)
    told = signs_of(candidates, seen, possible(seen, ratings, candidates))
    assert (told.nearest, told.elsewhere, told.unspaced) == (0.9, 0.0, False)
    assert told.agreeing == pytest.approx(0.4)
    index.close()


@pytest.mark.parametrize("with_meaning", [False, True])
@pytest.mark.parametrize("unspaced", [False, True])
def test_what_the_one_who_is_asked_about_said_is_known_more_likely(
    with_meaning: bool, unspaced: bool
) -> None:
    """The best candidate is theirs or somebody else's."""
    half = {"coverage": 0.5, "around": 0.5, "about": 0.5, "nearest": 0.6, "together": 0.5}
    theirs = signs(**half, said=1.0, named=True, unspaced=unspaced)
    others = signs(**half, named=True, unspaced=unspaced)
    assert known(theirs, with_meaning=with_meaning) > known(others, with_meaning=with_meaning)


def test_a_block_about_somebody_is_as_good_as_a_turn_of_theirs(tmp_path: Path) -> None:
    """Nobody speaks a block; one that doesn't name them is about somebody else."""
    index = Index.open(tmp_path / "index.db")
    index.set_topic("people", "", 1, [block("b-1", "Dana works as a nurse.", topic="people")])
    index.set_topic("jobs", "", 1, [block("b-2", "The nurse works at night.", topic="jobs")])
    asked = query_of("where does Dana work?")
    candidates = gather(index, asked, Filters(), ("block",))
    ratings = Ratings(asked, candidates)
    told = {
        one.found.ref: is_of_named(candidates, one, ratings.values(one)) for one in ratings.seen()
    }
    assert told == {"b-1": True, "b-2": False}


def test_words_in_the_other_language_are_told_from_those_in_ones_own(tmp_path: Path) -> None:
    """What a Chinese turn has of an English question, it has in translation."""
    index = Index.open(tmp_path / "index.db")
    index.add_turns([turn("s-0", "房东提高了房租", 0), turn("s-1", "our rent is fine", 1)])
    near: dict[DocRef, float] = {("turn", "s-0"): 0.6, ("turn", "s-1"): 0.3}
    asked = query_of("what does our landlord want in rent?")
    candidates = gather(index, asked, Filters(), ("turn",))
    ratings = Ratings(asked, candidates, near)
    seen = sighted(ratings, candidates, near)
    told = signs_of(candidates, seen, possible(seen, ratings, candidates))
    assert 0 < told.translated < told.coverage
    assert told.elsewhere == 0.6
