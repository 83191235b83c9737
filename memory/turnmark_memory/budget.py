"""The daily budget: how many tokens the models may use in one local day, counted durably.

Counted are the tokens of the replies, as each server counts them. What is used up is used up for
every task, flushes too: the number bounds a bill. The next local day begins with nothing spent.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

import apsw
import msgspec

from turnmark_memory.night import due_instant
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store import SessionStore
from turnmark_session_store.queries import value_of
from turnmark_session_store.transaction import Transaction

_KEY: Final = "model_tokens"
"""The row of the store's `meta` that holds what was spent, and on which day."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What the models used on a local day; `limit_tokens` 0 means that nothing bounds it."""

    day: str
    tokens: int
    limit_tokens: int


class _Row(msgspec.Struct, frozen=True, kw_only=True):
    day: str
    tokens: int


class OverBudget(WriterFailed):
    """The day's tokens are used up; what is asked now waits until the next local day."""

    def __init__(self, limit_tokens: int, seconds: float) -> None:
        super().__init__(
            f"the daily budget of {limit_tokens:,} tokens is used up; writing goes on at midnight, "
            "or with a higher writer.daily_tokens after a restart",
            transport=True,
            retry_after_seconds=seconds,
        )


class Budget:
    """Counts what the models use; shared by all of them. `now` is the clock, aware."""

    def __init__(
        self,
        store: SessionStore,
        limit_tokens: int,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._limit_tokens = limit_tokens
        self._now = now
        self._asked_tokens = 0

    async def spent(self) -> Spent:
        """Returns what was used today."""
        day = self._today().isoformat()
        row = await self._store.read(_row)
        tokens = row.tokens if row is not None and row.day == day else 0
        return Spent(day=day, tokens=tokens, limit_tokens=self._limit_tokens)

    async def begin(self, estimate_tokens: int) -> None:
        """Takes a question into account until `end`; questions asked at once see one another.

        The last question of a day may go over the limit: what it costs is known afterwards.

        Raises:
            OverBudget: if nothing is left of today; the question is not to be asked.
        """
        spent = await self.spent()
        if 0 < self._limit_tokens <= spent.tokens + self._asked_tokens:
            raise OverBudget(self._limit_tokens, self._seconds_left())
        self._asked_tokens += estimate_tokens

    async def end(self, estimate_tokens: int, tokens: int) -> None:
        """Ends what `begin` began, and counts what it really cost; durable on return."""
        try:
            if tokens > 0:
                day = self._today().isoformat()
                await self._store.write(lambda tx: _add(tx, day, tokens))
        finally:
            self._asked_tokens -= estimate_tokens

    def _today(self) -> date:
        return self._now().astimezone().date()

    def _seconds_left(self) -> float:
        tomorrow = due_instant(self._today() + timedelta(days=1), time(0), None)
        return max(1.0, (tomorrow - self._now()).total_seconds())


def _row(db: apsw.Connection) -> _Row | None:
    found = value_of(db, "SELECT value FROM meta WHERE key = ?", (_KEY,))
    return None if found is None else msgspec.json.decode(found, type=_Row)


def _add(tx: Transaction, day: str, tokens: int) -> None:
    row = _row(tx.db)
    before = row.tokens if row is not None and row.day == day else 0
    value = msgspec.json.encode(_Row(day=day, tokens=before + tokens)).decode()
    tx.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT DO UPDATE SET value = excluded.value",
        (_KEY, value),
    )
