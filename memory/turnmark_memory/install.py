"""Installing: evidence is archived already; now journal, files, marks, in that order.

One install at a time. From the commit of its journal on an install will be finished, by this
process or by the next one, without asking a writer again: the journal holds the new bytes. The
turns are settled in the same transaction that closes the journal, so no crash can leave a mark
without its topics or settle a turn twice.

Edits become the bytes of an install (`compose.py`), which its journal carries through
(`journal.py`). What people saved meanwhile is taken in before it and after it, as a revision of its
own (`intake.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

import anyio
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import TurnmarkError, Unavailable
from turnmark_memory.bases import Problem
from turnmark_memory.compose import Composed, Done, Work, compose
from turnmark_memory.core_page import CorePage
from turnmark_memory.derived import Derived
from turnmark_memory.intake import Intake
from turnmark_memory.journal import InstallUnfinished, Journalling
from turnmark_memory.revisions import RevisionRecord
from turnmark_memory.shelf import Shelf
from turnmark_session_store import SessionStore
from turnmark_session_store.batches import BatchResult, OpenInstall
from turnmark_session_store.marks import workspace_revision

log = structlog.get_logger(__name__)

_ROUNDS_LIMIT = 3
"""Saves in a row that an install or an intake runs after; the watcher tells of the next one."""

_AT_ONCE = 256
"""Topics whose documents are in memory together; blocks that went further are looked up."""

_PROBLEMS_LIMIT = 100


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """An install that is complete."""

    revision: int
    composed: Composed


class BatchWork(msgspec.Struct, frozen=True, kw_only=True):
    """A batch's edits on their way into an install."""

    batch: int
    work: Work
    turns: int


class Installer:
    """The only code that writes topics. Serial: callers wait for one another."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        workspace_key: int,
        *,
        core_tokens: int,
        count: Callable[[str], int],
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._workspace = workspace_key
        self._serial = anyio.Lock()
        self._intake = Intake(shelf)
        self._derived = Derived(store, shelf, workspace_key, core_tokens=core_tokens, count=count)
        self._journalling = Journalling(store, shelf, workspace_key, self._intake, self._derived)

    # An install, from edits to settled turns.

    async def install(
        self, batches: Sequence[BatchWork], *, cause: str, works: Sequence[Work] = ()
    ) -> Installed:
        """Carries out the edits of `batches` and other `works` in one revision.

        Batches that could not be applied are released unsettled by the caller: see
        `Installed.composed.done`, in the order of `batches`, then of `works`.

        Raises:
            Refused: if a topic's file can't be used; nothing was changed.
            InstallUnfinished: if the disk fails behind the journal; `catch_up` finishes it.
            Unavailable: if the disk fails before that; nothing was changed.
        """

        def make(revision: int) -> Composed:
            return compose(
                self._shelf,
                [*(batch.work for batch in batches), *works],
                revision=revision,
                cause=cause,
                at=datetime.now(UTC),
                turns=sum(batch.turns for batch in batches) or None,
            )

        return await self.carry_out(make, batches)

    async def carry_out(
        self, make: Callable[[int], Composed], batches: Sequence[BatchWork] = ()
    ) -> Installed:
        """Installs what `make` gives for the next revision's number; it may raise to leave it be.

        `make` runs in a worker thread, when no other install is under way.

        Raises:
            InstallUnfinished: if the disk fails behind the journal; `catch_up` finishes it.
            Unavailable: if the disk fails before that; nothing was changed.
        """
        async with self._serial:
            await self._journalling.catch_up()
            revision, composed = await self._composed(make)
            results = [
                _result(batch, done)
                for batch, done in zip(batches, composed.done, strict=False)
                if done.problem is None
            ]
            if not results and not composed.files:
                return Installed(revision=revision - 1, composed=composed)
            await self._journalling.carry_out(composed, results)
            await self._take_in_late(composed.topics)
            return Installed(revision=revision, composed=composed)

    async def _composed(self, make: Callable[[int], Composed]) -> tuple[int, Composed]:
        """Returns what `make` gives once memory has seen what is in the files that it read."""
        rounds = 0
        while True:
            revision = await self._next_revision()
            composed = await anyio.to_thread.run_sync(make, revision)
            unseen = await anyio.to_thread.run_sync(self._intake.unseen, composed.read)
            rounds += 1
            if not unseen or rounds > _ROUNDS_LIMIT or not await self._seen(unseen):
                return revision, composed

    async def _seen(self, topics: Sequence[str]) -> bool:
        """Takes edits in on the way to an install, which has not begun when that fails."""
        try:
            return await self._taken_in(topics)
        except InstallUnfinished as error:
            raise Unavailable(error.message) from error

    async def _next_revision(self) -> int:
        return 1 + await self._store.read(lambda db: workspace_revision(db, self._workspace))

    # What the disk, or a crash, kept from being finished.

    async def roll_forward(self, installs: Sequence[OpenInstall]) -> None:
        """Finishes installs that an earlier process journalled; asks no writer."""
        async with self._serial:
            await self._journalling.roll_forward(installs)

    async def catch_up(self) -> bool:
        """Finishes what the disk kept from being finished; tells whether there was anything.

        Raises:
            Unavailable: if the disk still fails.
        """
        async with self._serial:
            return await self._journalling.catch_up()

    # What people save.

    async def take_in(self, topics: Iterable[str]) -> frozenset[str]:
        """Takes in what people did to the files of `topics`; costs a look where they did nothing.

        Returns those that somebody was writing to: look at them again in a moment.

        Raises:
            Unavailable: if the disk fails; nothing is lost, take them in again.
        """
        names = list(topics)
        async with self._serial:
            await self._journalling.catch_up()
            for _ in range(_ROUNDS_LIMIT):  # a person may save while a save is being taken in
                if not await self._taken_in(names):
                    break
            return self._intake.take_held()

    async def rescan(self) -> frozenset[str]:
        """Takes in what people did to any topic; see `take_in`. Costs a read of every topic."""
        return await self._take_in_all(await anyio.to_thread.run_sync(self._intake.everything))

    async def rescan_folder(self, folder: str) -> frozenset[str]:
        """Takes in what people did to the topics in a folder; see `take_in`."""
        return await self._take_in_all(await anyio.to_thread.run_sync(self._intake.below, folder))

    async def _take_in_all(self, topics: Sequence[str]) -> frozenset[str]:
        """Takes in any number of topics, a bounded number at a time."""
        held: frozenset[str] = frozenset()
        unseen = await anyio.to_thread.run_sync(self._intake.unseen, topics)
        for start in range(0, len(unseen), _AT_ONCE):
            held |= await self.take_in(unseen[start : start + _AT_ONCE])
        return held

    async def _taken_in(self, topics: Sequence[str]) -> bool:
        """Takes edits in, as a revision of their own; tells whether there were any."""
        revision = await self._next_revision()
        at = datetime.now(UTC)
        found = await anyio.to_thread.run_sync(
            lambda: self._intake.look(topics, revision=revision, at=at)
        )
        if found is None:
            return False
        log.info("edit_taken_in", topics=len(found.topics), first=found.topics[0])
        if found.composed is None:
            await self._derived.rebuild_core()
        else:
            await self._journalling.carry_out(found.composed)
        return True

    async def _take_in_late(self, topics: Sequence[str]) -> None:
        """Takes in what was saved while an install was on its way, as far as the disk allows."""
        try:
            perhaps = [*topics, *self._journalling.late_topics]
            late = await anyio.to_thread.run_sync(self._intake.unseen, perhaps)
            self._journalling.late_topics.clear()
            if late:
                await self._taken_in(late)
        except TurnmarkError as error:
            log.warning("edit_put_off", reason=error.message)

    async def write_ids(self, quiet_since: datetime) -> None:
        """Writes ids and marks into the files that nobody has saved since `quiet_since`.

        Raises:
            Unavailable: if the disk fails.
        """
        until_ms = int(quiet_since.timestamp() * 1_000)
        bases = self._shelf.bases
        topics = await anyio.to_thread.run_sync(bases.pending, until_ms)
        if not topics:
            return
        await self.take_in(topics)
        async with self._serial:
            await self._journalling.catch_up()
            revision = await self._next_revision()
            left = await anyio.to_thread.run_sync(bases.pending, until_ms)
            composed = await anyio.to_thread.run_sync(
                lambda: self._intake.numbered(left, revision=revision, at=datetime.now(UTC))
            )
            if composed is not None:
                await self._journalling.carry_out(composed)
                await self._take_in_late(composed.topics)

    async def bring_near(self, now: datetime) -> None:
        """Lets no ids wait longer to be written than those of a file that was saved now."""
        await anyio.to_thread.run_sync(self._shelf.bases.bring_near, int(now.timestamp() * 1_000))

    async def oldest_unwritten(self) -> datetime | None:
        """Returns when the topic was saved last whose ids wait the longest to be written."""
        at_ms = await anyio.to_thread.run_sync(self._shelf.bases.oldest_pending_ms)
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1_000, UTC)

    def problems(self) -> list[Problem]:
        """Returns what a person should look at in topic files, a bounded number; reads a table."""
        return self._shelf.bases.problems(_PROBLEMS_LIMIT)

    # What is derived, and a workspace that went back.

    @property
    def installs(self) -> int:
        """How many installs this process has finished."""
        return self._journalling.installs

    @property
    def core(self) -> CorePage:
        """The core page as it was rendered last."""
        return self._derived.core

    async def rebuild_core(self) -> CorePage:
        """Renders `core.md` from `topics/core.md`, now; says so if its bytes changed."""
        async with self._serial:
            return await self._derived.rebuild_core()

    async def rebuild_timeline(self, *, whole: bool) -> None:
        """Makes the timeline right: its missing and needless pages, or the bytes of all of them."""
        async with self._serial:
            await self._derived.rebuild_timeline(whole=whole)

    async def went_back(self, revision: int) -> None:
        """Takes every file as it is for what memory saw last, and numbers that: `revision`.

        It changes nothing: it is the number from which on the workspace is trusted again.
        """
        cause = "the workspace went back to an older revision"
        record = RevisionRecord.of((), revision=revision, at=datetime.now(UTC), cause=cause)
        async with self._serial:
            await anyio.to_thread.run_sync(self._shelf.bases.clear)
            await self._journalling.carry_out(Composed(files=(), topics=(), record=record, done=()))


def _result(batch: BatchWork, done: Done) -> BatchResult:
    """Returns what a batch came to; one whose edits all fell before a person's words made none."""
    if done.blocks:
        return BatchResult(batch=batch.batch, outcome="kept", blocks=list(done.blocks))
    reason = "a person's words stand where it would have written"
    return BatchResult(batch=batch.batch, outcome="nothing", blocks=[], reason=reason)
