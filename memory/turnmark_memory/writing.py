"""One batch on its way: distilled, judged, and installed together with its neighbours.

Evidence comes first: a batch's turns are in `sources/` before a writer sees them. What the writer
answers is judged here, and it touches no file: a batch whose edits are not all acceptable after one
repair has failed, and nothing of it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import anyio
import anyio.to_thread
import apsw
import msgspec

from turnmark_events.errors import TurnmarkError
from turnmark_memory.archiving import Archiving
from turnmark_memory.asking import Asking
from turnmark_memory.compose import Work
from turnmark_memory.evidence import refs_before
from turnmark_memory.fallen import forgotten_refs, taken_back_refs
from turnmark_memory.install import BatchWork, Installer
from turnmark_memory.joint_install import JointInstall
from turnmark_memory.journal import InstallUnfinished
from turnmark_memory.locality import local_sessions, local_turns
from turnmark_memory.model import (
    Add,
    Batch,
    Edit,
    Edits,
    Evidence,
    Nothing,
    Revise,
    Split,
)
from turnmark_memory.planning import Planned
from turnmark_memory.pointing import kept_edits
from turnmark_memory.relations import TurnRef, keys_of, on_sibling
from turnmark_memory.rewriting import Rewriting
from turnmark_memory.shelf import Shelf
from turnmark_memory.succession import Witnesses
from turnmark_memory.surroundings import TURNS_BEFORE, Surroundings
from turnmark_memory.validate import Relations, Validated, validate
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store import SessionStore
from turnmark_session_store.batches import leave_out
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.transaction import Transaction

_SIDE_BY_SIDE = 4
"""Writers at work at the same time; a model's endpoint rarely likes more."""

_STALE_ROUNDS = 2
"""How often a writer is asked again because neighbours changed its blocks while it thought."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch came to: installed (blocks), an honest nothing, or a problem.

    `counts` says whether the batch's content may be at fault, so that it is halved and in the end
    a single turn is parked; a disk or an endpoint that fails is not the batch's fault. `journalled`
    says that the batch is in an install that will be finished: it is neither failed nor released.
    `stale` says that a neighbour changed a block first. `silent` says that the endpoint gave no
    answer; `put_off` that the batch was not really tried, and is offered again as if it had not
    been.
    """

    blocks: tuple[str, ...] = ()
    nothing: bool = False
    problem: bool = False
    counts: bool = False
    journalled: bool = False
    stale: bool = False
    silent: bool = False
    put_off: bool = False
    reason: str | None = None


class Writing:
    """Takes claimed batches from evidence to installed blocks."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        installer: Installer,
        asking: Asking,
        workspace_key: int,
        *,
        mask_on_exit: bool,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._installer = installer
        self.asking = asking
        self.archiving = Archiving(store, shelf, mask=mask_on_exit)
        self._surroundings = Surroundings(shelf)
        self._rewriting = Rewriting(store, shelf, workspace_key)
        self._joint_install = JointInstall(installer)
        self._limiter = anyio.CapacityLimiter(_SIDE_BY_SIDE)

    def writer_name(self, planned: Planned) -> str:
        """Returns the name that the marks of a batch record."""
        return self.asking.writer_of(local=planned.local).name

    def expect(self, batches: int) -> None:
        """Says that so many batches will come to `write` now: an install may wait for them."""
        self._joint_install.expect(batches)

    async def write(self, planned: Planned, batch: int, turns: Sequence[Evidence]) -> Outcome:
        """Returns what the batch came to; never raises for what can be the world's fault."""
        outcome = await self._write_once(planned, batch, turns)
        for _ in range(_STALE_ROUNDS):
            if not outcome.stale:
                break
            self._joint_install.expect(1)
            outcome = await self._write_once(planned, batch, turns)
        return outcome

    async def _write_once(self, planned: Planned, batch: int, turns: Sequence[Evidence]) -> Outcome:
        try:
            outcome = await self._distil(planned, batch, turns)
        except TurnmarkError as error:
            outcome = Outcome(problem=True, reason=error.message)
        if isinstance(outcome, Outcome):
            self._joint_install.stay_away()
            return outcome
        return await self._install(outcome)

    def unarchived(self, error: TurnmarkError) -> Outcome:
        """Returns the outcome of a batch that `archive` had no place for; in place of `write`."""
        self._joint_install.stay_away()
        return Outcome(problem=True, reason=error.message)

    async def _distil(
        self, planned: Planned, batch: int, turns: Sequence[Evidence]
    ) -> Outcome | BatchWork:
        if planned.retried_reply:
            return Outcome(nothing=True, reason="reply_retried")
        if not turns:
            return Outcome(nothing=True, reason="taken back meanwhile")
        async with self._limiter:
            old = await self._rewriting.old_blocks(turns)
            asked = await self._asked(planned, turns, old)
            if asked is None:
                return Outcome(problem=True, put_off=True, reason="its session became local")
            try:
                judged = await self._judge(planned, asked)
            except WriterFailed as error:
                return Outcome(
                    problem=True,
                    counts=not error.transport,
                    silent=error.transport,
                    put_off=error.retry_after_seconds is not None,
                    reason=error.reason,
                )
        failpoint("batch.written")
        return await self._work(planned, batch, asked, judged, old)

    async def _asked(
        self, planned: Planned, turns: Sequence[Evidence], old: frozenset[str]
    ) -> Batch | None:
        """Returns what the writer is shown; None if it may not see the turns any more."""
        kept_in = frozenset[str]()
        if self.asking.keeps_apart and not planned.local:
            kept_in = await self._store.read(local_sessions)
            keys = [turn.key for turn in turns]
            if kept_in and await self._any_local(keys):
                return None
        first = planned.turns[0]
        before = await self._store.read(lambda db: refs_before(db, first, TURNS_BEFORE))
        return await anyio.to_thread.run_sync(
            lambda: self._surroundings.around(turns, before=before, hidden=old, kept_in=kept_in)
        )

    async def _any_local(self, turns: Sequence[int]) -> bool:
        return bool(await self._store.read(lambda db: local_turns(db, turns)))

    async def _judge(self, planned: Planned, asked: Batch) -> Validated | Nothing:
        """Asks and validates; an answer that is rejected goes back once with the reasons."""
        answer = await self.asking.write(asked, local=planned.local)
        if isinstance(answer, Nothing):
            return answer
        judged = await self._validate(planned, asked, answer)
        if not judged.rejections:
            return judged
        reasons = [rejection.reason for rejection in judged.rejections]
        again = await self.asking.repair(asked, answer, reasons, local=planned.local)
        if again is None or isinstance(again, Nothing):
            return judged if again is None else again
        return await self._validate(planned, asked, again)

    async def _validate(self, planned: Planned, asked: Batch, answer: Edits) -> Validated:
        def run(db: apsw.Connection) -> Validated:
            relations = Relations(
                block=self._shelf.shown,
                by_person=self._shelf.by_person,
                on_sibling=lambda cites: on_sibling(db, planned.live.tip, self._turns_of(cites)),
                witnesses=Witnesses(asked.turns, self._shelf.index.turn),
            )
            return validate(answer.edits, asked, relations=relations)

        return await self._store.read(run)

    def _turns_of(self, labels: Sequence[str]) -> list[tuple[str, str]]:
        found = (self._shelf.index.turn(label) for label in labels)
        return [(turn.namespace, turn.id) for turn in found if turn is not None]

    async def _work(
        self,
        planned: Planned,
        batch: int,
        asked: Batch,
        judged: Validated | Nothing,
        old: frozenset[str],
    ) -> Outcome | BatchWork:
        if isinstance(judged, Nothing):
            return Outcome(nothing=True, reason=judged.reason)
        if judged.rejections:
            reason = f"the writer's answer was refused: {judged.rejections[0].reason}"
            return Outcome(problem=True, counts=True, reason=reason)
        refs = await anyio.to_thread.run_sync(self._refs_cited, asked, judged.edits)
        if await self._store.read(lambda db: forgotten_refs(db, list(refs.values()))):
            # Its words may be in any edit: the batch is offered again without them.
            return Outcome(problem=True, reason="turns of the batch were forgotten meanwhile")
        standing = await self._standing(batch, judged.edits, refs)
        if not standing:
            return _empty(judged)
        name = "/".join([self._shelf.workspace.id, *(turn.label for turn in asked.turns)])
        edits = await self._rewriting.succeeded(old, asked.turns, standing)
        work = Work(name=name, edits=edits)
        return BatchWork(batch=batch, work=work, turns=len(planned.turns))

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
        return kept_edits(edits, lambda edit: not _cites(edit) or not gone.issuperset(_cites(edit)))

    async def _install(self, work: BatchWork) -> Outcome:
        """Installs a batch's work together with its neighbours'."""
        try:
            done = await self._joint_install.join(work)
        except TurnmarkError as error:
            journalled = isinstance(error, InstallUnfinished)
            return Outcome(problem=True, journalled=journalled, reason=error.message)
        if done.problem is not None:
            return Outcome(
                problem=True, counts=done.at_fault, stale=done.stale, reason=done.problem
            )
        return Outcome(blocks=done.blocks)

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
