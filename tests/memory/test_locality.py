"""Local sessions: nothing of them reaches a writer that is not on this machine."""

from __future__ import annotations

import pytest

from memory.at_work import AtWork, Scribe, at_work, keep_each, user
from turnmark_memory.locality import is_local
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_session_store.requests import ForkPoint, OpenSession

pytestmark = pytest.mark.anyio

SECRET = "I keep the spare key under the blue pot."
OPEN = "I moved to Porto in March 2026."


class NearScribe(Scribe):
    """A writer that says it is on this machine."""

    is_local = True


async def with_local(work: AtWork) -> None:
    """A local session and an ordinary one, both due."""
    await work.store.open_session(OpenSession(session="home", memory="local"))
    await work.append("home", [user(SECRET, "h1")])
    await work.append("work", [user(OPEN, "w1")])


def shown(scribe: Scribe) -> str:
    """Returns all that a writer was ever shown."""
    return repr(scribe.batches)


async def test_gives_local_turns_to_the_built_in_writer() -> None:
    """It writes them as it can, its name stands in the mark, and the far writer sees nothing."""
    async with at_work(Scribe(name="openai/far")) as work:
        await with_local(work)
        assert (await work.flush()).left == 0
        assert work.writer.offered == [["w1"]]  # type: ignore[attr-defined]
        marks = await work.rows(
            "SELECT key, writer FROM mark JOIN turn ON turn.id = turn ORDER BY 1"
        )
        assert [name for _, name in marks] == [BuiltinWriter.name, "openai/far"]
        assert "blue pot" in "".join(map(work.topic, await topics(work)))


async def topics(work: AtWork) -> list[str]:
    """Returns the names of all topics."""
    found = (work.root / "topics").rglob("*.md")
    return [str(one.relative_to(work.root / "topics")).removesuffix(".md") for one in found]


async def test_shows_the_far_writer_no_block_and_no_topic_that_rests_on_them() -> None:
    """Neither when it writes about the same thing, nor in the list of topics."""
    async with at_work(Scribe(name="openai/far")) as work:
        await with_local(work)
        await work.flush()
        await work.append("work", [user("Where is the spare key, under the blue pot?", "w2")])
        await work.flush()
        assert "under the blue pot." not in shown(work.writer)  # type: ignore[arg-type]
        assert "h1" not in shown(work.writer)  # type: ignore[arg-type]
        (*_, last) = work.writer.batches  # type: ignore[attr-defined]
        cited = {turn.label for batch in work.writer.batches for turn in batch.turns}  # type: ignore[attr-defined]
        assert all(cited.issuperset(block.cites) for block in last.blocks)
        names = {topic for topic, _ in last.topics}
        assert names <= {"core", "subjects/facts"}


async def test_gives_everything_to_a_writer_on_this_machine() -> None:
    """A model on loopback may see what is local: no batch is kept apart."""
    async with at_work(NearScribe(name="openai/near")) as work:
        await with_local(work)
        await work.flush()
        assert sorted(work.writer.offered) == [["h1"], ["w1"]]  # type: ignore[attr-defined]
        await work.append("home", [user("The pot is green now.", "h2")])
        await work.flush()
        assert "blue pot" in repr(work.writer.batches[-1].blocks)  # type: ignore[attr-defined]


async def test_mixes_no_local_turns_with_others_where_branches_meet() -> None:
    """A session that forks off a local one, and a merge: each batch is of one kind, in order."""
    async with at_work(Scribe(name="openai/far")) as work:
        await work.store.open_session(OpenSession(session="home", memory="local"))
        await work.append("home", [user(SECRET, "h1"), user("I have a cat.", "h2")])
        await work.store.open_session(
            OpenSession(session="work", forked_from=ForkPoint(session="home"))
        )
        await work.append("work", [user("I work at Acme.", "w1")], after="h2")
        await work.append("home", [user("My cat is called Mia.", "h3")], after="h2")
        await work.append("work", [user("Acme builds ships.", "w2")], after="w1")
        assert (await work.flush()).left == 0
        assert [turn for turns in work.writer.offered for turn in turns] == ["w1", "w2"]  # type: ignore[attr-defined]
        assert await work.owed_count() == 0


async def test_stops_a_batch_where_local_turns_begin() -> None:
    """A local session that forks off an ordinary one comes first here: its trunk goes out alone."""
    async with at_work(Scribe(name="openai/far")) as work:
        await work.store.open_session(OpenSession(session="home", memory="local"))
        await work.append("work", [user(OPEN, "w1")])
        point = ForkPoint(session="work")
        await work.store.open_session(OpenSession(session="home", forked_from=point))
        await work.append("home", [user(SECRET, "h1")])
        assert (await work.flush()).left == 0
        assert work.writer.offered == [["w1"]]  # type: ignore[attr-defined]


async def test_puts_a_batch_off_whose_session_becomes_local_meanwhile() -> None:
    """Claimed as ordinary, it is not sent once its session may not leave the machine."""
    async with at_work(Scribe(name="openai/far")) as work:
        await work.append("s", [user(SECRET, "m1")])
        distil = work.memory._writing._distil

        async def late(*given: object) -> object:
            await work.store.open_session(OpenSession(session="s", memory="local"))
            return await distil(*given)  # type: ignore[arg-type]

        work.memory._writing._distil = late  # type: ignore[method-assign, assignment]
        await work.flush()
        await work.quiet()
        assert work.writer.batches == []  # type: ignore[attr-defined]
        await work.flush()
        assert await work.owed_count() == 0


async def test_shows_a_writer_what_rests_on_the_turns_before() -> None:
    """A correction in few words is about what was said just before, whatever its words find."""
    async with at_work(NearScribe(name="openai/near")) as work:
        await work.append("s", [user("The offsite is on 12 September.", "m1")])
        await work.append("other", [user("Lunch is at noon.", "o1")])
        await work.flush()
        await work.append("s", [user("不，改到十九号吧。", "m2")])
        await work.flush()
        block = work.writer.batches[-1].blocks[-1]  # type: ignore[attr-defined]
        assert block.text == "The offsite is on 12 September."


def test_takes_a_writer_that_says_nothing_for_a_far_one() -> None:
    """Only the built-in one, and one that says so, keep what they are shown."""
    assert is_local(BuiltinWriter())
    assert is_local(NearScribe(keep_each, name="openai/near"))
    assert not is_local(Scribe(keep_each, name="openai/far"))
