"""The gate: true old values, one row per move, equal heads, and nothing where nothing moved."""

from __future__ import annotations

import pytest

from session_store.stage import IDLE_MS, Stage
from turnmark_events.errors import Stale
from turnmark_events.types import TipMoved
from turnmark_session_store.heads import (
    Absent,
    Exactly,
    Keep,
    TipMove,
    To,
    begin_branch,
    check_head,
    move,
)
from turnmark_session_store.transaction import Transaction

pytestmark = pytest.mark.anyio


async def test_reads_the_old_value_itself(stage: Stage) -> None:
    """Nobody tells it where the tip was."""
    await stage.append("a", "b", "c")

    def run(tx: Transaction) -> None:
        move(tx, 1, [TipMove(1, 1, "rewind")], To(1, 1), cause="rewind")
        move(tx, 1, [TipMove(1, 2, "append")], Keep(), cause="append")

    before = stage.seq
    await stage.write(run)
    assert [(one.old, one.new) for one in stage.moves(before)] == [("c", "a"), ("a", "b")]
    assert await stage.head() == "a"


async def test_all_rows_of_a_call_carry_the_same_heads(stage: Stage) -> None:
    """Two tips and the head in one go."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    before = stage.seq
    tips = [TipMove(1, 1, "rewind"), TipMove(2, 1, "rewind")]
    await stage.write(lambda tx: move(tx, 1, tips, To(1, 2), cause="rewind"))
    assert {(one.head_old, one.head_new) for one in stage.moves(before)} == {("c", "a")}


async def test_a_head_that_moves_alone_is_told_with_its_own_branch(stage: Stage) -> None:
    """The tip that was to move beside it stood there already, on another branch."""
    await stage.append("a", "b")
    other = (await stage.append("c", after="a")).branch
    before = stage.seq
    stands = [TipMove(1, 2, "append")]
    await stage.write(lambda tx: move(tx, 1, stands, To(1, 2), cause="checkout"))
    (moved,) = stage.moves(before)
    assert (moved.branch, moved.old, moved.new, moved.head_new) == (other, "c", "c", "a")


async def test_a_head_is_told_by_the_last_row_there_is(stage: Stage) -> None:
    """A tip that stands there already, named last, makes no row, and so does the head then."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    before = stage.seq
    tips = [TipMove(1, 1, "rewind"), TipMove(2, 3, "rewind")]
    await stage.write(lambda tx: move(tx, 1, tips, To(1, 1), cause="rewind"))
    (moved,) = stage.moves(before)
    assert (moved.old, moved.new, moved.head_old, moved.head_new) == ("b", "a", "c", "a")


async def test_what_does_not_move_says_nothing(stage: Stage) -> None:
    """The tip is there already, and so is the head."""
    await stage.append("a")
    before = stage.seq
    updated = (await stage.show()).updated_at
    await stage.write(lambda tx: move(tx, 1, [TipMove(1, 1, "append")], To(1, 1), cause="append"))
    assert stage.seq == before
    assert (await stage.show()).updated_at == updated


async def test_a_stale_expectation_moves_nothing(stage: Stage) -> None:
    """It is checked against the true head, before anything is written."""
    await stage.append("a", "b")

    def run(tx: Transaction) -> None:
        move(tx, 1, [TipMove(1, 1, "rewind")], Keep(), cause="rewind", expect=Exactly("a"))

    before = stage.seq
    with pytest.raises(Stale, match="is b, not a"):
        await stage.write(run)
    assert stage.seq == before
    await stage.write(lambda tx: check_head(tx, 1, Exactly("b")))
    with pytest.raises(Stale, match="is b, not unset"):
        await stage.write(lambda tx: check_head(tx, 1, Absent()))


async def test_only_a_tip_that_moved_is_armed(stage: Stage) -> None:
    """A move of the head alone re-arms nothing; the end of a branch disarms it."""
    await stage.append("a", "b")
    armed = stage.sql("SELECT moved_ms, idle_ms FROM branch")
    assert armed[0][1] == armed[0][0] + IDLE_MS
    await stage.checkout("a")
    assert stage.sql("SELECT moved_ms, idle_ms FROM branch") == armed
    await stage.append("c", after="b")
    assert stage.sql("SELECT moved_ms, idle_ms FROM branch") != armed
    await stage.delete()
    assert stage.sql("SELECT idle_ms FROM branch") == [(None,)]


async def test_branches_are_named_and_titled(stage: Stage) -> None:
    """The first is main, the others say how they began; names are their own for ever."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.append("d", after=None)
    rows = await stage.branches()
    assert [row.name for row in rows] == ["main", "fork-1", "root-2"]
    assert len({row.branch for row in rows}) == 3

    def run(tx: Transaction) -> int:
        return begin_branch(tx, 1, "import", name="br-given", title="标题")

    branch = await stage.write(run)
    assert stage.sql("SELECT name, title FROM branch WHERE id = ?", (branch,)) == [
        ("br-given", "标题")
    ]


async def test_the_row_is_the_event(stage: Stage) -> None:
    """What was published is what is read from the table afterwards, field by field."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.rewind("a")
    assert await stage.store.events_after(0, 100) == stage.events
    assert all(isinstance(event, TipMoved) for event in stage.events)
    assert [event.seq for event in stage.events] == [1, 2, 3]
    assert await stage.store.last_seq() == 3
