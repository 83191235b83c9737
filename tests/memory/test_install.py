"""Installs on a real workspace: whole or not at all, and finished after a crash."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest
from structlog.testing import capture_logs

from memory.at_work import NOTHING, AtWork, at_work, keep, keep_each, numbered, said
from turnmark_events.errors import Refused, Unavailable
from turnmark_events.types import CoreRebuilt
from turnmark_memory.memory import Memory
from turnmark_memory.model import Add, Answer, Batch, Edits, Revise
from turnmark_memory.requests import OwedRequest, RecallRequest, TopicsRequest
from turnmark_session_store import failpoints

pytestmark = pytest.mark.anyio


class Crashed(Exception):
    """Stands for the end of the process at a failpoint."""


async def crash_at(work: AtWork, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the process of `work`, as far as one process can, at a failpoint during a flush."""

    def hook(reached: str) -> None:
        if reached == name:
            raise Crashed

    async def flush() -> None:
        async with anyio.create_task_group() as tasks:
            await work.run_in(tasks)
            monkeypatch.setattr(failpoints, "hook", hook)
            await work.flush()
            raise AssertionError(f"{name} was not reached")

    with pytest.raises(BaseExceptionGroup) as caught:
        await flush()
    monkeypatch.setattr(failpoints, "hook", None)
    assert [type(error) for error in flat(caught.value)] == [Crashed]
    await work.stop()


def flat(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in flat(inner)]
    return [error]


ASKED_AGAIN = ("batch.claimed", "batch.archived", "batch.written", "install.before_journal")
JOURNALLED = (
    "install.journalled",
    "install.recorded",
    "install.noted",
    "install.manifest",
    "install.staged",
    "install.exchanged",
    "install.created",
    "install.flushed",
    "install.file",
    "install.revision",
    "install.in_place",
    "install.settled",
    "install.cleared",
    "install.indexed",
    "core.rendered",
    "core.replaced",
)


@pytest.mark.parametrize("name", ASKED_AGAIN + JOURNALLED)
async def test_finishes_after_a_crash_at_any_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reopened, it holds each block once; from the journal on no writer is asked again."""
    async with at_work() as work:
        work.scribe.answer = lambda batch: Edits(
            edits=tuple(keep(turn, f"subjects/{turn.session}") for turn in batch.turns)
        )
        await work.say("first", "f1")
        await work.flush()
        ids = numbered("m", 5)
        await work.say("s", *ids)
        asked = len(work.scribe.batches)
        await work.restart(run=False)
        await crash_at(work, name, monkeypatch)
        await work.start()
        await work.flush()
        assert work.facts("subjects/s") == ids
        assert work.facts("subjects/first") == ["f1"]
        assert {outcome for outcome, _ in (await work.marks()).values()} == {"kept"}
        assert sorted(work.source_ids()) == ["f1", *ids]
        again = len(work.scribe.batches) - asked
        assert again == (1 if name in JOURNALLED or name in ASKED_AGAIN[:2] else 2)
        hits = (await work.memory.recall(RecallRequest(query="fact m003", kinds=("block",)))).hits
        assert len([hit for hit in hits if "m003" in hit.text]) == 1
        assert await work.rows("SELECT * FROM claim") == []


async def test_keeps_what_a_person_saved_between_compose_and_exchange(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A person's words win, what they removed stays removed, and the new block is there."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        file = work.root / "topics" / "subjects" / "facts.md"

        def hook(name: str) -> None:
            if name == "install.manifest":
                monkeypatch.setattr(failpoints, "hook", None)
                text = file.read_text().replace("fact m1", "fact m1 as I put it")
                lines = [line for line in text.splitlines() if not line.startswith("fact m2")]
                file.write_text("\r\n".join([*lines, "", "My own words.", ""]))

        monkeypatch.setattr(failpoints, "hook", hook)
        await work.say("s", "m3")
        await work.flush()
        text = file.read_text()
        assert "fact m1 as I put it" in text
        assert "fact m2" not in text
        assert text.count("fact m3") == 1
        assert text.count("My own words.") == 1
        # No event told of the save: the install itself has looked again.
        assert (await work.marks())["m2"] == ("parked", "removed")
        asked = RecallRequest(query="my own words", kinds=("block",))
        assert "My own words." in {hit.text for hit in (await work.memory.recall(asked)).hits}
        monkeypatch.setattr(failpoints, "hook", None)
        await work.say("s", "m4")
        await work.flush()
        assert [file.read_text().count(f"fact m{n}") for n in (1, 2, 3, 4)] == [1, 0, 1, 1]


async def test_puts_batches_that_add_to_one_topic_into_one_install() -> None:
    """Two conversations, one topic: both blocks, one revision."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.say("t", "t1")
        installs = work.memory.installer.installs
        await work.flush()
        assert sorted(work.facts()) == ["m1", "t1"]
        assert work.memory.installer.installs == installs + 1


async def test_applies_one_batch_whole_and_another_not_at_all() -> None:
    """An edit that can't be applied takes its own batch down, not its neighbour."""
    async with at_work() as work:
        (work.root / "topics" / "subjects" / "odd.md").mkdir()

        def answer(batch: Batch) -> Answer:
            edits = [keep(turn) for turn in batch.turns]
            if batch.turns[0].session == "odd":
                edits.append(keep(batch.turns[0], "subjects/odd"))
            return Edits(edits=tuple(edits))

        work.scribe.answer = answer
        await work.say("odd", "x1")
        await work.say("s", "m1")
        result = await work.flush()
        assert work.facts() == ["m1"]
        assert (result.batches, result.turns, result.left) == (2, 1, 1)
        assert "odd" in result.failures[0].reason
        for _ in range(3):
            await work.flush()
        assert "x1" not in await work.marks()
        (work.root / "topics" / "subjects" / "odd.md").rmdir()
        assert (await work.flush()).left == 0
        assert work.facts("subjects/odd") == ["x1"]


async def test_goes_on_with_a_topic_that_is_a_link() -> None:
    """A link is not followed: a clear failure, the target untouched, the batch owed."""
    async with at_work() as work:
        target = work.place / "mine.md"
        target.write_text("mine\n")
        (work.root / "topics" / "subjects" / "facts.md").symlink_to(target)
        await work.say("s", "m1")
        result = await work.flush()
        assert result.left == 1
        assert result.failures
        assert target.read_text() == "mine\n"
        work.scribe.answer = lambda batch: Edits(
            edits=tuple(keep(turn, "subjects/other") for turn in batch.turns)
        )
        assert (await work.flush()).left == 0


async def test_goes_on_with_a_core_topic_that_is_a_directory() -> None:
    """Promotion waits; writing doesn't."""
    async with at_work() as work:
        (work.root / "topics" / "core.md").mkdir()
        await work.say("s", "m1")
        assert (await work.flush()).left == 0
        await work.restart()
        assert work.facts() == ["m1"]


async def test_offers_what_an_older_workspace_no_longer_holds_again_once() -> None:
    """Law 5: yesterday's copy is put back; later turns come again as `lost`, and are said so."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        await work.stop()
        shutil.copytree(work.root, work.place / "yesterday")
        await work.start()
        await work.say("s", "m3", "m4")
        await work.flush()
        await work.stop()
        shutil.rmtree(work.root)
        (work.place / "yesterday").rename(work.root)
        await work.start()
        marks = await work.marks()
        assert marks["m2"] == ("kept", None)
        assert marks["m3"] == marks["m4"] == ("parked", "lost")
        assert (await work.memory.owed(OwedRequest())).tips[0].state == "waiting"
        await work.flush()
        assert sorted(work.facts()) == ["m1", "m2", "m3", "m4"]
        await work.restart()
        await work.quiet()
        assert await work.owed_count() == 0
        assert work.scribe.offered == [["m1", "m2"], ["m3", "m4"], ["m3", "m4"]]


@pytest.mark.parametrize("damage", ["unreadable", "missing", "negative"])
async def test_offers_all_again_where_the_revision_cant_be_trusted(damage: str) -> None:
    """Law 5: every turn comes again, and it is said; what memory holds is not said twice."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        work.scribe.answer = lambda _: NOTHING
        await work.say("t", "n1")
        await work.flush()
        work.scribe.answer = keep_each
        await work.stop()
        file = work.root / ".turnmark" / "revision.json"
        if damage == "missing":
            file.unlink()
        else:
            file.write_text("{" if damage == "unreadable" else '{"revision": -1, "at": null}')
        with capture_logs() as logs:
            await work.start()
        (told,) = (one for one in logs if one["event"] == "workspace_went_back")
        assert (told["log_level"], told["turns_offered_again"]) == ("warning", 3)
        assert await work.marks() == dict.fromkeys(["m1", "m2", "n1"], ("parked", "lost"))
        await work.flush()
        assert sorted(work.facts()) == ["m1", "m2", "n1"]
        assert (await work.memory.recall(RecallRequest(query="fact m1"))).hits


async def test_a_workspace_that_went_back_is_trusted_from_then_on() -> None:
    """Law 5: what was looked at again and came to nothing is not offered at every start."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        await work.stop()
        (work.root / ".turnmark" / "revision.json").write_text("{")
        await work.start()
        work.scribe.answer = lambda _: NOTHING
        await work.flush()
        with capture_logs() as logs:
            await work.restart()
        assert "workspace_went_back" not in {one["event"] for one in logs}
        assert await work.owed_count() == 0


async def test_writes_again_without_repeating_where_the_store_is_the_older_one() -> None:
    """The store went back: its turns have no marks; the same words of the same turns stay once."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.stop()
        for file in work.place.glob("sessions.db*"):
            shutil.copy(file, work.place / f"old-{file.name}")
        await work.start()
        await work.flush()
        await work.stop()
        for file in work.place.glob("sessions.db*"):
            file.unlink()
        for file in work.place.glob("old-sessions.db*"):
            file.rename(work.place / file.name.removeprefix("old-"))
        await work.start()
        assert await work.owed_count() == 2
        await work.flush()
        assert sorted(work.facts()) == ["m1", "m2"]
        assert sorted(work.source_ids()) == ["m1", "m2"]


async def test_rebuilds_a_lost_or_damaged_index_to_the_same_recall() -> None:
    """Law 11: deleted, damaged or behind, it is made anew from topics and sources."""
    async with at_work() as work:
        await work.say("s", *numbered("m", 6))
        await work.flush()

        async def found() -> list[tuple[str, str]]:
            answer = await work.memory.recall(RecallRequest(query="fact m002", k=20))
            return [(hit.ref, hit.text) for hit in answer.hits]

        before = await found()
        assert before
        index = work.root / ".turnmark" / "index.db"
        for damage in ("deleted", "damaged", "behind"):
            if damage == "behind":
                work.memory._shelf.index.revision = 0
            await work.stop()
            if damage == "deleted":
                index.unlink()
            elif damage == "damaged":
                index.write_bytes(b"not a database" * 100)
            await work.start()
            assert await found() == before


async def test_recall_rebuilds_an_index_whose_pages_went_bad_under_it() -> None:
    """Damage that only a read meets costs that read some time, and nobody an answer."""
    async with at_work() as work:
        await work.say("s", *numbered("m", 300))
        await work.flush()
        asked = RecallRequest(query="fact m150", k=3)
        before = await work.memory.recall(asked)
        assert before.hits
        await work.stop()
        path = work.root / ".turnmark" / "index.db"
        held = bytearray(path.read_bytes())
        for place in range(len(held) // 4096):
            page = slice(place * 4096, (place + 1) * 4096)
            if b"fact m1" in held[page]:
                held[page] = b"\xff" * 4096
        path.write_bytes(bytes(held))
        await work.start()
        assert await work.memory.recall(asked) == before


async def test_makes_the_core_page_again_byte_for_byte() -> None:
    """Law 11: `core.md` deleted or edited is rendered anew; the event comes only with a change."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        page = work.root / "core.md"
        before = page.read_bytes()
        assert b"fact m1" in before
        await work.memory.installer.rebuild_core()
        seen = len([event for event in work.events if isinstance(event, CoreRebuilt)])
        assert seen == 1
        page.unlink()
        await work.memory.installer.rebuild_core()
        assert page.read_bytes() == before
        page.write_text("mine")
        await work.restart()
        assert page.read_bytes() == before


async def test_asks_a_writer_again_when_a_neighbour_changed_its_block_first() -> None:
    """Two batches revise one block at once: neither is lost, and nothing is halved."""
    async with at_work() as work:
        await work.say("first", "f1")
        await work.flush()

        def revise(batch: Batch) -> Answer:
            block = batch.blocks[0]
            text = f"{block.text} and {batch.turns[0].id}"
            cites = (*block.cites, batch.turns[0].label)
            return Edits(edits=(Revise(block=block.block, text=text, cites=cites),))

        work.scribe.answer = revise
        await work.say("s", "m1")
        await work.say("t", "t1")
        result = await work.flush()
        assert (result.left, result.failures) == (0, [])
        current = [line for line in work.topic().splitlines() if "and m1" in line and "t1" in line]
        assert len(current) == 1


async def test_adds_the_cites_of_all_who_say_the_same_again() -> None:
    """A hundred conversations that repeat a block's words all cite it after one install."""
    async with at_work() as work:
        await work.append("first", said("f1"))
        await work.flush()

        def again(batch: Batch) -> Answer:
            block = batch.blocks[0]
            cites = (*block.cites, batch.turns[0].label)
            return Edits(edits=(Revise(block=block.block, text=block.text, cites=cites),))

        work.scribe.answer = again
        for name in numbered("s", 100):
            await work.say(name, f"{name}x")
        result = await work.flush()
        assert (result.left, result.failures) == (0, [])
        assert len(work.scribe.batches) == 101
        line = next(line for line in work.topic().splitlines() if line.startswith("fact f1"))
        assert line.count("[^s-") == 101


async def test_refuses_to_open_a_workspace_without_a_readable_identity(tmp_path: Path) -> None:
    """Its marks can't be told from another's: nothing is guessed."""
    async with at_work() as work:
        await work.stop()
        (work.root / ".turnmark" / "workspace.json").write_text("{")
        with pytest.raises((Refused, Unavailable)):
            await work.start()
        shutil.rmtree(work.root)
        await work.start()
        assert isinstance(work.memory, Memory)


async def test_lists_topics_and_shows_what_a_block_rests_on() -> None:
    """The index is in step with the files after an install."""
    async with at_work() as work:
        work.scribe.answer = lambda batch: Edits(
            edits=tuple(
                Add(topic=f"people/p{number}", text=turn.text, cites=(turn.label,))
                for number, turn in enumerate(batch.turns)
            )
        )
        await work.say("s", "m1", "m2")
        await work.flush()
        listed = await work.memory.topics(TopicsRequest())
        assert {(one.topic, one.blocks) for one in listed.topics} >= {
            ("people/p0", 1),
            ("people/p1", 1),
        }
        work.scribe.answer = keep_each
