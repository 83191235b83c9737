"""Links to blocks: they follow moves and merges, and nothing else of a document changes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.at_work import at_work
from memory.by_hand import ByHand
from memory.documents import documents
from turnmark_memory.apply import Sources, apply_edits
from turnmark_memory.backlinks import Mended, links_of, mend_links
from turnmark_memory.block_change import BlockChange
from turnmark_memory.labels import block_id_of
from turnmark_memory.model import Add, Edit, Merge, Move, Pin
from turnmark_memory.topic import Topic
from turnmark_memory.topic_format import parse, render

ONE, TWO, THREE = "b-00000001", "b-00000002", "b-00000003"
DANA = (
    f"# Dana\n\nDana leads. ^{ONE}\n\nHer boss: [[#^{ONE}]], [x](#^{ONE}), [y](erin.md). ^{TWO}\n"
)


def _after(topics: dict[str, str], *edits: Edit) -> dict[str, str]:
    """Returns the documents after the edits, with links mended."""
    parsed = {name: parse(text.encode()) for name, text in topics.items()}

    def where(block: str) -> str | None:
        return next((name for name, topic in parsed.items() if topic.block(block)), None)

    sources = Sources(
        load=parsed.get,
        where=where,
        resolve=lambda cite: cite,
        ids=lambda number, part: block_id_of("x", str(number), str(part)),
    )
    applied = apply_edits(edits, sources=sources, today=date(2026, 8, 9))
    parsed |= applied.topics
    parsed |= _mended(parsed, applied.changes).topics
    return {name: render(topic).decode() for name, topic in parsed.items()}


def _mended(topics: dict[str, Topic], changes: Iterable[BlockChange]) -> Mended:
    def linking(block: str) -> list[str]:
        return [name for name, topic in topics.items() if block in links_of(topic)]

    return mend_links(tuple(changes), load=topics.get, linking=linking)


FORMS = [
    (f"[[people/dana#^{ONE}]]", f"[[projects/税务#^{ONE}]]"),
    (f"[[dana#^{ONE}|她]]", f"[[projects/税务#^{ONE}|她]]"),
    (f"![[topics/people/dana.md#^{ONE}]]", f"![[topics/projects/税务.md#^{ONE}]]"),
    (f"[text](../people/dana.md#^{ONE})", f"[text](../projects/税务.md#^{ONE})"),
    (f"[text](<../people/dana.md#^{ONE}>)", f"[text](<../projects/税务.md#^{ONE}>)"),
    (
        f"[t](../people/%64ana.md#%5E{ONE})",
        f"[t](../projects/%E7%A8%8E%E5%8A%A1.md#%5E{ONE})",
    ),
    (f"[[#^{ONE}]]", f"[[projects/税务#^{ONE}]]"),
]


@pytest.mark.parametrize(("written", "right"), FORMS)
def test_link_to_a_moved_block_follows_it_in_the_form_it_was_written(
    written: str, right: str
) -> None:
    """Every byte around it stays."""
    text = f"# N\r\n\r\nbefore {written} after  \r\n\r\n* item {written}\r\n"
    topics = {"people/dana": DANA, "subjects/notes": text}
    moved = _after(topics, Move(block=ONE, topic="projects/税务"))
    assert moved["subjects/notes"] == text.replace(written, right)


def test_links_in_the_topics_of_the_move_stay_short_where_they_can() -> None:
    """What stays behind names the new topic; a link to a topic, a heading or a page is left."""
    topics = {
        "people/dana": DANA,
        "people/erin": "[[people/dana]] [[people/dana#Work]] [x](dana.md)",
    }
    moved = _after(topics, Move(block=ONE, topic="people/erin"))
    assert (
        f"Her boss: [[people/erin#^{ONE}]], [x](erin.md#^{ONE}), [y](erin.md)."
        in moved["people/dana"]
    )
    assert moved["people/erin"].startswith(topics["people/erin"])


def test_moved_block_takes_its_own_relative_links_along() -> None:
    """To a folder of another depth, and out of its own page."""
    moved = _after({"people/dana": DANA}, Move(block=TWO, topic="subjects/a/deep"))
    line = (
        f"Her boss: [[people/dana#^{ONE}]], [x](../../people/dana.md#^{ONE}),"
        " [y](../../people/erin.md)."
    )
    assert line in moved["subjects/a/deep"]


def test_links_to_merged_blocks_name_the_one_that_is_left() -> None:
    """Obsidian knows no alias of a block."""
    topics = {
        "people/dana": DANA,
        "projects/tax": f"Tax. ^{THREE}\n",
        "subjects/notes": (
            f"[[projects/tax#^{THREE}]] ![[people/dana#^{ONE}]] [z](../projects/tax.md#^{THREE})\n"
        ),
    }
    merged = _after(topics, Merge(blocks=(ONE, THREE), text="both"))
    assert (
        merged["subjects/notes"]
        == f"[[people/dana#^{ONE}]] ![[people/dana#^{ONE}]] [z](../people/dana.md#^{ONE})\n"
    )


def test_code_and_other_pages_are_left_alone() -> None:
    """A fence shows what it shows; a web page has no blocks."""
    text = (
        f"```\n[[people/dana#^{ONE}]]\n```\n\n    [[people/dana#^{ONE}]]\n\n"
        f"[web](https://x.example/dana.md#^{TWO}) [[people/dana#^b-99999999]]\n"
    )
    moved = _after(
        {"people/dana": DANA, "subjects/notes": text}, Move(block=ONE, topic="people/li")
    )
    assert moved["subjects/notes"] == text


def test_pin_moves_no_link() -> None:
    """An embed on the core page is no new place of its block."""
    text = f"[[people/dana#^{ONE}]]\n"
    pinned = _after({"people/dana": DANA, "subjects/notes": text}, Pin(block=ONE))
    assert pinned["subjects/notes"] == text
    assert f"![[people/dana#^{ONE}]]" in pinned["core"]


@given(documents(), st.sampled_from(["people/li", "subjects/a/deep", "projects/税务"]))
def test_any_document_keeps_all_but_the_links(document: bytes, target: str) -> None:
    """Mending twice changes nothing more, and each line without a link stays as it is."""
    block = "b-af3dee4f"
    topics = {"subjects/notes": parse(document), target: parse(f"x ^{block}\n".encode())}
    change = BlockChange(topic=target, block=block, before=None, after=f"x ^{block}".encode())
    mended = _mended(topics, [change]).topics
    topics |= mended
    assert _mended(topics, [change]).topics == {}
    old, new = document.split(b"\n"), render(topics["subjects/notes"]).split(b"\n")
    assert len(old) == len(new)
    for before, after in zip(old, new, strict=True):
        assert before == after or block.encode() in before
        assert posixpath.basename(target).encode() in after or before == after


@pytest.mark.anyio
async def test_links_from_any_topic_follow_in_a_real_workspace() -> None:
    """They are found by the index, recorded as changes, and hold after the index is lost."""
    async with at_work() as work:
        hand = await ByHand(work).begin()
        one = (await hand.edit(Add(topic="people/dana", text="Dana leads.", cites=()))).blocks[0]
        link = f"See [[people/dana#^{one}]]."
        other = (await hand.edit(Add(topic="projects/税务", text=link, cites=()))).blocks[0]
        await work.stop()
        (work.root / ".turnmark/index.db").unlink()
        await work.start()
        moved = await hand.edit(Move(block=one, topic="people/erin"))
        assert f"See [[people/erin#^{one}]]." in work.topic("projects/税务")
        undone = await hand.undo(moved.revision)
        assert link in work.topic("projects/税务")
        assert set(undone.blocks) == {one, other}
