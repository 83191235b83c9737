"""What may answer, by words first and by meaning afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memory.indexed import block, turn
from turnmark_memory.candidates import gather, with_near
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters
from turnmark_memory.ranking import rank
from turnmark_memory.search_text import query_of

ALL = Filters()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """Gives twelve turns of one session, and two blocks."""
    made = Index.open(tmp_path / "index.db")
    made.add_turns([turn(f"s-{at}", f"word{at} 第{at}句话", at) for at in range(12)])
    blocks = [block("b-1", "Dana likes tea.", "s-1"), block("b-2", "林晓住在青岛。", "s-2")]
    made.set_topic("people/dana", "", 1, blocks)
    yield made
    made.close()


def test_what_is_near_comes_with_the_turns_around_it(index: Index) -> None:
    """Two on either side, as around what has the words, and nothing twice."""
    asked = query_of("word2")
    found = gather(index, asked, ALL, ("turn", "block"))
    rows = {one.ref: row for row, one in {**found.turns, **found.context}.items()}
    assert {one.ref for one in found.turns.values()} == {"s-1", "s-2", "s-3"}
    assert {one.ref for one in found.context.values()} == {"s-0", "s-4"}
    near = with_near(index, found, [("turn", "s-4"), ("turn", "s-8"), ("block", "b-2")], ALL)
    assert {one.ref for one in near.turns.values()} == {
        *("s-1", "s-2", "s-3", "s-4", "s-5"),
        *("s-7", "s-8", "s-9"),
    }
    assert {one.ref for one in near.context.values()} == {"s-0", "s-6", "s-10"}
    assert [one.ref for one in near.blocks.values()] == ["b-2"]
    known = {**near.turns, **near.context}
    assert all(near.before[row + 1] == row for row in known if row + 1 in near.turns)
    assert all(near.after[row - 1] == row for row in known if row - 1 in near.turns)
    assert near.turns[rows["s-2"]] is found.turns[rows["s-2"]]


def test_what_is_near_and_known_changes_nothing(index: Index) -> None:
    """Nor does what is gone, or what a filter leaves out."""
    found = gather(index, query_of("word2"), ALL, ("turn",))
    known = [("turn", "s-2"), ("turn", "s-gone")]
    assert with_near(index, found, known, ALL) == found
    assert with_near(index, found, [("turn", "s-8")], Filters(speaker="ben")) == found


def test_without_words_only_what_is_near_may_answer(index: Index) -> None:
    """As the mode `dense` asks."""
    found = gather(index, query_of("word2"), ALL, ("turn", "block"), words=False)
    assert not found.documents()
    near = with_near(index, found, [("turn", "s-8"), ("block", "b-1")], ALL)
    assert set(near.documents()) == {
        *(("turn", "s-7"), ("turn", "s-8"), ("turn", "s-9")),
        ("block", "b-1"),
    }


def test_matched_beforehand_they_are_ranked_the_same(index: Index) -> None:
    """It only takes less time then, and reaches what stands around the candidates, too."""
    asked = query_of("word2 林晓")
    found, beforehand = (gather(index, asked, ALL, ("turn", "block")) for _ in range(2))
    beforehand.match()
    ranked = [(one.kind, one.found.ref, one.score) for one in rank(asked, found, floored=False)]
    assert [
        (one.kind, one.found.ref, one.score) for one in rank(asked, beforehand, floored=False)
    ] == ranked
    assert ranked
