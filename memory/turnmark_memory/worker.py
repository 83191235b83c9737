"""The memory worker: woken by events, it writes what live tips owe, and nothing twice.

One task hears events and notes which branches moved or fell silent. One task plans: it looks at
those branches, claims a batch per conversation and lets each be written beside the others, under a
limit. Finished answers meet in one install. An event that is lost costs nothing but time: the next
look finds what is owed by the marks.

Nothing here holds a lock while a writer thinks, and nothing an agent does waits for any of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.abc
import apsw
import msgspec
import structlog

from turnmark_events.bus import Bus
from turnmark_events.errors import Refused, TurnmarkError
from turnmark_events.types import Event, TipIdle, TipMoved
from turnmark_memory.claiming import Claims
from turnmark_memory.demand import Demand, Flushed
from turnmark_memory.disk_pause import DiskPause
from turnmark_memory.ending import Ended, Endings
from turnmark_memory.failing import FIRST_BACKOFF_MS
from turnmark_memory.held_archive import HeldArchive
from turnmark_memory.model import Evidence
from turnmark_memory.planning import (
    Bounds,
    Look,
    Plan,
    Planned,
    next_retry_ms,
    owed_now,
    plan,
    released,
)
from turnmark_memory.taking_back import TakingBack
from turnmark_memory.writing import Writing
from turnmark_session_store import SessionStore
from turnmark_session_store.deadline import DeadlineTimer
from turnmark_session_store.owed import owing_branches
from turnmark_session_store.times import now_ms, to_datetime

log = structlog.get_logger(__name__)

CLAIMS_LIMIT = 256
"""Batches under way at once; more conversations than that wait until some are done."""


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
        self._trigger_tokens = trigger_tokens
        self._clock = clock
        self._claims = Claims(workspace_key, writing.writer_name)
        self._breaker = writing.asking.breaker
        self._pause = DiskPause()
        self._endings = Endings(
            store, writing, workspace_key, self._pause, first_backoff_ms=first_backoff_ms
        )
        self._held = HeldArchive(store, writing.archiving, workspace_key)
        self._moved: set[str] = set()
        self._silent: set[str] = set()
        self._demands: list[Demand] = []
        self._running: dict[int, Planned] = {}
        self._roused = self._looking = self._everywhere = False
        self._looked_ms = 0
        self._wake: DeadlineTimer | None = None

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
            tasks.start_soon(self._plan, tasks)
            task_status.started()
            async for event in events:
                self.heard(event)

    def heard(self, event: Event) -> None:
        """Notes where to look; an event is a hint and nothing more."""
        if isinstance(event, TipIdle):
            self._silent.add(event.branch)
        elif isinstance(event, TipMoved):
            self._moved.add(event.branch)
        self._rouse()

    @property
    def resting(self) -> str | None:
        """Why the writer's endpoint is left alone now; None where it may be asked."""
        return self._breaker.reason if self._breaker.is_open else None

    def look_everywhere(self) -> None:
        """Asks for a look at every branch: those fallen silent are written whole."""
        self._everywhere = True
        self._rouse()

    def look_soon(self) -> None:
        """Asks for a look without saying where: something changed that no event tells."""
        self._rouse()

    def look_whole(self, branches: Iterable[str]) -> None:
        """Asks for these branches to be written whole, as if they had fallen silent."""
        self._silent.update(branches)
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

    def statistics(self) -> dict[str, Any]:
        """Returns what the worker is doing."""
        until = to_datetime(self._breaker.until_ms) if self._breaker.is_open else None
        return {
            "batches_running": len(self._running),
            "last_success": self._endings.last_success,
            "last_failure": self._endings.last_failure,
            "resting_until": until,
            "resting_because": self._breaker.reason,
            "resting_on_request": self._breaker.is_asked_for,
        }

    @property
    def is_at_rest(self) -> bool:
        """Tells whether nothing is under way and nothing waits but for an endpoint that rests."""
        waiting = self._moved or self._silent
        return not (
            self._running
            or (waiting and not self._breaker.is_open)
            or self._demands
            or self._roused
            or self._looking
        )

    def _rouse(self) -> None:
        self._roused = True
        if self._wake is not None:
            self._wake.set_changed()

    async def _note_everywhere(self) -> None:
        """Notes every branch that owes; whole those whose silence was said already."""
        self._everywhere = False
        for live in await self._store.read(lambda db: owing_branches(db, self._workspace)):
            (self._moved if live.idle_ms is not None else self._silent).add(live.branch_name)

    async def _plan(self, tasks: anyio.abc.TaskGroup) -> None:
        assert self._wake is not None  # noqa: S101  set by `run`, which starts this task
        while True:
            try:
                await self._wake.wait_until(await self._next_retry())
                self._roused, self._looking = False, True
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
        moved, silent = self._moved, self._silent
        self._moved, self._silent = set(), set()
        try:
            await self._clear_up()
            await self._write_noted(moved, silent, tasks)
            await self._serve_demands(tasks)
        except TurnmarkError:
            self._moved |= moved
            self._silent |= silent
            raise

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

    async def _write_noted(
        self, moved: set[str], silent: set[str], tasks: anyio.abc.TaskGroup
    ) -> None:
        at_ms = self._clock()
        back = await self._store.read(lambda db: released(db, self._workspace, at_ms))
        self._looked_ms = at_ms
        silent |= back.whole
        moved |= back.moved
        if moved or silent:
            found = await self._start(
                Look(moved=frozenset(moved), whole=frozenset(silent)), tasks, None
            )
            self._moved |= found.waiting & moved
            self._silent |= found.waiting & silent

    async def _serve_demands(self, tasks: anyio.abc.TaskGroup) -> None:
        for demand in list(self._demands):
            if demand.joined is None:
                demand.joined = self._running_in(demand.look)
                demand.look = await self._bounded(demand.look)
            busy = self._busy_roots()
            found = await self._start(demand.look, tasks, demand)
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

    def _running_in(self, look: Look) -> frozenset[int]:
        return frozenset(
            batch
            for batch, planned in self._running.items()
            if look.session in (None, planned.live.session_name)
        )

    def _busy_roots(self) -> frozenset[int]:
        return frozenset(root for planned in self._running.values() for root in planned.roots)

    async def _blocked(self, demand: Demand, busy: frozenset[int]) -> bool:
        """Tells whether a running batch of somebody else keeps the demand from being done.

        One that ran in its scope when the flush began does: it may be settled already and not yet
        to be found by a recall. `busy` were under way when the look for it began: what ended since
        may have failed, and has still to be tried by this flush.
        """
        if demand.joined and not demand.joined.isdisjoint(self._running):
            return True
        if not busy:
            return False
        left = await self._planned(demand.look, demand, busy=frozenset(), limit=None)
        return any(not planned.roots.isdisjoint(busy) for planned in left.batches)

    async def _planned(
        self, look: Look, demand: Demand | None, *, busy: frozenset[int], limit: int | None
    ) -> Plan:
        at_ms = self._clock()
        bounds = self._bounds(at_ms, demand, limit)
        failed = frozenset[int]() if demand is None else frozenset(demand.failed_roots)
        tried = frozenset[int]() if demand is None else frozenset(demand.parked_tried)

        def run(db: apsw.Connection) -> Plan:
            return plan(
                db,
                self._workspace,
                look,
                bounds,
                at_ms=at_ms,
                busy_roots=busy,
                failed_roots=failed,
                tried=tried,
            )

        return await self._store.read(run)

    def _bounds(self, at_ms: int, demand: Demand | None, limit: int | None) -> Bounds:
        """Returns how much may be begun now; a flush tries an endpoint that rests all the same."""
        asking = sum(not planned.local for planned in self._running.values())
        return Bounds(
            trigger_tokens=self._trigger_tokens,
            batches=limit,
            remote=self._breaker.room(at_ms, asking=asking) if demand is None else None,
            local_apart=self._writing.asking.keeps_apart,
        )

    async def _start(self, look: Look, tasks: anyio.abc.TaskGroup, demand: Demand | None) -> Plan:
        """Claims what can be written now and sets it going; returns what it found."""
        limit = CLAIMS_LIMIT - len(self._running)
        found = await self._planned(look, demand, busy=self._busy_roots(), limit=limit)
        if not found.batches:
            return found
        claimed, refused = await self._store.write(lambda tx: self._claims.take(tx, found.batches))
        await self._set_going(claimed, tasks, demand)
        return found if not refused else self._refused(found, refused, demand)

    async def _set_going(
        self,
        claimed: Sequence[tuple[Planned, int]],
        tasks: anyio.abc.TaskGroup,
        demand: Demand | None,
    ) -> None:
        try:
            archived = await self._writing.archiving.archive([one.turns for one, _ in claimed])
        except TurnmarkError:
            self._endings.abandon([batch for _, batch in claimed])
            raise
        self._writing.expect(len(claimed))
        for (one, batch), turns in zip(claimed, archived, strict=True):
            self._running[batch] = one
            if demand is not None:
                demand.began(one)
            tasks.start_soon(self._write, one, batch, turns, demand)

    def _refused(self, found: Plan, refused: Sequence[Planned], demand: Demand | None) -> Plan:
        """Looks again at once at what moved on between the look and the claim, but not for ever."""
        if not self._claims.are_stuck:
            self._rouse()
            waiting = found.waiting | {one.live.branch_name for one in refused}
            return Plan(batches=found.batches, waiting=waiting, cut=True)
        for one in refused:
            log.warning("claim_refused", session=one.live.session_name, turns=len(one.turns))
            if demand is not None:
                demand.passes_over(one, "another batch of this conversation is under way")
        return found

    async def _write(
        self,
        planned: Planned,
        batch: int,
        turns: Sequence[Evidence] | TurnmarkError,
        demand: Demand | None,
    ) -> None:
        if isinstance(turns, TurnmarkError):
            outcome = self._writing.unarchived(turns)
        else:
            outcome = await self._writing.write(planned, batch, turns)
        ended = await self._endings.end(planned, batch, outcome)
        # Between the last look at them and their settling: what stands of them must go.
        await self._check_taken_back(planned)
        del self._running[batch]
        self._note_again(planned, ended, by_demand=demand is not None)
        if demand is not None:
            demand.ended(planned, ended.outcome, parked=ended.parked or planned.parked)
        self._rouse()

    async def _check_taken_back(self, planned: Planned) -> None:
        try:
            await self._taking_back.check(planned.turns)
        except TurnmarkError as error:
            # Nothing was looked at, so everything is looked at again.
            self._taking_back.forget_looks()
            log.warning("look_failed", reason=error.message)

    def _note_again(self, planned: Planned, ended: Ended, *, by_demand: bool) -> None:
        """Notes the branch again while a full batch is owed; whole where it was to be whole."""
        if ended.abandoned:
            again = self._silent
        elif ended.outcome.put_off:
            again = self._silent if planned.whole else self._moved
        elif ended.parked or not ended.outcome.problem:
            again = self._silent if planned.goes_on and not by_demand else self._moved
        else:
            return
        again.add(planned.live.branch_name)
