"""What `status` says of a writer that fails: one sentence a cause, with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from memory.at_work import AtWork, Scribe, at_work
from turnmark.status import status_of
from turnmark_memory.model import Answer, Batch
from turnmark_memory.requests import OwedRequest, ShowRequest
from turnmark_memory.writers.writer import WriterFailed

pytestmark = pytest.mark.anyio

PROCESS: dict[str, Any] = {
    "uptime_seconds": 1.0,
    "subscribers": [],
    "transcripts": {},
    "models_lack": [],
    "connections": 0,
}


async def advice_of(work: AtWork) -> list[str]:
    """Returns what a person is told, without what the machine's disk has to say."""
    said = (await status_of(work.store, work.memory, PROCESS)).what_to_do
    return [one for one in said if "KiB left" not in one]


def failing(error: WriterFailed) -> Scribe:
    """Returns a far writer that always fails so."""

    def fail(batch: Batch) -> Answer:
        raise error

    return Scribe(fail, name="openai/far")


async def test_says_nothing_where_all_is_well() -> None:
    """No sentence is the best one."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.flush()
        assert await advice_of(work) == []


async def test_says_why_an_endpoint_is_left_alone_and_that_a_flush_tries_it() -> None:
    """One sentence for all conversations that wait for it."""
    async with at_work(failing(WriterFailed("nobody answers at x", transport=True))) as work:
        for name in "abcde":
            await work.say(name, f"{name}1")
        await work.silence()
        await work.quiet()
        (sentence,) = await advice_of(work)
        assert sentence.startswith("The writer openai/far is left alone until 20")
        assert "nobody answers at x. 5 turns are owed, none is lost;" in sentence
        assert sentence.endswith("`turnmark flush` tries now.")


async def test_says_when_an_endpoint_wants_to_be_asked_again() -> None:
    """A flush would not help, so it is not named."""
    error = WriterFailed("too many requests", transport=True, retry_after_seconds=60.0)
    async with at_work(failing(error)) as work:
        await work.say("s", "m1")
        await work.silence()
        await work.quiet()
        (sentence,) = await advice_of(work)
        assert "too many requests" in sentence
        assert "flush" not in sentence


async def test_says_what_is_wrong_with_answers_and_how_many_turns_were_put_aside() -> None:
    """Halved to one turn, which is parked: both are said, and what to do."""
    async with at_work(failing(WriterFailed("malformed"))) as work:
        await work.say("s", "m1", "m2")
        for _ in range(3):
            await work.flush()
        sentences = await advice_of(work)
        assert any("Writing fails: malformed." in one for one in sentences)
        assert any("1 turn could not be written and is parked" in one for one in sentences)


async def test_says_that_another_writer_failed_before_this_one_was_chosen() -> None:
    """Its cause may hold no longer: with whom and when it was met is said beside it."""
    async with at_work(failing(WriterFailed("no key is set"))) as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        work.writer = Scribe(name="openai/better")
        await work.restart(run=False)
        (sentence,) = await advice_of(work)
        assert sentence.startswith("Writing failed with openai/far, at 20")
        assert ": no key is set. openai/better has not tried yet. The turns stay owed" in sentence
        (row,) = (await work.memory.owed(OwedRequest())).tips
        assert (row.state, row.reason, row.failed_with) == (
            "failing",
            "no key is set",
            "openai/far",
        )


async def test_says_why_a_turn_is_parked() -> None:
    """The last reason, without what it quotes, in `owed` and in `show`."""
    async with at_work(failing(WriterFailed("malformed: “我搬到杭州了” is no topic"))) as work:
        await work.say("s", "m1")
        for _ in range(3):
            await work.flush()
        (row,) = (await work.memory.owed(OwedRequest())).tips
        assert (row.state, row.reason) == ("parked", "failed")
        assert (row.cause, row.failed_with) == ("malformed: … is no topic", "openai/far")
        shown = await work.memory.show(ShowRequest(ref="s#m1"))
        assert shown.turn is not None
        (mark,) = shown.turn.marks.values()
        assert (mark.reason, mark.cause) == ("failed", "malformed: … is no topic")
        assert mark.failed_at == row.failed_at
