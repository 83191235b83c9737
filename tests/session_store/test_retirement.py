"""Retiring and restoring: what nobody reaches, and what is owed when it comes back."""

from __future__ import annotations

import pytest

from session_store.stage import Stage, user
from turnmark_session_store.retirement import restore_path, retire, retire_unreached

pytestmark = pytest.mark.anyio


async def test_retires_what_only_the_old_tip_reached(stage: Stage) -> None:
    """A branch of another session below counts, wherever it leaves the line."""
    await stage.append("a", "b", "c", "d", "e")
    await stage.open("t", forked_from=("s", "c"))
    await stage.append("x", session="t")
    await stage.rewind("a")
    assert stage.retired() == {"d", "e"}


async def test_retiring_costs_nothing_twice(stage: Stage) -> None:
    """Only what was not retired before is counted."""
    await stage.append("a", "b")
    assert await stage.write(lambda tx: retire(tx, [2])) == [2]
    assert await stage.write(lambda tx: retire(tx, [2])) == []
    assert await stage.write(lambda tx: retire_unreached(tx, [2], [1])) == []


async def test_restores_the_path_and_no_more(stage: Stage) -> None:
    """Ancestors over all parents as far as they are retired; siblings stay."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.append("d", after="a")
    await stage.checkout("b")
    await stage.merge(["b", "c"], user("m", "m"))
    await stage.rewind("a")
    assert stage.retired() == {"b", "c", "m"}
    assert stage.ids(await stage.write(lambda tx: restore_path(tx, 5))) == ["b", "c", "m"]
    assert await stage.write(lambda tx: restore_path(tx, 5)) == []


async def test_a_forgotten_turn_in_between_is_not_in_the_way(stage: Stage) -> None:
    """What stands above it comes back when something is appended below it."""
    await stage.append("a", "b")
    await stage.open("t", forked_from=("s", "b"))
    await stage.append("x", session="t")
    await stage.delete("t")
    await stage.rewind("a")
    assert stage.retired() == {"b"}
    await stage.append("y", after="x")
    assert stage.retired() == set()
    assert await stage.path_to() == ["a", "b", "x", "y"]


async def test_every_workspace_owes_what_came_back(stage: Stage) -> None:
    """Each by its own marks; one that never knew the turn simply owes it."""
    await stage.workspace("w-1")
    await stage.workspace("w-2")
    await stage.append("a", "b")
    await stage.settle("a", "b", workspace=1)
    await stage.rewind("a")
    await stage.append("b")
    assert stage.marks(1)["b"] == ("parked", "restored")
    assert stage.marks(2) == {}
    assert await stage.owes(workspace=1) == {"b"}
    assert await stage.owes(workspace=2) == {"a", "b"}


async def test_a_long_path_comes_back_at_once(stage: Stage) -> None:
    """Three thousand turns: the walk is done once, not once per turn."""
    await stage.workspace()
    ids = [f"t{number}" for number in range(3_000)]
    await stage.append("root", *ids)
    await stage.settle("root", *ids)
    await stage.rewind("root")
    assert (await stage.append(*ids)).new == 0
    assert len(await stage.owes("waiting")) == 3_000


async def test_what_comes_back_above_a_settled_turn_owes_by_a_mark(stage: Stage) -> None:
    """Replaced before it was written it was in nobody's way; now it needs a mark of its own."""
    await stage.workspace()
    await stage.append("a", "b", "c")
    await stage.open("t", forked_from=("s", "c"))
    await stage.append(user("b again", "b~2", supersedes="b"), after="a")
    assert await stage.settle("a", "b", "c") == ["a", "c"]
    await stage.checkout("b", restore=True)
    assert stage.marks() == {
        "a": ("kept", None),
        "b": ("parked", "restored"),
        "c": ("kept", None),
    }
    assert await stage.owes("waiting") == {"b", "b~2"}
