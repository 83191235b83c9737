"""Revisions taken back: byte for byte, one block at a time, or not at all."""

from __future__ import annotations

from functools import partial

import anyio
import pytest
from hypothesis import example, given, settings

from memory.at_work import AtWork, at_work
from memory.by_hand import ByHand, Step, lines, live_blocks, seen, steps
from turnmark_events.errors import NotFound, Refused
from turnmark_memory.model import Add, Merge, Move, Pin, Retire, Revise
from turnmark_memory.requests import HistoryRequest, OwedRequest, ShowRequest
from turnmark_memory.undoing import Undone
from turnmark_session_store.requests import Rewind, SessionRef

pytestmark = pytest.mark.anyio


def _step(kind: str, *picks: int) -> Step:
    one, two, three = picks
    return Step(kind=kind, picks=(one, two, three))


_MOVED_AND_MERGED = [
    _step("add", 0, 0, 1),
    _step("add", 1, 0, 2),
    _step("link", 2, 0, 1),
    _step("link", 2, 1, 1),
    _step("move", 0, 1, 1),
    _step("merge", 0, 1, 2),
]


_LINK_BEFORE_THE_REMOVAL = [_step("add", 0, 0, 0), _step("link", 0, 0, 0), _step("retire", 0, 0, 0)]
_UNPINNED_AND_RETIRED = [
    _step("remember", 0, 0, 0),
    _step("unpin", 0, 0, 0),
    _step("retire", 0, 0, 0),
]
_MOVED_BY_A_LINE = [_step("add", 0, 0, 0), _step("move", 0, 0, 0)]
_MOVED_BELOW_ITS_NEIGHBOUR = [
    _step("add", 0, 0, 1),
    _step("add", 0, 0, 1),
    _step("move", 0, 0, 0),
]
_LINK_FROM_BEFORE_A_MOVE_BACK = [
    _step("add", 0, 0, 0),
    _step("move", 0, 0, 1),
    _step("link", 0, 0, 0),
    _step("revise", 0, 0, 0),
]


@settings(max_examples=40, deadline=None)
@given(steps(most=8))
@example(_LINK_BEFORE_THE_REMOVAL)
@example(_MOVED_BY_A_LINE)
@example(_UNPINNED_AND_RETIRED)
@example(_MOVED_BELOW_ITS_NEIGHBOUR)
def test_undo_of_the_last_revision_gives_every_file_its_bytes_back(taken: list[Step]) -> None:
    """Topics, core page and timeline; and undoing the undo gives the later bytes back."""
    anyio.run(partial(_undo_each, taken))


async def _undo_each(taken: list[Step]) -> None:
    async with at_work() as work:
        hand = await ByHand(work).begin()
        for step in taken:
            before, number = seen(work.root), await hand.revision()
            if not await hand.take(step) or await hand.revision() == number:
                continue
            after = seen(work.root)
            undone = await hand.undo(number + 1)
            assert seen(work.root) == before
            assert undone.revision == number + 2
            await hand.undo(undone.revision)
            assert seen(work.root) == after
        await _check_derived(work)


@settings(max_examples=40, deadline=None)
@given(steps(most=10))
@example(_MOVED_AND_MERGED)
@example(_LINK_FROM_BEFORE_A_MOVE_BACK)
def test_undo_of_an_older_revision_touches_its_blocks_alone_or_refuses(taken: list[Step]) -> None:
    """Other blocks keep their lines, a refusal changes nothing, and links follow what moved."""
    anyio.run(partial(_undo_older, taken))


async def _undo_older(taken: list[Step]) -> None:
    async with at_work() as work:
        hand = await ByHand(work).begin()
        for step in taken:
            await hand.take(step)
        for revision in range(1, await hand.revision() + 1):
            before, files = lines(work.root), seen(work.root)
            undone = await _undone(hand, revision, force=revision % 2 == 0)
            if isinstance(undone, Refused):
                assert seen(work.root) == files
                assert undone.facts["revision"] == revision
                continue
            after = lines(work.root)
            for block in before.keys() | after.keys():
                if block not in undone.blocks and "[[" not in str(before.get(block)):
                    assert after.get(block) == before.get(block)
        await _check_derived(work)


async def _undone(hand: ByHand, revision: int, *, force: bool) -> Undone | Refused:
    try:
        return await hand.undo(revision, force=force)
    except Refused as refusal:
        return refusal


async def _check_derived(work: AtWork) -> None:
    """Links lead to blocks where they stand, and what is derived is the same made anew."""
    stand = lines(work.root)
    for topic, line in stand.values():
        for link in line.split("[[")[1:]:
            target, _, name = link.partition("]]")[0].partition("#^")
            assert name not in stand or stand[name][0] == (target or topic), (line, stand.get(name))
    files = seen(work.root)
    await work.stop()
    for gone in (*(work.root / "timeline").rglob("*.md"), work.root / "core.md"):
        gone.unlink(missing_ok=True)
    for index in (work.root / ".turnmark").glob("index.db*"):
        index.unlink()
    await work.start()
    assert seen(work.root) == files


async def test_undo_of_a_retirement_brings_the_pin_back_and_can_be_undone() -> None:
    """Add, pin, retire, undo, undo of that undo, and once more: every byte follows."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        add = Add(topic="people/dana", text="Dana 负责账单。", cites=("talk#t1",))
        (block,) = (await hand.edit(add)).blocks
        await hand.edit(Pin(block=block))
        pinned = seen(work.root)
        retired = await hand.edit(Retire(block=block, reason="错了"))
        gone = seen(work.root)
        first = await hand.undo(retired.revision)
        assert seen(work.root) == pinned
        second = await hand.undo(first.revision)
        assert seen(work.root) == gone
        await hand.undo(second.revision)
        assert seen(work.root) == pinned
        await hand.undo(2)
        await hand.undo(1)
        assert live_blocks(work.root) == []


async def test_undo_refuses_what_was_changed_since_and_lists_it() -> None:
    """With force it goes back all the same, as a revision that can be undone."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        first, second = (
            await hand.edit(
                Add(topic="people/dana", text="Dana leads billing.", cites=("talk#t1",)),
                Add(topic="people/dana", text="她负责税务。", cites=("talk#t2",)),
            )
        ).blocks
        await hand.edit(Revise(block=second, text="她负责审计。", cites=("talk#t2",)))
        files = seen(work.root)
        with pytest.raises(Refused, match="force") as refusal:
            await hand.undo(1)
        assert refusal.value.facts["blocks"] == [second]
        assert refusal.value.facts["reasons"] == {second: "was changed since"}
        assert seen(work.root) == files
        undone = await hand.undo(1, force=True)
        assert undone.blocks == [first, second]
        assert live_blocks(work.root) == []
        with pytest.raises(Refused, match="came later"):
            await hand.undo(1, force=True)
        await hand.undo(undone.revision)
        assert seen(work.root) == files


async def test_force_is_not_named_where_it_would_not_help() -> None:
    """A block that came back since is no earlier state of its retirement."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        add = Add(topic="people/dana", text="Dana 负责账单。", cites=("talk#t1",))
        (block,) = (await hand.edit(add)).blocks
        retired = await hand.edit(Retire(block=block, reason="错了"))
        await hand.undo(retired.revision)
        for force in (False, True):
            with pytest.raises(Refused, match="there again since") as refusal:
                await hand.undo(retired.revision, force=force)
            assert "force" not in refusal.value.message
        assert live_blocks(work.root) == [block]


async def test_a_forced_undo_brings_back_the_words_from_before_its_revision() -> None:
    """What was written over them since goes, and what stands beside them stays."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        add = Add(topic="people/dana", text="Dana leads billing.", cites=("talk#t1",))
        other = Add(topic="people/dana", text="她负责税务。", cites=("talk#t2",))
        block, beside = (await hand.edit(add, other)).blocks
        before = work.topic("people/dana")
        for text in ("Dana leads audit.", "Dana leads sales."):
            await hand.edit(Revise(block=block, text=text, cites=("talk#t1",)))
        assert (await hand.undo(2, force=True)).blocks == [block]
        assert work.topic("people/dana") == before
        assert live_blocks(work.root) == [block, beside]


async def test_undo_refuses_to_leave_a_pin_a_link_or_a_superseded_block_alone() -> None:
    """What later rests on a block keeps it."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        names = [
            (await hand.edit(Add(topic="people/dana", text=text, cites=("talk#t1",)))).blocks[0]
            for text in ("pinned", "linked", "holds", "older")
        ]
        await hand.edit(Pin(block=names[0]))
        await hand.edit(Add(topic="people/erin", text=f"see [[people/dana#^{names[1]}]]", cites=()))
        await hand.edit(Retire(block=names[3], reason="newer", successor=names[2]))
        for revision, reason in enumerate(("linked to from core", "from people/erin", "holds"), 1):
            with pytest.raises(Refused, match=reason):
                await hand.undo(revision)
        await hand.undo(7)
        await hand.undo(3)
        assert names[2] not in live_blocks(work.root)
        assert names[3] in live_blocks(work.root)


async def test_undo_keeps_every_byte_that_a_person_changed_since() -> None:
    """Their new paragraph and their line ends, in the file of the block that goes back.

    Only the paragraph's id comes in.
    """
    async with at_work() as work:
        hand = await ByHand(work).begin()
        (block,) = (
            await hand.edit(Add(topic="people/dana", text="Dana leads billing.", cites=()))
        ).blocks
        await hand.edit(Revise(block=block, text="Dana leads audits.", cites=()))
        await work.stop()
        file = work.root / "topics/people/dana.md"
        text = file.read_bytes()
        mine = ("一段我自己的话。".encode(), b"  \n\n* mine \t\n| a |\r\n")
        file.write_bytes(text + b"\n" + b"".join(mine))
        await work.start()
        await hand.undo(2)
        now = file.read_bytes()
        assert b"Dana leads billing." in now
        assert b"audits" not in now
        assert all(part in now for part in mine)


async def test_a_file_made_by_hand_comes_back_as_blocks() -> None:
    """It bore no ids when memory saw it: its bytes alone would be words that nobody finds."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        file = work.root / "topics/people/dana.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# Dana\n\nDana leads billing.\n\n她负责税务。\n")
        await work.memory.files_changed([str(file)])
        made = (await work.memory.history(HistoryRequest(limit=1))).revisions[0]
        assert len(made.blocks) == 2
        for revision in range(made.revision, made.revision + 3):
            undone = await hand.undo(revision)
            (listed,) = (await work.memory.history(HistoryRequest(limit=1))).revisions
            assert set(undone.blocks) == set(listed.blocks) == set(made.blocks)
            if revision == made.revision + 1:
                assert set(live_blocks(work.root)) == set(made.blocks)
                shown = await work.memory.show(ShowRequest(ref=made.blocks[0]))
                assert shown.text == "Dana leads billing."


async def test_undo_of_what_was_written_parks_its_turns_and_the_undo_of_that_settles_them() -> None:
    """They are owed as removed, not due; nothing writes them again unless it is asked to."""
    async with at_work() as work:
        await work.say("talk", "t1", "t2")
        await work.flush()
        hand = ByHand(work)
        undone = await hand.undo(1)
        assert await work.marks() == dict.fromkeys(("t1", "t2"), ("parked", "removed"))
        assert {tip.state for tip in (await work.memory.owed(OwedRequest())).tips} == {"removed"}
        await work.flush()
        assert work.facts() == []
        await hand.undo(undone.revision)
        assert await work.marks() == dict.fromkeys(("t1", "t2"), ("kept", None))
        assert work.facts() == ["t1", "t2"]
        await hand.undo(undone.revision + 1)
        assert (await work.flush(removed=True)).turns == 2
        assert work.facts() == ["t1", "t2"]


async def test_turn_that_another_block_rests_on_stays_settled() -> None:
    """Only turns without any block left are removed."""
    async with at_work() as work:
        await work.say("talk", "t1")
        await work.flush()
        hand = ByHand(work)
        await hand.edit(Add(topic="people/dana", text="Dana 也说过。", cites=("talk#t1",)))
        await hand.undo(2)
        assert await work.marks() == {"t1": ("kept", None)}


async def test_forgotten_words_never_return() -> None:
    """Neither by undoing the install that had them, nor the one that took them out."""
    async with at_work() as work:
        await work.say("secret", "s1")
        await work.say("talk", "t1")
        await work.flush()
        hand = ByHand(work)
        secret = next(name for name, (_, line) in lines(work.root).items() if "s1" in line)
        await hand.edit(Move(block=secret, topic="people/dana"))
        deleted = await work.store.delete_session(SessionRef(session="secret"))
        await work.memory.forgotten(deleted.turns)
        newest = await hand.revision()
        for revision in range(1, newest + 1):
            for force in (False, True):
                undone = await _undone(hand, revision, force=force)
                assert not (isinstance(undone, Refused) and "fact" in undone.message)
        every = b"".join(seen(work.root).values())
        assert b"fact s1" not in every
        records = (work.root / ".turnmark/revisions").glob("*.json")
        assert not [file for file in records if b"fact s1" in file.read_bytes()]


async def test_words_that_were_taken_back_stay_away() -> None:
    """An undo of their removal is refused while the turns are taken back."""
    async with at_work() as work:
        await work.say("talk", "t1", "t2")
        await work.flush()
        await work.store.rewind(Rewind(session="talk", to="t1"))
        await work.quiet()
        assert work.facts() == ["t1"]
        with pytest.raises(Refused, match="taken back"):
            await ByHand(work).undo(2)


async def test_merged_blocks_come_apart_again() -> None:
    """Each with its own id, and links point to each again."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        one = (await hand.edit(Add(topic="people/dana", text="one", cites=()))).blocks[0]
        two = (await hand.edit(Add(topic="projects/税务", text="二", cites=()))).blocks[0]
        link = f"see [[projects/税务#^{two}]]"
        await hand.edit(Add(topic="people/erin", text=link, cites=()))
        await hand.edit(Merge(blocks=(one, two), text="one and 二"))
        assert f"[[people/dana#^{one}]]" in work.topic("people/erin")
        await hand.edit(Add(topic="people/dana", text="more", cites=()))
        await hand.undo(4)
        assert {one, two} <= set(live_blocks(work.root))
        assert link in work.topic("people/erin")


async def test_unknown_and_empty_revisions_are_told_apart() -> None:
    """One is not found, one changed nothing."""
    async with at_work() as work:
        with pytest.raises(NotFound):
            await ByHand(work).undo(1)
        await work.memory.installer.went_back(1)
        with pytest.raises(Refused, match="no block"):
            await ByHand(work).undo(1)


async def test_history_is_paged_newest_first() -> None:
    """With exactly the fields of the interface."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        for number in range(5):
            await hand.edit(Add(topic="people/dana", text=f"{number} 个", cites=()))
        pages: list[int] = []
        cursor: str | None = None
        while True:
            page = await work.memory.history(HistoryRequest(limit=2, cursor=cursor))
            pages += [one.revision for one in page.revisions]
            cursor = page.next
            if cursor is None:
                break
        assert pages == [5, 4, 3, 2, 1]
