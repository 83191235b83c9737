"""One batch on its way: archived, distilled, judged, and installed together with its neighbours.

Evidence comes first: a batch's turns are in `sources/` before a writer sees them. What the writer
answers is judged here, and it touches no file: a batch whose edits are not all acceptable after one
repair has failed, and nothing of it is kept. Answers that are ready at the same time share one
install.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import anyio
import anyio.to_thread
import apsw
import msgspec
import structlog

from turnmark_events.errors import Refused, TurnmarkError
from turnmark_memory.compose import Done, Work
from turnmark_memory.evidence import load_evidence
from turnmark_memory.index_schema import Filters
from turnmark_memory.install import BatchWork, Installer, InstallUnfinished
from turnmark_memory.model import (
    Add,
    Answer,
    Batch,
    Edit,
    Edits,
    Evidence,
    Nothing,
    Revise,
    ShownBlock,
    Split,
)
from turnmark_memory.planning import Planned
from turnmark_memory.relations import TurnRef, keys_of, on_sibling
from turnmark_memory.search_text import query_of
from turnmark_memory.shelf import Shelf
from turnmark_memory.taking_back import forgotten_refs, taken_back_refs
from turnmark_memory.validate import Relations, Validated, validate
from turnmark_memory.writers.writer import Writer, WriterFailed
from turnmark_session_store import SessionStore
from turnmark_session_store.batches import leave_out
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)

_SHOWN_BLOCKS = 24
"""Blocks that a writer is shown beside a batch: the prompt does not grow with the memory."""

_SHOWN_PER_TURN = 4
_SHOWN_TOPICS = 200
_QUERY_CHARACTERS = 1_000
_SIDE_BY_SIDE = 4
"""Writers at work at the same time; a model's endpoint rarely likes more."""

_LINGER_SECONDS = 1.0
"""A finished answer waits for neighbours while one comes at least this often, ..."""

_LONGEST_LINGER_SECONDS = 20.0
"""... but no longer than this in all."""

_GROUP_LIMIT = 256
_STALE_ROUNDS = 2
"""How often a writer is asked again because neighbours changed its blocks while it thought."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch came to: installed (blocks), an honest nothing, or a problem.

    `counts` says whether the batch's content may be at fault, so that it is halved and in the end
    a single turn is parked; a disk or an endpoint that fails is not the batch's fault. `journalled`
    says that the batch is in an install that will be finished: it is neither failed nor released.
    `stale` says that a neighbour changed a block first.
    """

    blocks: tuple[str, ...] = ()
    nothing: bool = False
    problem: bool = False
    counts: bool = False
    journalled: bool = False
    stale: bool = False
    reason: str | None = None


class RepairingWriter(Protocol):
    """A writer that can be told why its answer was not acceptable, and answer once more."""

    async def repair(self, batch: Batch, answer: Answer, reasons: Sequence[str]) -> Answer:
        """Returns a better answer.

        Raises:
            WriterFailed: if there is no usable answer.
        """
        ...


class _Entry:
    """A batch's work, waiting for an install."""

    def __init__(self, work: BatchWork) -> None:
        self.work = work
        self.done: Done | None = None
        self.error: TurnmarkError | None = None

    @property
    def is_done(self) -> bool:
        """Tells whether an install took it up, for good or ill."""
        return self.done is not None or self.error is not None


class Writing:
    """Takes claimed batches from evidence to installed blocks."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        installer: Installer,
        writer: Writer,
        *,
        mask_on_exit: bool,
        linger_seconds: float = _LINGER_SECONDS,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._installer = installer
        self._writer = writer
        self._mask = mask_on_exit
        self._linger_seconds = linger_seconds
        self._limiter = anyio.CapacityLimiter(_SIDE_BY_SIDE)
        self._leading = anyio.Lock()
        self._ready: list[_Entry] = []
        self._expected = 0
        self._arrived = anyio.Event()

    @property
    def writer_name(self) -> str:
        """The name that marks record."""
        return self._writer.name

    async def archive(
        self, planned: Sequence[Planned]
    ) -> list[tuple[Evidence, ...] | TurnmarkError]:
        """Puts the turns of claimed batches into `sources/`; returns them with final labels.

        Where a session's file can't be used, its batches get the reason instead.

        Raises:
            Unavailable: if the disk fails.
        """
        loaded = await self._store.read(
            lambda db: [load_evidence(db, one.turns, mask=self._mask) for one in planned]
        )
        failpoint("batch.claimed")
        try:
            return [*await anyio.to_thread.run_sync(self._archive, loaded)]
        except Refused:
            return await anyio.to_thread.run_sync(self._archive_each, loaded)

    def _archive_each(
        self, loaded: Sequence[Sequence[Evidence]]
    ) -> list[tuple[Evidence, ...] | TurnmarkError]:
        found: list[tuple[Evidence, ...] | TurnmarkError] = []
        for batch in loaded:
            try:
                found += self._archive([batch])
            except Refused as error:
                found.append(error)
        return found

    def _archive(self, loaded: Sequence[Sequence[Evidence]]) -> list[tuple[Evidence, ...]]:
        turns = [turn for batch in loaded for turn in batch]
        lines = self._shelf.archive.append(turns)
        self._shelf.index_turns(list(zip(turns, lines, strict=True)))
        failpoint("batch.archived")
        labels = {
            (turn.namespace, turn.id): line.label for turn, line in zip(turns, lines, strict=True)
        }
        return [
            tuple(
                msgspec.structs.replace(turn, label=labels[turn.namespace, turn.id])
                for turn in batch
            )
            for batch in loaded
        ]

    def expect(self, batches: int) -> None:
        """Says that so many batches will come to `write` now: an install may wait for them."""
        self._expected += batches

    async def write(self, planned: Planned, batch: int, turns: Sequence[Evidence]) -> Outcome:
        """Returns what the batch came to; never raises for what can be the world's fault."""
        outcome = await self._write_once(planned, batch, turns)
        for _ in range(_STALE_ROUNDS):
            if not outcome.stale:
                break
            self._expected += 1
            outcome = await self._write_once(planned, batch, turns)
        return outcome

    async def _write_once(self, planned: Planned, batch: int, turns: Sequence[Evidence]) -> Outcome:
        try:
            outcome = await self._distil(planned, batch, turns)
        except TurnmarkError as error:
            outcome = Outcome(problem=True, reason=error.message)
        if isinstance(outcome, Outcome):
            self._arrive()
            return outcome
        return await self._join_install(outcome)

    def unarchived(self, error: TurnmarkError) -> Outcome:
        """Returns the outcome of a batch that `archive` had no place for; in place of `write`."""
        self._arrive()
        return Outcome(problem=True, reason=error.message)

    def _arrive(self) -> None:
        self._expected -= 1
        self._arrived.set()
        self._arrived = anyio.Event()

    async def _distil(
        self, planned: Planned, batch: int, turns: Sequence[Evidence]
    ) -> Outcome | _Entry:
        if planned.retried_reply:
            return Outcome(nothing=True, reason="reply_retried")
        if not turns:
            return Outcome(nothing=True, reason="taken back meanwhile")
        async with self._limiter:
            asked = await anyio.to_thread.run_sync(self._asked, turns)
            try:
                judged = await self._judge(planned, asked, await self._answer(asked))
            except WriterFailed as error:
                return Outcome(problem=True, counts=not error.transport, reason=error.reason)
        failpoint("batch.written")
        return await self._entry(planned, batch, asked, judged)

    def _asked(self, turns: Sequence[Evidence]) -> Batch:
        return Batch(
            turns=tuple(turns),
            blocks=self._blocks_for(turns),
            topics=tuple(self._shelf.index.abouts(_SHOWN_TOPICS)),
        )

    async def _answer(self, asked: Batch) -> Answer:
        try:
            return await self._writer.write(asked)
        except TurnmarkError:
            raise
        except Exception as error:  # a writer's own bug must not end the daemon
            log.exception("writer_broke", writer=self._writer.name)
            raise WriterFailed(f"{type(error).__name__} in the writer") from error

    async def _repaired(
        self,
        repair: Callable[..., Awaitable[Answer]],
        asked: Batch,
        answer: Edits,
        judged: Validated,
    ) -> Answer:
        reasons = [rejection.reason for rejection in judged.rejections]
        try:
            return await repair(asked, answer, reasons)
        except TurnmarkError:
            raise
        except Exception as error:  # as above
            log.exception("writer_broke", writer=self._writer.name)
            raise WriterFailed(f"{type(error).__name__} in the writer") from error

    async def _judge(self, planned: Planned, asked: Batch, answer: Answer) -> Validated | Nothing:
        """Validates an answer; one that is rejected goes back once with the reasons."""
        if isinstance(answer, Nothing):
            return answer
        judged = await self._validate(planned, asked, answer)
        repair = getattr(self._writer, "repair", None)
        if judged.rejections and repair is not None:
            again = await self._repaired(repair, asked, answer, judged)
            return (
                again if isinstance(again, Nothing) else await self._validate(planned, asked, again)
            )
        return judged

    async def _validate(self, planned: Planned, asked: Batch, answer: Edits) -> Validated:
        def run(db: apsw.Connection) -> Validated:
            relations = Relations(
                block=self._shelf.shown,
                by_person=self._shelf.by_person,
                on_sibling=lambda cites: on_sibling(db, planned.live.tip, self._turns_of(cites)),
            )
            return validate(answer.edits, asked, relations=relations)

        return await self._store.read(run)

    def _turns_of(self, labels: Sequence[str]) -> list[tuple[str, str]]:
        found = (self._shelf.index.turn(label) for label in labels)
        return [(turn.namespace, turn.id) for turn in found if turn is not None]

    async def _entry(
        self, planned: Planned, batch: int, asked: Batch, judged: Validated | Nothing
    ) -> Outcome | _Entry:
        if isinstance(judged, Nothing):
            return Outcome(nothing=True, reason=judged.reason)
        if judged.rejections:
            return Outcome(problem=True, counts=True, reason=judged.rejections[0].reason)
        refs = await anyio.to_thread.run_sync(self._refs_cited, asked, judged.edits)
        if await self._store.read(lambda db: forgotten_refs(db, list(refs.values()))):
            # Its words may be in any edit: the batch is offered again without them.
            return Outcome(problem=True, reason="turns of the batch were forgotten meanwhile")
        standing = await self._standing(batch, judged.edits, refs)
        if not standing:
            return _empty(judged)
        name = "/".join([self._shelf.workspace.id, *(turn.label for turn in asked.turns)])
        work = Work(name=name, edits=standing)
        return _Entry(BatchWork(batch=batch, work=work, turns=len(planned.turns)))

    def _refs_cited(self, asked: Batch, edits: Sequence[Edit]) -> dict[str, TurnRef]:
        """Returns (namespace, id) by label of the batch's turns and of all that the edits cite."""
        refs = {turn.label: (turn.namespace, turn.id) for turn in asked.turns}
        for label in {label for edit in edits for label in _cites(edit)}.difference(refs):
            turn = self._shelf.index.turn(label)
            if turn is not None:
                refs[label] = (turn.namespace, turn.id)
        return refs

    async def _standing(
        self, batch: int, edits: Sequence[Edit], refs: Mapping[str, TurnRef]
    ) -> tuple[Edit, ...]:
        """Leaves out edits that rest only on turns taken back while the writer thought.

        The batch leaves such turns out as well: restored before it is closed, a turn would count
        as kept without a block.
        """
        cited = list(refs.values())
        fallen = await self._store.read(lambda db: taken_back_refs(db, cited))
        if fallen:
            fallen = await self._store.write(lambda tx: _leave_out_fallen(tx, batch, cited))
        gone = {label for label, ref in refs.items() if ref in fallen}
        return tuple(
            edit for edit in edits if not _cites(edit) or not gone.issuperset(_cites(edit))
        )

    def _blocks_for(self, turns: Sequence[Evidence]) -> tuple[ShownBlock, ...]:
        """Returns the blocks that the turns may concern, best first, a bounded number."""
        found: dict[str, float] = {}
        for turn in turns:
            terms = query_of(turn.text[:_QUERY_CHARACTERS]).terms
            for one in self._shelf.index.search_blocks(terms, _SHOWN_PER_TURN, Filters()):
                found[one.ref] = max(found.get(one.ref, 0.0), one.score)
        best = sorted(found, key=lambda ref: (-found[ref], ref))[:_SHOWN_BLOCKS]
        return tuple(self._shelf.all_shown(best))

    async def _join_install(self, entry: _Entry) -> Outcome:
        """Waits until the batch's work is installed; whoever comes first installs for all."""
        self._ready.append(entry)
        self._arrive()
        async with self._leading:
            if not entry.is_done:
                await self._linger()
            while not entry.is_done:
                await self._install_ready()
        if entry.error is not None:
            journalled = isinstance(entry.error, InstallUnfinished)
            return Outcome(problem=True, journalled=journalled, reason=entry.error.message)
        done = entry.done or Done(blocks=())
        if done.problem is not None:
            return Outcome(
                problem=True, counts=done.at_fault, stale=done.stale, reason=done.problem
            )
        return Outcome(blocks=done.blocks)

    async def _linger(self) -> None:
        """Waits for neighbours that are about to have an answer too; a slow writer's are not."""
        with anyio.move_on_after(_LONGEST_LINGER_SECONDS):
            while self._expected > 0 and len(self._ready) < _GROUP_LIMIT:
                with anyio.move_on_after(self._linger_seconds) as pause:
                    await self._arrived.wait()
                if pause.cancelled_caught:
                    return

    async def _install_ready(self) -> None:
        group, self._ready = self._ready[:_GROUP_LIMIT], self._ready[_GROUP_LIMIT:]
        try:
            installed = await self._installer.install(
                [entry.work for entry in group], cause=f"wrote {len(group)} batches"
            )
        except TurnmarkError as error:
            for entry in group:
                entry.error = error
            return
        for entry, done in zip(group, installed.composed.done, strict=True):
            entry.done = done

    async def catch_up(self) -> bool:
        """Finishes what the disk kept from being finished; see `Installer.catch_up`."""
        return await self._installer.catch_up()


def _leave_out_fallen(tx: Transaction, batch: int, refs: Sequence[TurnRef]) -> set[TurnRef]:
    """Returns those of `refs` that are taken back now, and takes them out of the batch."""
    fallen = taken_back_refs(tx.db, refs)
    leave_out(tx, batch, [key for key in keys_of(tx.db, list(fallen)) if key is not None])
    return fallen


def _empty(judged: Validated) -> Outcome:
    if judged.dropped:
        return Outcome(nothing=True, reason=judged.dropped[0].reason)
    if judged.edits:
        return Outcome(nothing=True, reason="taken back meanwhile")
    return Outcome(problem=True, counts=True, reason="an answer without edits and without a reason")


def _cites(edit: Edit) -> tuple[str, ...]:
    if isinstance(edit, Add | Revise):
        return edit.cites
    if isinstance(edit, Split):
        return tuple(cite for part in edit.parts for cite in part.cites)
    return ()
