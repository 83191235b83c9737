"""Batches under way: claimed, archived, written beside one another, ended.

A batch is claimed in the store before anything is done for it, so no two are of one conversation.
Its turns are evidence in `sources/` before a writer sees them. What becomes of it then is
`writing.py`'s; how it ends, `ending.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio.abc
import apsw
import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.claiming import Claims
from turnmark_memory.demand import Demand
from turnmark_memory.ending import Ended, Endings
from turnmark_memory.model import Evidence
from turnmark_memory.noted import Noted
from turnmark_memory.planning import Bounds, Look, Plan, Planned, plan
from turnmark_memory.taking_back import TakingBack
from turnmark_memory.writing import Writing
from turnmark_session_store import SessionStore

log = structlog.get_logger(__name__)

CLAIMS_LIMIT = 256
"""Batches under way at once; more conversations than that wait until some are done."""


class UnderWay:
    """The batches of one worker. `noted` gets the branches that have to be looked at again.

    `rouse` is called where a look is due: a batch has ended, or a claim was refused.
    """

    def __init__(
        self,
        store: SessionStore,
        writing: Writing,
        taking_back: TakingBack,
        endings: Endings,
        workspace_key: int,
        noted: Noted,
        *,
        trigger_tokens: int,
        clock: Callable[[], int],
        rouse: Callable[[], None],
    ) -> None:
        self._store = store
        self._writing = writing
        self._taking_back = taking_back
        self._endings = endings
        self._workspace = workspace_key
        self._noted = noted
        self._trigger_tokens = trigger_tokens
        self._clock = clock
        self._rouse = rouse
        self._claims = Claims(workspace_key, writing.writer_name)
        self._breaker = writing.asking.breaker
        self._running: dict[int, Planned] = {}

    def __len__(self) -> int:
        return len(self._running)

    def runs_any(self, batches: frozenset[int]) -> bool:
        """Tells whether one of `batches` is under way still."""
        return not batches.isdisjoint(self._running)

    def within(self, look: Look) -> frozenset[int]:
        """Returns the batches under way in the session of a look, or all."""
        return frozenset(
            batch
            for batch, planned in self._running.items()
            if look.session in (None, planned.live.session_name)
        )

    def busy_roots(self) -> frozenset[int]:
        """Returns the roots of the conversations that batches are under way of."""
        return frozenset(root for planned in self._running.values() for root in planned.roots)

    async def planned(
        self, look: Look, demand: Demand | None, *, busy: frozenset[int], limit: int | None
    ) -> Plan:
        """Returns the batches that could be begun, at most `limit`; those of `busy` roots wait."""
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

    async def start(self, look: Look, tasks: anyio.abc.TaskGroup, demand: Demand | None) -> Plan:
        """Claims what can be written now and sets it going; returns what it found."""
        limit = CLAIMS_LIMIT - len(self._running)
        found = await self.planned(look, demand, busy=self.busy_roots(), limit=limit)
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
            whole = True
        elif ended.outcome.put_off:
            whole = planned.whole
        elif ended.parked or not ended.outcome.problem:
            whole = planned.goes_on and not by_demand
        else:
            return  # back-off: the store says when
        (self._noted.whole if whole else self._noted.moved).add(planned.live.branch_name)
