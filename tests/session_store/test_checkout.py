"""Moving the head and taking back: checkout, rewind, merge, archive, close, delete."""

from __future__ import annotations

import pytest

from session_store.stage import Stage, assistant, user
from turnmark_events.errors import Conflict, Forgotten, NotFound, Refused, Stale
from turnmark_session_store.requests import SessionRef

pytestmark = pytest.mark.anyio


async def test_checkout_moves_the_head_alone(stage: Stage) -> None:
    """Tip unchanged: one row with old = new."""
    await stage.append("a", "b", "c")
    before = stage.seq
    assert (await stage.checkout("a")).head == "a"
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new, said.head_old, said.head_new) == (
        "checkout",
        "c",
        "c",
        "c",
        "a",
    )
    assert await stage.tips() == ["c"]


async def test_checkout_of_the_head_says_nothing(stage: Stage) -> None:
    """What changes nothing announces nothing."""
    await stage.append("a")
    assert await stage.said(stage.checkout("a")) == []


async def test_checkout_expects(stage: Stage) -> None:
    """A head that moved meanwhile is stale, and nothing moves."""
    await stage.append("a", "b")
    with pytest.raises(Stale) as caught:
        await stage.checkout("a", expect="a")
    assert caught.value.facts["head"] == "b"
    assert (await stage.checkout("a", expect="b")).head == "a"


async def test_checkout_wants_a_live_turn_of_the_session(stage: Stage) -> None:
    """Unknown, taken back, forgotten or another session's: each says what to do."""
    await stage.append("a", "b", "c")
    await stage.open("t", forked_from=("s", "b"))
    with pytest.raises(NotFound, match="no turn 'x'"):
        await stage.checkout("x")
    with pytest.raises(NotFound, match="no branch of session 't' reaches"):
        await stage.checkout("c", "t")
    await stage.rewind("b")
    with pytest.raises(Refused, match="restore: true"):
        await stage.checkout("c")
    await stage.append("x", session="other")
    await stage.delete("other")
    await stage.append("x", "y", session="other")
    with pytest.raises(Forgotten):
        await stage.checkout("x", "other")
    with pytest.raises(Forgotten):
        await stage.rewind("x", "other")


async def test_restore_makes_a_branch(stage: Stage) -> None:
    """Null → turn; the branch that was rewound stays where it is."""
    await stage.append("a", "b", "c")
    await stage.rewind("a")
    before = stage.seq
    await stage.checkout("b", restore=True)
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new, said.head_new) == ("restore", None, "b", "b")
    assert await stage.tips() == ["a", "b"]
    assert stage.retired() == {"c"}


async def test_rewind_retires_what_came_after(stage: Stage) -> None:
    """Tip → X, head → X; the count is of what no live branch reaches now."""
    main = (await stage.append("a", "b", "c", "d")).branch
    before = stage.seq
    answer = await stage.rewind("b")
    (said,) = stage.moves(before)
    assert (said.cause, said.branch, said.old, said.new) == ("rewind", main, "d", "b")
    assert (said.head_old, said.head_new) == ("d", "b")
    assert (answer.head, answer.retired) == ("b", 2)
    assert stage.retired() == {"c", "d"}
    assert [turn.state for turn in await stage.line(tip="d")] == [
        "live",
        "live",
        "retired",
        "retired",
    ]


async def test_rewind_inside_a_branch_takes_its_tip_too(stage: Stage) -> None:
    """The head stood in the middle: the whole branch goes back."""
    await stage.append("a", "b", "c", "d")
    await stage.checkout("c")
    assert (await stage.rewind("b")).retired == 2
    assert await stage.tips() == ["b"]


async def test_rewind_leaves_what_another_branch_reaches(stage: Stage) -> None:
    """Of the same session, of a fork, or through a merge."""
    await stage.append("a", "b", "c")
    await stage.open("t", forked_from=("s", "b"))
    assert (await stage.rewind("a")).retired == 1
    assert stage.retired() == {"c"}
    await stage.delete("t")
    assert stage.retired() == {"c"}
    assert "b" not in await stage.path_to()


async def test_rewind_goes_back_along_the_heads_own_line(stage: Stage) -> None:
    """A sibling, a later turn, one that was replaced: refused, nothing moves."""
    await stage.append("a", "b")
    await stage.append("x", after="a")
    for to in ("b", "nobody"):
        with pytest.raises((Refused, NotFound)):
            await stage.rewind(to)
    await stage.append("c", after="x")
    await stage.append(user("new x", "x~2", supersedes="x"))
    await stage.checkout("c")
    with pytest.raises(Refused, match="taken back"):
        await stage.rewind("x")
    await stage.open("empty")
    await stage.append("z", session="empty", move_head=False)
    with pytest.raises(Refused, match="no head"):
        await stage.rewind("z", "empty")


async def test_rewind_expects(stage: Stage) -> None:
    """A head that moved meanwhile is stale; nothing is retired."""
    await stage.append("a", "b", "c")
    with pytest.raises(Stale):
        await stage.rewind("a", expect="b")
    assert stage.retired() == set()
    assert (await stage.rewind("a", expect="c")).retired == 2


async def test_rewind_to_the_tip_says_nothing(stage: Stage) -> None:
    """Nothing came after."""
    await stage.append("a", "b")
    before = stage.seq
    assert (await stage.rewind("b")).retired == 0
    assert stage.seq == before


async def test_rewind_over_a_merge_retires_both_sides(stage: Stage) -> None:
    """A target on either side is an ancestor; what only the merge reached is retired."""
    await stage.append("a", "b")
    await stage.append("x", "y", after="a")
    await stage.merge(["y", "b"], user("m", "m"))
    assert (await stage.rewind("x")).retired == 3
    assert stage.retired() == {"m", "y", "b"}


async def test_a_second_prompt_is_a_fork_and_retires_nothing(stage: Stage) -> None:
    """Retirement is never inferred from the shape of the tree."""
    await stage.append("a", "b", "c")
    await stage.append("b2", after="a")
    assert stage.retired() == set()
    assert await stage.tips() == ["c", "b2"]


async def test_merge_ends_all_but_the_heads_branch(stage: Stage) -> None:
    """Each tip goes to the merge turn, a row each, with the same heads."""
    first = (await stage.append("a", "b")).branch
    second = (await stage.append("c", after="a")).branch
    third = (await stage.append("d", after="a")).branch
    await stage.checkout("c")
    before = stage.seq
    answer = await stage.merge(["b", "c", "d"], assistant("合并", "m"))
    assert (answer.turn, answer.head) == ("m", "m")
    said = {move.branch: (move.old, move.new) for move in stage.moves(before)}
    assert said == {first: ("b", "m"), second: ("c", "m"), third: ("d", "m")}
    assert {(move.head_old, move.head_new) for move in stage.moves(before)} == {("c", "m")}
    states = {row.branch: row.state for row in await stage.branches()}
    assert states == {first: "merged", second: "live", third: "merged"}
    merged = (await stage.line())[-1]
    assert (merged.predecessor, merged.merged) == ("c", ["b", "d"])
    await stage.append("e")
    assert (await stage.branches())[1].tip == "e"


async def test_merge_goes_on_with_the_first_tip_where_the_head_is_elsewhere(stage: Stage) -> None:
    """The head moves to the merge turn all the same."""
    first = (await stage.append("a", "b")).branch
    await stage.append("c", after="a")
    await stage.append("z", after=None)
    await stage.merge(["b", "c"], user("m", "m"))
    states = {row.branch: row.state for row in await stage.branches()}
    assert states[first] == "live"
    assert await stage.head() == "m"


async def test_merge_wants_two_live_tips(stage: Stage) -> None:
    """One, the same twice, an inner turn, an unknown one, a partial turn."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    for tips in (["b"], ["b", "b"], ["a", "b"]):
        with pytest.raises(Refused):
            await stage.merge(tips, user("m", "m"))
    with pytest.raises(NotFound):
        await stage.merge(["b", "nobody"], user("m", "m"))
    with pytest.raises(Refused, match="partial"):
        await stage.merge(["b", "c"], user("m", "m", kind="partial"))
    assert stage.sql("SELECT count(*) FROM turn") == [(3,)]


async def test_merging_again_after_a_rewind_brings_the_merge_back(stage: Stage) -> None:
    """The same turn with the same parents is restored; with others it is a conflict."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.merge(["b", "c"], user("m", "m"))
    await stage.rewind("c")
    await stage.checkout("b", restore=True)
    await stage.append("d", after="a")
    with pytest.raises(Conflict, match="joins other turns"):
        await stage.merge(["c", "d"], user("m", "m"))
    await stage.merge(["c", "b"], user("m", "m"))
    assert stage.retired() == set()
    assert sorted(filter(None, await stage.tips())) == ["d", "m"]


async def test_two_merges_without_ids_are_two_turns(stage: Stage) -> None:
    """The other parents are part of the hash."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    one = (await stage.merge(["b", "c"], assistant("ok"))).turn
    await stage.rewind("b")
    await stage.append("d", after="a")
    await stage.checkout("b")
    two = (await stage.merge(["b", "d"], assistant("ok"))).turn
    assert one != two


async def test_archive_says_one_row_with_old_equal_new(stage: Stage) -> None:
    """Nothing ends, nothing is re-armed; the next append shows the branch again."""
    main = (await stage.append("a")).branch
    other = (await stage.append("b", after=None)).branch
    idle = {row.branch: row.idle_at for row in await stage.branches()}
    before = stage.seq
    await stage.archive(main)
    (said,) = stage.moves(before)
    assert (said.cause, said.branch, said.old, said.new) == ("archive", main, "a", "a")
    assert (said.head_old, said.head_new) == ("b", "b")
    assert {row.branch: row.state for row in await stage.branches()} == {
        main: "archived",
        other: "live",
    }
    assert {row.branch: row.idle_at for row in await stage.branches()} == idle
    await stage.workspace()
    assert await stage.owes() == {"a", "b"}
    await stage.append("c", after="a")
    assert {row.state for row in await stage.branches()} == {"live"}


async def test_archive_without_a_branch_hides_all(stage: Stage) -> None:
    """An unknown branch or session is not found."""
    await stage.append("a")
    await stage.append("b", after=None)
    await stage.archive()
    assert {row.state for row in await stage.branches()} == {"archived"}
    with pytest.raises(NotFound, match="no live branch 'br-nobody'"):
        await stage.archive("br-nobody")
    with pytest.raises(NotFound, match="no session"):
        await stage.archive(session="nobody")


async def test_deleting_ends_tips_with_null(stage: Stage) -> None:
    """A row per branch, the head gone on all of them; the name is free again."""
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.open(title="Dana")
    before = stage.seq
    await stage.delete()
    said = [(move.cause, move.old, move.new) for move in stage.moves(before)]
    assert said == [("delete", "b", None), ("delete", "c", None)]
    assert {(move.head_old, move.head_new) for move in stage.moves(before)} == {("c", None)}
    with pytest.raises(NotFound):
        await stage.show()
    assert (await stage.append("n")).head == "n"
    assert (await stage.show()).title is None


async def test_a_session_opened_anew_begins_anew(stage: Stage) -> None:
    """Nothing of the deleted one of that name is left: no caller, no fork point, no namespace."""
    await stage.append("a", session="origin")
    await stage.open(forked_from=("origin", "a"), caller=("origin", "a"))
    await stage.append("b")
    await stage.delete()
    await stage.append("x")
    shown = await stage.show()
    assert (shown.namespace, shown.head) == ("family:s", "x")
    assert (await stage.line())[0].caller is None


async def test_deleting_erases_only_what_no_other_session_reaches(stage: Stage) -> None:
    """The shared trunk stays for the fork, words and all; retired turns of the session go."""
    await stage.append("a", "b", "c", "r")
    await stage.rewind("c")
    await stage.open("t", forked_from=("s", "b"))
    answer = await stage.delete("s")
    assert set(stage.ids(answer.turns)) == {"c", "r"}
    words = stage.sql("SELECT key FROM turn JOIN turn_words ON turn = id ORDER BY id")
    assert words == [("a",), ("b",)]
    assert await stage.path_to("t") == ["a", "b"]
    rest = await stage.delete("t")
    assert set(stage.ids(rest.turns)) == {"a", "b"}
    assert stage.sql("SELECT count(*) FROM turn_words") == [(0,)]
    assert stage.sql("SELECT count(*) FROM turn") == [(4,)]


async def test_closing_moves_nothing(stage: Stage) -> None:
    """Its branches stay live for memory."""
    await stage.append("a")
    before = stage.seq
    await stage.store.close_session(SessionRef(session="s"))
    assert stage.seq == before
    assert (await stage.show()).closed
    assert await stage.tips() == ["a"]


async def test_forking_a_session_takes_a_branch_and_the_head(stage: Stage) -> None:
    """Null → that turn; without a turn it is the other's head."""
    await stage.append("a", "b", "c")
    before = stage.seq
    opened = await stage.open("t", forked_from=("s", "b"))
    assert (opened.head, opened.created) == ("b", True)
    (said,) = stage.moves(before)
    assert (said.cause, said.old, said.new, said.head_old, said.head_new) == (
        "fork",
        None,
        "b",
        None,
        "b",
    )
    assert (await stage.open("u", forked_from=("s", None))).head == "c"
    assert (await stage.show("t")).namespace == "family:s"
    assert (await stage.open("t", forked_from=("s", "b"))).created is False
    assert await stage.tips("t") == ["b"]


async def test_a_session_that_was_opened_before_can_still_be_forked(stage: Stage) -> None:
    """Until its first turn; after that another namespace is a conflict."""
    await stage.append("a")
    await stage.open("t")
    assert (await stage.open("t", forked_from=("s", "a"))).head == "a"
    await stage.append("x", session="u")
    with pytest.raises(Conflict, match="already has turns"):
        await stage.open("u", forked_from=("s", "a"))


async def test_forking_from_what_is_not_there_is_not_found(stage: Stage) -> None:
    """Unknown sessions and turns, sessions without a head; and what was taken back is refused."""
    await stage.append("a", "b")
    await stage.open("empty")
    for point in (("nobody", None), ("s", "x"), ("empty", None)):
        with pytest.raises(NotFound):
            await stage.open("t", forked_from=point)
    await stage.rewind("a")
    with pytest.raises(Refused, match="taken back"):
        await stage.open("t", forked_from=("s", "b"))
    with pytest.raises(Refused, match="from itself"):
        await stage.open("s", forked_from=("s", "a"))
