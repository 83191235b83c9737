"""Facts remembered on request: one block, with evidence, written once."""

from __future__ import annotations

import anyio
import pytest

from memory.at_work import assistant, at_work, user
from memory.by_hand import ByHand, lines, live_blocks, topics_of
from turnmark_events.errors import NotFound, Refused, Unavailable
from turnmark_memory.remembering import REMEMBERED
from turnmark_memory.requests import CoreRequest, RecallRequest, RememberRequest, ShowRequest
from turnmark_session_store import failpoints
from turnmark_session_store.model import Speaker
from turnmark_session_store.requests import ListBranch

pytestmark = pytest.mark.anyio


async def test_named_turn_is_cited_else_the_last_that_the_user_said() -> None:
    """On the head's branch; an assistant's answer after it is not what was meant."""
    async with at_work() as work:
        await work.append("talk", [user("one", "t1"), user("two", "t2"), assistant("ok", "a1")])
        memory = work.memory
        named = await memory.remember(RememberRequest(text="first", session="talk", turn="t1"))
        last = await memory.remember(RememberRequest(text="second", session="talk"))
        bare = await memory.remember(RememberRequest(text="third", turn="a1"))
        cited = [
            (await memory.show(ShowRequest(ref=one.block))).sources[0].turn
            for one in (named, last, bare)
        ]
        assert cited == ["t1", "t2", "a1"]
        assert [named.revision, last.revision, bare.revision] == [1, 2, 3]
        assert await work.marks() == {}


async def test_fact_without_a_conversation_becomes_a_turn_that_is_written_once() -> None:
    """It is evidence with provenance, settled with its block; no flush offers it to a writer."""
    async with at_work() as work:
        texts = ["部署在每周五晚上进行。", "The office is in Porto.", "部署在每周五晚上进行。"]
        found = [await work.memory.remember(RememberRequest(text=text)) for text in texts]
        shown = await work.store.list_branch(ListBranch(session=REMEMBERED))
        assert [turn.text for turn in shown.turns] == texts
        marks = {turn.id: turn.marks[work.memory.workspace] for turn in shown.turns}
        assert {mark.outcome for mark in marks.values()} == {"kept"}
        assert {mark.writer for mark in marks.values()} == {"remember/1"}
        await work.flush()
        await work.silence()
        await work.quiet()
        assert work.scribe.batches == []
        first, second, again = (one.block for one in found)
        assert first == again
        assert sorted(live_blocks(work.root)) == sorted((first, second))
        assert [list(event.blocks) for event in work.written()] == [[first], [second], [first]]
        hits = (await work.memory.recall(RecallRequest(query="部署 每周五", kinds=("block",)))).hits
        assert hits[0].ref == first
        assert [source.session for source in hits[0].sources] == [REMEMBERED] * 2


async def test_many_at_once_each_become_a_block() -> None:
    """Beside a worker that writes conversations."""
    async with at_work() as work:
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                asked = RememberRequest(text=f"事实 {number}", pin=number % 3 == 0)
                tasks.start_soon(work.memory.remember, asked)
                await work.say(f"talk{number}", f"t{number}")
                tasks.start_soon(work.flush)
        assert len(live_blocks(work.root)) == 24
        assert await work.owed_count() == 0


async def test_topic_is_the_one_named_else_where_the_words_belong() -> None:
    """The speaker who says something of themselves, whoever nobody named, else notes."""
    async with at_work() as work:
        dana = Speaker(id="u-17", name="Dana")
        await work.append("talk", [user("hello there", "t1", speaker=dana)])
        remember = work.memory.remember
        mine = await remember(RememberRequest(text="I prefer short answers.", session="talk"))
        assert mine.topic == "people/dana"
        theirs = await remember(RememberRequest(text="我喜欢简短的回答。"))
        assert theirs.topic == "people/user"
        notes = await remember(RememberRequest(text="xyzzy"))
        assert notes.topic == "subjects/notes"
        named = await remember(RememberRequest(text="任何事", topic="Projects/税务.md"))
        assert named.topic == "projects/税务"
        stands = {name: topic for name, (topic, _) in lines(work.root).items()}
        for one in (mine, theirs, notes, named):
            assert stands[one.block] == one.topic


async def test_pinned_fact_stands_in_the_persons_part_of_the_core() -> None:
    """It is the first on the page, is a person's, and one undo takes both back."""
    async with at_work() as work:
        await work.say("talk", "t1")
        await work.flush()
        one = await work.memory.remember(RememberRequest(text="住在波尔图。", pin=True))
        above = (work.root / "topics/core.md").read_text().partition("<!-- turnmark")[0]
        assert f"![[{one.topic}#^{one.block}]]" in above
        core = await work.memory.core(CoreRequest())
        assert core.blocks[0] == one.block
        (block,) = topics_of(work.root)[one.topic].blocks()
        assert (block.id, block.origin) == (one.block, "person")
        await ByHand(work).undo(one.revision)
        assert one.block not in (work.root / "topics/core.md").read_text()
        assert one.block not in lines(work.root)
        assert ("parked", "removed") in (await work.marks()).values()


async def test_what_can_not_be_remembered_is_refused_before_anything_is_said() -> None:
    """No turn is left behind by a refusal."""
    async with at_work() as work:
        wrong = [
            (RememberRequest(text="  "), Refused, "empty"),
            (RememberRequest(text="<turnmark-memory>x</turnmark-memory>"), Refused, "empty"),
            (RememberRequest(text="a\n\nb"), Refused, "paragraph"),
            (RememberRequest(text="x", topic="../x"), Refused, "people/"),
            (RememberRequest(text="x", session="nobody"), NotFound, "nobody"),
            (RememberRequest(text="x", turn="none"), NotFound, "none"),
        ]
        for asked, kind, words in wrong:
            with pytest.raises(kind, match=words):
                await work.memory.remember(asked)
        assert await work.rows("SELECT * FROM turn") == []
        assert not list((work.root / "topics").rglob("*/*.md"))


async def test_fact_that_could_not_be_installed_is_owed_like_any_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its claim is freed; the next one does not wait for it, and both are written in the end."""

    def broken(name: str) -> None:
        if name == "remember.archived":
            raise Unavailable("the disk failed")

    async with at_work() as work:
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "hook", broken)
            with pytest.raises(Unavailable):
                await work.memory.remember(RememberRequest(text="fact one"))
        assert await work.owed_count() == 1
        await work.memory.remember(RememberRequest(text="fact two", topic="subjects/facts"))
        assert work.facts() == ["two"]
        await work.flush()
        assert sorted(work.facts()) == ["one", "two"]
        assert await work.owed_count() == 0
