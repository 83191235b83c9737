"""What goes into which batch, by the marks and the shape of the conversation."""

from __future__ import annotations

import pytest

from memory.at_work import (
    assistant,
    at_work,
    user,
)
from turnmark_session_store.model import CallerRef
from turnmark_session_store.requests import Merge, Rewind

pytestmark = pytest.mark.anyio


async def test_settles_a_reply_that_was_asked_for_again() -> None:
    """Assistant's turns beside a sibling that a user went on from hold nothing of their own."""
    async with at_work() as work:
        await work.append("s", [user("fact u1", "u1"), assistant("fact a1", "a1")])
        await work.append("s", [assistant("fact a2", "a2"), user("fact u2", "u2")], after="u1")
        await work.flush(session="s")
        marks = await work.marks()
        assert marks["a1"] == ("nothing", "reply_retried")
        assert {one: marks[one][0] for one in ("u1", "a2", "u2")} == dict.fromkeys(
            ("u1", "a2", "u2"), "kept"
        )
        assert ["a1"] not in work.scribe.offered


@pytest.mark.parametrize(
    "case", ["no user below", "user in suffix", "sibling retired", "user sibling", "first is user"]
)
async def test_writes_an_assistants_suffix_that_is_no_retried_reply(case: str) -> None:
    """Each condition of the rule counts."""
    async with at_work() as work:
        await work.append("s", [user("fact u1", "u1")])
        first = [assistant("fact a1", "a1")]
        if case in ("user in suffix", "first is user"):
            first.insert(case == "user in suffix", user("fact v1", "v1"))
        await work.append("s", first)
        other = [assistant("fact a2", "a2")]
        if case not in ("no user below", "user sibling"):
            other.append(user("fact u2", "u2"))
        if case == "user sibling":
            other = [user("fact u2", "u2")]
        await work.append("s", other, after="u1")
        if case == "sibling retired":
            await work.store.rewind(Rewind(session="s", to="u1"))
        await work.flush()
        assert (await work.marks())["a1"][0] == "kept"


async def test_writes_a_spawns_suffix_of_assistants_turns() -> None:
    """A sub-agent's report has no sibling: it is written."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        spawn = assistant("fact x1", "x1", caller=CallerRef(session="s", turn="m1"))
        await work.append("s", [spawn], after=None)
        await work.flush()
        assert (await work.marks())["x1"][0] == "kept"


async def test_writes_a_merge_of_two_conversations_once() -> None:
    """Two roots joined by a merge are one conversation from then on."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.say("s", "n1", after=None)
        await work.store.merge(Merge(session="s", tips=["m1", "n1"], turn=user("fact j1", "j1")))
        await work.silence()
        await work.wait_written("m1", "n1", "j1")
        await work.quiet()
        assert sorted(work.scribe.offered_ids) == ["j1", "m1", "n1"]
        assert work.memory.worker.statistics()["batches_running"] == 0


async def test_a_reply_beside_one_that_was_replaced_is_written() -> None:
    """What was asked for again and then replaced stands no more: nobody went on beside this one."""
    async with at_work() as work:
        await work.append("s", [user("fact u1", "u1"), assistant("fact r1", "r1")])
        await work.append("s", [assistant("fact r2", "r2"), user("fact u2", "u2")], after="u1")
        again = assistant("fact r2 again", "r2~2", supersedes="r2")
        await work.append("s", [again], after="u1")
        await work.flush()
        assert {turn: found[0] for turn, found in (await work.marks()).items()} == dict.fromkeys(
            ["u1", "r1", "u2", "r2~2"], "kept"
        )
