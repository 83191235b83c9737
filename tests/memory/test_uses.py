"""Use counts: noted at once, written beside, kept by day, and still there after a merge."""

from __future__ import annotations

from collections.abc import Generator
from datetime import date, timedelta

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.at_work import AtWork, at_work, scratch, user
from memory.tidier import blocks
from turnmark_memory.requests import ContextRequest, RecallRequest, ShowRequest
from turnmark_memory.rooted import Rooted
from turnmark_memory.uses import DAILY_LIMIT, HALF_LIFE_DAYS, USES_FILE, Uses, resolved

TODAY = date(2026, 11, 30)


class Days:
    """A local date that is moved by hand."""

    def __init__(self) -> None:
        self.now = TODAY

    def __call__(self) -> date:
        return self.now


@pytest.fixture
def tree() -> Generator[Rooted]:
    with scratch() as place:
        (place / ".turnmark").mkdir()
        rooted = Rooted(place)
        yield rooted
        rooted.close()


def test_counts_by_block_and_day_up_to_a_limit(tree: Rooted) -> None:
    """Three uses a day count, of each day its share; an old one counts less."""
    days = Days()
    uses = Uses(tree, today=days)
    for _ in range(DAILY_LIMIT + 5):
        uses.note(["^b-1"])
    uses.note(["b-2"])
    assert uses.weights(TODAY) == {"b-1": DAILY_LIMIT, "b-2": 1}
    later = TODAY + timedelta(days=HALF_LIFE_DAYS)
    assert uses.weights(later) == {"b-1": DAILY_LIMIT / 2, "b-2": 0.5}
    days.now = later
    uses.note(["b-2"])
    assert uses.weights(later)["b-2"] == 1.5


def test_noting_touches_no_disk(tree: Rooted) -> None:
    """Who recalls waits for no file; what was noted is written beside, or when it is asked for."""
    uses = Uses(tree, today=Days())
    uses.note(["b-1"])
    assert tree.read(USES_FILE) is None
    uses.write()
    assert tree.read(USES_FILE) is not None


def test_survives_a_restart_and_a_torn_line(tree: Rooted) -> None:
    """What was written is read; half a line costs that line alone."""
    uses = Uses(tree, today=Days())
    uses.note(["b-1"])
    uses.write()
    with (tree.root / USES_FILE).open("ab") as file:
        file.write(b'{"day":"2026-11-')
    again = Uses(tree, today=Days())
    again.note(["b-1", "b-2"])
    assert again.weights(TODAY) == {"b-1": 2, "b-2": 1}


def test_keeps_what_the_disk_refuses(tree: Rooted) -> None:
    """A file that can't be written costs no count; it is written when it can be."""
    uses = Uses(tree, today=Days())
    (tree.root / USES_FILE).mkdir()
    uses.note(["b-1"])
    uses.write()
    (tree.root / USES_FILE).rmdir()
    assert uses.weights(TODAY) == {"b-1": 1}


@given(
    noted=st.lists(
        st.tuples(st.integers(0, 300), st.sampled_from(["b-1", "b-2", "b-3"])), max_size=60
    ),
    folds=st.lists(st.integers(0, 300), max_size=4),
)
def test_folding_changes_no_weight(noted: list[tuple[int, str]], folds: list[int]) -> None:
    """However often old days are folded, each block weighs what it did; the file stays small."""
    with scratch() as place:
        (place / ".turnmark").mkdir()
        tree = Rooted(place)
        try:
            days = Days()
            plain, folded = Uses(tree, today=days), Uses(tree, today=days)
            expected: dict[str, float] = {}
            events = [(day, 0, block) for day, block in noted] + [(day, 1, "") for day in folds]
            for day, is_fold, block in sorted(events):
                days.now = TODAY + timedelta(days=day)
                if is_fold:
                    folded.fold(days.now)
                else:
                    plain.note([block])
                    plain.write()
            last = TODAY + timedelta(days=300)
            per_day: dict[tuple[int, str], int] = {}
            for day, block in noted:
                per_day[day, block] = min(DAILY_LIMIT, per_day.get((day, block), 0) + 1)
            for (day, block), times in per_day.items():
                share = 2.0 ** (-(300 - day) / HALF_LIFE_DAYS)
                expected[block] = expected.get(block, 0.0) + times * share
            found = folded.weights(last)
            # What a fold drops weighs less than a thousandth, and at most five folds drop some.
            for block in {*expected, *found}:
                assert abs(found.get(block, 0.0) - expected.get(block, 0.0)) < 6e-3
            folded.fold(last)
            before = (place / USES_FILE).read_bytes() if (place / USES_FILE).exists() else b""
            folded.fold(last)
            after = (place / USES_FILE).read_bytes() if (place / USES_FILE).exists() else b""
            assert after == before
            assert len(after.splitlines()) <= 62
        finally:
            tree.close()


async def weights(work: AtWork) -> dict[str, float]:
    """Returns what uses weigh today; one that was noted before midnight counts as of today."""
    uses = work.memory._uses
    await anyio.to_thread.run_sync(uses.write)
    found = await anyio.to_thread.run_sync(uses.weights, uses._today())
    return {block: round(weight) for block, weight in found.items()}


@pytest.mark.anyio
async def test_counts_what_is_shown_in_a_context_or_opened_and_no_recall() -> None:
    """A hit in a context and an opened block are uses; what recall lists is none yet."""
    async with at_work() as work:
        await work.append("s", [user("Dana leads billing.", "a"), user("Tea is green.", "b")])
        await work.flush()
        dana, tea = (str(block.id) for block in blocks(work))
        await work.memory.recall(RecallRequest(query="who leads billing?"))
        assert await weights(work) == {}
        answer = await work.memory.context(ContextRequest(query="who leads billing?"))
        assert "Dana leads billing." in answer.text
        assert await weights(work) == {dana: 1}
        await work.memory.show(ShowRequest(ref=tea))
        await work.memory.show(ShowRequest(ref="subjects/facts"))
        assert await weights(work) == {dana: 1, tea: 1}
        await work.restart()
        assert await weights(work) == {dana: 1, tea: 1}


@pytest.mark.anyio
async def test_a_hit_that_the_core_says_already_was_shown() -> None:
    """It isn't said twice, but it was asked for: else the core would push out what it is for."""
    async with at_work() as work:
        await work.append("s", [user("Dana leads billing.", "a")])
        await work.flush()
        (dana,) = blocks(work)
        for core in (True, False):
            asked = ContextRequest(query="who leads billing?", core=core)
            assert "Dana leads billing." in (await work.memory.context(asked)).text
        assert await weights(work) == {str(dana.id): 2}


@pytest.mark.anyio
async def test_is_written_beside_by_the_memory_at_work() -> None:
    """Nobody has to ask: the file has it soon, without an end of the process."""
    async with at_work() as work:
        await work.append("s", [user("Dana leads billing.", "a")])
        await work.flush()
        (dana,) = blocks(work)
        await work.memory.show(ShowRequest(ref=str(dana.id)))
        file = work.root / USES_FILE
        with anyio.fail_after(60):
            # It is there before its first line is.
            while not (file.exists() and str(dana.id) in file.read_text(encoding="utf-8")):
                await work.store.read(lambda _db: None)


@pytest.mark.anyio
async def test_a_merged_blocks_uses_count_for_what_it_became() -> None:
    """Uses of both sides raise the block that is left above one of equal age."""
    async with at_work() as work:
        for session in ("a", "b"):
            await work.append(session, [user("Dana leads billing.", f"{session}1")])
            await work.flush()
        await work.append("c", [user("Zoe leads sales.", "c1")])
        await work.flush()
        first, second, _ = blocks(work)
        await work.memory.show(ShowRequest(ref=str(second.id)))
        await work.organize()
        (left, _) = blocks(work)
        assert second.id in left.aliases
        noted = await weights(work)
        assert noted == {str(second.id): 1}
        found = resolved(noted, work.memory._organizing._work._now)
        assert found == {str(first.id): 1}
