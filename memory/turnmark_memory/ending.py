"""How batches end: settled, failed and put off, parked, or left to a later look by a full disk."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.breaker import Suspects
from turnmark_memory.disk_pause import DiskPause
from turnmark_memory.failing import note_failure
from turnmark_memory.planning import Planned
from turnmark_memory.writing import Outcome, Writing
from turnmark_session_store import SessionStore
from turnmark_session_store.back_off import end_pauses
from turnmark_session_store.batches import BatchResult, close_batch, release
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch came to in the end; `parked` says that its only turn is out of the way."""

    outcome: Outcome
    parked: bool = False
    abandoned: bool = False


class Endings:
    """Ends batches; `last_success` and `last_failure` are for people who ask how it goes."""

    def __init__(
        self,
        store: SessionStore,
        writing: Writing,
        workspace: int,
        pause: DiskPause,
        *,
        first_backoff_ms: int,
    ) -> None:
        self._store = store
        self._writing = writing
        self._workspace = workspace
        self._pause = pause
        self.first_backoff_ms = first_backoff_ms
        self._breaker = writing.asking.breaker
        self._suspects = Suspects()
        self._rested = False
        self._abandoned: list[int] = []
        self.last_failure: tuple[datetime, str] | None = None
        self.last_success: datetime | None = None

    async def end(self, planned: Planned, batch: int, outcome: Outcome) -> Ended:
        """Settles what needed no install, or notes a failure; an install has settled the rest.

        Never raises for the disk: then the batch is abandoned, and `clear_up` ends it.
        """
        try:
            ended = await self._end(planned, batch, outcome)
        except TurnmarkError as error:
            self.abandon([batch])
            ended = Ended(outcome=Outcome(reason=error.message, problem=True), abandoned=True)
        if ended.abandoned:
            reason = ended.outcome.reason or "the install is not finished"
            self.note_failure(reason)
            log.warning("batch_abandoned", session=planned.live.session_name, reason=reason)
        if not ended.outcome.problem:
            self.last_success = datetime.now(UTC)
            self._suspects.cleared(planned.roots)
        return ended

    async def _end(self, planned: Planned, batch: int, outcome: Outcome) -> Ended:
        if outcome.journalled:
            self.abandon([batch])
            return Ended(outcome=outcome, abandoned=True)
        if outcome.put_off:
            self.note_failure(outcome.reason or "the writer is busy")
            await self._store.write(lambda tx: release(tx, batch))
            log.info("batch_put_off", session=planned.live.session_name, reason=outcome.reason)
        elif outcome.problem:
            return Ended(outcome=outcome, parked=await self._fail(planned, batch, outcome))
        elif outcome.nothing:
            result = BatchResult(batch=batch, outcome="nothing", blocks=[], reason=outcome.reason)
            await self._store.write(lambda tx: close_batch(tx, result))
        return Ended(outcome=outcome)

    async def _fail(self, planned: Planned, batch: int, outcome: Outcome) -> bool:
        """Notes a failure; tells whether the batch's only turn was parked."""
        self.note_failure(outcome.reason or "the writer failed")
        if outcome.silent and self._suspects.failed(planned.roots, self._breaker.answers):
            outcome = msgspec.structs.replace(outcome, counts=True)
        if not outcome.silent or outcome.counts:
            self._suspects.cleared(planned.roots)
        rests = outcome.silent and self._breaker.is_open

        def note(tx: Transaction) -> bool:
            return note_failure(
                tx,
                self._workspace,
                batch,
                planned,
                outcome,
                writer=self._writing.writer_name(planned),
                first_backoff_ms=0 if rests else self.first_backoff_ms,
            )

        parked = await self._store.write(note)
        log.warning(
            "batch_failed",
            session=planned.live.session_name,
            turns=len(planned.turns),
            parked=parked,
            reason=_for_the_log(outcome),
        )
        return parked

    def note_failure(self, reason: str) -> None:
        """Keeps a failure for those who ask; the log has it from whoever met it."""
        self.last_failure = (datetime.now(UTC), reason)

    def abandon(self, batches: list[int]) -> None:
        """Leaves the end of batches to a later look: the disk allows none now."""
        self._abandoned += batches
        self._pause.begin_short()

    async def clear_up(self) -> None:
        """Ends what was abandoned, and lets one deadline stand for all that wait for an endpoint.

        Raises:
            Unavailable: if the disk still fails.
        """
        if self._abandoned:
            batches = list(self._abandoned)
            await self._store.write(lambda tx: _release_all(tx, batches))
            self._abandoned = [batch for batch in self._abandoned if batch not in batches]
        if self._breaker.is_open and not self._rested:
            roots = self._suspects.roots
            await self._store.write(lambda tx: end_pauses(tx, self._workspace, roots))
        self._rested = self._breaker.is_open


def _release_all(tx: Transaction, batches: list[int]) -> None:
    for batch in batches:
        release(tx, batch)


def _for_the_log(outcome: Outcome) -> str | None:
    """Returns why a batch failed; what is said of an answer may quote it, and a log must not."""
    if outcome.counts and not outcome.silent:
        return "its answer can't be used; `turnmark owed` says why"
    return outcome.reason
