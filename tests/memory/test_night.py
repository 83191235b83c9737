"""The night: one run a local date in every zone, caught up once, never two at once."""

from __future__ import annotations

import random
import time as clock
import zoneinfo
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Self

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.at_work import AtWork, Hold, Poisoned, at_work
from turnmark_events.errors import Unavailable
from turnmark_events.types import NightDone
from turnmark_memory.memory import MemorySettings
from turnmark_memory.night import NightClock, due_instant, next_due
from turnmark_memory.requests import OrganizeRequest
from turnmark_session_store.deadline import Wake

THREE = time(3, 0)
TIMES = (THREE, time(0, 0), time(0, 30), time(1, 30), time(2, 30), time(23, 30))
FIRST, LAST = date(2025, 1, 1), date(2026, 12, 31)


def changes_of(zone: zoneinfo.ZoneInfo) -> list[date]:
    """Returns the local dates about which the zone's clocks change, in two years."""
    found: set[date] = set()
    before = None
    for hours in range(0, 2 * 366 * 24, 24):
        moment = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(hours=hours)
        offset = moment.astimezone(zone).utcoffset()
        if before is not None and offset != before:
            day = moment.astimezone(zone).date()
            found.update(day + timedelta(days=more) for more in range(-2, 3))
        before = offset
    return sorted(found)


def zones() -> dict[str, zoneinfo.ZoneInfo]:
    names = sorted(zoneinfo.available_timezones() - {"localtime"})
    return {name: zoneinfo.ZoneInfo(name) for name in names}


def test_is_due_once_a_date_in_every_zone_there_is() -> None:
    """About each change of clocks: strictly later from date to date, on the date, at the time."""
    looked = 0
    for name, zone in zones().items():
        for at in TIMES:
            before: tuple[date, datetime] | None = None
            for day in changes_of(zone):
                due = due_instant(day, at, zone)
                shown = due.astimezone(zone)
                gap = shown.replace(tzinfo=None) != datetime.combine(day, at)
                if gap:
                    # The first moment after: a second before, the clock stood before the time.
                    early = (due - timedelta(seconds=1)).astimezone(zone).replace(tzinfo=None)
                    assert early < datetime.combine(day, at) < shown.replace(tzinfo=None), name
                else:
                    # The first of two: an hour before, this time was not shown yet.
                    assert shown.fold == 0, name
                if before is not None and before[0] == day - timedelta(days=1):
                    assert timedelta(hours=20) < due - before[1] < timedelta(hours=28), name
                before = (day, due)
                looked += 1
    assert looked > 1_000


def test_runs_each_date_once_through_two_years_of_changes() -> None:
    """A clock that sleeps from due to due does every date, in order, none twice."""
    for name in ("Europe/Helsinki", "America/Havana", "Africa/Cairo", "Asia/Beirut", "UTC"):
        zone = zoneinfo.ZoneInfo(name)
        for at in (THREE, time(0, 0), time(0, 30)):
            done = FIRST - timedelta(days=1)
            now = due_instant(done, at, zone)
            while done < LAST:
                day, due = next_due(now, done, at, zone)
                assert day == done + timedelta(days=1)
                assert due > now
                done, now = day, due


def test_is_due_after_the_gap_and_at_the_first_of_two() -> None:
    """03:00 is missing in Helsinki on 29 March 2026, and doubled on 25 October."""
    zone = zoneinfo.ZoneInfo("Europe/Helsinki")
    assert due_instant(date(2026, 3, 29), THREE, zone) == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    late = due_instant(date(2026, 3, 29), time(3, 30), zone)
    assert late == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)
    assert due_instant(date(2026, 10, 25), THREE, zone) == datetime(2026, 10, 25, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Europe/Helsinki", "America/New_York", "Asia/Shanghai"])
def test_reads_the_machines_own_zone_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a zone it is the machine's: the same moments, gaps and doubles included."""
    monkeypatch.setenv("TZ", name)
    clock.tzset()
    try:
        zone = zoneinfo.ZoneInfo(name)
        for day in changes_of(zone) or [FIRST]:
            for at in TIMES:
                assert due_instant(day, at, None) == due_instant(day, at, zone)
    finally:
        monkeypatch.undo()
        clock.tzset()


def test_catches_up_once_after_missed_dates() -> None:
    """A week away: one run, of today or, before the time, of yesterday; then it goes on."""
    zone = zoneinfo.ZoneInfo("Europe/Lisbon")
    last = date(2026, 5, 1)
    noon = datetime(2026, 5, 8, 12, 0, tzinfo=zone)
    assert next_due(noon, last, THREE, zone)[0] == date(2026, 5, 8)
    early = datetime(2026, 5, 8, 1, 0, tzinfo=zone)
    day, due = next_due(early, last, THREE, zone)
    assert (day, due < early) == (date(2026, 5, 7), True)
    assert next_due(early, day, THREE, zone)[0] == date(2026, 5, 8)
    assert next_due(noon, date(2026, 5, 8), THREE, zone)[0] == date(2026, 5, 9)


class LongWalk:
    """A clock, a timer on it, and the nights that were run: years pass without waiting.

    `jump` is asked at each wait and may move the clock (a suspend, somebody who sets it); the wait
    then ends with `CLOCK_SET`, as the kernel's does.
    """

    def __init__(
        self,
        zone: zoneinfo.ZoneInfo,
        at: time,
        begin: datetime,
        end: datetime,
        jump: Callable[[datetime], timedelta] = lambda _: timedelta(0),
    ) -> None:
        self.now = begin
        self.done = [begin.astimezone(zone).date()]
        self.moments: list[datetime] = []
        self._end = end
        self._jump = jump
        self._running = 0
        self.clock = NightClock(
            at, last_done=self._last, night=self._run, now=lambda: self.now, zone=zone
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    async def wait_until(self, deadline: datetime) -> Wake:
        """Lets the clock come to the deadline, or to where it jumps."""
        if self.now >= deadline:
            return Wake.DUE
        if jump := self._jump(self.now):
            self.now += jump
            return Wake.CLOCK_SET
        if deadline > self._end:
            raise EOFError
        self.now = deadline
        return Wake.DUE

    async def _last(self) -> date | None:
        return self.done[-1]

    async def _run(self, day: date) -> None:
        self._running += 1
        assert self._running == 1, "two nights at once"
        self.done.append(day)
        self.moments.append(self.now)
        self.now += timedelta(minutes=7)
        self._running -= 1

    async def walk(self) -> list[date]:
        """Runs the clock to the end and returns the dates that were done."""
        with pytest.raises(EOFError):
            await self.clock.run()
        return self.done[1:]


@pytest.mark.anyio
async def test_runs_every_date_once_in_all_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two years of nights, with all changes of clocks, in every zone of tzdata: each date once."""
    from turnmark_memory import night as module

    days = [FIRST + timedelta(days=more) for more in range((LAST - FIRST).days + 1)]
    ran = 0
    for name, zone in zones().items():
        begin = due_instant(FIRST - timedelta(days=1), THREE, zone) + timedelta(minutes=1)
        end = due_instant(LAST, THREE, zone) + timedelta(hours=1)
        walk = LongWalk(zone, THREE, begin, end)
        monkeypatch.setattr(module, "DeadlineTimer", lambda _now, walk=walk: walk)
        assert await walk.walk() == days, name
        ran += len(days)
    assert ran >= 365 * 2 * 400


@pytest.mark.anyio
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(zones())))
@settings(max_examples=30, deadline=None)
async def test_survives_suspends_and_clocks_that_are_set(seed: int, name: str) -> None:
    """Whatever the clock does, no date runs twice, and what was missed is caught up by one run."""
    from turnmark_memory import night as module

    chance = random.Random(seed)
    zone = zoneinfo.ZoneInfo(name)

    def jump(_now: datetime) -> timedelta:
        if chance.random() < 0.7:
            return timedelta(0)
        return timedelta(hours=chance.choice((-30, -3, -1, 1, 5, 26, 24 * 9)))

    begin = due_instant(FIRST, THREE, zone) + timedelta(minutes=1)
    walk = LongWalk(zone, THREE, begin, begin + timedelta(days=200), jump)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DeadlineTimer", lambda _now: walk)
        done = await walk.walk()
    assert done == sorted(set(done))
    for day, moment in zip(done, walk.moments, strict=True):
        assert due_instant(day, THREE, zone) <= moment
    # At the end nothing is missed: the last date's night is due for less than a day.
    due = due_instant(done[-1] + timedelta(days=1), THREE, zone)
    assert due > walk.now


def test_does_no_date_again_when_the_clock_goes_back() -> None:
    """Set back over the night it waits for the next date; after a clock that was years off, not."""
    zone = zoneinfo.ZoneInfo("Europe/Lisbon")
    day = date(2026, 5, 8)
    before = datetime(2026, 5, 8, 2, 50, tzinfo=zone)
    assert next_due(before, day, THREE, zone)[0] == date(2026, 5, 9)
    assert next_due(before - timedelta(days=1), day, THREE, zone)[0] == date(2026, 5, 9)
    assert next_due(before, date(2036, 1, 1), THREE, zone)[0] == day


@pytest.mark.anyio
async def test_tries_a_failed_night_again_and_never_skips_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A date counts when its night is through; a failure comes again, also of the date's read."""
    from turnmark_memory import night as module

    monkeypatch.setattr(module, "_RETRY", timedelta(0))
    done: list[date] = []
    tried: list[date] = []
    reads = 0
    finished = anyio.Event()

    async def last_done() -> date | None:
        nonlocal reads
        reads += 1
        if reads == 2:
            raise Unavailable("the disk")
        return done[-1] if done else None

    async def run(day: date) -> None:
        tried.append(day)
        if len(tried) < 3:
            raise Unavailable("the writer")
        done.append(day)
        finished.set()

    night = NightClock(time(0, 0), last_done=last_done, night=run)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(night.run)
        with anyio.fail_after(60):
            await finished.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert tried == [tried[0]] * 3
    assert night.next is not None
    assert night.next > datetime.now(UTC)


def nights(work: AtWork) -> list[NightDone]:
    return [event for event in work.events if isinstance(event, NightDone)]


@pytest.mark.anyio
async def test_writes_what_is_owed_and_builds_the_core_page() -> None:
    """Organizing on request: all is written, parked turns too, the page is new, and it is said."""
    async with at_work() as work:
        work.scribe.answer = poison = Poisoned("m1")
        await work.say("s", "m1")
        await work.flush()
        await work.flush()
        assert (await work.marks())["m1"] == ("parked", "failed")
        poison.poison.clear()
        await work.say("s", "m2")
        (work.root / "core.md").write_text("by hand")
        answer = await work.memory.organize(OrganizeRequest())
        assert answer.owed == 0
        assert "fact m2" in answer.core.text
        assert (work.root / "core.md").read_text() == answer.core.text
        said = nights(work)
        assert [one.date for one in said] == [answer.date]
        assert [row[0] for row in await work.rows("SELECT last_night FROM workspace")] == [
            answer.date
        ]


@pytest.mark.anyio
async def test_looks_first_at_what_may_have_been_missed() -> None:
    """Law 10: what a look before the night brings is written in that night."""
    async with at_work() as work:

        async def look() -> None:
            await work.say("s", "m1")

        work.memory.before_night.append(look)
        answer = await work.memory.organize(OrganizeRequest())
        assert answer.owed == 0
        assert work.facts() == ["m1"]


@pytest.mark.anyio
async def test_never_runs_two_at_once() -> None:
    """A second request waits for the first, and then has nothing to write."""
    async with at_work() as work:
        work.scribe.before = hold = Hold()
        await work.say("s", "m1")
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(work.memory.organize, OrganizeRequest())
            await hold.began.wait()
            await anyio.wait_all_tasks_blocked()
            assert nights(work) == []
            hold.end.set()
        assert len(nights(work)) == 2
        assert len(work.scribe.batches) == 1


@pytest.mark.anyio
async def test_catches_up_a_missed_night_at_a_start() -> None:
    """The daemon was off for days: one night at once, of one date."""
    async with at_work() as work:
        await work.say("s", "m1")
        await work.stop()
        work.settings = MemorySettings(trigger_tokens=16_000, core_tokens=2_000, nightly=time(0, 0))
        await work.start(run=False)
        await work.store.write(
            lambda tx: tx.execute("UPDATE workspace SET last_night='2020-01-01'")
        )
        await work.run()
        await work.wait_for(lambda: any(isinstance(event, NightDone) for event in work.events))
        await work.quiet()
        assert len(nights(work)) == 1
        assert work.facts() == ["m1"]


@pytest.mark.anyio
async def test_a_new_workspace_has_missed_no_night() -> None:
    """The first start runs no night; the next due one is the first."""
    async with at_work(run=False) as work:
        await work.stop()
        work.settings = MemorySettings(trigger_tokens=1_000, core_tokens=100, nightly=time(0, 0))
        await work.start()
        await work.quiet()
        assert nights(work) == []


def test_this_machine_has_the_zones() -> None:
    """The tests above look at all zones, not at a handful."""
    assert len(zones()) > 400
    assert Path(zoneinfo.__file__).exists()
