"""The idle clock: one timer for all branches; a tip that fell silent is said once per move."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
import apsw
import structlog

from turnmark_events.errors import Unavailable
from turnmark_events.types import Event, TipIdle, TipMoved
from turnmark_session_store.deadline import DeadlineTimer, Wake
from turnmark_session_store.queries import row_of
from turnmark_session_store.sessions import turn_id
from turnmark_session_store.times import now_ms, to_datetime, to_rfc3339
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import LIVE_BRANCH

if TYPE_CHECKING:
    from turnmark_session_store.store import SessionStore

log = structlog.get_logger(__name__)

_RETRY_SECONDS = 2.0
"""After a failed write: no event tells that a disk has room again."""

_SLICE = 2_000
"""Idle tips said in one transaction; more than that fall due together only after a long stop."""


def next_deadline_ms(db: apsw.Connection) -> int | None:
    """Returns the earliest idle deadline of all branches, None where none is armed."""
    row = row_of(db, "SELECT min(idle_ms) FROM branch WHERE idle_ms IS NOT NULL")
    return None if row is None else row[0]


def fire_due(tx: Transaction) -> int:
    """Records `TipIdle` for the branches whose deadline has come and disarms them."""
    rows = tx.rows(
        "SELECT branch.id, branch.name, tip, moved_ms, session.id, session.name,"
        f" {LIVE_BRANCH} FROM branch JOIN session ON session.id = branch.session"
        " WHERE idle_ms <= ? ORDER BY session.head = tip DESC, idle_ms LIMIT ?",
        (tx.at_ms, _SLICE),
    )
    for branch, name, tip, moved_ms, session, session_name, live in rows:
        tx.execute("UPDATE branch SET idle_ms = NULL WHERE id = ?", (branch,))
        if live:
            facts = {
                "session": session_name,
                "branch": name,
                "tip": turn_id(tx.db, tip),
                "since": to_rfc3339(moved_ms),
            }
            tx.record(TipIdle, facts, session=session, branch=branch)
    return len(rows)


def is_ahead(db: apsw.Connection) -> bool:
    """Tells whether a branch waits whose move lies ahead: the clock was set back since."""
    armed = "SELECT 1 FROM branch WHERE idle_ms IS NOT NULL AND moved_ms > ? LIMIT 1"
    return row_of(db, armed, (now_ms(),)) is not None


def bring_near(tx: Transaction) -> int:
    """Lets no branch wait longer than one that moves now; returns how many would have."""
    latest_ms = tx.at_ms + tx.idle_ms
    tx.execute("UPDATE branch SET idle_ms = ?1 WHERE idle_ms > ?1", (latest_ms,))
    return tx.db.changes()


class IdleClock:
    """Sleeps until the earliest deadline in the store, fires what is due, sleeps again.

    Deadlines are rows of the store, in UTC: they survive a restart and hold through a suspend.
    """

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._timer = DeadlineTimer(lambda: datetime.now(UTC))
        self._armed_ms: int | None = None

    def saw(self, events: Sequence[Event]) -> None:
        """Wakes the clock if one of `events` armed a deadline before the one it waits for.

        A move arms its deadline a fixed time ahead, so while one is armed a later move can't come
        first and nobody is woken: not even after the clock was set back, see `bring_near`.
        """
        if self._armed_ms is None and any(isinstance(event, TipMoved) for event in events):
            self._timer.set_changed()

    async def run(self) -> None:
        """Runs until cancelled. A disk that fails costs time: the deadlines stay in the store."""
        with self._timer:
            while True:
                try:
                    await self._wait_and_fire()
                except Unavailable as error:
                    log.warning("idle_not_said", reason=error.message)
                    await anyio.sleep(_RETRY_SECONDS)

    async def _wait_and_fire(self) -> None:
        await self._bring_near()
        while True:
            self._armed_ms = None  # whatever moves during the read wakes the wait below
            self._armed_ms = await self._store.read(next_deadline_ms)
            due = None if self._armed_ms is None else to_datetime(self._armed_ms)
            wake = await self._timer.wait_until(due)
            if wake is Wake.CLOCK_SET:
                await self._bring_near()
            if wake is not Wake.DUE:
                continue
            while await self._store.write(fire_due, background=True) == _SLICE:
                pass

    async def _bring_near(self) -> None:
        """Brings deadlines near that a clock set which was ahead, else they could be years away."""
        if await self._store.read(is_ahead):
            brought = await self._store.write(bring_near, background=True)
            log.info("deadlines_brought_near", branches=brought)
