"""Edits on purpose: a person's, all or none, on what they were made for."""

from __future__ import annotations

import pytest

from memory.at_work import at_work
from memory.by_hand import ByHand, live_blocks, seen, topics_of
from turnmark_events.errors import Forgotten, NotFound, Refused, Stale, TurnmarkError
from turnmark_memory.model import (
    Add,
    Edit,
    Merge,
    Move,
    Pin,
    Retire,
    Revise,
    Split,
    SplitPart,
    Unpin,
)
from turnmark_memory.requests import (
    CoreRequest,
    EditRequest,
    RecallRequest,
    ShowRequest,
    TopicsRequest,
)
from turnmark_memory.topic_format import parse
from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import Rewind, SessionRef

pytestmark = pytest.mark.anyio


async def test_added_block_cites_turns_by_any_name_and_archives_them_first() -> None:
    """A label, `SESSION#ID` and a bare id, none of which was written yet."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        edited = await hand.edit(
            Add(topic="people/dana", text="Dana 负责账单。", cites=("talk#t1", "t2", "t1"))
        )
        (block,) = topics_of(work.root)["people/dana"].blocks()
        assert [block.id] == edited.blocks
        assert edited.revision == 1
        assert work.source_ids() == ["t1", "t2"]
        assert len(block.cites) == 2
        again = await hand.edit(Add(topic="people/erin", text="also", cites=block.cites))
        (other,) = topics_of(work.root)["people/erin"].blocks()
        assert other.cites == block.cites
        assert again.revision == 2
        assert await work.marks() == {}


async def test_blocks_with_new_words_are_a_persons_and_moved_ones_are_what_they_were() -> None:
    """So no writer's edit changes a revised block, and none is kept beside it."""
    async with at_work() as work:
        await work.say("talk", "t1", "t2", "t3")
        await work.flush()
        hand = ByHand(work)
        one, two, three = live_blocks(work.root)
        await hand.edit(
            Revise(block=one, text="new words", cites=("talk#t2",)),
            Move(block=two, topic="people/dana", heading="工作"),
        )
        found = {
            block.id: block for topic in topics_of(work.root).values() for block in topic.blocks()
        }
        assert found[one].origin == "person"
        assert found[two].origin == found[three].origin == "writer"
        assert found[two].section == "工作"
        assert set(found) == {one, two, three}


async def test_every_operation_gives_the_blocks_it_made() -> None:
    """Merge keeps the first id, split keeps it for the first part."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        one, two = (
            await hand.edit(
                Add(topic="people/dana", text="one", cites=("talk#t1",)),
                Add(topic="subjects/x", text="二", cites=("talk#t2",)),
            )
        ).blocks
        merged = await hand.edit(Merge(blocks=(one, two), text="one 和 二"))
        assert merged.blocks == [one]
        parts = (SplitPart(text="one", cites=("t1",)), SplitPart(text="二", cites=()))
        split = await hand.edit(Split(block=two, parts=parts))
        assert split.blocks[0] == one
        pinned = await hand.edit(Pin(block=split.blocks[1]))
        assert pinned.blocks == [split.blocks[1]]
        core = await work.memory.core(CoreRequest())
        assert core.blocks[0] == split.blocks[1]
        await hand.edit(Unpin(block=split.blocks[1]), Retire(block=one, reason="错了"))
        assert live_blocks(work.root) == [split.blocks[1]]
        core = await work.memory.core(CoreRequest())
        assert one not in core.blocks


async def test_pin_and_unpin_of_a_block_in_the_automatic_part_are_revisions_of_their_own() -> None:
    """Both are listed as changes of the core topic and can be undone."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        block = (await hand.edit(Add(topic="people/dana", text="x", cites=()))).blocks[0]
        files = seen(work.root)
        await hand.edit(Pin(block=block))
        above = (work.root / "topics/core.md").read_text().partition("<!-- turnmark")[0]
        assert f"![[people/dana#^{block}]]" in above
        same = await hand.edit(Pin(block=block))
        assert same.revision == 2
        await hand.undo(2)
        assert seen(work.root) == files


async def test_blocks_of_the_core_topic_are_blocks_like_others_but_no_writers() -> None:
    """Added, found, reworded, moved out and in, taken out, undone; no writer is shown them."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        add = Add(topic="core", text="Always answer in German.", cites=("talk#t1",))
        (block,) = (await hand.edit(add)).blocks
        core = await work.memory.core(CoreRequest())
        assert core.blocks == (block,)
        assert core.left_out == ()
        hits = (await work.memory.recall(RecallRequest(query="German", kinds=("block",)))).hits
        assert [(hit.ref, hit.topic) for hit in hits] == [(block, "core")]
        assert (await work.memory.show(ShowRequest(ref=block))).text == "Always answer in German."
        topics = (await work.memory.topics(TopicsRequest())).topics
        assert [(one.topic, one.blocks) for one in topics] == [("core", 1)]
        await hand.edit(Revise(block=block, text="用中文回答。", cites=("talk#t1",)))
        assert "用中文回答。" in (await work.memory.core(CoreRequest())).text
        before = seen(work.root)
        moved = await hand.edit(Move(block=block, topic="people/dana"))
        assert [one.id for one in topics_of(work.root)["people/dana"].blocks()] == [block]
        await hand.edit(Move(block=block, topic="core"))
        assert (await work.memory.core(CoreRequest())).blocks == (block,)
        await hand.undo(moved.revision + 1)
        await hand.undo(moved.revision + 2)
        await hand.undo(moved.revision + 3)
        await hand.undo(moved.revision)
        assert seen(work.root) == before
        await work.say("talk", "中文", "German")
        await work.flush()
        assert block not in [one.block for batch in work.scribe.batches for one in batch.blocks]
        await hand.edit(Retire(block=block, reason="错了"))
        assert block not in (await work.memory.core(CoreRequest())).blocks


async def test_edits_are_all_or_none_and_say_what_is_wrong() -> None:
    """The good edit beside the bad one leaves no trace; each refusal has its kind."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        await hand.edit(Add(topic="people/dana", text="x", cites=()))
        await work.append("talk", [TurnIn(role="tool", kind="tool", text="ls", id="row")])
        files = seen(work.root)
        good = Add(topic="people/dana", text="good", cites=("talk#t1",))
        wrong: list[tuple[Edit, type[TurnmarkError], str]] = [
            (Revise(block="b-00000000", text="x", cites=()), NotFound, "no block"),
            (Add(topic="../etc", text="x", cites=()), Refused, "people/"),
            (Add(topic="people/x", text="a\n\nb", cites=()), Refused, "paragraph"),
            (Add(topic="people/x", text="x" * 2001, cites=()), Refused, "2001"),
            (Add(topic="people/x", text=" ", cites=()), Refused, "empty"),
            (Add(topic="people/x", text="x", cites=("talk#nobody",)), NotFound, "nobody"),
            (Add(topic="people/x", text="x", cites=("s-000000000000",)), NotFound, "no source"),
            (Add(topic="people/x", text="x", cites=("talk#row",)), Refused, "user or an"),
            (Merge(blocks=("b-00000000",), text="x"), NotFound, "no block"),
        ]
        for edit, kind, words in wrong:
            with pytest.raises(kind, match=words):
                await hand.edit(good, edit)
        with pytest.raises(Refused, match="at least one"):
            await work.memory.edit(EditRequest(edits=()))
        assert seen(work.root) == files
        assert await hand.revision() == 1


async def test_expected_revision_and_words_that_are_no_longer_there_are_stale() -> None:
    """The error names what is there."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        block = (await hand.edit(Add(topic="people/dana", text="x", cites=()), expect=0)).blocks[0]
        with pytest.raises(Stale, match="revision 1, not 0") as stale:
            await hand.edit(Add(topic="people/dana", text="y", cites=()), expect=0)
        assert stale.value.facts == {"revision": 1}
        with pytest.raises(Stale, match="has changed"):
            await hand.edit(Retire(block=block, reason="x", expect="0" * 16), expect=1)
        assert (await hand.edit(Retire(block=block, reason="x"), expect=1)).revision == 2


async def test_turns_taken_back_or_forgotten_can_not_be_cited() -> None:
    """The refusal says how to bring a turn back."""
    async with at_work() as work:
        await work.say("talk", "t1", "t2")
        await work.say("gone", "g1")
        await work.store.rewind(Rewind(session="talk", to="t1"))
        hand = ByHand(work)
        with pytest.raises(Refused, match="restore"):
            await hand.edit(Add(topic="people/dana", text="x", cites=("talk#t2",)))
        await hand.edit(Add(topic="people/dana", text="x", cites=("gone#g1",)))
        label = next(topics_of(work.root)["people/dana"].blocks()).cites[0]
        deleted = await work.store.delete_session(SessionRef(session="gone"))
        await work.memory.forgotten(deleted.turns)
        for cite in ("g1", label):
            with pytest.raises((Forgotten, NotFound)):
                await hand.edit(Add(topic="people/dana", text="y", cites=(cite,)))


async def test_retiring_the_last_block_of_a_turn_parks_it_as_removed() -> None:
    """As if a person had removed the paragraph by hand; a successor keeps it."""
    async with at_work() as work:
        await work.say("talk", "t1", "t2")
        await work.flush()
        one, two = live_blocks(work.root)
        await ByHand(work).edit(Retire(block=one, reason="wrong"))
        assert await work.marks() == {"t1": ("parked", "removed"), "t2": ("kept", None)}
        new = (await ByHand(work).edit(Add(topic="subjects/x", text="n", cites=()))).blocks[0]
        await ByHand(work).edit(Retire(block=two, reason="newer", successor=new))
        assert (await work.marks())["t2"] == ("kept", None)


async def test_secrets_in_a_persons_words_are_masked() -> None:
    """As in any turn."""
    secret = "sk-ant-api03-" + "a1B2" * 20
    async with at_work() as work:
        hand = await ByHand(work).begin()
        await hand.edit(Add(topic="people/dana", text=f"the key is {secret}", cites=()))
        text = (work.root / "topics/people/dana.md").read_bytes()
        assert secret.encode() not in text
        assert next(parse(text).blocks()).text.startswith("the key is")
