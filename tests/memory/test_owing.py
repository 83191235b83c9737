"""What is owed, as people and the worker see it."""

from __future__ import annotations

import pytest

from memory.at_work import Hold, Poisoned, at_work, numbered
from turnmark_events.errors import NotFound, Refused
from turnmark_memory.requests import OwedRequest

pytestmark = pytest.mark.anyio


async def test_counts_each_turn_once_over_tips_that_share_it() -> None:
    """Rows hold each tip's whole share; the totals hold each turn once, over all pages."""
    async with at_work() as work:
        await work.say("s", *numbered("m", 3))
        await work.say("s", "a1", after="m002")
        first = await work.memory.owed(OwedRequest(limit=1, ids=True))
        assert (first.turns, first.tokens) == (4, 8)
        assert first.tips[0].turns == ["m001", "m002", "a1"]
        assert first.tips[0].head
        second = await work.memory.owed(OwedRequest(limit=1, ids=True, cursor=first.next))
        assert second.tips[0].turns == numbered("m", 3)
        assert (second.turns, second.next) == (4, None)


async def test_says_what_is_being_written_failing_and_parked() -> None:
    """Waiting, writing, failing and parked are told apart, the reason with them."""
    async with at_work() as work:
        await work.say("s", "m1")
        work.scribe.before = hold = Hold()
        work.scribe.answer = Poisoned("m1")
        assert [tip.state for tip in (await work.memory.owed(OwedRequest())).tips] == ["waiting"]
        await work.silence()
        await hold.began.wait()
        assert [tip.state for tip in (await work.memory.owed(OwedRequest())).tips] == ["writing"]
        hold.end.set()
        await work.quiet()
        failing = (await work.memory.owed(OwedRequest())).tips[0]
        assert (failing.state, failing.reason) == ("failing", "malformed")
        await work.flush()
        parked = (await work.memory.owed(OwedRequest(session="s"))).tips[0]
        assert (parked.state, parked.reason) == ("parked", "failed")


async def test_refuses_what_it_doesnt_know() -> None:
    """An unknown session and a cursor of somebody else."""
    async with at_work() as work:
        with pytest.raises(NotFound):
            await work.memory.owed(OwedRequest(session="none"))
        with pytest.raises(Refused):
            await work.memory.owed(OwedRequest(cursor="!"))
