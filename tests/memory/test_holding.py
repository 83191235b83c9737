"""The brake: a pass that would remove too much waits for a person, across restarts too."""

from __future__ import annotations

from typing import Any

import pytest

from memory.at_work import AtWork, at_work, said, user
from memory.tidier import Shown, Tidier, blocks, cited, topic_files
from turnmark_events.errors import NotFound, Refused
from turnmark_events.types import NightDone
from turnmark_memory.abouts import plain_about
from turnmark_memory.holding import HELD
from turnmark_memory.night_pass import is_too_much
from turnmark_memory.requests import UndoRequest
from turnmark_session_store.requests import SessionRef

FACTS = "subjects/facts.md"


def delete_half(shown: Shown) -> list[dict[str, Any]]:
    """Wants half of the blocks superseded by the last."""
    *rest, last = (block["block"] for block in shown)
    half = rest[: len(shown) // 2]
    return [{"op": "retire", "block": one, "successor": last, "reason": "x"} for one in half]


async def remembering(work: AtWork, count: int = 30) -> None:
    """Fills a topic with blocks."""
    await work.append("s", said(*(f"{n:03}" for n in range(count))))
    await work.flush()


@pytest.mark.parametrize(
    ("removes", "of", "too_much"),
    [(10, 12, False), (11, 12, True), (11, 109, True), (11, 110, False), (100, 999, True)],
)
def test_holds_more_than_ten_and_more_than_a_tenth(removes: int, of: int, too_much: bool) -> None:
    """Law 14: more than max(10, a tenth) of the blocks."""
    assert is_too_much(removes, of) == too_much


@pytest.mark.anyio
async def test_holds_a_model_that_wants_to_delete_half_the_memory() -> None:
    """No block is touched; who asks, the event and the status say what waits."""
    async with at_work(tidier=Tidier(delete_half)) as work:
        await remembering(work)
        before = topic_files(work)[FACTS]
        answer = await work.organize()
        assert topic_files(work)[FACTS] == before
        assert answer.held is not None
        assert (answer.held.removes, answer.held.blocks) == (15, 30)
        (done,) = (event for event in work.events if isinstance(event, NightDone))
        assert done.held == (answer.held.name,)
        assert [one.name for one in work.memory.statistics()["held"]] == [answer.held.name]
        assert any("would remove 15 of 30 blocks" in line for line in answer.report)


@pytest.mark.anyio
async def test_approve_does_it_and_undo_restores_every_byte() -> None:
    """After a restart, by name; one revision, taken back as one."""
    async with at_work(tidier=Tidier(delete_half)) as work:
        await remembering(work)
        held = (await work.organize()).held
        before = topic_files(work)
        labels = cited(work)
        await work.restart()
        assert held is not None
        answer = await work.organize(approve=held.name)
        assert answer.held is None
        assert answer.changed == 15
        gone = [block for block in blocks(work) if block.superseded_by is not None]
        assert len(gone) == 15
        assert cited(work) == labels - {label for block in gone for label in block.cites}
        revision = (await work.rows("SELECT revision FROM workspace"))[0][0]
        await work.memory.undo(UndoRequest(revision=revision))
        assert topic_files(work) == before
        with pytest.raises(NotFound):
            await work.organize(approve=held.name)


@pytest.mark.anyio
async def test_discard_drops_it_for_good() -> None:
    """The same pass is not held again, and nothing is asked about it."""
    tidier = Tidier(delete_half)
    async with at_work(tidier=tidier) as work:
        await remembering(work)
        await work.organize()
        before = topic_files(work)
        assert (await work.organize(discard=True)).held is None
        await work.restart()
        assert (await work.organize()).held is None
        assert topic_files(work) == before
        assert len(tidier.questions) == 1


@pytest.mark.anyio
async def test_holds_equal_blocks_as_well_and_not_what_was_discarded() -> None:
    """Without a model: twelve merges wait; discarded none is made, until there is more to it."""
    async with at_work() as work:
        for session in ("a", "b"):
            await work.append(session, [user(f"Fact {n}.", f"{session}{n}") for n in range(12)])
            await work.flush()
        first = await work.organize()
        assert first.held is not None
        assert len(blocks(work)) == 24
        again = await work.organize()
        assert again.held == first.held
        await work.organize(discard=first.held.name)
        assert (await work.organize()).held is None
        assert len(blocks(work)) == 24
        await work.append("c", [user("Fact 0.", "c0")])
        await work.organize()
        assert len(blocks(work)) == 23


@pytest.mark.anyio
async def test_forgetting_reaches_what_a_model_said_a_topic_is_about() -> None:
    """Made of blocks, it may repeat them: no file of the workspace holds it afterwards."""
    words = iter(["the secret of Ana", "the other secret of Ana", "nothing"])
    tidier = Tidier(lambda _shown: {"edits": [], "about": next(words)})
    async with at_work(tidier=tidier) as work:
        await remembering(work, 4)
        await work.organize()
        await work.say("t", "x")
        await work.flush()
        await work.organize()
        assert "about: the other secret of Ana\n" in work.topic()
        deleted = await work.store.delete_session(SessionRef(session="s"))
        await work.memory.forgotten(deleted.turns)
        assert f"about: {plain_about('subjects/facts')}\n" in work.topic()
        for file in work.root.rglob("*"):
            assert not file.is_file() or b"secret" not in file.read_bytes(), file
        assert work.facts() == ["x"]


@pytest.mark.anyio
async def test_approve_leaves_alone_what_changed_since() -> None:
    """A person's edit, a take-back and a new fact since: they stand; the rest is done."""
    async with at_work(tidier=Tidier(delete_half)) as work:
        await remembering(work)
        held = (await work.organize()).held
        file = work.root / "topics" / FACTS
        file.write_text(file.read_text().replace("fact 003", "By hand"))
        await work.say("t", "new")
        await work.flush()
        assert held is not None
        await work.organize(approve=held.name)
        by_text = {block.text: block for block in blocks(work)}
        assert by_text["By hand"].superseded_by is None
        assert by_text["fact new"].superseded_by is None
        assert by_text["fact 002"].superseded_by is not None
        assert sum(block.superseded_by is not None for block in blocks(work)) == 14


@pytest.mark.anyio
async def test_stays_held_while_a_file_keeps_it_from_being_done() -> None:
    """A link in the topic's place: the pass is neither done nor lost."""
    async with at_work(tidier=Tidier(delete_half)) as work:
        await remembering(work)
        held = (await work.organize()).held
        assert held is not None
        file = work.root / "topics" / FACTS
        aside = work.root / "aside.md"
        file.rename(aside)
        file.symlink_to(aside)
        answer = await work.organize(approve=held.name)
        assert answer.held == held
        assert any("Left undone" in line for line in answer.report)
        file.unlink()
        aside.rename(file)
        answer = await work.organize(approve=held.name)
        assert (answer.held, answer.changed) == (None, 15)


@pytest.mark.anyio
async def test_says_which_pass_is_meant() -> None:
    """None held, an unknown name, both at once: each is refused with a sentence."""
    async with at_work() as work:
        with pytest.raises(NotFound):
            await work.organize(approve=True)
        with pytest.raises(NotFound):
            await work.organize(discard="tidy-00000000")
        with pytest.raises(Refused):
            await work.organize(approve="a", discard="b")


@pytest.mark.anyio
async def test_forgetting_reaches_what_is_held() -> None:
    """Words that a held pass repeats are gone from it: law 13."""
    async with at_work(tidier=Tidier(delete_half)) as work:
        await remembering(work)
        await work.organize()
        folder = work.root / HELD
        assert list(folder.iterdir())
        deleted = await work.store.delete_session(SessionRef(session="s"))
        await work.memory.forgotten(deleted.turns)
        assert not list(folder.iterdir())
        assert work.memory.statistics()["held"] == []
        assert (await work.organize()).held is None


@pytest.mark.anyio
async def test_a_held_file_that_cannot_be_read_stops_nothing() -> None:
    """It is logged and left; nights go on."""
    async with at_work() as work:
        await work.say("s", "m1")
        folder = work.root / HELD
        (folder / "tidy-00000000.json").write_text("{")
        await work.restart()
        assert (await work.organize()).held is None
        assert work.facts() == ["m1"]
