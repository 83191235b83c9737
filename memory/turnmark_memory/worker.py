"""The memory worker: woken by events, it writes what live tips owe, and nothing twice.

One task hears events and notes which branches moved or fell silent (`noted.py`). One task looks:
at those branches, and for those who asked for a flush (`demand.py`); what it finds is claimed, a
batch per conversation, and each is written beside the others (`under_way.py`), under a limit.
Finished answers meet in one install. An event that is lost costs nothing but time: the next look
finds what is owed by the marks.

Nothing here holds a lock while a writer thinks, and nothing an agent does waits for any of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import anyio.abc
import msgspec
import structlog

from turnmark_events.bus import Bus
from turnmark_events.errors import Refused, TurnmarkError
from turnmark_events.types import Event
from turnmark_memory.demand import Demand, Flushed
from turnmark_memory.disk_pause import DiskPause
from turnmark_memory.ending import Endings
from turnmark_memory.failing import FIRST_BACKOFF_MS, end_pauses_ahead
from turnmark_memory.held_archive import HeldArchive
from turnmark_memory.noted import Noted
from turnmark_memory.planning import Look, owed_now, released
from turnmark_memory.taking_back import TakingBack
from turnmark_memory.under_way import UnderWay
from turnmark_memory.writing import Writing
from turnmark_session_store import SessionStore
from turnmark_session_store.back_off import next_retry_ms
from turnmark_session_store.deadline import DeadlineTimer, Wake
from turnmark_session_store.owed import owing_branches
from turnmark_session_store.times import now_ms, to_datetime

log = structlog.get_logger(__name__)


class Worker:
    """Writes what is owed; run it once, ask it for flushes from anywhere on the loop."""

    def __init__(
        self,
        store: SessionStore,
        writing: Writing,
        taking_back: TakingBack,
        workspace_key: int,
        *,
        trigger_tokens: int,
        first_backoff_ms: int = FIRST_BACKOFF_MS,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._store = store
        self._writing = writing
        self._taking_back = taking_back
        self._workspace = workspace_key
        self._clock = clock
        self._breaker = writing.asking.breaker
        self._pause = DiskPause()
        self._endings = Endings(
            store, writing, workspace_key, self._pause, first_backoff_ms=first_backoff_ms
        )
        self._held = HeldArchive(store, writing.archiving, workspace_key)
        self._noted = Noted()
        self._under_way = UnderWay(
            store,
            writing,
            taking_back,
            self._endings,
            workspace_key,
            self._noted,
            trigger_tokens=trigger_tokens,
            clock=clock,
            rouse=self._rouse,
        )
        self._demands: list[Demand] = []
        self._roused = self._looking = self._everywhere = False
        self._looked_ms = 0
        self._wake: DeadlineTimer | None = None

    # Heard and asked for.

    async def run(self, bus: Bus, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Runs until cancelled; started once it hears every event from then on."""
        with DeadlineTimer(lambda: datetime.now(UTC)) as timer:
            self._wake = timer
            try:
                await self._hear(bus, task_status)
            finally:
                self._wake = None  # a write under way may still tell of its events

    async def _hear(self, bus: Bus, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with (
            bus.subscribe(name="memory worker", types=["TipMoved", "TipIdle"]) as events,
            anyio.create_task_group() as tasks,
        ):
            await self._note_everywhere()
            self._rouse()
            tasks.start_soon(self._look_when_roused, tasks)
            task_status.started()
            async for event in events:
                self.heard(event)

    def heard(self, event: Event) -> None:
        """Notes where to look; an event is a hint and nothing more."""
        self._noted.hear(event)
        self._rouse()

    def look_everywhere(self) -> None:
        """Asks for a look at every branch: those fallen silent are written whole."""
        self._everywhere = True
        self._rouse()

    def flush_later(self, look: Look) -> None:
        """Asks for a flush without waiting for it."""
        self._demands.append(Demand(look))
        self._rouse()

    async def flush(self, look: Look, told: Callable[[int], None] = lambda _: None) -> Flushed:
        """Writes what is owed in the scope of `look`, one attempt a batch; joins running batches.

        Returns when nothing is left in the scope but what failed in this very flush. `told` hears
        how many turns are done.

        Raises:
            Unavailable: if the disk keeps the worker from looking; all is tried again later.
        """
        demand = Demand(look, told)
        self._demands.append(demand)
        self._rouse()
        try:
            await demand.finished.wait()
        finally:
            self._drop(demand)
        return demand.result()

    def _rouse(self) -> None:
        self._roused = True
        if self._wake is not None:
            self._wake.set_changed()

    # The looks, one after the other.

    async def _look_when_roused(self, tasks: anyio.abc.TaskGroup) -> None:
        assert self._wake is not None  # noqa: S101  set by `run`, which starts this task
        while True:
            try:
                wake = await self._wake.wait_until(await self._next_retry())
                self._roused, self._looking = False, True
                if wake is Wake.CLOCK_SET:
                    await self._store.write(lambda tx: end_pauses_ahead(tx, self._workspace))
                await self._look(tasks)
            except TurnmarkError as error:
                self._put_off(error)
            else:
                self._pause.forget()
            finally:
                self._looking = False

    async def _next_retry(self) -> datetime | None:
        """Returns when to look without being roused: after a pause of disk, endpoint or batch."""
        if self._pause.until_ms is not None:
            return to_datetime(self._pause.until_ms)
        after_ms = self._looked_ms
        retry_ms = await self._store.read(lambda db: next_retry_ms(db, self._workspace, after_ms))
        rest_ms = self._breaker.until_ms if self._breaker.until_ms > after_ms else None
        times = [at_ms for at_ms in (retry_ms, rest_ms) if at_ms is not None]
        return to_datetime(min(times)) if times else None

    def _put_off(self, error: TurnmarkError) -> None:
        """Looks again after a pause: what failed is the disk's doing, and nobody would say when.

        Who waits for a flush is told; what a running batch does is its own affair.
        """
        self._endings.note_failure(error.message)
        log.warning("look_failed", reason=error.message)
        self._pause.begin()
        for demand in self._demands:
            demand.ends_with(error)
        self._demands.clear()

    async def _look(self, tasks: anyio.abc.TaskGroup) -> None:
        self._pause.end()
        if self._everywhere:
            await self._note_everywhere()
        noted = self._noted.take()
        try:
            await self._clear_up()
            await self._write_noted(noted, tasks)
            await self._serve_demands(tasks)
        except TurnmarkError:
            self._noted.put_back(noted)
            raise

    async def _note_everywhere(self) -> None:
        """Notes every branch that owes; whole those whose silence was said already."""
        self._everywhere = False
        for live in await self._store.read(lambda db: owing_branches(db, self._workspace)):
            self._noted.add(live)

    async def _clear_up(self) -> None:
        """Ends what the disk kept from being ended; takes out what rests on nothing any more."""
        if await self._writing.catch_up():
            self._taking_back.forget_looks()
        await self._endings.clear_up()
        await self._retire_taken_back()
        if await self._held.look():
            self._rouse()

    async def _retire_taken_back(self) -> None:
        try:
            await self._taking_back.look()
        except Refused as error:
            # A topic that can't be used must not keep the others from being written.
            self._endings.note_failure(error.message)
            log.warning("retirement_refused", reason=error.message)

    async def _write_noted(self, noted: Noted, tasks: anyio.abc.TaskGroup) -> None:
        """Sets going what is owed where something was noted, or a back-off is over."""
        at_ms = self._clock()
        for live in await self._store.read(lambda db: released(db, self._workspace, at_ms)):
            noted.add(live)
        self._looked_ms = at_ms
        if noted:
            look = Look(moved=frozenset(noted.moved), whole=frozenset(noted.whole))
            found = await self._under_way.start(look, tasks, None)
            self._noted.put_back(noted, only=found.waiting)

    async def _serve_demands(self, tasks: anyio.abc.TaskGroup) -> None:
        for demand in list(self._demands):
            if demand.joined is None:
                demand.joined = self._under_way.within(demand.look)
                demand.look = await self._bounded(demand.look)
            busy = self._under_way.busy_roots()
            found = await self._under_way.start(demand.look, tasks, demand)
            if demand.running == 0 and not found.cut and not await self._blocked(demand, busy):
                self._drop(demand)
                demand.finished.set()

    def _drop(self, demand: Demand) -> None:
        if demand in self._demands:  # whoever waited for it may be gone meanwhile
            self._demands.remove(demand)

    async def _bounded(self, look: Look) -> Look:
        """Returns the look for what is owed now: what is said from now on is another flush's."""
        if look.within is not None:
            return look
        owed = await self._store.read(lambda db: owed_now(db, self._workspace, look))
        return msgspec.structs.replace(look, within=frozenset(owed))

    async def _blocked(self, demand: Demand, busy: frozenset[int]) -> bool:
        """Tells whether a running batch of somebody else keeps the demand from being done.

        One that ran in its scope when the flush began does: it may be settled already and not yet
        to be found by a recall. `busy` were under way when the look for it began: what ended since
        may have failed, and has still to be tried by this flush.
        """
        if demand.joined and self._under_way.runs_any(demand.joined):
            return True
        if not busy:
            return False
        left = await self._under_way.planned(demand.look, demand, busy=frozenset(), limit=None)
        return any(not planned.roots.isdisjoint(busy) for planned in left.batches)

    # What the worker is doing.

    @property
    def resting(self) -> str | None:
        """Why the writer's endpoint is left alone now; None where it may be asked."""
        return self._breaker.reason if self._breaker.is_open else None

    @property
    def is_at_rest(self) -> bool:
        """Tells whether nothing is under way and nothing waits but for an endpoint that rests."""
        return not (
            self._under_way
            or (self._noted and not self._breaker.is_open)
            or self._demands
            or self._roused
            or self._looking
        )

    def statistics(self) -> dict[str, Any]:
        """Returns what the worker is doing."""
        until = to_datetime(self._breaker.until_ms) if self._breaker.is_open else None
        return {
            "batches_running": len(self._under_way),
            "last_success": self._endings.last_success,
            "last_failure": self._endings.last_failure,
            "resting_until": until,
            "resting_because": self._breaker.reason,
            "resting_on_request": self._breaker.is_asked_for,
        }
