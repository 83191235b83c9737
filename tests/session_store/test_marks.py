"""Marks: closed under ancestors, replaced and never removed, and no activity."""

from __future__ import annotations

import pytest

from session_store.stage import Stage, user
from turnmark_events.errors import Refused
from turnmark_session_store.marks import (
    ParkReason,
    offer_again,
    park_settled_after,
    workspace_key,
    workspace_revision,
)
from turnmark_session_store.model import TurnIn

pytestmark = pytest.mark.anyio

ALL_REASONS: tuple[ParkReason, ...] = (
    "failed",
    "lost",
    "restored",
    "rewrite",
    "backlog",
    "removed",
)


async def test_settles_in_topological_order(stage: Stage) -> None:
    """However the batch was listed, and each turn once."""
    await stage.workspace()
    await stage.append("a", "b", "c")
    assert await stage.settle("c", "a", "b", "a") == ["a", "b", "c"]


async def test_refuses_a_turn_whose_ancestor_is_not_settled(stage: Stage) -> None:
    """Directly above, further up past what is not recordable, or a gap inside of the batch."""
    await stage.workspace()
    tool = TurnIn(role="tool", kind="tool", text="ls", id="t")
    await stage.append("a", tool, "b", "c")
    for batch in (("b",), ("c",), ("a", "c")):
        with pytest.raises(Refused, match="comes before the turns of this batch") as caught:
            await stage.settle(*batch)
        assert caught.value.facts["turn"] in ("a", "b")
    assert stage.marks() == {}
    assert await stage.settle("a", "t", "b") == ["a", "b"]


async def test_refuses_over_every_parent_of_a_merge(stage: Stage) -> None:
    """The line that was merged in counts as well as that which goes on."""
    await stage.workspace()
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.merge(["b", "c"], user("m", "m"))
    for line in ("b", "c"):
        with pytest.raises(Refused):
            await stage.settle("a", line, "m")
    assert await stage.settle("a", "b", "c", "m") == ["a", "b", "c", "m"]


async def test_leaves_out_what_was_taken_back(stage: Stage) -> None:
    """A retired turn and a forgotten one are never settled and never in the way."""
    await stage.workspace()
    await stage.append("a", "b", "c", "d")
    await stage.append(user("b again", "b~2", supersedes="b"))
    assert await stage.settle("a", "b", "c") == ["a", "c"]
    await stage.open("t", forked_from=("s", "a"))
    await stage.append("x", session="t")
    await stage.delete("s")
    assert await stage.settle("a", "d", "x", session="t") == ["a", "x"]


async def test_a_mark_is_replaced_and_never_removed(stage: Stage) -> None:
    """Outcome and reason change; the turn stays marked."""
    await stage.workspace()
    await stage.append("a")
    await stage.settle("a")
    for reason in ALL_REASONS:
        await stage.park("a", reason=reason)
        assert stage.marks() == {"a": ("parked", reason)}
    await stage.settle("a", outcome="nothing")
    assert stage.marks() == {"a": ("nothing", None)}


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("lost", "waiting"),
        ("restored", "waiting"),
        ("rewrite", "waiting"),
        ("failed", "parked"),
        ("backlog", "backlog"),
        ("removed", "removed"),
    ],
)
async def test_a_parked_turn_is_owed_in_its_state(
    stage: Stage, reason: ParkReason, state: str
) -> None:
    """The walk stops at it all the same, and what comes after is owed as usual."""
    await stage.workspace()
    await stage.append("a", "b")
    await stage.settle("a")
    await stage.park("a", reason=reason)
    assert "a" in await stage.owes(state)
    assert "b" in await stage.owes("waiting")
    assert await stage.settle("b") == ["b"]
    assert await stage.owes() == {"a"}


async def test_parking_is_closed_too(stage: Stage) -> None:
    """A parked turn stops the walk, so nothing above it may be unsettled."""
    await stage.workspace()
    await stage.append("a", "b")
    with pytest.raises(Refused):
        await stage.park("b", reason="failed")
    await stage.park("a", "b", reason="backlog")


async def test_marking_is_not_activity(stage: Stage) -> None:
    """No head, no `updated_at`, no idle deadline, no move (law 8)."""
    await stage.workspace()
    await stage.append("a", "b")
    tables = "SELECT * FROM branch", "SELECT * FROM session", "SELECT * FROM event"
    before = [stage.sql(query) for query in tables]
    await stage.settle("a", "b")
    await stage.park("a", reason="rewrite")
    assert [stage.sql(query) for query in tables] == before
    assert len(stage.events) == 1


async def test_workspaces_have_marks_of_their_own(stage: Stage) -> None:
    """One settled, the other owes all."""
    one, two = await stage.workspace("w-1"), await stage.workspace("w-2")
    await stage.append("a")
    await stage.settle("a", workspace=one)
    assert await stage.owes(workspace=one) == set()
    assert await stage.owes(workspace=two) == {"a"}
    assert await stage.workspace("w-1") == one
    assert await stage.write(lambda tx: workspace_revision(tx.db, workspace_key(tx, "w-2"))) == 0


async def test_a_workspace_that_went_back_offers_the_turns_again(stage: Stage) -> None:
    """Marks that rest on a later revision become `lost`; others stay."""
    await stage.workspace()
    await stage.append("a", "b")
    await stage.settle("a")
    assert await stage.write(lambda tx: park_settled_after(tx, 1, 1, "lost")) == 0
    assert await stage.write(lambda tx: park_settled_after(tx, 1, 0, "lost")) == 1
    assert await stage.owes("waiting") == {"a", "b"}


async def test_offers_again_only_what_was_settled(stage: Stage) -> None:
    """What waits for another reason goes on waiting for that."""
    await stage.workspace()
    await stage.append("a", "b", "c")
    await stage.settle("a")
    await stage.park("b", reason="removed")
    keys = [stage.key(one) for one in ("a", "b", "c")]
    assert await stage.write(lambda tx: offer_again(tx, 1, keys, "rewrite")) == 1
    assert stage.marks() == {"a": ("parked", "rewrite"), "b": ("parked", "removed")}
