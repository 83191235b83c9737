"""A writer that fails in every way at random: all is settled or parked in the end, and once."""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import pytest

from memory.at_work import AtWork, Scribe, at_work, keep, keep_each
from turnmark_memory.model import Add, Answer, Batch, Edits
from turnmark_memory.writers.writer import WriterFailed

pytestmark = pytest.mark.anyio

STEPS = 40
SESSIONS = ("alpha", "beta", "γάμμα", "第四")
POISONED = "poison"
MOODS = ("well", "down", "busy", "malformed", "rejected", "broken", "repeats")


class Fickle:
    """A writer in a new mood each time; a poisoned turn spoils every batch that it is in."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.is_well = False
        self.answered: Counter[str] = Counter()

    def __call__(self, batch: Batch) -> Answer:
        if any(turn.id.startswith(POISONED) for turn in batch.turns):
            raise WriterFailed("malformed")
        mood = "well" if self.is_well else self.dice.choice(MOODS)
        match mood:
            case "down":
                raise WriterFailed("nobody answers", transport=True)
            case "busy":
                raise WriterFailed("busy", transport=True, retry_after_seconds=3_600)
            case "malformed":
                raise WriterFailed("malformed")
            case "broken":
                raise ZeroDivisionError
            case "rejected":
                return Edits(edits=(Add(topic="subjects/x", text="x", cites=("s-0",)),))
            case "repeats" if len(batch.turns) > 1:
                # All but one turn is kept: a batch settles what it holds, said or not.
                return Edits(edits=tuple(map(keep, batch.turns[1:])))
        return keep_each(batch)


class Life:
    """A memory, what was said to it, and the dice."""

    def __init__(self, work: AtWork, fickle: Fickle, dice: random.Random) -> None:
        self.work = work
        self.fickle = fickle
        self.dice = dice
        self.said: list[tuple[str, str]] = []

    async def step(self) -> None:
        """Does one thing."""
        name = self.dice.choice(
            ("say", "say", "say", "silence", "flush", "rest", "wait", "restart")
        )
        await getattr(self, f"_{name}")()

    async def _say(self) -> None:
        session = self.dice.choice(SESSIONS)
        known = [turn for where, turn in self.said if where == session]
        more = {"after": self.dice.choice(known)} if known and self.dice.random() < 0.3 else {}
        for _ in range(self.dice.randint(1, 6)):
            kind = POISONED if self.dice.random() < 0.05 else "turn"
            turn = f"{kind}{len(self.said):03}"
            await self.work.say(session, turn, **more)
            more = {}
            self.said.append((session, turn))

    async def _silence(self) -> None:
        await self.work.silence()

    async def _flush(self) -> None:
        session = self.dice.choice((None, None, *SESSIONS))
        if session is None or any(where == session for where, _ in self.said):
            await self.work.flush(session=session)

    async def _rest(self) -> None:
        """Lets the endpoint's rest and all pauses be over."""
        self.work.memory.worker._breaker.until_ms = 0
        await self.work.store.write(lambda tx: tx.execute("UPDATE failure SET not_before_ms = 0"))
        self.work.memory.worker._rouse()

    async def _wait(self) -> None:
        await self.work.quiet()

    async def _restart(self) -> None:
        if self.dice.random() < 0.3:
            await self.work.restart()

    async def settle(self) -> None:
        """Lets the writer be well, and flushes until nothing changes any more."""
        self.fickle.is_well = True
        left = None
        for _ in range(60):
            left = (await self.work.flush()).left
            if left == len(self.poisoned) and await self._are_parked():
                return
        raise AssertionError(f"{left} turns are left, {len(self.poisoned)} can't be written")

    @property
    def poisoned(self) -> list[str]:
        """The turns that no answer comes for."""
        return [turn for _, turn in self.said if turn.startswith(POISONED)]

    async def _are_parked(self) -> bool:
        marks = await self.work.marks()
        return all(marks.get(turn) == ("parked", "failed") for turn in self.poisoned)


async def live(seed: int) -> None:
    """Lives one life and looks at what is left of it."""
    dice = random.Random(seed)
    fickle = Fickle(dice)
    async with at_work(Scribe(fickle), trigger_tokens=12) as work:
        life = Life(work, fickle, dice)
        for _ in range(STEPS):
            await life.step()
        await life.settle()
        marks = await work.marks()
        ids = [turn for _, turn in life.said]
        assert sorted(marks) == sorted(ids)
        for turn, (outcome, _) in marks.items():
            assert outcome == ("parked" if turn.startswith(POISONED) else "kept"), turn
        stands = Counter(work.facts())
        assert {turn: times for turn, times in stands.items() if times > 1} == {}
        assert set(stands) <= {turn for turn in ids if not turn.startswith(POISONED)}
        assert sorted(work.source_ids()) == sorted(ids)
        said = [turn for event in work.written() if event.outcome == "kept" for turn in event.turns]
        assert len(said) == len(set(said)), "a turn was settled twice"


@pytest.mark.parametrize("seed", range(8))
async def test_settles_or_parks_everything_and_writes_nothing_twice(seed: int) -> None:
    """Down, busy, malformed, rejected, broken, and poisoned turns, over forks and restarts."""
    await live(seed)


@pytest.mark.soak
async def test_goes_on_for_many_lives() -> None:
    """New lives as long as time is left; a failure names its seed."""
    end = time.monotonic() + float(os.environ.get("TURNMARK_SOAK_SECONDS", "60"))
    while time.monotonic() < end:
        seed = random.SystemRandom().getrandbits(32)
        print("seed", seed)  # noqa: T201  shown when a life fails
        await live(seed)
