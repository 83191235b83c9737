"""The memory worker: woken by events, it writes what live tips owe, and nothing twice.

One task hears events and notes which branches moved or fell silent. One task plans: it looks at
those branches, claims a batch per conversation and lets each be written beside the others, under a
limit. Finished answers meet in one install. An event that is lost costs nothing but time: the next
look finds what is owed by the marks.

Nothing here holds a lock while a writer thinks, and nothing an agent does waits for any of it.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.abc
import msgspec
import structlog

from turnmark_events.bus import Bus
from turnmark_events.errors import Busy, Refused, TurnmarkError
from turnmark_events.types import Event, TipIdle, TipMoved
from turnmark_memory.model import Evidence
from turnmark_memory.planning import (
    Look,
    Planned,
    branches_of_roots,
    next_retry_ms,
    plan,
)
from turnmark_memory.writing import Outcome, Writing
from turnmark_session_store import SessionStore
from turnmark_session_store.batches import BatchResult, claim, close_batch, fail, release
from turnmark_session_store.deadline import DeadlineTimer
from turnmark_session_store.marks import park
from turnmark_session_store.owed import owing_branches
from turnmark_session_store.times import now_ms, to_datetime
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)

CLAIMS_LIMIT = 256
"""Batches claimed in one transaction; more conversations than that wait for the next look."""

_FIRST_BACKOFF_MS = 30_000
_LONGEST_BACKOFF_MS = 3_600_000
_FIRST_DISK_PAUSE_MS = 1_000
"""After a failing disk, which nobody announces as well again; doubled up to a minute."""

_LONGEST_DISK_PAUSE_MS = 60_000
_SMALLEST_FAILURES = 2
"""A single turn is parked when it failed alone this often: once, and once more after a pause."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that could not be written, and why."""

    session: str
    branch: str
    reason: str


class Flushed(msgspec.Struct, frozen=True, kw_only=True):
    """What a flush came to."""

    batches: int
    turns: int
    tokens: int
    blocks: int
    failures: list[Failure]


class _Demand:
    """A flush under way: where it looks, what it has done, which conversations failed in it."""

    def __init__(self, look: Look, told: Callable[[int], None] = lambda _: None) -> None:
        self.look = look
        self.told = told
        self.failed_roots: set[int] = set()
        self.parked_tried: set[int] = set()
        self.batches: list[tuple[Planned, Outcome]] = []
        self.joined: frozenset[int] | None = None
        self.running = 0
        self.error: TurnmarkError | None = None
        self.finished = anyio.Event()


class Worker:
    """Writes what is owed; run it once, ask it for flushes from anywhere on the loop."""

    def __init__(
        self,
        store: SessionStore,
        writing: Writing,
        workspace_key: int,
        *,
        trigger_tokens: int,
        first_backoff_ms: int = _FIRST_BACKOFF_MS,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._store = store
        self._writing = writing
        self._workspace = workspace_key
        self._trigger_tokens = trigger_tokens
        self._first_backoff_ms = first_backoff_ms
        self._clock = clock
        self._owner = f"worker-{secrets.token_hex(4)}"
        self._moved: set[str] = set()
        self._silent: set[str] = set()
        self._demands: list[_Demand] = []
        self._busy: dict[int, int] = {}
        self._took_back = False
        self._abandoned: list[int] = []
        self._disk_failures = 0
        self._disk_retry_ms: int | None = None
        self._wake: DeadlineTimer | None = None
        self._last_failure: tuple[datetime, str] | None = None
        self._last_success: datetime | None = None

    async def run(self, bus: Bus, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Runs until cancelled; started once it hears every event from then on."""
        with DeadlineTimer(lambda: datetime.now(UTC)) as timer:
            self._wake = timer
            async with (
                bus.subscribe(name="memory worker", types=["TipMoved", "TipIdle"]) as events,
                anyio.create_task_group() as tasks,
            ):
                await self._look_at_start()
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
            if event.cause in ("rewind", "delete", "supersede", "import"):
                self._took_back = True
        self._rouse()

    def look_whole(self, branches: Iterable[str]) -> None:
        """Asks for these branches to be written whole, as if they had fallen silent."""
        self._silent.update(branches)
        self._rouse()

    def flush_later(self, look: Look) -> None:
        """Asks for a flush without waiting for it."""
        self._demands.append(_Demand(look))
        self._rouse()

    async def flush(self, look: Look, told: Callable[[int], None] = lambda _: None) -> Flushed:
        """Writes what is owed in the scope of `look`, one attempt a batch; joins running batches.

        Returns when nothing is left in the scope but what failed in this very flush. `told` hears
        how many turns are done.

        Raises:
            Unavailable: if the disk keeps the worker from looking; all is tried again later.
        """
        demand = _Demand(look, told)
        self._demands.append(demand)
        self._rouse()
        try:
            await demand.finished.wait()
        finally:
            if demand in self._demands:
                self._demands.remove(demand)
        if demand.error is not None and not demand.batches:
            raise demand.error
        return _flushed(demand)

    def statistics(self) -> dict[str, Any]:
        """Returns what the worker is doing."""
        return {
            "batches_running": len(set(self._busy.values())),
            "last_success": self._last_success,
            "last_failure": self._last_failure,
        }

    def _rouse(self) -> None:
        if self._wake is not None:
            self._wake.set_changed()

    async def _look_at_start(self) -> None:
        """Notes every branch that owes; whole those whose silence was said before the restart."""
        self._took_back = True
        for live in await self._store.read(lambda db: owing_branches(db, self._workspace)):
            (self._moved if live.idle_ms is not None else self._silent).add(live.branch_name)
        self._rouse()

    async def _plan(self, tasks: anyio.abc.TaskGroup) -> None:
        assert self._wake is not None  # noqa: S101  set by `run`, which starts this task
        while True:
            try:
                await self._wake.wait_until(await self._next_retry())
                await self._look(tasks)
            except TurnmarkError as error:
                self._put_off(error)
            else:
                if self._disk_retry_ms is None:
                    self._disk_failures = 0

    async def _next_retry(self) -> datetime | None:
        """Returns when to look without being roused: after the disk's pause or a back-off."""
        if self._disk_retry_ms is not None:
            return to_datetime(self._disk_retry_ms)
        retry_ms = await self._store.read(lambda db: next_retry_ms(db, self._workspace))
        return None if retry_ms is None else to_datetime(retry_ms)

    def _put_off(self, error: TurnmarkError) -> None:
        """Looks again after a pause: what failed is the disk's doing, and nobody would say when.

        Who waits for a flush is told; what a running batch does is its own affair.
        """
        self._failed(error.message)
        log.warning("look_failed", reason=error.message)
        pause_ms = min(
            _FIRST_DISK_PAUSE_MS * 2 ** min(self._disk_failures, 16), _LONGEST_DISK_PAUSE_MS
        )
        self._disk_failures += 1
        self._disk_retry_ms = now_ms() + pause_ms
        for demand in self._demands:
            demand.error = error
            demand.finished.set()
        self._demands.clear()

    async def _look(self, tasks: anyio.abc.TaskGroup) -> None:
        self._disk_retry_ms = None
        moved, silent, took_back = self._moved, self._silent, self._took_back
        self._moved, self._silent, self._took_back = set(), set(), False
        try:
            await self._clear_up(took_back=took_back)
            await self._write_noted(moved, silent, tasks)
            await self._serve_demands(tasks)
        except TurnmarkError:
            self._moved |= moved
            self._silent |= silent
            self._took_back |= took_back
            raise

    async def _clear_up(self, *, took_back: bool) -> None:
        """Ends what the disk kept from being ended; takes out what rests on nothing any more."""
        await self._writing.catch_up()
        if self._abandoned:
            batches = list(self._abandoned)
            await self._store.write(lambda tx: _release_all(tx, batches))
            self._abandoned = [batch for batch in self._abandoned if batch not in batches]
        if took_back:
            await self._retire_taken_back()

    async def _retire_taken_back(self) -> None:
        try:
            await self._writing.retire_taken_back()
        except Refused as error:
            # A topic that can't be used must not keep the others from being written.
            self._failed(error.message)
            log.warning("retirement_refused", reason=error.message)
            self._took_back = True

    async def _write_noted(
        self, moved: set[str], silent: set[str], tasks: anyio.abc.TaskGroup
    ) -> None:
        at_ms = self._clock()
        silent |= await self._store.read(lambda db: branches_of_roots(db, self._workspace, at_ms))
        if moved or silent:
            look = Look(moved=frozenset(moved), whole=frozenset(silent))
            await self._start(look, tasks, None)
            # Whoever shares a conversation that is busy now is looked at again when it is done.
            if self._busy:
                self._moved |= moved
                self._silent |= silent

    async def _serve_demands(self, tasks: anyio.abc.TaskGroup) -> None:
        for demand in list(self._demands):
            if demand.joined is None:
                demand.joined = frozenset(self._busy.values())
            await self._start(demand.look, tasks, demand)
            if demand.running == 0 and not await self._blocked(demand):
                self._demands.remove(demand)
                demand.finished.set()

    async def _blocked(self, demand: _Demand) -> bool:
        """Tells whether a running batch of somebody else keeps the demand from being done.

        One that ran when the flush began does, wherever it is: it may be settled already and not
        yet to be found by a recall.
        """
        if not self._busy:
            return False
        if demand.joined and not demand.joined.isdisjoint(self._busy.values()):
            return True
        left = await self._planned(demand.look, demand, busy=set())
        return any(not planned.roots.isdisjoint(self._busy) for planned in left)

    async def _planned(
        self, look: Look, demand: _Demand | None, *, busy: set[int]
    ) -> list[Planned]:
        passed_over = busy if demand is None else busy | demand.failed_roots
        at_ms = self._clock()
        found = await self._store.read(
            lambda db: plan(
                db,
                self._workspace,
                look,
                trigger_tokens=self._trigger_tokens,
                at_ms=at_ms,
                busy_roots=passed_over,
            )
        )
        if demand is None:
            return found
        return [one for one in found if not demand.parked_tried.issuperset(one.turns)]

    async def _start(self, look: Look, tasks: anyio.abc.TaskGroup, demand: _Demand | None) -> None:
        planned = (await self._planned(look, demand, busy=set(self._busy)))[:CLAIMS_LIMIT]
        if not planned:
            return
        claimed = await self._store.write(lambda tx: self._claim(tx, planned))
        try:
            evidence = await self._writing.archive([one for one, _ in claimed])
        except TurnmarkError:
            self._abandoned += [batch for _, batch in claimed]
            raise
        self._writing.expect(len(claimed))
        for (one, batch), turns in zip(claimed, evidence, strict=True):
            for root in one.roots:
                self._busy[root] = batch
            if demand is not None:
                demand.running += 1
                demand.parked_tried.update(one.turns)
            tasks.start_soon(self._write, one, batch, turns, demand)

    def _claim(self, tx: Transaction, planned: Sequence[Planned]) -> list[tuple[Planned, int]]:
        claimed: list[tuple[Planned, int]] = []
        for one in planned:
            try:
                batch = claim(
                    tx,
                    self._workspace,
                    one.turns,
                    session=one.live.session,
                    branch=one.live.branch,
                    tip=one.live.tip,
                    owner=self._owner,
                    writer=self._writing.writer_name,
                )
            except Busy:
                continue
            claimed.append((one, batch))
        return claimed

    async def _write(
        self,
        planned: Planned,
        batch: int,
        turns: Sequence[Evidence],
        demand: _Demand | None,
    ) -> None:
        outcome = await self._writing.write(planned, batch, turns)
        try:
            await self._settle(planned, batch, outcome)
        except TurnmarkError as error:
            self._abandon(planned, batch, error.message)
            outcome = Outcome(reason=error.message, problem=True)
        for root in planned.roots:
            self._busy.pop(root, None)
        if outcome.problem:
            if demand is not None:
                demand.failed_roots |= planned.roots
        else:
            self._last_success = datetime.now(UTC)
            # Again while a full batch is owed; what was to be written whole still is.
            self._moved.add(planned.live.branch_name)
        if demand is not None:
            demand.batches.append((planned, outcome))
            demand.running -= 1
            demand.told(sum(len(one.turns) for one, _ in demand.batches))
        self._rouse()

    async def _settle(self, planned: Planned, batch: int, outcome: Outcome) -> None:
        """Settles what needed no install, or notes a failure; an install has settled the rest."""
        if outcome.journalled:
            self._abandon(planned, batch, outcome.reason or "the install is not finished")
        elif outcome.problem:
            self._failed(outcome.reason or "the writer failed")
            alone = len(planned.turns) == 1
            await self._store.write(lambda tx: self._note_failure(tx, batch, planned, outcome))
            log.warning(
                "batch_failed",
                session=planned.live.session_name,
                turns=len(planned.turns),
                alone=alone,
                reason=outcome.reason,
            )
        elif outcome.nothing:
            result = BatchResult(batch=batch, outcome="nothing", blocks=[], reason=outcome.reason)
            await self._store.write(lambda tx: close_batch(tx, result))
        elif await self._writing.are_taken_back(planned.turns):
            # Between the last look at them and their settling: their blocks stand and must go.
            self._took_back = True

    def _abandon(self, planned: Planned, batch: int, reason: str) -> None:
        """Leaves the end of a batch to a later look: the disk allows none now."""
        self._failed(reason)
        log.warning("batch_abandoned", session=planned.live.session_name, reason=reason)
        self._abandoned.append(batch)
        self._silent.add(planned.live.branch_name)
        if self._disk_retry_ms is None:
            self._disk_retry_ms = now_ms() + _FIRST_DISK_PAUSE_MS

    def _note_failure(
        self, tx: Transaction, batch: int, planned: Planned, outcome: Outcome
    ) -> None:
        reason = outcome.reason or "the writer failed"
        half = max(1, len(planned.turns) // 2)
        failures = fail(
            tx,
            batch,
            reason,
            not_before_ms=tx.at_ms,
            limit_turns=half if outcome.counts else None,
        )
        pause = min(self._first_backoff_ms * 2 ** min(failures - 1, 16), _LONGEST_BACKOFF_MS)
        pause = round(pause * random.uniform(0.8, 1.2))  # noqa: S311  jitter, not a secret
        tx.execute(
            "UPDATE failure SET not_before_ms = ? WHERE workspace = ? AND root = ?",
            (tx.at_ms + pause, self._workspace, planned.live.root),
        )
        if (
            outcome.counts
            and len(planned.turns) == 1
            and _failed_alone(tx, planned) >= (_SMALLEST_FAILURES)
        ):
            park(tx, self._workspace, planned.turns, "failed", self._writing.writer_name)
            tx.execute(
                "DELETE FROM failure WHERE workspace = ? AND root = ?",
                (self._workspace, planned.live.root),
            )

    def _failed(self, reason: str) -> None:
        self._last_failure = (datetime.now(UTC), reason)


def _release_all(tx: Transaction, batches: Sequence[int]) -> None:
    for batch in batches:
        release(tx, batch)


def _failed_alone(tx: Transaction, planned: Planned) -> int:
    """Returns in how many batches of its own the turn was given to a writer, this one included."""
    return int(
        tx.value(
            "SELECT count(*) FROM batch_turn AS mine WHERE turn = ? AND NOT EXISTS"
            " (SELECT 1 FROM batch_turn WHERE batch = mine.batch AND turn <> mine.turn)",
            (planned.turns[0],),
        )
    )


def _flushed(demand: _Demand) -> Flushed:
    good = [(one, outcome) for one, outcome in demand.batches if not outcome.problem]
    return Flushed(
        batches=len(demand.batches),
        turns=sum(len(one.turns) for one, _ in good),
        tokens=sum(one.tokens for one, _ in good),
        blocks=len({block for _, outcome in good for block in outcome.blocks}),
        failures=[
            Failure(
                session=one.live.session_name,
                branch=one.live.branch_name,
                reason=outcome.reason or "the writer failed",
            )
            for one, outcome in demand.batches
            if outcome.problem
        ],
    )
