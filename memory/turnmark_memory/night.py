"""The night: one run per local date at a set time, caught up once after a missed one.

Keyed by the local date, not by an interval: 03:00 is missing or doubled once a year in many zones.
A date whose time doesn't exist runs at the first moment after the gap; one whose time comes twice
runs at the first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_session_store.deadline import DeadlineTimer, Wake

log = structlog.get_logger(__name__)

_RETRY = timedelta(minutes=10)
"""A night that failed is tried again after this, the same date."""

_SET_BACK = timedelta(days=7)
"""A night that was done further ahead than this was done by a clock that was wrong."""

_LONGEST_GAP = timedelta(hours=25)
"""A zone that changes sides of the date line leaves out a day; no clock jumps further."""


def due_instant(day: date, at: time, zone: tzinfo | None) -> datetime:
    """Returns the moment, in UTC, at which the night of local `day` is due.

    `zone` None is the machine's local time. A time in a gap is the first moment after it, a doubled
    one is the first.
    """
    wall = datetime.combine(day, at)
    instant = _instant(wall, zone)
    return instant if _wall(instant, zone) == wall else _end_of_gap(wall, instant, zone)


def _instant(wall: datetime, zone: tzinfo | None) -> datetime:
    """Returns the first moment at which a clock shows `wall`; in a gap, a moment near it."""
    # A naive time is read in the machine's zone.
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def _wall(instant: datetime, zone: tzinfo | None) -> datetime:
    return instant.astimezone(zone).replace(tzinfo=None, fold=0)


def _end_of_gap(wall: datetime, near: datetime, zone: tzinfo | None) -> datetime:
    """Returns the first whole second at which a clock shows `wall` or later."""
    early, late = near - _LONGEST_GAP, near + _LONGEST_GAP
    while late - early > timedelta(seconds=1):
        middle = (early + (late - early) / 2).replace(microsecond=0)
        if _wall(middle, zone) >= wall:
            late = middle
        else:
            early = middle
    return late


def next_due(
    now: datetime, last_done: date | None, at: time, zone: tzinfo | None = None
) -> tuple[date, datetime]:
    """Returns the next date to run and when it is due, which may be in the past (catch-up).

    However many dates were missed, one run catches up: that of today, or of yesterday where today's
    time has not come yet. After the clock was set back no date is done again: the next one is that
    after `last_done`, unless that lies so far ahead that the clock was wrong when it was done.
    """
    today = now.astimezone(zone).date()
    if last_done is not None and today <= last_done <= today + _SET_BACK:
        following = last_done + timedelta(days=1)
        return following, due_instant(following, at, zone)
    due_today = due_instant(today, at, zone)
    yesterday = today - timedelta(days=1)
    if now < due_today and last_done is not None and last_done < yesterday:
        return yesterday, due_instant(yesterday, at, zone)
    return today, due_today


class NightClock:
    """Runs `night(date)` when it is due; the owner keeps the date that was done last."""

    def __init__(
        self,
        at: time,
        *,
        last_done: Callable[[], Awaitable[date | None]],
        night: Callable[[date], Awaitable[None]],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        zone: tzinfo | None = None,
    ) -> None:
        self._at = at
        self._last_done = last_done
        self._night = night
        self._now = now
        self._zone = zone
        self.next: datetime | None = None

    async def run(self) -> None:
        """Runs until cancelled. A failed night is logged and tried again, never skipped."""
        with DeadlineTimer(self._now) as timer:
            while True:
                try:
                    await self._wait_and_run(timer)
                except TurnmarkError as error:
                    log.warning("night_failed", reason=error.message)
                    self.next = self._now() + _RETRY
                    await timer.wait_until(self.next)

    async def _wait_and_run(self, timer: DeadlineTimer) -> None:
        day, due = next_due(self._now(), await self._last_done(), self._at, self._zone)
        self.next = due
        if await timer.wait_until(due) is Wake.DUE:
            await self._night(day)
