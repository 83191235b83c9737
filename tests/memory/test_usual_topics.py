"""Where a group's matter stands in memory already."""

from __future__ import annotations

import pytest

from memory.at_work import AtWork, Scribe, at_work, keep, user
from turnmark_memory.model import Answer, Batch, Edits
from turnmark_memory.requests import FlushRequest, ForgetRequest
from turnmark_session_store.model import Speaker, TurnIn

pytestmark = pytest.mark.anyio


def by(name: str, words: str, turn: str) -> TurnIn:
    return user(words, turn, speaker=Speaker(id=f"u-{name}", name=name))


def filed(batch: Batch) -> Answer:
    """Files each turn under the subject that its words begin with."""
    words = [(turn, turn.text.split(" ")[0]) for turn in batch.turns]
    return Edits(edits=tuple(keep(turn, f"subjects/{word}") for turn, word in words))


def usual_of(scribe: Scribe) -> list[tuple[str, ...]]:
    """Returns the names of the pages that each batch was told."""
    return [tuple(topic for topic, _ in batch.usual) for batch in scribe.batches]


async def say(work: AtWork, session: str, *turns: TurnIn) -> None:
    await work.append(session, list(turns))
    await work.memory.flush(FlushRequest())


async def test_a_session_goes_on_with_its_own_pages() -> None:
    """The largest first; people have no part in it, nor has what another session says."""
    async with at_work(scribe := Scribe(filed)) as work:
        await say(work, "one", by("ana", "choir a", "1"), by("ana", "fair b", "2"))
        await say(work, "one", by("ana", "fair c", "3"))
        await say(work, "two", by("cyn", "flat d", "4"))
        await say(work, "one", by("ana", "choir e", "5"))
        assert usual_of(scribe) == [
            (),
            ("subjects/choir", "subjects/fair"),
            (),
            ("subjects/fair", "subjects/choir"),
        ]


async def test_says_how_much_of_what_is_kept_stands_there() -> None:
    """People's pages count, too: what is a part of a conversation is no page of all of it."""

    def by_word(batch: Batch) -> Answer:
        return Edits(edits=tuple(keep(turn, turn.text.split(" ")[0]) for turn in batch.turns))

    async with at_work(scribe := Scribe(by_word)) as work:
        first = [by("ana", f"people/ana {number}", f"a{number}") for number in range(3)]
        await say(work, "one", *first, by("ben", "subjects/choir b", "4"))
        await say(work, "one", by("ana", "people/ana x", "5"))
        assert scribe.batches[-1].usual == (("subjects/choir", 0.25),)


async def test_people_who_talked_before_go_on_in_a_new_session() -> None:
    """Where most of those whose words stand speak here, two of them at least, or all of them."""
    async with at_work(scribe := Scribe(filed)) as work:
        await say(work, "one", by("ana", "合唱团 a", "1"), by("ben", "合唱团 b", "2"))
        await say(work, "two", by("ana", "x", "3"), by("ben", "y", "4"), by("dan", "z", "5"))
        await say(work, "three", by("ana", "x", "6"), by("cyn", "y", "7"))
        await say(work, "four", by("eve", "x", "8"), by("fay", "y", "9"))
        assert usual_of(scribe) == [
            *((), ("subjects/合唱团",)),
            *(("subjects/x",), ()),
        ]


async def test_what_was_forgotten_is_no_page() -> None:
    """With the turns their topic is gone from what the next batch is told."""
    async with at_work(scribe := Scribe(filed)) as work:
        await say(work, "one", by("ana", "choir a", "1"), by("ben", "choir b", "2"))
        plan = await work.memory.forget(ForgetRequest(session="one"))
        confirm = getattr(plan, "confirm", None)
        await work.memory.forget(ForgetRequest(session="one", dry_run=False, confirm=confirm))
        await say(work, "two", by("ana", "x", "3"), by("ben", "y", "4"))
        assert usual_of(scribe)[-1] == ()
