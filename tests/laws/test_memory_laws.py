"""The laws of memory, each shown on a real store, a real workspace and real files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import apsw
import msgspec
import pytest
from structlog.testing import capture_logs

from laws.soundness import places_with
from memory.at_work import Hold, Poisoned, assistant, at_work, keep, keep_each, numbered, user
from turnmark_events.types import TipIdle, TipMoved
from turnmark_memory import evidence
from turnmark_memory.index_file import DamagedIndex
from turnmark_memory.model import Add, Answer, Batch, Edits
from turnmark_memory.requests import ContextRequest, RecallRequest, TopicsRequest
from turnmark_memory.revisions import history
from turnmark_session_store.checkout import checkout, rewind
from turnmark_session_store.erase import forget_turns
from turnmark_session_store.requests import Archive, Checkout, Rewind, SessionRef
from turnmark_session_store.transaction import Transaction

pytestmark = pytest.mark.anyio


async def test_marking_is_not_activity() -> None:
    """Law 8: no head, no time, no deadline moves, whatever is marked, and no tip is spoken of."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.say("s", "a1", after="m1")
        await work.store.archive(Archive(session="s"))
        await work.store.close_session(SessionRef(session="s"))
        state = "SELECT head, head_move, head_branch, updated_ms, closed_ms FROM session"
        tips = "SELECT name, tip, move, moved_ms, idle_ms, archived, state FROM branch"
        before = await work.rows(state), await work.rows(tips)
        said = len([one for one in work.events if isinstance(one, TipMoved | TipIdle)])
        await work.flush()
        await work.quiet()
        assert len(work.facts()) == 3
        assert (await work.rows(state), await work.rows(tips)) == before
        await work.flush(rewrite="scribe")
        work.scribe.answer = Poisoned("m1")
        await work.flush(rewrite="scribe")
        await work.quiet()
        assert (await work.marks())["m1"][0] == "parked"
        assert (await work.rows(state), await work.rows(tips)) == before
        assert len([one for one in work.events if isinstance(one, TipMoved | TipIdle)]) == said


async def test_an_append_doesnt_wait_for_a_writer() -> None:
    """Law 9: turns are acknowledged while a batch of their own conversation is held."""
    async with at_work() as work:
        work.scribe.before = hold = Hold()
        await work.say("s", "m1")
        await work.silence()
        await hold.began.wait()
        with anyio.fail_after(60):
            await work.say("s", "m2")
            await work.say("other", "o1")
            assert (await work.memory.recall(RecallRequest(query="fact m1"))).hits
        assert not hold.end.is_set()
        hold.end.set()
        await work.wait_written("m1")


async def test_nobody_waits_for_an_install() -> None:
    """Law 9: what agents ask and say goes on while another install has the topics to itself."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.flush()
        async with work.memory.installer._serial:
            with anyio.fail_after(60):
                await work.say("s", "m2")
                assert (await work.memory.recall(RecallRequest(query="fact m1"))).hits
                assert "fact m1" in (await work.memory.context(ContextRequest())).text
                assert (await work.memory.topics(TopicsRequest())).topics
                assert await work.owed_count() == 1
        await work.flush()
        assert work.facts() == ["m1", "m2"]


async def test_a_block_stays_whose_turns_come_back_while_its_retiring_waits() -> None:
    """Laws 1 and 13: what is retired is judged when nothing else can be installed, not before."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        assert sorted(work.facts()) == ["m1", "m2"]
        held, looking = work.memory.installer._serial, work.memory._taking_back._serial
        async with anyio.create_task_group() as tasks, held:
            waiting = held.statistics().tasks_waiting
            await work.store.rewind(Rewind(session="s", to="m1"))
            tasks.start_soon(work.memory._taking_back.look)
            with anyio.fail_after(60):
                while not (looking.locked() and held.statistics().tasks_waiting > waiting):
                    await anyio.wait_all_tasks_blocked()
            await work.say("s", "m2")
        await work.flush()
        await work.quiet()
        assert sorted(work.facts()) == ["m1", "m2"]
        causes = [one.cause for one in history(work.memory._shelf.workspace).records]
        assert "turns were taken back" not in causes


async def test_a_turn_that_comes_back_behind_its_writer_is_written_after_all() -> None:
    """Laws 1 and 13: its edit fell while it was taken back, so its batch does not settle it."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        work.scribe.before = hold = Hold()
        await work.silence()
        await hold.began.wait()
        await work.store.rewind(Rewind(session="s", to="m1"))
        held = work.memory.installer._serial
        async with held:
            waiting = held.statistics().tasks_waiting
            hold.end.set()
            with anyio.fail_after(60):
                while held.statistics().tasks_waiting <= waiting:
                    await anyio.wait_all_tasks_blocked()
            await work.say("s", "m2")
        await work.wait_written("m1")
        await work.flush()
        await work.quiet()
        assert sorted(work.facts()) == ["m1", "m2"]


async def test_rewinding_retires_what_rests_only_on_it() -> None:
    """Law 13: blocks of turns that were taken back go; shared ones and the others stay."""
    async with at_work() as work:

        def answer(batch: Batch) -> Answer:
            edits = [keep(turn) for turn in batch.turns]
            both = Add(
                topic="subjects/both",
                text="fact both",
                cites=tuple(turn.label for turn in batch.turns),
            )
            return Edits(edits=(*edits, both))

        work.scribe.answer = answer
        await work.say("s", "m1", "m2", "m3")
        await work.flush()
        await work.store.rewind(Rewind(session="s", to="m1"))
        await work.quiet()
        assert work.facts() == ["m1"]
        assert work.facts("subjects/both") == ["both"]


async def test_taking_back_a_written_turn_needs_no_event() -> None:
    """Laws 3 and 13: the rewind is heard by nobody, and the next look retires its blocks."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        work.deliver = lambda _: []
        await work.restart()
        await work.quiet()
        await work.store.rewind(Rewind(session="s", to="m1"))
        await work.quiet()
        assert sorted(work.facts()) == ["m1", "m2"]
        await work.flush()
        assert work.facts() == ["m1"]


async def test_a_take_back_is_seen_after_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Law 13: as many turns are taken back as before, and none of them later than the last one."""
    async with at_work() as work:
        for session in ("s", "t", "u"):
            await work.say(session, f"{session}1", f"{session}2")
        await work.flush()
        await work.store.rewind(Rewind(session="s", to="s1"))
        await work.store.rewind(Rewind(session="t", to="t1"))
        await work.quiet()
        assert sorted(work.facts()) == ["s1", "t1", "u1", "u2"]

        def swap(tx: Transaction) -> None:
            checkout(tx, Checkout(session="s", tip="s2", restore=True))
            rewind(tx, Rewind(session="u", to="u1"))

        monkeypatch.setattr(work.store._writer, "_clock", lambda: 1_000)
        await work.store.write(swap)
        await work.quiet()
        assert sorted(work.facts()) == ["s1", "t1", "u1"]


async def test_what_a_person_reworded_stays_though_its_turn_is_taken_back() -> None:
    """Laws 12 and 13: the words are theirs now; the untouched block beside it goes."""
    async with at_work() as work:
        await work.say("s", "m1", "m2", "m3")
        await work.flush()
        file = work.root / "topics" / "subjects" / "facts.md"
        file.write_text(file.read_text("utf-8").replace("fact m2", "fact 改过的"), "utf-8")
        await work.memory.rescan()
        await work.store.rewind(Rewind(session="s", to="m1"))
        await work.quiet()
        assert work.facts() == ["m1", "改过的"]


async def test_what_a_person_removed_is_written_again_only_when_asked() -> None:
    """Laws 7 and 12: a flush leaves it alone, however often; one that names it does not."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        file = work.root / "topics" / "subjects" / "facts.md"
        lines = file.read_text("utf-8").splitlines(keepends=True)
        file.write_text("".join(line for line in lines if "fact m2" not in line), "utf-8")
        await work.memory.rescan()
        await work.say("s", "m3")
        for _ in range(2):
            await work.flush()
            assert (await work.marks())["m2"] == ("parked", "removed")
            assert work.facts() == ["m1", "m3"]
        await work.flush(removed=True)
        assert sorted(work.facts()) == ["m1", "m2", "m3"]


@pytest.mark.parametrize("place", ["writing", "installing", "installing and looked at"])
async def test_turns_taken_back_under_a_batch_are_not_settled(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 13: taken back while a writer thinks, or while files are exchanged: their blocks go."""
    async with at_work() as work:
        await work.say("s", "m1", "m2", "m3")

        async def rewind(_: object = None) -> None:
            await work.store.rewind(Rewind(session="s", to="m1"))

        if place == "writing":
            work.scribe.before = rewind
        else:
            journalling = work.memory.installer._journalling
            finish = journalling._finish

            async def finish_after_rewind(install: object) -> None:
                monkeypatch.setattr(journalling, "_finish", finish)
                await rewind()
                if place != "installing":  # and nothing of it stands yet that could be seen
                    await work.memory._taking_back.look()
                await finish(install)  # type: ignore[arg-type]

            monkeypatch.setattr(journalling, "_finish", finish_after_rewind)
        await work.flush()
        await work.quiet()
        assert await work.marks() == {"m1": ("kept", None)}
        assert work.facts() == ["m1"]
        assert await work.owed_count() == 0


async def test_restored_turns_are_written_again() -> None:
    """Law 7: what comes back is parked as `restored`, is due at once, and gets its blocks again."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        await work.store.rewind(Rewind(session="s", to="m1"))
        await work.quiet()
        await work.store.checkout(Checkout(session="s", tip="m2", restore=True))
        assert (await work.marks())["m2"] == ("parked", "restored")
        await work.flush()
        assert sorted(work.facts()) == ["m1", "m2"]
        assert (await work.marks())["m2"] == ("kept", None)


@pytest.mark.parametrize("ids", [("m2", "m2"), ("m2", "n2"), (None, None)])
async def test_the_same_words_after_a_rewind_enter_memory(ids: tuple[str | None, ...]) -> None:
    """Law 13: said again by an agent, by the same id, another, or none, they are kept."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.append("s", [user("fact again", ids[0])])
        await work.flush()
        await work.store.rewind(Rewind(session="s", to="m1"))
        await work.quiet()
        assert work.facts() == ["m1"]
        await work.append("s", [user("fact again", ids[1])])
        await work.flush()
        assert sorted(work.facts()) == ["again", "m1"]


SECRET = "pomegranate"


@pytest.mark.parametrize("earlier", [None, "rewound", "revised"])
async def test_a_deleted_session_leaves_its_words_nowhere(earlier: str | None) -> None:
    """Law 13: store, sources, topics, index, revisions and staging, bytes of free pages too."""
    async with at_work() as work:
        await work.say("keep", "k1")
        await work.append("s", [user("fact one", "m1"), user(f"fact {SECRET}", "m2")])
        await work.flush()
        assert places_with(work.place, SECRET) != []
        if earlier == "rewound":
            await work.store.rewind(Rewind(session="s", to="m1"))
            await work.quiet()
        deleted = await work.store.delete_session(SessionRef(session="s"))
        await work.memory.forgotten(deleted.turns)
        await work.quiet()
        await work.stop()
        assert places_with(work.place, SECRET) == []
        await work.start()
        assert work.facts() == ["k1"]
        (work.root / ".turnmark" / "index.db").unlink()
        await work.restart()
        await work.quiet()
        assert places_with(work.place, SECRET) == []
        await work.append("s", [user(f"fact {SECRET}", "m2")])
        await work.flush()
        assert SECRET not in work.topic()


async def test_an_erasure_that_was_cut_short_is_finished_by_the_next_start() -> None:
    """Law 4: the store has forgotten, the workspace not yet: nobody asks, and it is done."""
    async with at_work() as work:
        await work.append("s", [user(f"fact {SECRET}", "m1")])
        await work.say("keep", "k1")
        await work.flush()
        await work.store.delete_session(SessionRef(session="s"))
        await work.restart()
        await work.quiet()
        await work.stop()
        assert places_with(work.place, SECRET) == []
        await work.start()


async def test_words_forgotten_under_a_batch_are_kept_nowhere() -> None:
    """Law 13: the writer has the words already; neither its answer nor the archive keeps them."""
    async with at_work() as work:
        await work.append("s", [user(f"fact {SECRET}", "m1")])

        async def delete(_: object) -> None:
            work.scribe.before = None
            deleted = await work.store.delete_session(SessionRef(session="s"))
            await work.memory.forgotten(deleted.turns)

        work.scribe.before = delete
        await work.flush()
        await work.flush()
        await work.quiet()
        await work.stop()
        assert places_with(work.place, SECRET) == []
        await work.start()


async def test_no_edit_keeps_words_that_were_forgotten_under_its_batch() -> None:
    """Law 13: they may stand in any edit of the answer, whatever that cites."""
    async with at_work() as work:
        await work.append("s", [user("fact one", "m1"), user(f"fact {SECRET}", "m2")])
        ((key,),) = await work.rows("SELECT id FROM turn WHERE key = 'm2'")

        async def forget(batch: Batch) -> None:
            if work.scribe.answer is not keep_each:
                turns = await work.store.write(lambda tx: forget_turns(tx, [key]))
                await work.store.erase_forgotten()
                await work.memory.forgotten(turns)

        def tell(batch: Batch) -> Answer:
            work.scribe.answer = keep_each
            first = batch.turns[0].label
            add = Add(topic="subjects/facts", text=f"fact one and {SECRET}", cites=(first,))
            return Edits(edits=(add,))

        work.scribe.before, work.scribe.answer = forget, tell
        await work.flush()
        await work.flush()
        await work.quiet()
        assert work.facts() == ["one"]
        await work.stop()
        assert places_with(work.place, SECRET) == []
        await work.start()


async def test_every_block_cites_its_turns() -> None:
    """Law 17: labels resolve to the archived words, who said them and when."""
    async with at_work() as work:
        await work.append("s", [user("fact one", "m1"), assistant("fact two", "m2")])
        await work.flush()
        hits = (await work.memory.recall(RecallRequest(query="fact one", kinds=("block",)))).hits
        assert hits
        (source,) = hits[0].sources
        assert source.turn == "m1"
        lines = work.topic().splitlines()
        (definition,) = (line for line in lines if line.startswith(f"[^{source.label}]:"))
        target = definition.split("](", 1)[1].removesuffix(")")
        path, _, place = target.partition("#L")
        archived = (work.root / "topics" / "subjects" / path).resolve()
        said = json.loads(archived.read_text("utf-8").splitlines()[int(place) - 1])
        assert (said["id"], said["text"]) == ("m1", "fact one")


async def test_a_night_sees_what_no_event_told_of() -> None:
    """Laws 10 and 12: a topic that a person wrote while file events were lost is taken in."""
    async with at_work() as work:
        await work.say("s", "m1")
        mine = work.root / "topics" / "subjects" / "garden.md"
        mine.write_text("# Garden\n\nThe pear tree bears every other year. 梨树。\n", "utf-8")
        asked = RecallRequest(query="pear tree", kinds=("block",))
        assert not (await work.memory.recall(asked)).hits
        await work.organize(wait=True)
        assert [hit.topic for hit in (await work.memory.recall(asked)).hits] == ["subjects/garden"]
        assert work.facts() == ["m1"]


async def test_turns_whose_labels_clash_are_cited_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law 17: the writer is given the labels under which the turns are archived."""
    monkeypatch.setattr(evidence, "label_of", lambda _space, _turn: f"s-{'0' * 12}")
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        for turn in ("m1", "m2"):
            asked = RecallRequest(query=f"fact {turn}", kinds=("block",))
            hits = (await work.memory.recall(asked)).hits
            assert [source.turn for source in hits[0].sources] == [turn]


DERIVED = ("core.md", "timeline", ".turnmark/index.db", ".turnmark/sources.db")


def derived(root: Path) -> dict[str, str]:
    """Returns the derived files that people read."""
    files = [root / "core.md", *sorted((root / "timeline").rglob("*.md"))]
    return {str(file.relative_to(root)): file.read_text("utf-8") for file in files}


@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_what_is_derived_is_made_anew(how: str) -> None:
    """Law 11: deleting it loses nothing, and no edit of it counts; a start or an install tells."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        wanted = derived(work.root)
        assert len(wanted) > 1
        await work.stop()
        for name in DERIVED:
            path = work.root / name
            if how == "edited" and name == "core.md":
                path.write_text("mine\n", "utf-8")
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        await work.start()
        assert derived(work.root) == wanted
        assert (await work.memory.recall(RecallRequest(query="fact m1"))).hits
        (work.root / "core.md").write_text("mine\n", "utf-8")
        await work.say("s", "m3")
        await work.flush()
        await work.quiet()
        now = derived(work.root)["core.md"]
        assert "mine" not in now
        assert all(f"fact {turn}" in now for turn in ("m1", "m2", "m3"))


async def test_an_index_that_breaks_while_it_is_used_is_made_anew() -> None:
    """Law 11: whoever asks next gets an answer all the same."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        await work.restart()
        file = work.root / ".turnmark" / "index.db"
        size = file.stat().st_size
        with file.open("r+b") as opened:
            opened.seek(4096)
            opened.write(b"\xff" * (size - 4096))
        with capture_logs() as logs:
            hits = (await work.memory.recall(RecallRequest(query="fact m1", kinds=("block",)))).hits
        assert [hit.text for hit in hits][:1] == ["fact m1"]
        assert "index_damaged" in {one["event"] for one in logs}


@pytest.mark.parametrize("table", ["turn", "block"])
@pytest.mark.parametrize("restarts", [False, True])
async def test_an_index_that_broke_keeps_nothing_from_being_written(
    table: str, *, restarts: bool
) -> None:
    """Law 11: a start makes it anew, and so does the worker, though nobody asks for anything."""
    async with at_work() as work:
        await work.say("s", "m1", "m2")
        await work.flush()
        await work.restart()
        spoil(work.root / ".turnmark" / "index.db", table)
        if restarts:
            await work.restart()
        await work.say("s", "m3")
        with suppress(DamagedIndex):  # who meets the damage is told
            await work.flush()
        await work.flush()
        assert sorted(work.facts()) == ["m1", "m2", "m3"]
        assert (await work.memory.recall(RecallRequest(query="fact m1"))).hits


def spoil(file: Path, table: str) -> None:
    """Breaks the first page of a table in a database file."""
    db = apsw.Connection(str(file))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    ((page,),) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
    db.close()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * 4096)
        opened.write(b"\xff" * 4096)


def add_nothing(_: Batch) -> Answer:
    """An answer that asks for nothing and does not say why."""
    return Edits(edits=())


def keep_one_of_two(batch: Batch) -> Answer:
    """An answer of which one edit cites a turn that nobody said."""
    first, *others = (keep(turn) for turn in batch.turns)
    forged = [msgspec.structs.replace(edit, cites=("s-000000000000",)) for edit in others]
    return Edits(edits=(first, *forged))


@pytest.mark.parametrize("answer", [add_nothing, keep_one_of_two])
async def test_an_answer_that_can_t_be_used_settles_nothing(
    answer: Callable[[Batch], Answer],
) -> None:
    """Laws 6 and 16: nothing of it is kept, all of its batch is owed, and it is written later."""
    async with at_work() as work:
        work.scribe.answer = answer
        await work.say("s", "m1", "m2")
        assert (await work.flush()).left == 2
        assert (await work.marks(), work.facts()) == ({}, [])
        assert await work.owed_count() == 2
        work.scribe.answer = keep_each
        while (await work.flush()).left:  # it is offered by halves
            pass
        assert work.facts() == ["m1", "m2"]


async def test_a_lost_workspace_is_written_anew() -> None:
    """Law 5: an empty directory in the place of the memory is a new one; all is owed to it."""
    async with at_work() as work:
        ids = numbered("m", 4)
        await work.say("s", *ids)
        await work.flush()
        await work.stop()
        work.root.rename(work.place / "gone")
        await work.start()
        assert await work.owed_count() == 4
        work.scribe.answer = keep_each
        await work.flush()
        assert sorted(work.facts()) == ids
