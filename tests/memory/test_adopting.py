"""Another memory's blocks and marks taken over: with sources, once, and never over a person."""

from __future__ import annotations

from typing import Any

import pytest

from memory.at_work import AtWork, assistant, at_work, user
from memory.by_hand import live_blocks
from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.adopting import Adopted
from turnmark_memory.forgetting import ForgetPlan
from turnmark_memory.requests import (
    AdoptedBlock,
    AdoptRequest,
    ForgetRequest,
    SettledTurns,
    ShowRequest,
    UndoRequest,
)
from turnmark_session_store import failpoints
from turnmark_session_store.model import CallerRef
from turnmark_session_store.requests import Rewind

pytestmark = pytest.mark.anyio


def block(number: int, text: str, *turns: str, topic: str = "people/dana", **more: Any) -> Any:
    """A block that cites turns of the session `talk`."""
    cites = tuple(CallerRef(session="talk", turn=turn) for turn in turns)
    return AdoptedBlock(id=f"b-{number:08x}", topic=topic, text=text, cites=cites, **more)


async def adopt(work: AtWork, *blocks: AdoptedBlock, settled: str = "") -> Adopted:
    """Adopts blocks, then takes turns of `talk` as dealt with."""
    turns = (SettledTurns(session="talk", turns=tuple(settled.split())),) if settled else ()
    return await work.memory.adopt(AdoptRequest(origin="other", blocks=blocks, settled=turns))


async def talk(work: AtWork) -> None:
    """Says three things."""
    await work.append(
        "talk",
        [user("Dana leads billing.", "t1"), assistant("Noted.", "a2"), user("她负责税务。", "t3")],
    )


async def test_blocks_come_with_sources_headings_titles_and_aliases() -> None:
    """A topic begins under its own title; what no turn bears out is a person's."""
    async with at_work() as work:
        await talk(work)
        done = await adopt(
            work,
            block(1, "Dana leads the billing team.", "t1", "a2", heading="Work", title="Dana B."),
            block(2, "她负责税务。", "t3", heading="工作 / 税务", aliases=("b-0000000a",)),
            block(3, "Written by hand.", title="ignored"),
            block(4, "- looks like a list", "unknown"),
        )
        assert (len(done.blocks), done.persons, done.known, done.left_out) == (4, 2, 0, [])
        assert (done.settled, done.revision) == (0, 1)
        text = work.topic("people/dana")
        assert "# Dana B.\n" in text
        assert "## Work\n\nDana leads the billing team.[^s-" in text
        assert "## 工作 / 税务\n\n她负责税务。[^s-" in text
        assert "\nWritten by hand. ^b-00000003\n" in text
        assert "\n\\- looks like a list ^b-00000004\n" in text
        shown = await work.memory.show(ShowRequest(ref="b-00000001"))
        assert [(one.session, one.turn) for one in shown.sources] == [
            ("talk", "t1"),
            ("talk", "a2"),
        ]
        assert (await work.memory.show(ShowRequest(ref="b-0000000a"))).ref == "b-00000002"
        assert sorted(work.source_ids()) == ["a2", "t1", "t3"]


async def test_the_same_request_again_adds_nothing_and_brings_nothing_back() -> None:
    """Neither what stands, nor what a person took out; also after a new start."""
    async with at_work() as work:
        await talk(work)
        blocks = (block(1, "One.", "t1"), block(2, "Two.", "t3"))
        await adopt(work, *blocks)
        file = work.root / "topics" / "people" / "dana.md"
        lines = file.read_text("utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if "b-00000001" not in line), "utf-8")
        for _ in range(2):
            again = await adopt(work, *blocks)
            assert (again.blocks, again.known) == ([], 2)
            assert list(live_blocks(work.root)) == ["b-00000002"]
            await work.restart()


async def test_a_topic_that_is_there_gets_blocks_and_keeps_all_it_has() -> None:
    """At the end of a heading of that name; a person's own title, words and notes stay."""
    async with at_work() as work:
        await talk(work)
        file = work.root / "topics" / "people" / "dana.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            "# Mine\n\nMy own words.\n\n## Work\n\nShe is the boss.\n\n## Rest\n", "utf-8"
        )
        await work.restart()
        await adopt(work, block(1, "Dana leads billing.", "t1", heading="work", title="Theirs"))
        text = work.topic("people/dana")
        assert text.startswith("# Mine\n\nMy own words.")
        assert text.index("She is the boss.") < text.index("Dana leads") < text.index("## Rest")


async def test_an_undo_takes_it_back_and_only_then_it_may_come_again() -> None:
    """Taken out by the person who undid it, not by chance."""
    async with at_work() as work:
        await talk(work)
        await adopt(work, block(1, "One.", "t1"))
        await work.memory.undo(UndoRequest(revision=1))
        assert list(live_blocks(work.root)) == []
        assert (await adopt(work, block(1, "One.", "t1"))).blocks == ["b-00000001"]


async def test_what_rests_on_turns_that_were_taken_back_or_forgotten_is_left_out() -> None:
    """Law 13; with one source left it comes, and cites that one."""
    async with at_work() as work:
        await talk(work)
        await work.store.rewind(Rewind(session="talk", to="a2"))
        forget = ForgetRequest(turn="talk#t1", dry_run=True)
        plan = await work.memory.forget(forget)
        assert isinstance(plan, ForgetPlan)
        await work.memory.forget(ForgetRequest(turn="talk#t1", dry_run=False, confirm=plan.confirm))
        done = await adopt(
            work,
            block(1, "Taken back.", "t3"),
            block(2, "Forgotten.", "t1"),
            block(3, "Half of it.", "a2", "t3"),
        )
        assert done.blocks == ["b-00000003"]
        assert [one.block for one in done.left_out] == ["b-00000001", "b-00000002"]
        assert "Forgotten." not in work.topic("people/dana")


async def test_turns_are_settled_once_and_oldest_first() -> None:
    """A turn behind one that is owed stays owed; the mark names who dealt with it."""
    async with at_work() as work:
        await talk(work)
        assert (await adopt(work, block(1, "One.", "t1"), settled="t3")).settled == 0
        done = await adopt(work, block(1, "One.", "t1"), settled="t1 a2 nobody")
        assert (done.settled, done.blocks) == (2, [])
        assert await work.marks() == {"t1": ("kept", None), "a2": ("kept", None)}
        assert (await adopt(work, settled="t1 a2")).settled == 0
        [event] = work.written()
        assert (event.turns, event.blocks, event.revision) == (("t1", "a2"), ("b-00000001",), 1)
        await work.flush()
        assert work.scribe.offered == [["t3"]]


async def test_a_crash_behind_the_blocks_leaves_the_turns_owed_and_a_redo_settles_them() -> None:
    """Evidence, then topics, then marks."""
    async with at_work() as work:
        await talk(work)
        request = (block(1, "One.", "t1"), block(2, "Two.", "t3"))
        seen: list[str] = []

        def fail(name: str) -> None:
            seen.append(name)
            if name == "install.journalled":
                failpoints.hook = None
                raise Unavailable("the disk is gone")

        failpoints.hook = fail
        try:
            with pytest.raises(Unavailable):
                await adopt(work, *request, settled="t1 a2 t3")
        finally:
            failpoints.hook = None
        assert await work.marks() == {}
        await work.restart()
        done = await adopt(work, *request, settled="t1 a2 t3")
        assert (done.known, done.settled) == (2, 3)
        assert sorted(live_blocks(work.root)) == ["b-00000001", "b-00000002"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "b-xyz"},
        {"topic": "../up"},
        {"aliases": ("intro",)},
        {"heading": "  "},
    ],
)
async def test_what_can_not_be_used_is_refused_whole(wrong: dict[str, Any]) -> None:
    """Nothing of the request is installed."""
    async with at_work() as work:
        await talk(work)
        given: dict[str, Any] = {
            "id": "b-00000002",
            "topic": "people/dana",
            "text": "Two.",
            **wrong,
        }
        with pytest.raises(Refused):
            await adopt(work, block(1, "One.", "t1"), AdoptedBlock(**given))
        assert list(live_blocks(work.root)) == []


async def test_secrets_are_masked_and_forged_marks_are_words() -> None:
    """A block's words can pose as no id, footnote or heading."""
    async with at_work() as work:
        await talk(work)
        forged = "# Not a heading[^s-0123456789ab] ^b-0123456789"
        key = "the key is " + "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
        await adopt(work, block(1, forged, "t1"), block(2, key, "t1"))
        assert sorted(live_blocks(work.root)) == ["b-00000001", "b-00000002"]
        assert "\\# Not a heading\\[^s-0123456789ab]" in work.topic("people/dana")
        assert "a1B2c3D4" not in work.topic("people/dana")


async def test_a_name_is_one_blocks_alone() -> None:
    """An alias that a block of the same request has as its id, or that came before, is dropped."""
    async with at_work() as work:
        await talk(work)
        both = ("b-00000001", "b-00000002", "b-0000000c", "b-0000000c")
        done = await adopt(
            work, block(1, "One.", "t1", aliases=both), block(2, "Two.", "t3", aliases=both)
        )
        assert (done.blocks, done.known) == (["b-00000001", "b-00000002"], 0)
        for name, ref in (("b-00000002", "b-00000002"), ("b-0000000c", "b-00000001")):
            assert (await work.memory.show(ShowRequest(ref=name))).ref == ref
