"""What is owed: per live tip and state, each turn counted once."""

from __future__ import annotations

import pytest

from session_store.stage import Stage, user
from turnmark_session_store.owed import dues_of, live_branches, owed_turns, owing_branches

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
async def workspace(stage: Stage) -> None:
    """The workspace that owes."""
    await stage.workspace()


async def test_a_row_holds_a_tips_whole_share(stage: Stage) -> None:
    """Shares overlap where branches do; the totals count each turn once."""
    await stage.append(user("1234", "a", time="2026-01-01T00:00:00Z"), user("12", "b"))
    await stage.append(user("123", "c"), after="a")
    found = await stage.owed()
    rows = {row.tip: row for row in found.tips}
    assert (found.turns, found.tokens) == (3, 9)
    assert (rows["b"].n, rows["b"].tokens, rows["b"].turns) == (2, 6, ["a", "b"])
    assert (rows["c"].n, rows["c"].tokens, rows["c"].turns) == (2, 7, ["a", "c"])
    assert (rows["b"].head, rows["c"].head) == (False, True)
    assert rows["b"].oldest == "2026-01-01T00:00:00.000Z"
    assert {row.state for row in found.tips} == {"waiting"}


async def test_one_row_per_tip_and_state(stage: Stage) -> None:
    """Backlog, parked and waiting of one tip stand apart."""
    await stage.append("a", "b", "c", "d")
    await stage.park("a", reason="backlog")
    await stage.park("b", reason="failed")
    rows = {row.state: row for row in (await stage.owed()).tips}
    assert {state: row.turns for state, row in rows.items()} == {
        "backlog": ["a"],
        "parked": ["b"],
        "waiting": ["c", "d"],
    }
    assert rows["parked"].reason == "failed"
    assert rows["waiting"].reason is None
    assert (await stage.owed()).turns == 4


async def test_two_branches_on_one_tip_make_one_row(stage: Stage) -> None:
    """Of one session; another session's is a row of its own."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.rewind("a")
    await stage.checkout("b")
    await stage.rewind("a")
    assert [row.tip for row in (await stage.owed()).tips] == ["a"]
    await stage.open("t", forked_from=("s", "a"))
    found = await stage.owed()
    assert sorted((row.session, row.tip) for row in found.tips) == [("s", "a"), ("t", "a")]
    assert found.turns == 1


async def test_closed_archived_and_spawned_branches_owe(stage: Stage) -> None:
    """Live for memory is everything that was not taken back, merged away or forgotten."""
    await stage.append("a")
    await stage.archive()
    await stage.open("sub", caller=("s", "a"))
    await stage.append("task", "x", session="sub")
    assert await stage.owes() == {"a", "x"}


async def test_what_was_taken_back_or_deleted_owes_nothing(stage: Stage) -> None:
    """Also where it had been parked."""
    await stage.append("a", "b", "c")
    await stage.park("a", "b", reason="lost")
    await stage.rewind("a")
    assert await stage.owes() == {"a"}
    await stage.delete()
    assert await stage.owes() == set()
    assert (await stage.owed()).turns == 0


async def test_a_session_can_be_asked_alone(stage: Stage) -> None:
    """Only its live tips count."""
    await stage.append("a")
    await stage.append("x", session="t")
    assert [row.session for row in (await stage.owed("t")).tips] == ["t"]
    count = await stage.store.read(lambda db: owed_turns(db, 1, "t"))
    assert count == 1
    assert await stage.store.read(lambda db: owed_turns(db, None, "t")) == 0


async def test_only_branches_that_owe_are_looked_at(stage: Stage) -> None:
    """Also with a merge in the store, and with a turn parked far above."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.merge(["b", "c"], user("m", "m"))
    await stage.append("x", session="t")
    await stage.settle("a", "b", "c", "m")
    found = await stage.store.read(lambda db: owing_branches(db, 1))
    assert [live.session_name for live in found] == ["t"]
    await stage.park("c", reason="removed")
    found = await stage.store.read(lambda db: owing_branches(db, 1))
    assert [live.session_name for live in found] == ["s", "t"]
    tip = found[0].tip
    dues = await stage.store.read(lambda db: dues_of(db, 1, tip))
    assert dues.due == []
    assert [(reason, tokens) for _, reason, tokens in dues.held] == [("removed", 10)]


async def test_the_heads_branch_comes_first(stage: Stage) -> None:
    """Then the others by age."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.append("d", after="a")
    await stage.checkout("c")
    found = await stage.store.read(lambda db: live_branches(db, "s"))
    assert stage.ids([live.tip for live in found]) == ["c", "b", "d"]
    assert [live.is_head for live in found] == [True, False, False]
