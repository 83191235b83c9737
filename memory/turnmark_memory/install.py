"""Installing: evidence is archived already; now journal, files, marks, in that order.

One install at a time. From the commit of its journal on an install will be finished, by this
process or by the next one, without asking a writer again: the journal holds the new bytes. The
turns are settled in the same transaction that closes the journal, so no crash can leave a mark
without its topics or settle a turn twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import anyio
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import Refused, TurnmarkError, Unavailable
from turnmark_events.types import CoreRebuilt
from turnmark_memory.bases import Base, Problem
from turnmark_memory.compose import Composed, Done, Work, compose
from turnmark_memory.core_page import CorePage, render_core
from turnmark_memory.exchange import StagedFile, close_exchange, exchange
from turnmark_memory.intake import Intake
from turnmark_memory.removal import Removal, follow_removal
from turnmark_memory.revisions import RevisionRecord, write_record
from turnmark_memory.shelf import Shelf
from turnmark_memory.timeline import Timeline
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_merge import merge_topics
from turnmark_memory.topic_path import CORE
from turnmark_memory.workspace import STAGING, RevisionStamp
from turnmark_session_store import SessionStore
from turnmark_session_store.batches import (
    BatchResult,
    OpenInstall,
    close_install,
    open_install,
    open_installs,
)
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.marks import workspace_revision
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)
CORE_PAGE = "core.md"

_ROUNDS_LIMIT = 3
"""Saves in a row that an install or an intake runs after; the watcher tells of the next one."""

_AT_ONCE = 256
"""Topics whose documents are in memory together; blocks that went further are looked up."""

_PROBLEMS_LIMIT = 100


class _Journal(msgspec.Struct, frozen=True, kw_only=True):
    """What an install's row holds: enough to repeat the exchange byte for byte."""

    files: tuple[StagedFile, ...]
    topics: tuple[str, ...]
    record: RevisionRecord
    stamp: RevisionStamp
    removal: Removal = Removal()
    seen: tuple[Base, ...] = ()


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """An install that is complete."""

    revision: int
    composed: Composed


class InstallUnfinished(Unavailable):
    """The disk stopped an install behind its journal: it will be finished, no writer is asked."""

    def __init__(self, revision: int, reason: str) -> None:
        super().__init__(
            f"Revision {revision} is not installed yet: {reason} It is finished as soon as the "
            "disk allows; nothing is lost.",
            revision=revision,
        )


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
        self._core_tokens = core_tokens
        self._count = count
        self._serial = anyio.Lock()
        self._timeline = Timeline(shelf.workspace, shelf.index)
        self.core = CorePage(text="", tokens=0, blocks=(), left_out=())
        self.installs = 0
        self._bases = shelf.bases
        self._intake = Intake(shelf)
        self._late_topics: set[str] = set()
        self._unfinished = self._stale = False

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
            await self._catch_up()
            revision, composed = await self._composed(make)
            results = [
                _result(batch, done)
                for batch, done in zip(batches, composed.done, strict=False)
                if done.problem is None
            ]
            if not results and not composed.files:
                return Installed(revision=revision - 1, composed=composed)
            await self._carry_out(composed, results)
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

    async def _carry_out(self, composed: Composed, results: Sequence[BatchResult]) -> None:
        install = await self._journal(composed, results)
        try:
            await self._finish(install)
        except TurnmarkError as error:
            self._unfinished = True
            raise InstallUnfinished(install.revision, error.message) from error

    async def take_in(self, topics: Iterable[str]) -> frozenset[str]:
        """Takes in what people did to the files of `topics`; costs a look where they did nothing.

        Returns those that somebody was writing to: look at them again in a moment.

        Raises:
            Unavailable: if the disk fails; nothing is lost, take them in again.
        """
        names = list(topics)
        async with self._serial:
            await self._catch_up()
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
            await self._rebuild_core()
        else:
            await self._carry_out(found.composed, [])
        return True

    async def _take_in_late(self, topics: Sequence[str]) -> None:
        """Takes in what was saved while an install was on its way, as far as the disk allows."""
        try:
            late = await anyio.to_thread.run_sync(
                self._intake.unseen, [*topics, *self._late_topics]
            )
            self._late_topics.clear()
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
        topics = await anyio.to_thread.run_sync(self._bases.pending, until_ms)
        if not topics:
            return
        await self.take_in(topics)
        async with self._serial:
            await self._catch_up()
            revision = await self._next_revision()
            left = await anyio.to_thread.run_sync(self._bases.pending, until_ms)
            composed = await anyio.to_thread.run_sync(
                lambda: self._intake.numbered(left, revision=revision, at=datetime.now(UTC))
            )
            if composed is not None:
                await self._carry_out(composed, [])
                await self._take_in_late(composed.topics)

    async def oldest_unwritten(self) -> datetime | None:
        """Returns when the topic was saved last whose ids wait the longest to be written."""
        at_ms = await anyio.to_thread.run_sync(self._bases.oldest_pending_ms)
        return None if at_ms is None else datetime.fromtimestamp(at_ms / 1_000, UTC)

    def problems(self) -> list[Problem]:
        """Returns what a person should look at in topic files, a bounded number; reads a table."""
        return self._bases.problems(_PROBLEMS_LIMIT)

    async def believe_files(self) -> None:
        """Takes every file as it is now for what memory saw last: the workspace went back."""
        async with self._serial:
            await anyio.to_thread.run_sync(self._bases.clear)

    async def catch_up(self) -> bool:
        """Finishes what the disk kept from being finished; tells whether there was anything.

        Raises:
            Unavailable: if the disk still fails.
        """
        async with self._serial:
            was_behind = self._unfinished or self._stale
            await self._catch_up()
            return was_behind

    async def _catch_up(self) -> None:
        if self._unfinished:
            for install in await self._store.read(lambda db: open_installs(db, self._workspace)):
                log.info("install_rolled_forward", revision=install.revision)
                await self._finish(install)
            self._unfinished = False
        if self._stale:
            await self._refresh_all()
            self._stale = False

    async def _refresh_all(self) -> None:
        revision = await self._store.read(lambda db: workspace_revision(db, self._workspace))
        await anyio.to_thread.run_sync(close_exchange, self._shelf.workspace, merge_topics)
        await anyio.to_thread.run_sync(self._shelf.rebuild, revision)
        await anyio.to_thread.run_sync(self._timeline.rebuild)
        await self._rebuild_core()

    async def _journal(self, composed: Composed, results: Sequence[BatchResult]) -> OpenInstall:
        journal = _Journal(
            files=composed.files,
            topics=composed.topics,
            record=composed.record,
            stamp=RevisionStamp(revision=composed.record.revision, at=composed.record.at),
            removal=composed.removal,
            seen=composed.seen,
        )
        body = msgspec.json.encode(journal)
        revision, cause = composed.record.revision, composed.record.cause

        def write(tx: Transaction) -> int:
            return open_install(
                tx, self._workspace, revision=revision, cause=cause, body=body, results=results
            )

        failpoint("install.before_journal")
        install = await self._store.write(write)
        failpoint("install.journalled")
        batches = [result.batch for result in results]
        return OpenInstall(
            install=install, revision=revision, cause=cause, body=body, batches=batches
        )

    async def roll_forward(self, installs: Sequence[OpenInstall]) -> None:
        """Finishes installs that an earlier process journalled; asks no writer.

        What that process left in the staging directory after an install's end is cleared as well.
        """
        async with self._serial:
            for install in installs:
                log.info("install_rolled_forward", revision=install.revision)
                await self._finish(install)
            await anyio.to_thread.run_sync(self._clear_staging)

    def _clear_staging(self) -> None:
        """Merges writes that came late into files of an ended install; its manifest says which."""
        for result in close_exchange(self._shelf.workspace, merge_topics):
            self._late_topics.add(_topic_of(result.path))

    async def _finish(self, install: OpenInstall) -> None:
        """Exchanges the files, settles the turns, refreshes what is derived."""
        journal = msgspec.json.decode(install.body, type=_Journal)
        await anyio.to_thread.run_sync(self._exchange, journal)
        failpoint("install.in_place")

        def close(tx: Transaction) -> None:
            close_install(tx, install.install)
            follow_removal(tx, self._workspace, journal.removal, install.revision)

        await self._store.write(close)
        failpoint("install.settled")
        self.installs += 1
        try:
            await anyio.to_thread.run_sync(self._refresh, journal)
            failpoint("install.indexed")
            await self._rebuild_core()
        except TurnmarkError as error:
            # The install is complete; what is derived from it is made anew when the disk allows.
            self._stale = True
            log.warning("derived_files_stale", reason=error.message)

    def _exchange(self, journal: _Journal) -> None:
        write_record(self._shelf.workspace, journal.record)
        failpoint("install.recorded")
        self._bases.record([*journal.seen, *_installed(journal)])
        failpoint("install.noted")
        exchange(
            self._shelf.workspace,
            journal.files,
            merge_topics,
            stamp=journal.stamp,
            checkpoint=lambda step: failpoint(f"install.{step}"),
        )

    def _refresh(self, journal: _Journal) -> None:
        late = close_exchange(self._shelf.workspace, merge_topics)
        failpoint("install.cleared")
        self._late_topics.update(_topic_of(result.path) for result in late)
        for topic in journal.topics:
            self._shelf.shelve(topic)
            self._intake.inspect(topic)
        self._timeline.refresh(self._shelf.take_stale_days())
        self._shelf.index.revision = journal.record.revision

    async def rebuild_core(self) -> CorePage:
        """Renders `core.md` from `topics/core.md`, now; says so if its bytes changed."""
        async with self._serial:
            return await self._rebuild_core()

    async def rebuild_timeline(self, *, whole: bool) -> None:
        """Makes the timeline right: its missing and needless pages, or the bytes of all of them."""
        async with self._serial:
            timeline = self._timeline
            await anyio.to_thread.run_sync(timeline.rebuild if whole else timeline.complete)

    async def _rebuild_core(self) -> CorePage:
        await anyio.to_thread.run_sync(
            lambda: self._timeline.refresh(self._shelf.take_stale_days())
        )
        page, changed = await anyio.to_thread.run_sync(self._render_core)
        self.core = page
        if changed:
            facts = {"tokens": page.tokens, "left_out": list(page.left_out)}

            def say(tx: Transaction) -> None:
                name = tx.value("SELECT name FROM workspace WHERE id = ?", (self._workspace,))
                tx.record(CoreRebuilt, {"workspace": name, **facts})

            await self._store.write(say)
        return page

    def _render_core(self) -> tuple[CorePage, bool]:
        topics: dict[str, Topic | None] = {}

        def load(topic: str, block: str) -> Block | None:
            if topic not in topics:
                topics[topic] = self._embedded(topic)
            found = topics[topic]
            return None if found is None else found.block(block)

        try:
            core = self._shelf.load(CORE) or b""
        except Refused as error:
            log.warning("core_topic_unusable", reason=error.message)
            return self.core, False
        page = render_core(core, load, self._core_tokens, self._count)
        content = page.text.encode()
        tree = self._shelf.workspace.tree
        there = tree.read(CORE_PAGE)
        if there == content:
            return page, False
        if there is not None and self.core.text and there != self.core.text.encode():
            log.warning(
                "derived_file_overwritten",
                path=CORE_PAGE,
                what_to_do="change topics/core.md instead; core.md is made from it",
            )
        failpoint("core.rendered")
        tree.replace(CORE_PAGE, content, staging=STAGING)
        failpoint("core.replaced")
        return page, True

    def _embedded(self, topic: str) -> Topic | None:
        """Returns a topic that the core page embeds; one that can't be read is left out."""
        try:
            return self._shelf.load(topic)
        except (Refused, Unavailable) as error:
            log.warning("topic_unreadable", topic=topic, reason=error.message)
            return None

    async def stamp_went_back(self, revision: int) -> None:
        """Writes a revision without changes: the number after which the workspace is trusted."""
        record = RevisionRecord(
            revision=revision,
            at=datetime.now(UTC),
            cause="the workspace went back to an older revision",
            blocks=(),
            topics=(),
            changes=(),
        )
        empty = Composed(files=(), topics=(), record=record, done=())
        async with self._serial:
            await self._finish(await self._journal(empty, []))


def _result(batch: BatchWork, done: Done) -> BatchResult:
    """Returns what a batch came to; one whose edits all fell before a person's words made none."""
    if done.blocks:
        return BatchResult(batch=batch.batch, outcome="kept", blocks=list(done.blocks))
    reason = "a person's words stand where it would have written"
    return BatchResult(batch=batch.batch, outcome="nothing", blocks=[], reason=reason)


def _installed(journal: _Journal) -> Iterator[Base]:
    """Yields what the install puts into each file: whoever reads it from now on reads this."""
    for file in journal.files:
        yield Base(
            topic=_topic_of(file.path),
            kind="install",
            content=file.content,
            at_ms=int(journal.record.at.timestamp() * 1_000),
            revision=journal.record.revision,
        )


def _topic_of(path: str) -> str:
    return path.removeprefix("topics/").removesuffix(".md")
