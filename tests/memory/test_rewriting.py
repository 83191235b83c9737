"""Rewriting: another writer gets the turns again, and what the first one wrote makes way."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from memory.at_work import NOTHING, AtWork, Scribe, at_work, keep, keep_each, numbered, user
from turnmark_events.errors import Refused
from turnmark_memory.model import Add, Answer, Batch, Edits, Evidence, Nothing, Revise
from turnmark_memory.organizing import UncitedAnswer
from turnmark_memory.requests import HistoryRequest, UndoRequest
from turnmark_memory.rewriting import since_ms
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store.requests import OpenSession, Rewind

pytestmark = pytest.mark.anyio

GOOD = "subjects/good"


def better(turn: Evidence) -> Add:
    """Returns an edit of a better writer."""
    return keep(turn, GOOD)


def rewrite_all(batch: Batch) -> Answer:
    """Answers with one better block a turn."""
    return Edits(edits=tuple(map(better, batch.turns)))


async def change_writer(work: AtWork, answer: Callable[[Batch], Answer]) -> Scribe:
    """Restarts with another writer in the configuration."""
    scribe = Scribe(answer, name="openai/good")
    work.writer = scribe
    await work.restart()
    return scribe


def live(work: AtWork, topic: str = "subjects/facts") -> list[str]:
    """Returns the lines of a topic that still hold, without ids and footnotes."""
    lines = [line for line in work.topic(topic).splitlines() if line.startswith("fact ")]
    return [line.split("[^")[0] for line in lines if "superseded" not in line]


async def written(work: AtWork, *ids: str) -> None:
    """Lets the first writer write these turns of one conversation."""
    await work.say("s", *ids)
    assert (await work.flush()).left == 0


async def test_supersedes_each_old_block_by_the_new_one_of_its_turn() -> None:
    """The old words are history, dated, with their successor; every mark is the new writer's."""
    async with at_work() as work:
        await written(work, "m1", "m2", "m3")
        scribe = await change_writer(work, rewrite_all)
        answer = await work.flush(rewrite="scribe")
        assert (answer.batches, answer.turns, answer.left) == (1, 3, 0)
        assert scribe.offered == [["m1", "m2", "m3"]]
        assert live(work) == []
        assert live(work, GOOD) == ["fact m1", "fact m2", "fact m3"]
        assert work.topic().count("<!-- superseded ") == 3
        assert set((await work.marks()).values()) == {("kept", "rewritten")}
        assert (await work.flush(rewrite="scribe")).turns == 0


async def test_hides_the_old_blocks_from_the_new_writer() -> None:
    """Shown, they would be taken for what memory holds already."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        scribe = await change_writer(work, rewrite_all)
        await work.flush(rewrite="scribe")
        assert scribe.batches[0].blocks == ()


@pytest.mark.parametrize("error", [WriterFailed("bad"), WriterFailed("down", transport=True)])
async def test_leaves_the_old_blocks_when_the_new_writer_fails(error: WriterFailed) -> None:
    """Whatever fails takes nothing away; when it works again the rewriting goes on."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        before = work.topic()

        def fail(batch: Batch) -> Answer:
            raise error

        scribe = await change_writer(work, fail)
        assert (await work.flush(rewrite="scribe")).left == 2
        assert work.topic() == before
        scribe.answer = rewrite_all
        for _ in range(4):
            await work.flush()
        assert live(work) == []
        assert sorted(live(work, GOOD)) == ["fact m1", "fact m2"]


async def test_takes_away_the_old_blocks_of_a_turn_that_failed_in_between() -> None:
    """A turn that was parked alone while being rewritten still gives way when it is written."""
    async with at_work() as work:
        await written(work, "m1", "m2")

        def fail(batch: Batch) -> Answer:
            raise WriterFailed("bad")

        scribe = await change_writer(work, fail)
        await work.flush(rewrite="scribe")
        for _ in range(6):
            await work.flush()
        assert set((await work.marks()).values()) == {("parked", "failed")}
        scribe.answer = rewrite_all
        await work.flush()
        assert (live(work), sorted(live(work, GOOD))) == ([], ["fact m1", "fact m2"])


async def test_leaves_the_old_blocks_when_the_new_writer_finds_nothing() -> None:
    """An honest nothing settles the turns and destroys nothing."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        before = work.topic()
        await change_writer(work, lambda _: NOTHING)
        assert (await work.flush(rewrite="scribe")).left == 0
        assert work.topic() == before


async def test_retires_what_the_new_writer_left_out_but_never_much() -> None:
    """Of thirty old blocks one is succeeded; a tenth of all or ten go, the rest stays."""
    async with at_work() as work:
        await written(work, *numbered("m", 30))
        await change_writer(work, lambda batch: Edits(edits=(better(batch.turns[0]),)))
        await work.flush(rewrite="scribe")
        assert len(live(work)) == 30 - 1 - 10
        assert live(work, GOOD) == ["fact m001"]
        (newest, *_) = (await work.memory.history(HistoryRequest())).revisions
        await work.memory.undo(UndoRequest(revision=newest.revision))
        assert len(live(work)) == 30
        assert live(work, GOOD) == []


async def test_keeps_a_block_that_rests_on_other_turns_as_well_until_all_are_rewritten() -> None:
    """Two batches, one block across them: it goes with the second, not with the first."""

    def both(batch: Batch) -> Answer:
        cites = tuple(turn.label for turn in batch.turns)
        return Edits(edits=(Add(topic="subjects/facts", text="fact both", cites=cites),))

    async with at_work(Scribe(both), trigger_tokens=4) as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        assert live(work) == ["fact both"]
        work.settings = msgspec.structs.replace(work.settings, trigger_tokens=2)
        seen: list[list[str]] = []

        def watched(batch: Batch) -> Answer:
            seen.append(live(work))
            return rewrite_all(batch)

        scribe = await change_writer(work, watched)
        await work.flush(rewrite="scribe")
        assert scribe.offered == [["m1"], ["m2"]]
        assert seen == [["fact both"], ["fact both"]]
        assert (live(work), live(work, GOOD)) == ([], ["fact m1", "fact m2"])


async def test_leaves_a_block_alone_that_came_to_rest_on_newer_turns() -> None:
    """A turn outside of the rewriting stands behind it too: its words are not all old."""
    async with at_work() as work:
        await written(work, "m1")
        await work.say("other", "n1")

        def add_to(batch: Batch) -> Answer:
            (block,) = batch.blocks
            cites = (*block.cites, batch.turns[0].label)
            return Edits(edits=(Revise(block=block.block, text=block.text, cites=cites),))

        scribe = await change_writer(work, add_to)
        await work.flush()
        scribe.answer = rewrite_all
        await work.flush(rewrite="scribe")
        assert live(work) == ["fact m1"]
        assert live(work, GOOD) == ["fact m1"]


async def test_keeps_what_a_person_touched() -> None:
    """Their words stay, whatever the new writer makes of the turns."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        reword(work, "fact m1", "fact m1, as I say it")
        await work.memory.rescan()
        await change_writer(work, rewrite_all)
        await work.flush(rewrite="scribe")
        assert [line for line in live(work) if "as I say it" in line]
        assert len(live(work)) == 1


def reword(work: AtWork, old: str, new: str) -> None:
    """Saves a topic as an editor does."""
    file = work.root / "topics" / "subjects" / "facts.md"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")


async def test_leaves_the_same_words_in_their_place() -> None:
    """A writer that comes to the same block keeps it: no history, no new id."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        before = work.topic()
        await change_writer(work, keep_each)
        assert (await work.flush(rewrite="scribe")).left == 0
        assert work.topic() == before


async def test_says_first_what_it_would_write() -> None:
    """A dry run names turns and tokens and parks nothing."""
    async with at_work() as work:
        await written(work, "m1", "m2", "m3")
        scribe = await change_writer(work, rewrite_all)
        plan = await work.flush(rewrite="scribe", dry_run=True)
        assert (plan.turns, plan.tokens, plan.left, plan.batches) == (3, 6, 3, 1)
        assert set((await work.marks()).values()) == {("kept", None)}
        assert scribe.batches == []


async def test_rewrites_a_session_or_what_was_said_since_a_day() -> None:
    """Both bounds hold, and the full name of a writer is a bound as well."""
    async with at_work() as work:
        await written(work, "m1")
        await work.append(
            "t",
            [
                user("fact t1", "t1", time="2026-01-01T10:00:00Z"),
                user("fact t2", "t2", time="2026-03-01T10:00:00Z"),
            ],
        )
        await work.flush()
        scribe = await change_writer(work, rewrite_all)
        assert (await work.flush(rewrite="scribe", session="t", dry_run=True)).turns == 2
        assert (await work.flush(rewrite="scribe/1", since="2026-02-01", dry_run=True)).turns == 2
        assert (await work.flush(rewrite="scri", dry_run=True)).turns == 0
        await work.flush(rewrite="scribe", session="t", since="2026-02-01")
        assert scribe.offered == [["t2"]]


async def test_refuses_a_time_without_a_writer_and_what_is_no_time() -> None:
    """`since` bounds a rewriting and nothing else."""
    async with at_work() as work:
        with pytest.raises(Refused, match="name the writer"):
            await work.flush(since="2026-01-01")
        with pytest.raises(Refused, match="not a time"):
            await work.flush(rewrite="scribe", since="last week")
    assert since_ms("2026-01-01T00:00:00Z") == 1_767_225_600_000
    assert since_ms(None) is None


async def test_goes_on_after_a_restart_in_the_middle() -> None:
    """What was offered again is owed; nobody has to ask a second time."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        await work.silence()

        def fail(batch: Batch) -> Answer:
            raise WriterFailed("down", transport=True)

        await change_writer(work, fail)
        await work.flush(rewrite="scribe")
        await work.stop()
        work.writer = Scribe(rewrite_all, name="openai/good")
        work.first_backoff_ms = 1
        await work.start(run=False)
        await work.store.write(lambda tx: tx.execute("UPDATE failure SET not_before_ms = 0"))
        await work.run()
        await work.quiet()
        assert (live(work), live(work, GOOD)) == ([], ["fact m1", "fact m2"])


async def test_passes_over_what_was_taken_back_and_what_is_local() -> None:
    """Neither is offered to a writer that is far away."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        await work.store.rewind(Rewind(session="s", to="m1"))
        await work.store.open_session(OpenSession(session="home", memory="on"))
        await work.say("home", "h1")
        await work.flush()
        await work.store.open_session(OpenSession(session="home", memory="local"))
        scribe = await change_writer(work, rewrite_all)
        await work.flush(rewrite="scribe")
        assert scribe.offered == [["m1"]]


async def test_offers_again_what_no_block_cites() -> None:
    """Turns that another writer found nothing in; not those that a live block rests on."""

    def first_only(batch: Batch) -> Answer:
        return Edits(edits=(keep(batch.turns[0]),))

    async with at_work(Scribe(first_only)) as work:
        await work.say("s", "m1", "m2", "m3")
        await work.say("t", "t1")
        await work.flush()
        work.scribe.answer = lambda _: Nothing(reason="x")
        assert (await work.memory._flushing.uncited()).turns == ()
        scribe = await change_writer(work, rewrite_all)
        told = await work.organize(uncited=True, dry_run=True)
        assert told.uncited == UncitedAnswer(turns=2, tokens=4)
        assert (told.owed, scribe.batches) == (0, [])
        for wrong in ({"dry_run": True}, {"dry_run": True, "uncited": True, "approve": True}):
            with pytest.raises(Refused, match="dry run"):
                await work.organize(**wrong)
        offered = await work.memory._flushing.offer_uncited()
        assert [tokens for _, tokens in offered.turns] == [2, 2]
        await work.flush()
        assert sorted(scribe.offered_ids) == ["m2", "m3"]
        assert sorted(live(work)) == ["fact m1", "fact t1"]
        assert live(work, GOOD) == ["fact m2", "fact m3"]
        assert (await work.memory._flushing.offer_uncited()).turns == ()
