"""The night without a model: what says exactly the same is one block, and nothing is lost by it."""

from __future__ import annotations

import pytest

from memory.at_work import AtWork, assistant, at_work, user
from memory.tidier import blocks, pages, topic_files
from turnmark_memory.requests import UndoRequest
from turnmark_memory.sameness import normal
from turnmark_session_store.model import Speaker
from turnmark_session_store.requests import OpenSession


async def said_in(work: AtWork, *sessions: str, words: str = "I live in Porto.") -> None:
    """Lets one user say the same words in several sessions, and writes each."""
    for session in sessions:
        await work.append(session, [user(words, f"{session}-1")])
        await work.flush()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Porto.", "i live  in porto"),
        ("我住在波尔图。", "我住在波尔图"),
        ("caf\u00e9", "cafe\u0301"),
    ],
)
def test_reads_the_same_words_alike(one: str, other: str) -> None:
    """White space, case, a full stop and the form of accents are no difference to a reader."""
    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("I live in Porto", "I lived in Porto"), ("Is it Porto?", "It is Porto"), ("是吗？", "是")],
)
def test_tells_other_words_apart(one: str, other: str) -> None:
    """A question is no statement, and one letter is a difference."""
    assert normal(one) != normal(other)


@pytest.mark.anyio
async def test_joins_what_was_said_in_several_sessions() -> None:
    """One block is left, with the sources of all; the other ids are its aliases."""
    async with at_work() as work:
        await said_in(work, "a", "b", "c")
        before = blocks(work)
        answer = await work.organize()
        (left,) = blocks(work)
        assert left.id == before[0].id
        assert left.text == "I live in Porto."
        assert left.cites == tuple(label for block in before for label in block.cites)
        assert set(left.aliases) == {block.id for block in before[1:]}
        assert answer.changed == 3
        assert any("2 merges" in line or "1 merge" in line for line in answer.report)


@pytest.mark.anyio
async def test_a_second_night_changes_nothing() -> None:
    """No revision is made, no file is touched."""
    async with at_work() as work:
        await said_in(work, "a", "b")
        await work.organize()
        before = pages(work)
        revisions = await work.rows("SELECT revision FROM workspace")
        answer = await work.organize()
        assert answer.changed == 0
        assert pages(work) == before
        assert await work.rows("SELECT revision FROM workspace") == revisions


@pytest.mark.anyio
async def test_undo_brings_every_byte_back() -> None:
    """The pass is one revision; taking it back restores the files."""
    async with at_work() as work:
        await said_in(work, "a", "b")
        before = topic_files(work)
        await work.organize()
        assert topic_files(work) != before
        revisions = await work.rows("SELECT revision FROM workspace")
        await work.memory.undo(UndoRequest(revision=revisions[0][0]))
        assert topic_files(work) == before


@pytest.mark.anyio
async def test_leaves_alternatives_of_sibling_branches_apart() -> None:
    """Said again after a retry it is another branch's: two blocks, however alike."""
    async with at_work() as work:
        await work.append("s", [user("Hello.", "m1"), assistant("Hi.", "m2")])
        await work.append("s", [user("I live in Porto.", "m3")], after="m2")
        await work.append("s", [user("I live in Porto.", "m4")], after="m2")
        await work.flush()
        texts = [block.text for block in blocks(work)]
        await work.organize()
        assert [block.text for block in blocks(work)] == texts
        assert texts.count("I live in Porto.") == 2


@pytest.mark.anyio
async def test_joins_along_one_branch() -> None:
    """Said twice on one path it is one fact."""
    async with at_work() as work:
        await work.append("s", [user("I live in Porto.", "m1"), user("Anyway.", "m2")])
        await work.append("s", [user("I live in Porto.", "m3")])
        await work.flush()
        await work.organize()
        assert [block.text for block in blocks(work)] == ["I live in Porto.", "Anyway."]


@pytest.mark.anyio
async def test_leaves_what_different_people_say_apart() -> None:
    """Both live in Porto; each fact stays theirs."""
    async with at_work() as work:
        for session, who in (("a", "u-1"), ("b", "u-2")):
            said = user("I live in Porto.", f"{session}1", speaker=Speaker(id=who))
            await work.append(session, [said])
        await work.flush()
        await work.organize()
        assert len(blocks(work)) == 2


@pytest.mark.anyio
async def test_joins_the_same_words_of_different_projects() -> None:
    """Who may read either reads the same words; the block is found in both."""
    async with at_work() as work:
        for session in ("a", "b"):
            await work.store.open_session(OpenSession(session=session, project=f"/{session}"))
        await said_in(work, "a", "b")
        await work.organize()
        (left,) = blocks(work)
        assert len(left.cites) == 2


@pytest.mark.anyio
async def test_leaves_a_persons_block_as_it_is() -> None:
    """A person wrote the same words by hand: theirs stays, byte for byte, beside the other."""
    async with at_work() as work:
        await said_in(work, "a")
        file = work.root / "topics" / "subjects" / "facts.md"
        line = next(line for line in file.read_text().splitlines() if line.startswith("I live"))
        file.write_text(file.read_text().replace(line, f"{line}\n\nI live in Porto."))
        await work.organize()
        assert "\n\nI live in Porto.\n" in file.read_text()
        assert [block.origin for block in blocks(work)] == ["writer", "person"]
