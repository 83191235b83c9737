"""Choosing among very many documents: which are looked at, and which never are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.indexed import block, turn
from turnmark_memory.candidates import gather
from turnmark_memory.index import Index
from turnmark_memory.index_likely import MANY, listing
from turnmark_memory.index_schema import Filters, TopicDoc
from turnmark_memory.search_text import query_of

ALL = Filters()
COMMON = MANY + 2_500
"""Turns with the same words: more than are listed for one question."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Gives an index of many turns and blocks that are much alike, and a few that are not."""
    path: Path = tmp_path_factory.mktemp("large") / "index.db"
    index = Index.open(path)
    alike = [turn(f"s-{i}", "apples 苹果", i, session=f"x{i}") for i in range(COMMON)]
    apart = [
        turn("s-pears", "apples and pears", session="y1"),
        turn("s-both", "apples, pears and quinces", session="y2"),
        turn("s-long", "pears " + "of every kind " * 20, session="y3"),
        turn("s-ana", "apples", session="y4", speaker="Ana"),
        turn("s-zh", "苹果和温哥华", session="y5"),
    ]
    blocks = [block(f"b-{i}", "apples", topic="fruit") for i in range(MANY + 100)]
    blocks += [block("b-old", "apples and pears", superseded_by="b-0", topic="fruit")]
    blocks += [block("b-pears", "apples and pears", topic="fruit")]
    topic = TopicDoc(topic="fruit", about="", tokens=1, blocks=tuple(blocks))
    index.rebuild([*apart, *alike], [topic], 1)
    yield index
    index.close()


def turns(index: Index, question: str, k: int = 10, filters: Filters = ALL) -> list[str]:
    """Returns the labels of the turns that are chosen for a question."""
    return [one.ref for one in index.likely("turn", query_of(question).terms, k, filters)]


def test_rare_terms_are_listed_and_frequent_ones_followed() -> None:
    """What has no document is not looked for, and what is too frequent lists none."""
    found = listing({"the": 90_000, "quince": 3, "pear": 900, "apple": 4_200, "none": 0})
    assert found == (["quince", "pear"], ["apple", "the"])


def test_one_term_is_listed_however_frequent() -> None:
    """A question of frequent words alone still has candidates."""
    assert listing({"the": 90_000, "of": 80_000}) == (["of"], ["the"])


def test_no_more_than_three_terms_are_followed() -> None:
    """The rarest of those that are too frequent to be listed."""
    many = {f"w{n}": 6_000 + n for n in range(9)}
    assert listing(many) == (["w0"], ["w1", "w2", "w3"])


@pytest.mark.parametrize(
    ("question", "first"),
    [("apples pears quinces", "s-both"), ("apples pears", "s-both"), ("苹果和温哥华", "s-zh")],
)
def test_who_has_the_rarer_terms_and_more_of_them_comes_first(
    large: Index, question: str, first: str
) -> None:
    """Frequent terms tell apart what has the same rare ones."""
    assert turns(large, question)[0] == first


def test_between_equals_the_newer_comes_first(large: Index) -> None:
    """Two of one score are in the order of their coming in, last first."""
    assert turns(large, "apples pears", 2) == ["s-both", "s-pears"]


def test_a_frequent_word_alone_finds_the_newest(large: Index) -> None:
    """Never all of them."""
    newest = [f"s-{i}" for i in range(COMMON - 1, COMMON - 4, -1)]
    assert turns(large, "apples", 3) == newest


def test_what_shares_only_the_frequent_words_is_not_looked_at(large: Index) -> None:
    """Unless nothing rarer is there."""
    assert set(turns(large, "apples pears", 50)) == {"s-both", "s-pears", "s-long"}


def test_behind_a_filter_a_frequent_word_is_enough(large: Index) -> None:
    """The few that a filter leaves are found by whatever they have."""
    assert turns(large, "apples pears", 10, Filters(speaker="ana")) == ["s-ana"]


def test_superseded_blocks_are_left_out_and_make_room(large: Index) -> None:
    """They are history among many as among few."""
    terms = query_of("apples pears").terms
    assert [one.ref for one in large.likely("block", terms, 1, ALL)] == ["b-pears"]
    found = large.likely("block", terms, 2, Filters(history=True))
    assert {one.ref for one in found} == {"b-old", "b-pears"}


def test_a_word_that_came_in_just_now_is_found_among_many(large: Index) -> None:
    """And one that went is not: what was listed before a write says nothing after it."""
    assert turns(large, "apples quinces") == ["s-both"]
    large.add_turns([turn("s-new", "quinces", session="y6")])
    assert set(turns(large, "apples quinces")) == {"s-both", "s-new"}
    assert large.frequencies("turn", query_of("quinces").terms) == {"quinc": 2}
    large.forget(["s-new"])
    assert turns(large, "apples quinces") == ["s-both"]
    assert large.frequencies("turn", query_of("quinces").terms) == {"quinc": 1}


def test_asked_twice_the_lists_are_the_same(large: Index) -> None:
    """Those of the first time are remembered."""
    assert large.likely("turn", ["pear", "appl"], 9, ALL) == large.likely(
        "turn", ["pear", "appl"], 9, ALL
    )


def test_of_many_alike_only_some_are_ranked(large: Index) -> None:
    """However many would do: the turns around them would cost the most."""
    found = gather(large, query_of("apples"), ALL, ("turn", "block"))
    assert len(found.turns) == 50
    assert len(found.blocks) == 100


def test_few_documents_are_all_scored(tmp_path: Path) -> None:
    """Below the limit what BM25 finds is what is looked at."""
    index = Index.open(tmp_path / "index.db")
    index.add_turns(turn(f"s-{i}", "apples pears", i) for i in range(40))
    terms = query_of("apples pears").terms
    assert index.likely("turn", terms, 30, ALL) == index.search("turn", terms, 30, ALL)
    index.close()
