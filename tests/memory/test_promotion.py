"""Promotion: the core's automatic part by use, recency and independent sources."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.at_work import at_work, user
from memory.tidier import blocks, into, pages
from turnmark_memory.model import Pin
from turnmark_memory.promotion import Standing, ordered
from turnmark_memory.requests import EditRequest, ShowRequest
from turnmark_memory.topic import AUTOMATIC_LINE
from turnmark_memory.uses import HALF_LIFE_DAYS

TODAY = date(2026, 11, 30)


def one(block: str, age: int | None = 0, sessions: int = 1, topic: str = "subjects/x") -> Standing:
    latest = None if age is None else TODAY - timedelta(days=age)
    return Standing(topic=topic, block=block, latest=latest, sessions=sessions)


def order(*standings: Standing, on: date = TODAY, limit: int = 9, **uses: float) -> list[str]:
    weights = {name.replace("_", "-"): weight for name, weight in uses.items()}
    return [block for _, block in ordered(standings, weights, on, limit)]


def test_newer_sources_come_first() -> None:
    """By recency alone; ties by topic and id; at most so many."""
    assert order(one("b-1", 9), one("b-3", 2), one("b-2", 2), one("b-4", None)) == [
        "b-2",
        "b-3",
        "b-1",
        "b-4",
    ]
    assert order(one("b-1", 9), one("b-2", 2), limit=1) == ["b-2"]


def test_use_lifts_what_is_old() -> None:
    """Used often, a block of three half-lives ago stands above one of today."""
    old = one("b-1", 3 * HALF_LIFE_DAYS)
    assert order(old, one("b-2")) == ["b-2", "b-1"]
    assert order(old, one("b-2"), b_1=2.0) == ["b-1", "b-2"]


def test_independent_sources_and_people_count() -> None:
    """Said in four sessions, or of a person, it may be older and still comes first."""
    assert order(one("b-1", HALF_LIFE_DAYS, sessions=4), one("b-2")) == ["b-1", "b-2"]
    person = one("b-1", HALF_LIFE_DAYS - 1, topic="people/dana")
    assert order(person, one("b-2")) == ["b-1", "b-2"]


STANDINGS = st.lists(
    st.builds(
        one,
        block=st.integers(0, 99).map("b-{}".format),
        age=st.none() | st.integers(0, 400),
        sessions=st.integers(0, 9),
        topic=st.sampled_from(["subjects/x", "people/dana", "projects/tax"]),
    ),
    unique_by=lambda found: found.block,
    max_size=30,
)
USES = st.dictionaries(st.integers(0, 99).map("b-{}".format), st.floats(0.01, 50), max_size=20)


@given(standings=STANDINGS, uses=USES, days=st.integers(0, 700), seed=st.randoms())
def test_the_order_is_of_the_input_alone(
    standings: list[Standing], uses: dict[str, float], days: int, seed: object
) -> None:
    """Any order of the input, and any later day on which nothing was used, gives the same order."""
    first = ordered(standings, uses, TODAY, 100)
    shuffled = sorted(standings, key=lambda _one: seed.random())  # type: ignore[attr-defined] # of hypothesis
    assert ordered(shuffled, uses, TODAY, 100) == first
    faded = {block: weight * 2.0 ** (-days / HALF_LIFE_DAYS) for block, weight in uses.items()}
    later = ordered(standings, faded, TODAY + timedelta(days=days), 100)
    assert later == first


@pytest.mark.anyio
async def test_arranges_below_the_line_and_leaves_the_person_above() -> None:
    """What was used goes up; the pin, and every byte above the line, stay as they were."""
    async with at_work() as work:
        work.scribe.answer = into(lambda _id: "subjects/facts")
        for session in ("a", "b", "c"):
            await work.append(session, [user(f"Fact {session}.", f"{session}1")])
            await work.flush()
        first, second, third = (str(block.id) for block in blocks(work))
        await work.memory.edit(EditRequest(edits=(Pin(block=third),)))
        file = work.root / "topics/core.md"
        above, line, _ = file.read_text().partition(AUTOMATIC_LINE)
        file.write_text(above + "\nMine.\n\n" + line + file.read_text().partition(line)[2])
        await work.memory.show(ShowRequest(ref=first))
        await work.organize()
        text = file.read_text()
        assert text.startswith(above + "\nMine.")
        below = text.partition(AUTOMATIC_LINE)[2]
        assert third not in below
        assert below.index(first) < below.index(second)
        for _ in range(2):
            await work.memory.show(ShowRequest(ref=second))
        await work.organize()
        below = file.read_text().partition(AUTOMATIC_LINE)[2]
        assert below.index(second) < below.index(first)


@pytest.mark.anyio
async def test_makes_no_revision_where_the_order_stays() -> None:
    """Nights in which nothing happens leave no trace in the log."""
    async with at_work() as work:
        await work.append("a", [user("One.", "a1"), user("Two.", "a2")])
        await work.flush()
        await work.organize()
        before = pages(work), await work.rows("SELECT revision FROM workspace")
        for _ in range(3):
            await work.organize()
        assert (pages(work), await work.rows("SELECT revision FROM workspace")) == before
