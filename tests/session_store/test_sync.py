"""Syncing a whole message array: matched, forked, idempotent, and one DAG whichever way it came."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_store.stage import Stage, assistant, scratch, turns, user
from turnmark_events.errors import Conflict, Refused
from turnmark_session_store.model import CallerRef, TurnIn

pytestmark = pytest.mark.anyio


def system(words: str) -> TurnIn:
    """Returns a system row."""
    return TurnIn(role="system", text=words)


async def test_the_first_array_is_appended(stage: Stage) -> None:
    """The head is the array's last turn; nothing forked."""
    answer = await stage.sync(user("hi"), assistant("hello"))
    assert (answer.new, answer.forked_after) == (2, None)
    assert answer.head == await stage.head()
    assert [turn.text for turn in await stage.line()] == ["hi", "hello"]


async def test_an_array_that_grew_continues_the_branch(stage: Stage) -> None:
    """Only what is new is appended."""
    await stage.sync(user("hi"), assistant("hello"))
    answer = await stage.sync(user("hi"), assistant("hello"), user("more"))
    assert (answer.new, answer.forked_after) == (1, None)
    assert await stage.tips() == [answer.head]


async def test_the_same_array_again_changes_nothing(stage: Stage) -> None:
    """No turn, no event."""
    first = await stage.sync(user("hi"), assistant("hello"))
    before = stage.seq
    again = await stage.sync(user("hi"), assistant("hello"))
    assert (again.head, again.new, again.forked_after) == (first.head, 0, None)
    assert stage.seq == before


async def test_a_prefix_is_only_a_checkout(stage: Stage) -> None:
    """The head goes back, the branch stays where it is, nothing is retired."""
    full = await stage.sync(user("hi"), assistant("hello"), user("more"))
    short = await stage.sync(user("hi"), assistant("hello"))
    assert (short.new, short.forked_after) == (0, None)
    assert await stage.head() == short.head
    assert await stage.tips() == [full.head]
    assert stage.retired() == set()
    (move,) = stage.moves(stage.seq - 1)
    assert (move.cause, move.old, move.new, move.head_new) == (
        "checkout",
        full.head,
        full.head,
        short.head,
    )


async def test_an_array_that_departs_forks_after_the_last_match(stage: Stage) -> None:
    """Both branches stay live."""
    await stage.sync(*turns("a", "b", "c"))
    answer = await stage.sync(*turns("a", "x"))
    assert (answer.new, answer.forked_after, answer.head) == (1, "a", "x")
    assert await stage.tips() == ["c", "x"]
    assert stage.retired() == set()


async def test_an_array_with_another_beginning_is_a_new_root(stage: Stage) -> None:
    """Nothing matched, nothing forked."""
    await stage.sync(*turns("a", "b"))
    answer = await stage.sync(*turns("x", "y"))
    assert (answer.new, answer.forked_after, answer.head) == (2, None, "y")


async def test_an_empty_array_is_refused(stage: Stage) -> None:
    """A whole array has at least one message."""
    with pytest.raises(Refused, match="messages is empty"):
        await stage.sync()


async def test_messages_match_by_id_or_by_content(stage: Stage) -> None:
    """An id of its own decides; without one on either side the content does."""
    await stage.sync(user("same", "a"), user("same", "b"))
    assert (await stage.sync(user("same"), user("same"))).new == 0
    answer = await stage.sync(user("same", "a"), user("same", "b2"))
    assert (answer.new, answer.forked_after) == (1, "a")
    await stage.sync(user("one"), user("two"), session="t")
    named = await stage.sync(user("one", "id-1"), user("two", "id-2"), session="t")
    assert (named.new, named.head) == (0, await stage.head("t"))


async def test_an_id_with_other_words_is_a_conflict(stage: Stage) -> None:
    """It is neither the turn that is there nor a new one."""
    await stage.sync(user("one", "a"), user("two", "b"))
    with pytest.raises(Conflict):
        await stage.sync(user("two", "b"), user("one", "c"), user("changed", "a"))


async def test_a_changed_system_prompt_is_skipped(stage: Stage) -> None:
    """In the array, in the store, in both; the array's own is not stored before a match."""
    first = await stage.sync(system("you are A"), user("hi"), assistant("hello"))
    for array in (
        [user("hi"), assistant("hello")],
        [system("you are B"), user("hi"), assistant("hello")],
        [system("you are B"), system("again"), user("hi"), assistant("hello")],
    ):
        answer = await stage.sync(*array)
        assert (answer.head, answer.new) == (first.head, 0)
    grown = await stage.sync(system("you are C"), user("hi"), assistant("hello"), user("on"))
    assert (grown.new, grown.forked_after) == (1, None)


async def test_a_system_row_in_the_middle_is_skipped_on_either_side(stage: Stage) -> None:
    """A reminder that comes and goes makes no fork."""
    first = await stage.sync(user("hi"), system("reminder"), assistant("hello"))
    assert (await stage.sync(user("hi"), assistant("hello"))).head == first.head
    grown = await stage.sync(user("hi"), assistant("hello"), system("other"), user("on"))
    assert grown.new == 2
    assert (await stage.sync(user("hi"), assistant("hello"), user("on"))).new == 0


async def test_the_line_of_the_head_is_preferred(stage: Stage) -> None:
    """Where two siblings match by content, the one below the head is meant."""
    await stage.append("root", user("same", "one"))
    await stage.append(user("same", "two"), after="root")
    same = [user("words of root"), user("same")]
    assert (await stage.sync(*same)).head == "two"
    await stage.checkout("one")
    assert (await stage.sync(*same)).head == "one"
    await stage.checkout("root")
    await stage.checkout("two")
    await stage.rewind("root")
    assert (await stage.sync(*same)).head == "one"


async def test_syncing_what_was_taken_back_restores_it(stage: Stage) -> None:
    """It is a client's act: it lies in the array, so it is live."""
    await stage.sync(*turns("a", "b", "c"))
    await stage.rewind("a")
    answer = await stage.sync(*turns("a", "b"))
    assert (answer.head, answer.new) == ("b", 0)
    assert stage.retired() == {"c"}
    await stage.sync(*turns("a", "b", "c", "d"))
    assert stage.retired() == set()


async def test_syncing_takes_the_head_of_a_spawned_session_too(stage: Stage) -> None:
    """The first root has the session's caller; the same array finds it again."""
    await stage.append("a")
    await stage.open("sub", caller=("s", "a"))
    await stage.sync(user("task"), assistant("ok"), session="sub")
    grown = await stage.sync(user("task"), assistant("ok"), user("more"), session="sub")
    assert grown.new == 1
    assert len(await stage.path_to("sub")) == 3
    caller = CallerRef(session="s", turn="a")
    for _ in range(2):
        answer = await stage.sync(user("side", caller=caller), assistant("ok"))
    assert answer.head == await stage.head()
    assert stage.sql("SELECT count(*) FROM turn") == [(6,)]


async def test_a_fork_syncs_from_the_root_of_the_family(stage: Stage) -> None:
    """The forked session's array begins with the turns it was forked from."""
    await stage.append("a", "b", "c")
    await stage.open("t", forked_from=("s", "b"))
    answer = await stage.sync(*turns("a", "b", "x"), session="t")
    assert (answer.new, answer.head) == (1, "x")
    assert await stage.tips("t") == ["x"]
    assert (await stage.sync(*turns("a", "b", "c"), session="t")).new == 0
    assert await stage.tips("t") == ["x", "c"]
    assert await stage.tips("s") == ["c"]


async def test_a_key_replays_a_sync(stage: Stage) -> None:
    """The first answer again; with other messages a conflict."""
    first = await stage.sync(*turns("a", "b"), key="k")
    await stage.append("c")
    again = await stage.sync(*turns("a", "b"), key="k")
    assert (again.head, again.new) == (first.head, 0)
    assert await stage.head() == "c"
    with pytest.raises(Conflict):
        await stage.sync(*turns("a"), key="k")


async def test_a_partial_message_is_no_turn(stage: Stage) -> None:
    """It is kept for display; the final one takes its place."""
    await stage.sync(user("hi"), assistant("hel", "p", kind="partial"))
    assert stage.sql("SELECT count(*) FROM turn") == [(1,)]
    assert stage.sql("SELECT id FROM partial_turn") == [("p",)]
    await stage.sync(user("hi"), assistant("hello", "p"))
    assert stage.sql("SELECT count(*) FROM partial_turn") == [(0,)]


_arrays = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=6)


def _messages(words: list[str]) -> list[TurnIn]:
    return [(user if position % 2 == 0 else assistant)(word) for position, word in enumerate(words)]


@given(arrays=_arrays)
@settings(max_examples=40, deadline=None)
async def test_synced_appended_and_imported_make_one_dag(arrays: list[list[str]]) -> None:
    """Whole arrays, turn by turn, or the export of either: the same ids and the same edges."""
    with scratch() as place:
        async with (
            Stage(place / "a.db") as synced,
            Stage(place / "b.db") as appended,
            Stage(place / "c.db") as imported,
        ):
            for array in arrays:
                await synced.sync(*_messages(array))
                after: str | None = None
                for message in _messages(array):
                    after = (await appended.append(message, after=after)).turns[0]
            await imported.bring(await synced.export())
            edges = "SELECT t.key, p.key FROM turn t LEFT JOIN turn p ON p.id = t.predecessor"
            expected = sorted(synced.sql(edges), key=str)
            assert sorted(appended.sql(edges), key=str) == expected
            assert sorted(imported.sql(edges), key=str) == expected
            assert await synced.head() == await appended.head() == await imported.head()
