"""Composing installs, seen in the files: what is promoted, what is rebased, what is left alone."""

from __future__ import annotations

import re

import pytest

from memory.at_work import AtWork, at_work, keep, user
from turnmark_memory.arrivals import AUTOMATIC_LIMIT
from turnmark_memory.model import Add, Answer, Batch, Edits, Move, Retire, Revise
from turnmark_memory.requests import CoreRequest, RecallRequest

pytestmark = pytest.mark.anyio
LINE = "<!-- turnmark: below this line is arranged automatically -->"


def core_file(work: AtWork) -> str:
    return (work.root / "topics" / "core.md").read_text(encoding="utf-8")


async def test_promotes_new_blocks_below_the_line_and_leaves_the_person_above() -> None:
    """A person's part keeps its bytes but for the ids it gets; new blocks come under it."""
    async with at_work() as work:
        mine = f"# About me\n\nI am 李雷, and I write in *Chinese*.\r\n\n{LINE}\n"
        (work.root / "topics" / "core.md").write_bytes(mine.encode())
        await work.say("s", "m1")
        await work.flush()
        await work.say("s", "m2")
        await work.flush()
        text = (work.root / "topics" / "core.md").read_bytes().decode()
        above, below = text.split(LINE)
        assert re.sub(r" \^b-[0-9a-f]{8}", "", above) == mine.split(LINE, maxsplit=1)[0]
        embeds = [line for line in below.splitlines() if line.startswith("![[")]
        assert len(embeds) == 2
        page = (await work.memory.core(CoreRequest())).text
        assert page.index("fact m2") < page.index("fact m1")
        assert "李雷" in page


async def test_a_batch_that_a_neighbour_was_faster_than_is_asked_about_again() -> None:
    """Both change the block as they were shown it; who comes second has failed at nothing."""
    async with at_work() as work:
        await work.say("a", "m1")
        await work.flush()
        seen: list[str] = []

        def revise(batch: Batch) -> Answer:
            (block,) = [one for one in batch.blocks if one.text.startswith("fact m1")]
            (turn,) = batch.turns
            seen.append(block.text)
            cites = (*block.cites, turn.label)
            text = f"{block.text} and {turn.id}"
            edit = Revise(block=block.block, text=text, cites=cites, expect=block.hash)
            return Edits(edits=(edit,))

        work.scribe.answer = revise
        await work.append("s", [user("fact m1 too", "s1")])
        await work.append("t", [user("fact m1 too", "t1")])
        done = await work.flush()
        assert (done.left, done.failures) == (0, [])
        assert len(seen) == 3
        assert sorted(seen)[:2] == ["fact m1", "fact m1"]


async def test_puts_people_and_projects_before_subjects() -> None:
    """Of one install's new blocks those about people come first."""
    async with at_work() as work:
        work.scribe.answer = lambda batch: Edits(
            edits=(
                keep(batch.turns[0], "subjects/tea"),
                keep(batch.turns[1], "people/dana"),
            )
        )
        await work.say("s", "m1", "m2")
        await work.flush()
        text = core_file(work)
        assert text.index("people/dana") < text.index("subjects/tea")


async def test_keeps_the_page_within_its_budget_and_the_embeds_within_their_limit() -> None:
    """Many blocks: the page has as many as fit, and says what it left out."""
    async with at_work(core_tokens=30) as work:
        await work.say("s", *(f"m{number:03}" for number in range(AUTOMATIC_LIMIT + 20)))
        await work.flush()
        assert core_file(work).count("![[") == AUTOMATIC_LIMIT
        core = await work.memory.core(CoreRequest())
        assert 0 < core.tokens <= 30
        assert len(core.blocks) + len(core.left_out) == AUTOMATIC_LIMIT
        assert (work.root / "core.md").read_text() == core.text


async def test_takes_what_is_gone_or_superseded_from_the_core() -> None:
    """Retired blocks, old words and their copies are embedded no longer; moved ones once."""
    async with at_work() as work:
        await work.say("s", "m1", "m2", "m3")
        await work.flush()

        def change(batch: Batch) -> Answer:
            blocks = {block.text: block for block in batch.blocks}
            label = batch.turns[0].label
            revised = blocks["fact m1"]
            return Edits(
                edits=(
                    Revise(block=revised.block, text="fact m1 anew", cites=(label,)),
                    Retire(block=blocks["fact m2"].block, reason="untrue"),
                    Move(block=blocks["fact m3"].block, topic="people/dana"),
                )
            )

        work.scribe.answer = change
        await work.append("s", [user("fact m1 fact m2 fact m3 changes", "m4")])
        answer = await work.flush()
        assert answer.failures == []
        embeds = [line for line in core_file(work).splitlines() if line.startswith("![[")]
        assert len(embeds) == 2
        assert len([line for line in embeds if "people/dana" in line]) == 1
        page = (await work.memory.core(CoreRequest())).text
        assert "fact m1 anew" in page
        assert "fact m2" not in page
        assert page.count("fact m3") == 1


@pytest.mark.parametrize("place", ["sibling", "ancestor", "stranger"])
async def test_turns_a_revision_of_a_siblings_block_into_an_alternative(place: str) -> None:
    """A branch changes what it rests on or what strangers said; a sibling's block it leaves be."""
    async with at_work() as work:
        await work.append("s", [user("root", "m0")])
        await work.flush()
        where = {"sibling": ("s", "m0"), "ancestor": ("s", "m0"), "stranger": ("t", None)}[place]
        await work.append(where[0], [user("fact of tea", "a1")], after=where[1])
        await work.flush()

        def revise(batch: Batch) -> Answer:
            block = next(one for one in batch.blocks if one.text == "fact of tea")
            labels = (batch.turns[0].label,)
            return Edits(edits=(Revise(block=block.block, text="fact of coffee", cites=labels),))

        work.scribe.answer = revise
        after = "a1" if place == "ancestor" else "m0"
        await work.append("s", [user("fact of tea no more", "b1")], after=after)
        answer = await work.flush()
        assert answer.failures == []
        hits = (await work.memory.recall(RecallRequest(query="fact tea", kinds=("block",)))).hits
        current = {hit.text for hit in hits}
        assert ("fact of tea" in current) is (place == "sibling")
        assert "fact of coffee" in work.topic()


async def test_leaves_a_siblings_block_when_it_is_to_be_retired() -> None:
    """A retirement across branches is dropped, and that is an outcome, not a failure."""
    async with at_work() as work:
        await work.append("s", [user("root", "m0")])
        await work.append("s", [user("fact of tea", "a1")])
        await work.flush()

        def retire(batch: Batch) -> Answer:
            block = next(one for one in batch.blocks if one.text == "fact of tea")
            return Edits(edits=(Retire(block=block.block, reason="no"),))

        work.scribe.answer = retire
        await work.append("s", [user("fact of tea no more", "b1")], after="m0")
        assert (await work.flush()).left == 0
        assert (await work.marks())["b1"][0] == "nothing"
        assert "fact of tea" in work.topic()


async def test_shows_a_writer_a_bounded_number_of_blocks() -> None:
    """The prompt doesn't grow with the memory."""
    async with at_work() as work:
        work.scribe.answer = lambda batch: Edits(
            edits=tuple(
                Add(topic="subjects/facts", text=f"{turn.text} tea", cites=(turn.label,))
                for turn in batch.turns
            )
        )
        await work.say("s", *(f"m{number:03}" for number in range(200)))
        await work.flush()
        await work.append("s", [user("fact of tea", "last"), user("more tea", "more")])
        await work.flush()
        assert 0 < len(work.scribe.batches[-1].blocks) <= 24
