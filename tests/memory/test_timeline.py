"""The timeline: a page a day, derived, the same bytes however often it is made."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memory.at_work import AtWork, at_work, user
from memory.by_hand import ByHand, lines, seen
from turnmark_memory.index import Index
from turnmark_memory.index_schema import BlockDoc, TopicDoc, TurnDoc
from turnmark_memory.model import Add, Move, Retire, Revise
from turnmark_memory.requests import OrganizeRequest
from turnmark_memory.timeline import PAGE_LIMIT, Timeline, page_path
from turnmark_memory.workspace import Workspace
from turnmark_session_store.requests import SessionRef


async def _say_at(work: AtWork, at: str, name: str, text: str) -> None:
    await work.append("talk", [user(text, name, time=at)])


def _pages(work: AtWork) -> dict[str, str]:
    return {
        name.removeprefix("timeline/"): content.decode()
        for name, content in seen(work.root, folders=("timeline",)).items()
        if name != "core.md"
    }


@pytest.mark.anyio
async def test_block_stands_on_the_day_of_its_newest_turn_in_utc() -> None:
    """With its time, its words as they are now, and a link to where it stands."""
    async with at_work() as work:
        await _say_at(work, "2026-08-09T23:30:00-05:00", "t1", "Dana moved.")
        await _say_at(work, "2026-08-09T09:05:00Z", "t2", "她负责税务。")
        hand = ByHand(work)
        one, two = (
            await hand.edit(
                Add(topic="people/dana", text="Dana moved.", cites=("t1",)),
                Add(topic="projects/税务", text="她负责税务。", cites=("t2",)),
                Add(topic="people/dana", text="nobody said this", cites=()),
            )
        ).blocks[:2]
        pages = _pages(work)
        assert set(pages) == {"2026/08/09.md", "2026/08/10.md"}
        assert pages["2026/08/10.md"].splitlines()[1:] == [
            "# 2026-08-10",
            "",
            f"- 04:30 Dana moved. [[people/dana#^{one}]]",
        ]
        assert f"- 09:05 她负责税务。 [[projects/税务#^{two}]]" in pages["2026/08/09.md"]
        await hand.edit(Revise(block=two, text="两个人负责。", cites=("t2", "t1")))
        pages = _pages(work)
        assert set(pages) == {"2026/08/10.md"}
        assert "两个人负责。" in pages["2026/08/10.md"]


@pytest.mark.anyio
async def test_pages_follow_moves_removals_and_successors() -> None:
    """A superseded block stays on its day and names what holds; a removed one leaves it."""
    async with at_work() as work:
        await _say_at(work, "2026-08-09T09:05:00Z", "t1", "x")
        hand = ByHand(work)
        one, two = (
            await hand.edit(
                Add(topic="people/dana", text="one", cites=("t1",)),
                Add(topic="people/dana", text="two", cites=("t1",)),
            )
        ).blocks
        await hand.edit(Move(block=one, topic="people/erin"))
        assert f"one [[people/erin#^{one}]]" in _pages(work)["2026/08/09.md"]
        await hand.edit(Retire(block=one, reason="newer", successor=two))
        line = f"one [[people/erin#^{one}]] (superseded by [[people/dana#^{two}]])"
        assert line in _pages(work)["2026/08/09.md"]
        await hand.edit(Retire(block=one, reason="wrong"), Retire(block=two, reason="wrong"))
        assert _pages(work) == {}


@pytest.mark.anyio
async def test_forgotten_turns_leave_the_timeline() -> None:
    """Blocks that rest on them alone go; the others come to the day of what is left."""
    async with at_work() as work:
        await _say_at(work, "2026-08-09T09:00:00Z", "t1", "fact t1")
        await work.append("gone", [user("fact g1", "g1", time="2026-08-12T09:00:00Z")])
        await work.flush()
        block = next(name for name, (_, line) in lines(work.root).items() if "fact t1" in line)
        hand = ByHand(work)
        await hand.edit(Revise(block=block, text="both", cites=("t1", "g1")))
        assert set(_pages(work)) == {"2026/08/12.md"}
        deleted = await work.store.delete_session(SessionRef(session="gone"))
        await work.memory.forgotten(deleted.turns)
        pages = _pages(work)
        assert set(pages) == {"2026/08/09.md"}
        assert "g1" not in pages["2026/08/09.md"]


@pytest.mark.anyio
async def test_deleted_or_altered_pages_are_made_anew_with_the_same_bytes() -> None:
    """What is missing at the start, what was altered at night; a page too many goes."""
    async with at_work() as work:
        for day in range(1, 6):
            await _say_at(work, f"2026-08-0{day}T09:00:00Z", f"t{day}", f"fact t{day} 税务")
        await work.flush()
        pages = _pages(work)
        assert len(pages) == 5
        await work.stop()
        shutil.rmtree(work.root / "timeline")
        stray = work.root / "timeline/2020/01/01.md"
        stray.parent.mkdir(parents=True)
        stray.write_text("x")
        await work.start()
        assert _pages(work) == pages
        (work.root / "timeline/2026/08/03.md").write_text("altered")
        (work.root / "timeline/notes.md").write_text("a person's")
        await work.memory.organize(OrganizeRequest())
        assert _pages(work) == pages | {"notes.md": "a person's"}


@pytest.mark.anyio
async def test_page_that_somebody_edited_is_written_over_with_one_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At the next fact of that day; the warning says where the words belong."""
    async with at_work() as work:
        await _say_at(work, "2026-08-09T09:00:00Z", "t1", "fact t1 税务")
        await work.flush()
        (work.root / "timeline/2026/08/09.md").write_text("my own diary\n")
        for number in (2, 3):
            await _say_at(work, f"2026-08-09T09:0{number}:00Z", f"t{number}", f"fact t{number}")
            await work.flush()
        (page,) = _pages(work).values()
        assert "my own diary" not in page
        assert page.count("fact t") == 3
        assert capsys.readouterr().out.count("derived_file_overwritten") == 1


@pytest.mark.anyio
async def test_page_whose_place_is_taken_keeps_nobody_from_installing() -> None:
    """It is left out until the place is free."""
    async with at_work() as work:
        place = work.root / "timeline/2026/08/09.md"
        place.mkdir(parents=True)
        await _say_at(work, "2026-08-09T09:00:00Z", "t1", "fact t1")
        await work.flush()
        assert work.facts() == ["t1"]
        place.rmdir()
        await work.memory.organize(OrganizeRequest())
        assert "fact t1" in place.read_text()


def test_page_costs_no_more_on_a_day_of_thirty_times_as_many_blocks(tmp_path: Path) -> None:
    """It is cut, and says so; the index finds its lines without reading the day."""
    at = datetime(2026, 8, 9, 12, tzinfo=UTC)
    day = int(at.timestamp()) // 86_400
    steps: dict[int, int] = {}
    with Workspace.open(tmp_path) as workspace, _index(tmp_path) as index:
        timeline = Timeline(workspace, index)
        for count in (PAGE_LIMIT + 1, 30 * PAGE_LIMIT):
            index.rebuild(_turns(count, at), _topics(count), 1)
            steps[count] = _steps(index, timeline, day)
            lines = (tmp_path / page_path(day)).read_text().splitlines()
            assert len(lines) == PAGE_LIMIT + 4
            assert lines[-1].startswith("- … more than 1,000")
    assert steps[30 * PAGE_LIMIT] < 2 * steps[PAGE_LIMIT + 1], steps


@contextmanager
def _index(place: Path) -> Generator[Index]:
    index = Index.open(place / ".turnmark/index.db")
    try:
        yield index
    finally:
        index.close()


def _steps(index: Index, timeline: Timeline, day: int) -> int:
    """Makes a page; returns how much SQLite did for it, in hundreds of its machine's steps."""
    steps: list[None] = []

    def count() -> bool:
        steps.append(None)
        return False

    with index._file.reading() as db:
        db.set_progress_handler(count, 100)
    timeline.refresh([day])
    with index._file.reading() as db:
        db.set_progress_handler(None)
    assert steps
    return len(steps)


def _turns(count: int, at: datetime) -> list[TurnDoc]:
    return [
        TurnDoc(
            label=f"s-{number:012x}",
            namespace="n",
            id=str(number),
            session="s",
            agent="a",
            project=None,
            role="user",
            speaker_id=None,
            speaker_name=None,
            time=at + timedelta(milliseconds=number),
            text="x",
            path="sources/a/s.jsonl",
            line=number + 1,
            position=number,
        )
        for number in range(count)
    ]


def _topics(count: int) -> list[TopicDoc]:
    blocks = [
        BlockDoc(block=f"b-{number:08x}", topic="", text="事实", cites=(f"s-{number:012x}",))
        for number in range(count)
    ]
    step = 500
    return [
        TopicDoc(topic=f"subjects/t{at}", about="", tokens=1, blocks=tuple(blocks[at : at + step]))
        for at in range(0, count, step)
    ]
