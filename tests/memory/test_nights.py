"""Many nights over memories of every shape: nothing is lost, a person's words stay, it settles."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memory.at_work import AtWork, at_work, user
from memory.tidier import Shown, Tidier, into, topic_files
from turnmark_events.types import NightDone
from turnmark_memory.checkup import check_blocks
from turnmark_memory.inventory import take_inventory
from turnmark_memory.requests import RememberRequest
from turnmark_memory.topic import Block
from turnmark_memory.topic_format import parse
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store.model import Speaker

WORDS = (
    "I live in Porto.",
    "i live in porto",
    "我住在波尔图。",
    "Tea is green.",
    "I run.",
    "Hello.",
)
TOPICS = ("subjects/facts", "people/dana", "projects/tax")

ID = re.compile(r" \^b-[0-9a-f]+$")
# An example costs a store and a workspace: looking for the smallest one that fails would take long.
EXAMPLES = settings(
    max_examples=12,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)

Edits = list[dict[str, Any]]


def all_blocks(work: AtWork) -> Iterator[Block]:
    for content in topic_files(work).values():
        yield from parse(content).blocks()


def labels(work: AtWork, *, live: bool) -> set[str]:
    """Returns what blocks cite; with `live` only those that hold now."""
    found = (block for block in all_blocks(work) if not live or block.superseded_by is None)
    return {label for block in found for label in block.cites}


def persons(work: AtWork) -> list[str]:
    """Returns people's blocks as they stand in the files, but for the id that an install adds."""
    found = (block for block in all_blocks(work) if block.origin == "person")
    return sorted(ID.sub("", block.raw.rstrip("\n")) for block in found)


def at_random(chance: random.Random, shown: Shown) -> Edits:
    """Returns edits of any kind, some of which may not be done."""
    names = [block["block"] for block in shown]
    edits: Edits = []
    for _ in range(chance.randrange(4)):
        some = chance.sample(names, min(len(names), chance.randrange(1, 4)))
        one = chance.choice(shown)
        cites = one["cites"][: chance.randrange(1, 3)]
        parts = [
            {"text": "Part one.", "cites": one["cites"]},
            {"text": "Part two.", "cites": cites},
        ]
        edits.append(
            chance.choice(
                [
                    {"op": "merge", "blocks": some, "text": f"{len(some)} in one."},
                    {"op": "split", "block": one["block"], "parts": parts},
                    {"op": "move", "block": one["block"], "topic": chance.choice(TOPICS)},
                    {
                        "op": "retire",
                        "block": one["block"],
                        "successor": chance.choice(names),
                        "reason": "later",
                    },
                    {"op": "drop", "block": one["block"]},
                ]
            )
        )
    return edits


SPOKEN = st.tuples(
    st.sampled_from("abc"),  # the session
    st.sampled_from(WORDS),
    st.sampled_from(["u-1", "u-2"]),
    st.booleans(),  # after the first turn of the session: another branch
)


async def fill(work: AtWork, spoken: list[tuple[str, str, str, bool]], by_hand: list[str]) -> None:
    """Says, writes, remembers and edits by hand."""
    first: dict[str, str] = {}
    for number, (session, words, who, forks) in enumerate(spoken):
        turn = user(words, f"{session}{number}", speaker=Speaker(id=who))
        after = {"after": first[session]} if forks and session in first else {}
        await work.append(session, [turn], **after)
        first.setdefault(session, turn.id or "")
    work.scribe.answer = into(lambda one: TOPICS[int(one[1:]) % 2])
    await work.flush()
    for number, words in enumerate(by_hand):
        file = work.root / "topics" / f"{TOPICS[number % 2]}.md"
        if file.exists():
            file.write_text(f"{file.read_text()}\n{words}\n")
        else:
            await work.memory.remember(RememberRequest(text=words, topic=TOPICS[2]))
    await work.memory.rescan()


@given(
    spoken=st.lists(SPOKEN, min_size=1, max_size=14),
    by_hand=st.lists(st.sampled_from(WORDS), max_size=3),
)
@EXAMPLES
def test_a_night_without_a_model_loses_nothing_and_settles(
    spoken: list[tuple[str, str, str, bool]], by_hand: list[str]
) -> None:
    """Every cited turn stays cited by a live block, people's lines stay, a second night is idle."""

    async def run() -> None:
        async with at_work() as work:
            await fill(work, spoken, by_hand)
            before, theirs = labels(work, live=True), persons(work)
            first = await work.organize()
            assert labels(work, live=True) == before
            assert persons(work) == theirs
            assert first.held is None
            files = topic_files(work)
            second = await work.organize()
            assert (second.changed, topic_files(work)) == (0, files)
            assert proved(work) == []

    anyio.run(run)


@given(
    spoken=st.lists(SPOKEN, min_size=2, max_size=14),
    by_hand=st.lists(st.sampled_from(WORDS), max_size=3),
    seed=st.integers(0, 2**32),
)
@EXAMPLES
def test_a_night_with_any_model_loses_nothing(
    spoken: list[tuple[str, str, str, bool]], by_hand: list[str], seed: int
) -> None:
    """Every cited turn stays cited, by what holds or by what is kept as history; undo restores."""
    chance = random.Random(seed)

    async def run() -> None:
        tidier = Tidier(lambda shown: at_random(chance, shown))
        async with at_work(tidier=tidier) as work:
            await fill(work, spoken, by_hand)
            before, theirs = labels(work, live=False), persons(work)
            for _ in range(3):
                await work.organize()
                assert labels(work, live=False) == before
                assert persons(work) == theirs
                assert proved(work) == []

    anyio.run(run)


def proved(work: AtWork) -> list[str]:
    """Returns what is wrong: an id that stands twice, history that names no block."""
    found = check_blocks(take_inventory(work.root))
    names = {name for block in all_blocks(work) for name in (block.id, *block.aliases)}
    lost = [one.id or "" for one in all_blocks(work) if one.superseded_by not in (None, *names)]
    return [*([found.text] if found.level == "bad" else []), *lost]


class Moody:
    """Fails every other time in one way or another; else tidies at random."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def __call__(self, shown: Shown) -> object:
        mood = self.chance.randrange(8)
        if mood == 0:
            return WriterFailed("timeout", transport=True)
        if mood == 1:
            return WriterFailed("refused")
        if mood == 2:
            return "I would rather not."
        if mood == 3:
            return '{"edits": [{"op": "merge"'
        names = [block["block"] for block in shown]
        if mood == 4 and len(names) > 1:
            *rest, last = names
            return [
                {"op": "retire", "block": one, "successor": last, "reason": "all"} for one in rest
            ]
        return at_random(self.chance, shown)


async def nights(count: int, seed: int) -> None:
    """Lives through `count` nights, with talk and edits by hand between them."""
    chance = random.Random(seed)
    async with at_work(tidier=Tidier(Moody(chance))) as work:
        work.scribe.answer = into(lambda one: TOPICS[int(one[1:]) % 3])
        turns = 0
        day = date(2026, 1, 1)
        for night in range(count):
            for _ in range(chance.randrange(3)):
                session = chance.choice("abcdef")
                who = Speaker(id=chance.choice(["u-1", "u-2"]))
                words = chance.choice([*WORDS, f"Fact {night}."])
                await work.append(session, [user(words, f"{session}{turns}", speaker=who)])
                turns += 1
            if chance.randrange(10) == 0:
                await work.memory.remember(RememberRequest(text=f"By hand {night}."))
            if chance.randrange(20) == 0:
                await work.restart()
            theirs = persons(work)
            with anyio.fail_after(60):
                await work.memory._organizing.night(day + timedelta(days=night))
            assert persons(work) == theirs
            assert await work.owed_count() == 0
            for held in work.memory.statistics()["held"]:
                await work.organize(**{chance.choice(["approve", "discard"]): held.name})
        written = {turn for turn, (outcome, _) in (await work.marks()).items() if outcome == "kept"}
        assert len(written) >= turns
        said = labels(work, live=False)
        assert len(said) == len(written)
        assert proved(work) == []
        done = [
            event
            for event in await work.store.events_after(0, 100_000)
            if isinstance(event, NightDone)
        ]
        assert [one.date for one in done] == [
            (day + timedelta(days=night)).isoformat() for night in range(count)
        ]


@pytest.mark.anyio
async def test_nights_with_a_model_that_fails_at_random_lose_nothing() -> None:
    """A month and more: every turn said is cited by a block that holds or is kept as history."""
    await nights(40, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(2, 4))
@pytest.mark.anyio
async def test_a_year_of_nights_loses_nothing(seed: int) -> None:
    """365 nights."""
    await nights(365, seed=seed)
