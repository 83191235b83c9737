"""Facts over time: newer evidence replaces older, not the reverse; people keep their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from memory.at_work import AtWork, Scribe, assistant, at_work, user
from turnmark_memory.model import Add, Answer, Batch, Edit, Edits, Retire, Revise
from turnmark_memory.requests import RecallRequest
from turnmark_session_store.model import Speaker

pytestmark = pytest.mark.anyio

PLACE = "people/user"
WORK = "projects/shop"
OLD, NEW = "2026-01-10T09:00:00Z", "2026-03-10T09:00:00Z"
DANA = Speaker(id="u-17", name="Dana")
BO = Speaker(id="u-23", name="Bo")


class Told:
    """A writer that adds each turn's words, until it is told what to answer instead."""

    def __init__(self, topic: str = PLACE) -> None:
        self.topic = topic
        self.edits: Callable[[Batch], list[Edit]] | None = None

    def __call__(self, batch: Batch) -> Answer:
        if self.edits is not None:
            return Edits(edits=tuple(self.edits(batch)))
        return Edits(
            edits=tuple(
                Add(topic=self.topic, text=turn.text, cites=(turn.label,)) for turn in batch.turns
            )
        )


def revise_first(batch: Batch) -> list[Edit]:
    """Puts the batch's last words in place of the first block that it is shown."""
    turn = batch.turns[-1]
    return [Revise(block=batch.blocks[0].block, text=turn.text, cites=(turn.label,))]


def succeed_first(batch: Batch) -> list[Edit]:
    """Adds the batch's last words and retires the first block in their favour."""
    turn = batch.turns[-1]
    return [
        Add(topic=batch.blocks[0].topic, text=turn.text, cites=(turn.label,)),
        Retire(block=batch.blocks[0].block, reason="no longer so", successor="+0"),
    ]


def retire_first(batch: Batch) -> list[Edit]:
    """Only takes the first block away."""
    return [Retire(block=batch.blocks[0].block, reason="no longer so")]


async def say(work: AtWork, session: str, words: str, at: str, **more: Any) -> None:
    """Says something in a conversation of its own and lets it be written."""
    turn = assistant(words, time=at) if more.pop("by_assistant", False) else None
    await work.append(session, [turn or user(words, time=at, **more)])
    assert (await work.flush()).left == 0


def lines(work: AtWork, topic: str = PLACE) -> tuple[list[str], list[str]]:
    """Returns the words that hold and those that are history."""
    found = [line for line in work.topic(topic).splitlines() if "^b-" in line]
    held = [line.split("[^")[0] for line in found if "superseded" not in line]
    return held, [line.split("[^")[0] for line in found if "superseded" in line]


LISBON, PORTO = "I live in Lisbon.", "I live in Porto."
CHANGES = [revise_first, succeed_first]


@pytest.mark.parametrize("change", CHANGES)
async def test_keeps_the_older_words_as_history(change: Callable[[Batch], list[Edit]]) -> None:
    """What was said later holds; what held before is dated and shown only with the history."""
    async with at_work(Scribe(told := Told())) as work:
        await say(work, "s1", LISBON, OLD)
        told.edits = change
        await say(work, "s2", PORTO, NEW)
        assert lines(work) == ([PORTO], [LISBON])
        found = await work.memory.recall(RecallRequest(query="live Lisbon", kinds=("block",)))
        assert LISBON not in [hit.text for hit in found.hits]
        found = await work.memory.recall(
            RecallRequest(query="live Lisbon", kinds=("block",), history=True)
        )
        (old,) = [hit for hit in found.hits if hit.text == LISBON]
        assert old.superseded_by is not None


@pytest.mark.parametrize("change", CHANGES)
async def test_files_older_words_that_come_late_as_history(
    change: Callable[[Batch], list[Edit]],
) -> None:
    """An old transcript that is imported today does not move anybody back."""
    async with at_work(Scribe(told := Told())) as work:
        await say(work, "s1", PORTO, NEW)
        told.edits = change
        await say(work, "s2", LISBON, OLD)
        assert lines(work) == ([PORTO], [LISBON])


async def test_takes_nothing_out_on_older_evidence() -> None:
    """A retirement without a successor rests on its batch, which is older here."""
    async with at_work(Scribe(told := Told())) as work:
        await say(work, "s1", PORTO, NEW)
        told.edits = retire_first
        await say(work, "s2", "I don't live in Porto.", OLD)
        assert lines(work) == ([PORTO], [])
        await say(work, "s3", "I don't live in Porto.", "2026-04-01T09:00:00Z")
        assert lines(work) == ([], [])


@pytest.mark.parametrize("change", CHANGES)
async def test_keeps_what_one_person_said_beside_what_another_says(
    change: Callable[[Batch], list[Edit]],
) -> None:
    """Bo's view of where Dana lives stands beside Dana's own; Dana herself may correct it."""
    async with at_work(Scribe(told := Told("people/dana"))) as work:
        await say(work, "s1", "I live in Lisbon.", OLD, speaker=DANA)
        told.edits = change
        await say(work, "s2", "Dana live in Porto.", NEW, speaker=BO)
        assert lines(work, "people/dana") == ([LISBON, "Dana live in Porto."], [])


async def test_lets_people_correct_themselves_in_any_session() -> None:
    """The same speaker id is the same person."""
    async with at_work(Scribe(told := Told("people/dana"))) as work:
        await say(work, "s1", "我住在里斯本。", OLD, speaker=DANA)
        told.edits = revise_first
        await say(work, "s2", "我现在住在波尔图。", NEW, speaker=Speaker(id="u-17", name="Dana W."))
        assert lines(work, "people/dana") == (["我现在住在波尔图。"], ["我住在里斯本。"])


async def test_lets_an_assistant_bring_news_of_a_project_but_not_of_a_person() -> None:
    """What it did to the port is so; where somebody lives is theirs to say."""
    async with at_work(Scribe(told := Told(WORK))) as work:
        await say(work, "s1", "The shop listens on port 8080.", OLD)
        told.edits = revise_first
        await say(work, "s2", "The shop listens on port 9090 now.", NEW, by_assistant=True)
        assert lines(work, WORK) == (
            ["The shop listens on port 9090 now."],
            ["The shop listens on port 8080."],
        )
        told.edits, told.topic = None, PLACE
        await say(work, "s3", LISBON, OLD)
        told.edits = revise_first
        await say(work, "s4", "You live in Porto, not Lisbon.", NEW, by_assistant=True)
        assert lines(work) == ([LISBON, "You live in Porto, not Lisbon."], [])


async def test_lets_anybody_say_the_same_again() -> None:
    """Another's word for the same words is a second cite, not a second block."""

    def agree(batch: Batch) -> list[Edit]:
        block = batch.blocks[0]
        cites = (*block.cites, batch.turns[0].label)
        return [Revise(block=block.block, text=block.text, cites=cites)]

    async with at_work(Scribe(told := Told(WORK))) as work:
        await say(work, "s1", "The shop closes at six.", OLD, speaker=DANA)
        told.edits = agree
        await say(work, "s2", "Yes, the shop closes at six.", NEW, speaker=BO)
        (line,) = [line for line in work.topic(WORK).splitlines() if "^b-" in line]
        assert line.count("[^s-") == 2


async def test_lets_a_block_grow_with_older_detail() -> None:
    """It goes on citing its newest turn, so nothing newer is lost."""

    def enrich(batch: Batch) -> list[Edit]:
        block = batch.blocks[0]
        cites = (*block.cites, batch.turns[0].label)
        return [Revise(block=block.block, text="I live in Porto, before in Lisbon.", cites=cites)]

    async with at_work(Scribe(told := Told())) as work:
        await say(work, "s1", PORTO, NEW)
        told.edits = enrich
        await say(work, "s2", LISBON, OLD)
        assert lines(work)[0] == ["I live in Porto, before in Lisbon."]


@pytest.mark.parametrize("change", CHANGES)
async def test_leaves_the_block_of_a_sibling_branch_alone(
    change: Callable[[Batch], list[Edit]],
) -> None:
    """Two ways a conversation went are alternatives, not a change of mind."""
    async with at_work(Scribe(told := Told())) as work:
        await work.append("s", [user("Where shall I live?", "m1", time=OLD)])
        await work.append("s", [user(LISBON, "a1", time=OLD)], after="m1")
        await work.flush()
        told.edits = lambda batch: [edit for edit in change(only(batch, LISBON)) if batch.blocks]
        await work.append("s", [user("I live in Porto, not Lisbon.", "b1", time=NEW)], after="m1")
        assert (await work.flush()).left == 0
        held, history = lines(work)
        assert {LISBON, "I live in Porto, not Lisbon."} <= set(held)
        assert history == []


def only(batch: Batch, words: str) -> Batch:
    """Returns the batch with just the block of these words."""
    blocks = tuple(block for block in batch.blocks if block.text == words)
    return msgspec.structs.replace(batch, blocks=blocks)
