"""Forgetting: what is shown is what goes, it is gone from every file, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory.at_work import AtWork, Scribe, at_work, keep_each, user
from turnmark_events.errors import Forgotten, NotFound, Refused, Stale
from turnmark_memory.abouts import ABOUTS_FILE
from turnmark_memory.forgetting import ForgetPlan, Forgot
from turnmark_memory.model import Add, Answer, Batch, Edits, Move, Pin, Retire, Revise
from turnmark_memory.requests import (
    EditRequest,
    FlushRequest,
    ForgetRequest,
    HistoryRequest,
    RecallRequest,
    UndoRequest,
)
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_session_store.model import Speaker
from turnmark_session_store.requests import ForkPoint, OpenSession

pytestmark = pytest.mark.anyio

SECRET = "The spare key lies under the third flowerpot on the left."
OTHER = "Dana leads the billing team since May 2026."


async def planned(work: AtWork, **aim: Any) -> ForgetPlan:
    """Returns a dry run's answer."""
    answer = await work.memory.forget(ForgetRequest(**aim))
    assert isinstance(answer, ForgetPlan)
    return answer


async def forgot(work: AtWork, **aim: Any) -> Forgot:
    """Forgets in both steps."""
    confirm = (await planned(work, **aim)).confirm
    answer = await work.memory.forget(ForgetRequest(**aim, dry_run=False, confirm=confirm))
    assert isinstance(answer, Forgot)
    return answer


def holding(work: AtWork, words: str) -> list[str]:
    """Returns the files of state and workspace that hold `words`."""
    roots = (work.store.path.parent, work.root)
    return [
        str(path.relative_to(root))
        for root in roots
        for path in sorted(Path(root).rglob("*"))
        if path.is_file() and words.encode() in path.read_bytes()
    ]


async def two_facts(work: AtWork) -> None:
    """Appends and writes two turns of one session, a block each."""
    await work.append("home", [user(SECRET, "m1"), user(OTHER, "m2")])
    await work.memory.flush(FlushRequest())


async def test_a_dry_run_changes_nothing_and_shows_what_would_go() -> None:
    """Counts, examples and a confirm; asked twice it answers the same."""
    async with at_work() as work:
        await two_facts(work)
        plan = await planned(work, turn="m1")
        assert (plan.turns, plan.blocks, plan.sources, plan.sessions) == (1, 1, 1, 1)
        assert {SECRET} == {example.text for example in plan.examples}
        assert plan == await planned(work, turn="m1")
        assert holding(work, "third flowerpot")


async def test_a_forgotten_turn_is_in_no_file() -> None:
    """Store, log, sources, topics, revisions, index: nothing holds the words; the rest stays."""
    async with at_work() as work:
        await two_facts(work)
        done = await forgot(work, turn="m1")
        assert (done.turns, done.blocks, done.sources) == (1, 1, 1)
        assert set(done.proof.left.values()) == {0}
        assert done.proof.found == ()
        assert done.proof.searched > 5
        assert holding(work, "third flowerpot") == []
        assert OTHER in (await work.memory.recall(RecallRequest(query="Dana"))).hits[0].text
        with pytest.raises(Forgotten):
            await planned(work, turn="home#m1")


async def test_erases_only_with_the_confirm_of_what_is_there_now() -> None:
    """No confirm, another request's, or one from before more was said: nothing is erased."""
    async with at_work() as work:
        await two_facts(work)
        confirm = (await planned(work, session="home")).confirm
        with pytest.raises(Refused, match="dry"):
            await work.memory.forget(ForgetRequest(session="home", dry_run=False))
        with pytest.raises(Stale):
            await work.memory.forget(ForgetRequest(turn="m1", dry_run=False, confirm=confirm))
        await work.append("home", [user("One more thing.", "m3")])
        with pytest.raises(Stale, match="again"):
            await work.memory.forget(ForgetRequest(session="home", dry_run=False, confirm=confirm))
        assert holding(work, "third flowerpot")


async def test_a_block_that_rests_on_others_too_goes_and_they_are_written_again() -> None:
    """The block may repeat the forgotten turn; what the other turn said comes back without it."""

    def together(batch: Batch) -> Answer:
        if len(batch.turns) == 1:
            return keep_each(batch)
        words = " ".join(turn.text for turn in batch.turns)
        cites = tuple(turn.label for turn in batch.turns)
        return Edits(edits=(Add(topic="subjects/home", text=words, cites=cites),))

    async with at_work() as work:
        work.scribe.answer = together
        await two_facts(work)
        await forgot(work, turn="m1")
        await work.memory.flush(FlushRequest())
        assert holding(work, "third flowerpot") == []
        hits = (await work.memory.recall(RecallRequest(query="Dana billing"))).hits
        assert [hit.text for hit in hits if hit.kind == "block"] == [OTHER]


async def test_a_persons_block_on_a_forgotten_turn_goes_too() -> None:
    """Forgetting is a person's act; the dry run showed the block."""
    async with at_work() as work:
        await two_facts(work)
        block = (await work.memory.recall(RecallRequest(query="flowerpot"))).hits[0].ref
        words = "Key: third flowerpot."
        edit = Revise(block=block, text=words, cites=("m1",))
        await work.memory.edit(EditRequest(edits=(edit,)))
        plan = await planned(work, turn="m1")
        assert words in {example.text for example in plan.examples}
        await forgot(work, turn="m1")
        assert holding(work, "third flowerpot") == []


async def test_forgets_a_session_with_what_only_it_reaches() -> None:
    """A fork shares the prefix: that stays, unless `everywhere` is said."""
    async with at_work() as work:
        await work.append("trunk", [user(OTHER, "m1")])
        await work.store.open_session(
            OpenSession(session="side", forked_from=ForkPoint(session="trunk"))
        )
        await work.append("side", [user(SECRET, "m2")])
        await work.memory.flush(FlushRequest())
        assert (await planned(work, session="side")).turns == 1
        assert (await planned(work, session="side", everywhere=True)).turns == 2
        await forgot(work, session="side")
        assert holding(work, "third flowerpot") == []
        assert holding(work, "billing team")


async def test_forgets_a_speaker_by_id_or_name() -> None:
    """A name is compared without regard to case; an unknown one is said to be unknown."""
    async with at_work() as work:
        said = [
            user(SECRET, "m1", speaker=Speaker(id="u-17", name="王芳")),
            user(OTHER, "m2", speaker=Speaker(id="u-18", name="Dana")),
        ]
        await work.append("group", said)
        await work.memory.flush(FlushRequest())
        assert (await planned(work, speaker="dana")).turns == 1
        by_id, by_name = [await planned(work, speaker=who) for who in ("u-17", "王芳")]
        assert by_id.examples == by_name.examples
        with pytest.raises(NotFound, match="nobody-here"):
            await planned(work, speaker="nobody-here")
        await forgot(work, speaker="王芳")
        assert holding(work, "third flowerpot") == []
        assert holding(work, "billing team")


def by_speaker(batch: Batch) -> Answer:
    """Files each turn under who said it."""
    adds = [
        Add(topic=f"people/{turn.speaker_name}", text=turn.text, cites=(turn.label,))
        for turn in batch.turns
    ]
    return Edits(edits=tuple(adds))


def without(path: Path, words: str) -> bytes:
    """Returns what a file holds but for `words`, in small letters."""
    return path.read_bytes().lower().replace(words.encode(), b"")


async def two_people(work: AtWork, name: str = "李雷") -> str:
    """Appends and writes what two people said of themselves; returns the first one's block."""
    said = [
        user("我住在成都。", "m1", speaker=Speaker(name=name)),
        user(OTHER, "m2", speaker=Speaker(name="dana")),
    ]
    await work.append("group", said)
    await work.memory.flush(FlushRequest())
    return (await work.memory.recall(RecallRequest(query="成都", kinds=("block",)))).hits[0].ref


async def test_a_topic_of_which_nothing_is_left_goes() -> None:
    """Its name is who was forgotten; one in which somebody else is spoken of stays."""
    async with at_work(Scribe(by_speaker)) as work:
        await two_people(work)
        topics = work.root / "topics/people"
        assert sorted(path.name for path in topics.iterdir()) == ["dana.md", "李雷.md"]
        proof = (await forgot(work, speaker="李雷")).proof
        assert (set(proof.left.values()), proof.found) == ({0}, ())
        assert [path.name for path in topics.iterdir()] == ["dana.md"]


async def test_the_name_of_a_topic_that_went_is_nowhere() -> None:
    """Not in the history, though pinned, told about and reported; a longer name stays."""
    async with at_work(Scribe(by_speaker)) as work:
        block = await two_people(work, "Robin")
        await work.memory.edit(EditRequest(edits=(Pin(block=block),)))
        longer = Add(topic="people/Robinson", text="Robinson keeps bees.", cites=())
        await work.memory.edit(EditRequest(edits=(longer,)))
        (work.root / ABOUTS_FILE).write_text('{"people/robin": ["0f"]}', encoding="utf-8")
        report = work.root / ".turnmark/nights/2026-11-01.md"
        report.parent.mkdir(exist_ok=True)
        report.write_text("topics people/robin, people/robinson.\n", encoding="utf-8")
        await forgot(work, speaker="Robin")
        assert report.read_text(encoding="utf-8") == "topics (forgotten), people/robinson.\n"
        assert holding(work, "成都") == []
        files = [path for path in work.store.path.parent.rglob("*") if path.is_file()]
        assert [path for path in files if b"robin" in without(path, "robinson")] == []
        listed = (await work.memory.history(HistoryRequest())).revisions
        assert listed[-1].topics == ("(forgotten)", "people/dana")


async def test_the_name_stays_where_something_could_come_back_to_it() -> None:
    """A block of somebody else's, retired there before, can still be put back by an undo."""
    async with at_work(Scribe(by_speaker)) as work:
        await two_people(work)
        dana = (await work.memory.recall(RecallRequest(query="billing", kinds=("block",)))).hits[0]
        moved = await work.memory.edit(
            EditRequest(edits=(Move(block=dana.ref, topic="people/李雷"),))
        )
        gone = await work.memory.edit(EditRequest(edits=(Retire(block=dana.ref, reason="old"),)))
        assert gone.revision > moved.revision
        await forgot(work, speaker="李雷")
        await work.memory.undo(UndoRequest(revision=gone.revision))
        assert "billing team" in (work.root / "topics/people/李雷.md").read_text(encoding="utf-8")
        assert holding(work, "成都") == []


async def test_a_page_named_by_a_title_goes_with_its_session() -> None:
    """The title was words of the session: no file and no name of a file holds it afterwards."""
    title = "Zephyrvale choir 合唱团"
    async with at_work(BuiltinWriter()) as work:
        await work.store.open_session(OpenSession(session="group", title=title))
        said = [
            user("The caretaker is paid until 30 June.", "m1", speaker=Speaker(name="Rosa")),
            user("The deposit is 200 euros, paid on 3 May.", "m2", speaker=Speaker(name="Tom")),
        ]
        await work.append("group", said)
        await work.memory.flush(FlushRequest())
        assert [path.stem for path in (work.root / "topics/subjects").iterdir()] == [
            "zephyrvale-choir"
        ]
        await forgot(work, session="group")
        assert list((work.root / "topics/subjects").iterdir()) == []
        for word in ("Zephyrvale", "zephyrvale"):
            assert holding(work, word) == []


async def test_everywhere_takes_the_same_words_in_other_sessions() -> None:
    """Copies go with `everywhere`; without it the proof names where the words still stand."""
    async with at_work() as work:
        await two_facts(work)
        await work.append("elsewhere", [user(SECRET, "x1")])
        await work.memory.flush(FlushRequest())
        done = await forgot(work, turn="home#m1")
        assert done.proof.found
        assert (await forgot(work, turn="elsewhere#x1", everywhere=True)).proof.found == ()
        assert holding(work, "third flowerpot") == []


async def test_keeping_the_evidence_takes_out_only_the_block() -> None:
    """The turn stays and is not written again of itself; the block's words leave the history."""
    async with at_work() as work:
        await two_facts(work)
        block = (await work.memory.recall(RecallRequest(query="flowerpot"))).hits[0].ref
        done = await forgot(work, block=block, evidence=False)
        assert (done.turns, done.blocks, done.sources) == (0, 1, 0)
        await work.memory.flush(FlushRequest())
        assert not [path for path in holding(work, "third flowerpot") if "topics" in path]
        assert [path for path in holding(work, "third flowerpot") if "sources" in path]


async def test_forgets_what_a_query_finds() -> None:
    """Blocks and turns that recall finds, with what the blocks cite."""
    async with at_work() as work:
        await two_facts(work)
        await forgot(work, query="flowerpot key")
        assert holding(work, "third flowerpot") == []
        assert holding(work, "billing team")


async def test_a_person_who_was_forgotten_can_not_come_back_by_undo() -> None:
    """No revision brings the words back."""
    async with at_work() as work:
        await two_facts(work)
        await forgot(work, turn="m1")
        for revision in range(1, 4):
            try:
                await work.memory.undo(UndoRequest(revision=revision))
            except (Refused, NotFound):
                continue
        assert holding(work, "third flowerpot") == []


@pytest.mark.parametrize("aim", [{"block": "b-00000000"}, {"turn": "nothing"}, {"session": "no"}])
async def test_says_what_is_not_there(aim: dict[str, str]) -> None:
    """A clear error for each kind of aim; nothing is changed."""
    async with at_work() as work:
        await two_facts(work)
        with pytest.raises(NotFound):
            await planned(work, **aim)
