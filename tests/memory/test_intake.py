"""People's edits of topic files: taken in, protected, numbered later, and never lost."""

from __future__ import annotations

import os
import re
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from memory.at_work import AtWork, at_work, keep
from session_store.clock_set import say_set
from turnmark_events.errors import Refused
from turnmark_memory.model import Add, Answer, Batch, Edits, Retire, Revise
from turnmark_memory.requests import (
    EditRequest,
    HistoryRequest,
    RecallRequest,
    RememberRequest,
    ShowRequest,
    TopicsRequest,
    UndoRequest,
)
from turnmark_memory.topic_format import parse
from turnmark_session_store import failpoints
from turnmark_session_store.times import now_ms

pytestmark = pytest.mark.anyio

FACTS = "subjects/facts"


def file_of(work: AtWork, topic: str = FACTS) -> Path:
    return work.root / "topics" / f"{topic}.md"


def save(work: AtWork, text: str, topic: str = FACTS) -> None:
    """Saves as most editors do: a new file beside, renamed over the old one."""
    file = file_of(work, topic)
    beside = file.with_name(f".{file.name}.new")
    beside.write_bytes(text.encode())
    beside.rename(file)


async def taken_in(work: AtWork, *topics: str) -> None:
    """Tells the memory of the files that changed, as the watcher does."""
    await work.memory.files_changed(
        [str(file_of(work, topic)) for topic in topics or (FACTS,)],
    )


async def written(work: AtWork, *ids: str, session: str = "s") -> str:
    """Lets turns be written, and returns the topic's text."""
    await work.say(session, *ids)
    await work.flush()
    return work.topic()


def without(text: str, words: str) -> str:
    """Returns the text without the paragraph that begins with `words`; its footnote stays."""
    paragraphs = text.split("\n\n")
    kept = [one for one in paragraphs if not one.startswith(words)]
    assert len(kept) == len(paragraphs) - 1
    return "\n\n".join(kept)


def with_paragraph(text: str, words: str) -> str:
    """Returns the text with a paragraph before its footnotes."""
    before, mark, after = text.partition("\n[^s-")
    return f"{before}\n{words}\n{mark}{after}"


def id_of(text: str, words: str) -> str:
    found = re.search(rf"^{re.escape(words)}.*\^(b-[0-9a-f]+)$", text, re.MULTILINE)
    assert found is not None, text
    return str(found[1])


async def found(work: AtWork, query: str) -> list[str]:
    answer = await work.memory.recall(RecallRequest(query=query, kinds=("block",)))
    return [hit.text for hit in answer.hits]


async def causes(work: AtWork) -> list[str]:
    history = await work.memory.history(HistoryRequest())
    return [revision.cause for revision in history.revisions]


async def quiet(work: AtWork) -> None:
    """Lets ten minutes without a save have passed."""
    await work.memory.installer.write_ids(datetime.now(UTC) + timedelta(minutes=1))


async def test_indexes_a_persons_paragraph_and_leaves_their_file_alone() -> None:
    """It is found at once; an id is written only after a while, and is the one it had."""
    async with at_work() as work:
        text = await written(work, "m1")
        mine = with_paragraph(text, "Der Schlüssel liegt unter der Matte. 钥匙在垫子下面。")
        save(work, mine)
        await taken_in(work)
        assert file_of(work).read_text() == mine
        (hit,) = await found(work, "钥匙 垫子")
        assert hit == "Der Schlüssel liegt unter der Matte. 钥匙在垫子下面。"
        assert (await causes(work))[0] == f"a person edited {FACTS}"
        (block,) = [
            doc.block
            for doc in work.memory._shelf.index.blocks_of(FACTS)
            if "Schlüssel" in doc.text
        ]
        assert work.memory._shelf.by_person(block)
        await quiet(work)
        assert id_of(work.topic(), "Der Schlüssel") == block
        before = work.topic()
        await quiet(work)
        await taken_in(work)
        assert work.topic() == before


@pytest.mark.parametrize("when", ["running", "at the start"])
async def test_ids_are_written_in_time_after_the_clock_was_set_back(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else those of a file that was saved while it was ahead would wait until that time comes."""
    async with at_work() as work:
        save(work, with_paragraph(await written(work, "m1"), "钥匙在垫子下面。"))
        await taken_in(work)
        bases = work.memory._shelf.bases
        bases._db.execute("UPDATE pending SET at_ms = at_ms + 1000000000")
        if when == "running":
            timer = work.memory._edits._timer
            assert timer is not None
            say_set(timer, monkeypatch)
        else:
            await work.restart()
        with anyio.fail_after(60):
            while (work.memory._shelf.bases.oldest_pending_ms() or 0) > now_ms():
                await anyio.wait_all_tasks_blocked()


async def test_a_reworded_block_is_a_persons_from_then_on() -> None:
    """A writer that wants to revise it adds beside it; retiring it falls."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        block = id_of(text, "fact m1")
        save(work, text.replace("fact m1", "fact m1, and I mean it"))
        await taken_in(work)
        assert work.memory._shelf.by_person(block)

        def revise(batch: Batch) -> Answer:
            (turn,) = batch.turns
            return Edits(edits=(keep(turn),))

        work.scribe.answer = revise
        text = await written(work, "m3")
        assert "fact m1, and I mean it" in text
        assert re.search(r"fact m1, and I mean it.*<!-- person --> \^" + block, text)


async def test_protects_an_edit_from_the_very_batch_that_meets_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Saved after the writer answered and before its install: the person's words stand."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        first, second = id_of(text, "fact m1"), id_of(text, "fact m2")

        def revise(batch: Batch) -> Answer:
            (turn,) = batch.turns
            shown = {block.block: block for block in batch.blocks}
            return Edits(
                edits=(
                    Revise(
                        block=first,
                        text="the writer's m1",
                        cites=(*shown[first].cites, turn.label),
                    ),
                    Retire(block=second, reason="old", successor=None),
                    keep(turn),
                )
            )

        def hook(name: str) -> None:
            if name == "batch.written":
                monkeypatch.setattr(failpoints, "hook", None)
                save(work, text.replace("fact m1", "mein m1").replace("fact m2", "mein m2"))

        work.scribe.answer = revise
        monkeypatch.setattr(failpoints, "hook", hook)
        text_after = await written(work, "m1 m2 m3")
        assert "mein m1" in text_after
        assert "mein m2" in text_after
        assert text_after.count("the writer's m1") == 1
        assert id_of(text_after, "mein m1") == first
        assert await work.owed_count() == 0


async def test_a_removed_block_parks_its_turns_until_they_are_asked_for() -> None:
    """Neither silence nor a flush writes them again; `flush --removed` does."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        save(work, without(text, "fact m1"))
        await taken_in(work)
        assert (await work.marks())["m1"] == ("parked", "removed")
        assert (await work.marks())["m2"][0] == "kept"
        assert await found(work, "m1") == []
        assert id_of(text, "fact m1") not in work.topic("core")
        offered = len(work.scribe.batches)
        await work.silence()
        await work.quiet()
        await work.flush()
        assert len(work.scribe.batches) == offered
        assert "fact m1" not in work.topic()
        answer = await work.flush(removed=True)
        assert answer.turns == 1
        assert work.facts() == ["m2", "m1"]
        assert (await work.marks())["m1"][0] == "kept"


async def test_a_block_that_comes_back_by_hand_is_not_owed() -> None:
    """A person's own undo puts the mark back as well."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        save(work, without(text, "fact m1"))
        await taken_in(work)
        save(work, text)
        await taken_in(work)
        assert (await work.marks())["m1"][0] == "kept"
        assert work.facts() == ["m1", "m2"]
        block = id_of(text, "fact m1")
        assert work.memory._shelf.index.where(block) == FACTS
        assert not work.memory._shelf.by_person(block)


async def test_a_turn_that_another_block_cites_is_not_parked() -> None:
    """Only turns that lose their last live block are."""
    async with at_work() as work:

        def twice(batch: Batch) -> Answer:
            (turn,) = batch.turns
            return Edits(
                edits=(keep(turn), Add(topic=FACTS, text="once more", cites=(turn.label,)))
            )

        work.scribe.answer = twice
        text = await written(work, "m1")
        save(work, without(text, "fact m1"))
        await taken_in(work)
        assert (await work.marks())["m1"][0] == "kept"


@pytest.mark.parametrize("rescan", [False, True])
async def test_a_renamed_file_keeps_its_blocks(rescan: bool) -> None:
    """Ids, cites and pins follow; nothing is parked and nothing marked as a person's."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        block = id_of(text, "fact m1")
        file_of(work).rename(file_of(work, "subjects/renamed"))
        if rescan:
            await work.memory.rescan()
        else:
            await taken_in(work)
        assert work.memory._shelf.index.where(block) == "subjects/renamed"
        assert {outcome for outcome, _ in (await work.marks()).values()} == {"kept"}
        assert not work.memory._shelf.by_person(block)
        assert f"![[subjects/renamed#^{block}]]" in work.topic("core")
        assert "fact m1" in (work.root / "core.md").read_text()
        assert (await causes(work))[0] == f"a person moved {FACTS} to subjects/renamed"
        assert work.topic("subjects/renamed") == text


@pytest.mark.parametrize("name", ["people/Dana", "people/Jose\u0301", "people/小明A"])
async def test_a_file_is_one_topic_however_its_name_is_written(name: str) -> None:
    """Edits that name it in lower case go into it; a change of case alone moves its blocks."""
    async with at_work() as work:
        save(work, "likes ostriches\n", name)
        await taken_in(work, name)
        (hit,) = (await work.memory.recall(RecallRequest(query="ostriches", kinds=("block",)))).hits
        lower = unicodedata.normalize("NFC", name).lower()
        edit = Add(topic=lower, text="keeps emus", cites=())
        await work.memory.edit(EditRequest(edits=(edit, edit)))
        said = await work.memory.remember(RememberRequest(text="keeps emus", topic=lower))
        assert said.topic == name
        blocks = parse(file_of(work, name).read_bytes()).blocks()
        assert [block.text for block in blocks] == ["likes ostriches", "keeps emus", "keeps emus"]
        assert id_of(work.topic(name), "likes ostriches") == hit.ref
        shown = await work.memory.show(ShowRequest(ref=lower))
        assert (shown.topic, shown.text) == (name, work.topic(name))
        before = await causes(work)
        await work.memory.rescan()
        assert await causes(work) == before
        text = work.topic(name)
        file_of(work, name).rename(file_of(work, lower))
        await taken_in(work, name, lower)
        assert work.topic(lower) == text
        assert await found(work, "ostriches") == ["likes ostriches"]
        assert id_of(work.topic(lower), "likes ostriches") == hit.ref
        topics = (await work.memory.topics(TopicsRequest())).topics
        assert [one.topic for one in topics if one.blocks] == [lower]
        moved, *_ = (await work.memory.history(HistoryRequest(limit=1))).revisions
        assert moved.cause == f"a person moved {name} to {lower}"
        with pytest.raises(Refused, match="one file"):
            await work.memory.undo(UndoRequest(revision=moved.revision))
        assert work.topic(lower) == text


@pytest.mark.parametrize("first", ["cut", "paste"])
async def test_a_block_moved_to_another_file_keeps_its_id(first: str) -> None:
    """Whichever of the two files is saved and seen first."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        await work.say("t", "x1")
        work.scribe.answer = lambda batch: Edits(
            edits=tuple(keep(turn, "subjects/other") for turn in batch.turns)
        )
        await work.flush()
        block = id_of(text, "fact m1")
        line = next(one for one in text.splitlines() if one.startswith("fact m1"))
        cut = without(text, "fact m1")
        pasted = with_paragraph(work.topic("subjects/other"), line)
        moves = [(cut, FACTS), (pasted, "subjects/other")]
        for content, topic in moves if first == "cut" else reversed(moves):
            save(work, content, topic)
            await taken_in(work, topic)
        assert work.memory._shelf.index.where(block) == "subjects/other"
        assert (await work.marks())["m1"][0] == "kept"
        await quiet(work)
        assert id_of(work.topic("subjects/other"), "fact m1") == block
        assert "fact m1" not in work.topic()


async def test_a_copy_gets_an_id_of_its_own() -> None:
    """Ids stay unique; the original keeps its; the person is told where."""
    async with at_work() as work:
        text = await written(work, "m1")
        block = id_of(text, "fact m1")
        save(work, text.replace("fact m1", "fact m1 changed"), "subjects/facts copy")
        await taken_in(work, "subjects/facts copy")
        assert work.memory._shelf.index.where(block) == FACTS
        assert any(block in one.problem for one in work.memory.problems())
        await quiet(work)
        other = id_of(work.topic("subjects/facts copy"), "fact m1 changed")
        assert other != block
        assert work.memory._shelf.index.where(other) == "subjects/facts copy"
        assert not any(block in one.problem for one in work.memory.problems())
        doubled = work.topic().replace("\n[^s-", f"\nagain ^{block}\n\n[^s-", 1)
        save(work, doubled)
        await taken_in(work)
        await quiet(work)
        assert work.topic().count(block) == 1
        assert id_of(work.topic(), "fact m1") == block


async def test_a_deleted_file_is_gone_with_its_blocks() -> None:
    """Its turns are parked as removed, and it is not written again by the next batch."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        file_of(work).unlink()
        await taken_in(work)
        assert set((await work.marks()).values()) == {("parked", "removed")}
        assert await found(work, "fact") == []
        assert (await causes(work))[0] == f"a person removed {FACTS}"
        await written(work, "m3")
        assert work.facts() == ["m3"]


async def test_the_whole_folder_may_go() -> None:
    """A person's removal of `topics/` is respected, and memory goes on."""
    async with at_work() as work:
        await written(work, "m1", "m2")
        (work.root / "topics").rename(work.place / "away")
        await work.memory.rescan()
        assert set((await work.marks()).values()) == {("parked", "removed")}
        await written(work, "m3")
        assert work.facts() == ["m3"]
        answer = await work.flush(removed=True)
        assert answer.turns == 2
        assert sorted(work.facts()) == ["m1", "m2", "m3"]


async def test_a_stale_save_loses_nothing() -> None:
    """An editor opened before two installs saves after them: their blocks come back in."""
    async with at_work() as work:
        opened = await written(work, "m1")
        await written(work, "m2")
        await written(work, "m3")
        mine = with_paragraph(opened, "My own words.").replace("fact m1", "fact m1, I say")
        save(work, mine)
        await taken_in(work)
        text = work.topic()
        assert "My own words." in text
        assert "fact m1, I say" in text
        assert text.count("fact m2") == text.count("fact m3") == 1
        assert {outcome for outcome, _ in (await work.marks()).values()} == {"kept"}
        assert parse(text.encode()).warnings == ()


async def test_an_editor_that_never_reloads_keeps_its_paragraphs_ids() -> None:
    """Ids written meanwhile are not in its text; the same paragraph keeps the same one."""
    async with at_work() as work:
        opened = await written(work, "m1")
        first = with_paragraph(opened, "My own words.")
        save(work, first)
        await taken_in(work)
        await quiet(work)
        block = id_of(work.topic(), "My own words.")
        save(work, with_paragraph(first.replace("own words", "very own words"), "And more."))
        await taken_in(work)
        await quiet(work)
        text = work.topic()
        assert id_of(text, "My very own words.") == block
        assert "My own words." not in text
        assert text.count("And more.") == 1


async def test_a_text_put_back_as_it_was_is_believed_the_second_time() -> None:
    """Equal to an old text, it may be stale: what was installed since comes back once."""
    async with at_work() as work:
        opened = await written(work, "m1")
        await written(work, "m2")
        save(work, opened)
        await taken_in(work)
        assert work.facts() == ["m1", "m2"]
        save(work, opened)
        await taken_in(work)
        assert work.facts() == ["m1"]
        assert (await work.marks())["m2"] == ("parked", "removed")


@pytest.mark.parametrize(("mark", "newline"), [("", "\r\n"), ("\ufeff", "\n"), ("\ufeff", "\r\n")])
async def test_keeps_line_ends_and_byte_order_mark(mark: str, newline: str) -> None:
    """Through an intake, the ids and an install."""
    async with at_work() as work:
        text = await written(work, "m1")
        save(work, mark + with_paragraph(text, "我的话。").replace("\n", newline))
        await taken_in(work)
        await quiet(work)
        await written(work, "m2")
        content = file_of(work).read_bytes().decode()
        assert content.startswith("\ufeff") == bool(mark)
        assert content.count("\n") == content.count(newline)
        assert "fact m2" in content


async def test_takes_in_at_the_start_what_was_edited_while_it_was_down() -> None:
    """A changed block, a removed one and a new file."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        await work.stop()
        save(work, without(text, "fact m2").replace("fact m1", "fact m1 by hand"))
        save(work, "# Tee\n\nGrüner Tee um vier.\n", "subjects/tee")
        await work.start()
        assert (await work.marks())["m2"] == ("parked", "removed")
        assert await found(work, "grüner tee") == ["Grüner Tee um vier."]
        assert work.memory._shelf.by_person(id_of(text, "fact m1"))
        assert (await causes(work))[0] == "a person edited subjects/facts and 1 more"
        before = await causes(work)
        await work.restart()
        assert await causes(work) == before


@pytest.mark.parametrize("way", ["directory", "link", "unreadable", "held"])
async def test_serves_what_it_saw_while_a_file_can_not_be_read(way: str) -> None:
    """Nothing is parked, the person is told, and all goes on when it can be read again."""
    async with at_work() as work:
        text = await written(work, "m1")
        file, aside = file_of(work), work.place / "aside.md"
        file.rename(aside)
        if way == "directory":
            file.mkdir()
        elif way == "link":
            file.symlink_to(aside)
        elif way == "unreadable":
            file.write_text(text)
            file.chmod(0)
        else:
            file.write_text(text)
        holder = os.open(file, os.O_WRONLY | os.O_TRUNC) if way == "held" else None
        await taken_in(work)
        assert (await work.marks())["m1"][0] == "kept"
        assert await found(work, "m1") == ["fact m1"]
        assert "fact m1" in (work.root / "core.md").read_text()
        if holder is not None:
            os.write(holder, text.encode())
            os.close(holder)
        else:
            (problem,) = work.memory.problems()
            assert (problem.topic, problem.line) == (FACTS, 0)
            file.rmdir() if way == "directory" else file.unlink()
            aside.rename(file)
        await taken_in(work)
        assert work.memory.problems() == []
        assert (await work.marks())["m1"][0] == "kept"


async def test_tells_where_something_is_broken() -> None:
    """A line for a footnote without a source, a definition that is missing, open front matter."""
    async with at_work() as work:
        save(work, "---\nabout: x\n\nWords.[^s-000000000000] ^b-11111111\n", "subjects/odd")
        await taken_in(work, "subjects/odd")
        told = {(one.line, one.problem.split(";")[0]) for one in work.memory.problems()}
        assert (1, "the front matter is not closed") in told
        assert (4, "the footnote s-000000000000 names no source") in told
        assert await found(work, "Words") == ["Words."]


async def test_respects_a_persons_part_of_the_core_topic() -> None:
    """Own paragraphs and pins above the line show on the core page and stay."""
    async with at_work() as work:
        text = await written(work, "m1", "m2")
        block = id_of(text, "fact m1")
        core = work.topic("core")
        head, line, tail = core.partition("<!-- turnmark: below")
        mine = f"{head}Always answer in German.\n\n![[{FACTS}#^{block}]]\n\n{line}{tail}"
        save(work, mine, "core")
        await taken_in(work, "core")
        page = (work.root / "core.md").read_text()
        assert (
            page.index("Always answer in German.") < page.index("fact m1") < page.index("fact m2")
        )
        await written(work, "m3")
        core = work.topic("core")
        assert core.index("Always answer in German.") < core.index(f"#^{block}]]")
        assert core.count(f"#^{block}]]") == 1


async def test_makes_the_core_page_anew_over_an_edit_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is derived; one warning says where the words belong."""
    async with at_work() as work:
        await written(work, "m1")
        (work.root / "core.md").write_text("my own page\n")
        await written(work, "m2")
        await written(work, "m3")
        assert "my own page" not in (work.root / "core.md").read_text()
        assert capsys.readouterr().out.count("derived_file_overwritten") == 1


async def test_forgets_with_the_older_texts() -> None:
    """A save by an editor that still has the forgotten words does not bring them back."""
    async with at_work() as work:
        await written(work, "m1")
        await written(work, "m2")
        shelf = work.memory._shelf
        opened = work.topic()
        (label,) = shelf.index.cites(id_of(opened, "fact m1"))
        assert any(b"fact m1" in (base.content or b"") for base in shelf.bases.recent(FACTS))
        turns = [key for (key,) in await work.rows("SELECT id FROM turn WHERE key = 'm1'")]
        await forget(work, turns)
        assert not any(label.encode() in base.seen for base in shelf.bases.recent(FACTS))
        save(work, opened)
        await taken_in(work)
        assert work.facts() == ["m2"]


async def forget(work: AtWork, turns: list[int]) -> None:
    """Forgets turns as far as the store's part is built."""

    def run(tx: object) -> None:
        for turn in turns:
            tx.execute(  # type: ignore[attr-defined]
                "INSERT INTO forgotten_turn (turn, at_ms) VALUES (?, 0)", (turn,)
            )

    await work.store.write(run)
    await work.memory.forgotten(turns)


@pytest.mark.parametrize(
    "name",
    [
        "install.before_journal",
        "install.journalled",
        "install.recorded",
        "install.noted",
        "install.exchanged",
        "install.in_place",
        "install.settled",
        "install.indexed",
    ],
)
async def test_finishes_an_intake_after_a_crash_at_any_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The edit is taken in once, with its marks, and nothing of it is lost."""

    def hook(reached: str) -> None:
        if reached == name:
            raise _Crashed

    async with at_work(run=False) as work:
        await work.run()
        text = await written(work, "m1", "m2")
        await work.restart(run=False)
        save(work, with_paragraph(without(text, "fact m1"), "My own words."))
        monkeypatch.setattr(failpoints, "hook", hook)
        with pytest.raises(_Crashed):
            await taken_in(work)
        monkeypatch.setattr(failpoints, "hook", None)
        await work.restart()
        assert (await work.marks())["m1"] == ("parked", "removed")
        assert await found(work, "own words") == ["My own words."]
        assert await found(work, "m1") == []
        assert (await causes(work)).count(f"a person edited {FACTS}") == 1
        await quiet(work)
        assert work.topic().count("My own words.") == 1


class _Crashed(Exception):
    """Stands for the end of the process."""
