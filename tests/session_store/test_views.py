"""What the store shows: turns, branches, sessions, refs, pages."""

from __future__ import annotations

from typing import Any

import pytest

from session_store.stage import Stage, user
from turnmark_events.errors import NotFound, Refused
from turnmark_session_store.paging import check_limit, cursor_of, position_of
from turnmark_session_store.requests import ListBranch, ListSessions
from turnmark_session_store.sessions import get_turn_anywhere
from turnmark_session_store.walks import live_tip_count

pytestmark = pytest.mark.anyio


async def test_a_branch_is_root_to_head_even_inside_a_branch(stage: Stage) -> None:
    """Oldest first; `tip` may be any turn."""
    await stage.append("a", "b", "c")
    await stage.checkout("b")
    assert await stage.path_to() == ["a", "b"]
    assert await stage.path_to(tip="c") == ["a", "b", "c"]
    await stage.open("empty")
    assert await stage.path_to("empty") == []
    with pytest.raises(NotFound):
        await stage.path_to(tip="nobody")


async def test_a_branch_comes_in_pages(stage: Stage) -> None:
    """Each page names the next; the last one none."""
    await stage.append(*[f"t{number}" for number in range(7)])
    found: list[str] = []
    cursor: str | None = None
    for _ in range(3):
        page = await stage.store.list_branch(ListBranch(session="s", limit=3, cursor=cursor))
        found += [turn.id for turn in page.turns]
        cursor = page.next
    assert cursor is None
    assert found == [f"t{number}" for number in range(7)]


async def test_a_turn_says_which_sessions_and_which_branch_reach_it(stage: Stage) -> None:
    """Its own session first; the branch is one of that session where there is one."""
    await stage.append("a", "b")
    await stage.open("t", forked_from=("s", "a"))
    await stage.append("x", session="t")
    first, _ = await stage.line("t")
    assert (first.session, first.sessions) == ("s", ["s", "t"])
    assert first.branch == (await stage.branches("s"))[0].branch
    await stage.rewind("a")
    (turn,) = (await stage.line(tip="b"))[1:]
    assert (turn.branch, turn.state, turn.recordable) == (None, "retired", False)


async def test_sessions_are_listed_last_updated_first(stage: Stage) -> None:
    """With tips, turns and what they owe; filtered and in pages."""
    workspace = await stage.workspace()
    await stage.append("a", "b", session="one")
    await stage.append("c", after="a", session="one")
    await stage.open("two", agent="codex", project="/p", title="二")
    await stage.append("x", session="two")
    await stage.settle("a", session="one")

    async def listed(**more: Any) -> list[str]:
        answer = await stage.store.list_sessions(ListSessions(**more), workspace)
        return [row.session for row in answer.sessions]

    assert await listed() == ["two", "one"]
    assert await listed(agent="codex") == ["two"]
    assert await listed(project="/p") == ["two"]
    assert await listed(agent="nobody") == []
    answer = await stage.store.list_sessions(ListSessions(limit=1), workspace)
    (two,) = answer.sessions
    assert (two.title, two.agent, two.head, two.tips, two.turns) == ("二", "codex", "x", 1, 1)
    rest = await stage.store.list_sessions(ListSessions(limit=1, cursor=answer.next), workspace)
    (one,) = rest.sessions
    assert (one.tips, one.turns, one.owed_turns, rest.next) == (2, 3, 2, None)


@pytest.mark.parametrize("cursor", ["x", "", "äöü", cursor_of(3)[:-2] + "!!"])
async def test_a_cursor_that_is_not_ours_is_refused(stage: Stage, cursor: str) -> None:
    """It says to begin again."""
    await stage.append("a")
    with pytest.raises(Refused, match="begin again"):
        await stage.store.list_branch(ListBranch(session="s", cursor=cursor))


def test_limits_and_cursors() -> None:
    """One to a thousand; a cursor comes back as the position."""
    assert check_limit(1) == 1
    assert check_limit(1_000) == 1_000
    for limit in (0, -1, 1_001):
        with pytest.raises(Refused):
            check_limit(limit)
    assert position_of(None) == 0
    assert position_of(cursor_of(77)) == 77


async def test_a_ref_is_an_id_or_a_session_and_an_id(stage: Stage) -> None:
    """A bare id in several namespaces is refused with the candidates; ids may hold a hash sign."""
    await stage.append("a", "only", session="one")
    await stage.append("a", "p#q", session="two")

    async def key(ref: str) -> int:
        return await stage.store.read(lambda db: get_turn_anywhere(db, ref))

    assert await key("only") == stage.key("only", "one")
    assert await key("one#a") == stage.key("a", "one")
    assert await key("two#p#q") == stage.key("p#q", "two")
    assert await key("p#q") == stage.key("p#q", "two")
    with pytest.raises(Refused) as caught:
        await key("a")
    assert caught.value.facts["candidates"] == ["one#a", "two#a"]
    for ref in ("nobody", "one#nobody", "#", "nobody#a"):
        with pytest.raises(NotFound):
            await key(ref)


async def test_live_tips_are_counted_once(stage: Stage) -> None:
    """Two sessions on one tip are one."""
    await stage.append("a")
    await stage.open("t", forked_from=("s", "a"))
    assert await stage.store.read(live_tip_count) == 1
    await stage.append(user("x", "x"), session="t")
    assert await stage.store.read(live_tip_count) == 2
