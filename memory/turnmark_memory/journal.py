"""An install's journal: committed before the first file is touched, finished by whoever finds it.

It holds all that is needed to repeat the install byte for byte without asking a writer. Finishing
it exchanges the files, settles the turns in the transaction that closes the journal, and refreshes
what is derived, in that order: a crash at any instruction is a redo (law 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import TurnmarkError, Unavailable
from turnmark_memory.bases import Base
from turnmark_memory.compose import Composed
from turnmark_memory.derived import Derived
from turnmark_memory.exchange import close_exchange, exchange
from turnmark_memory.file_exchange import StagedFile
from turnmark_memory.intake import Intake
from turnmark_memory.removal import Removal, follow_removal
from turnmark_memory.revisions import RevisionRecord, write_record
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic_merge import merge_topics
from turnmark_memory.workspace import RevisionStamp, topic_of
from turnmark_session_store import SessionStore
from turnmark_session_store.batches import (
    BatchResult,
    OpenInstall,
    close_install,
    open_install,
    open_installs,
)
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """What an install's row holds. `topics` changed; `seen` are people's saves that it takes in."""

    files: tuple[StagedFile, ...]
    topics: tuple[str, ...]
    record: RevisionRecord
    stamp: RevisionStamp
    removal: Removal = Removal()
    seen: tuple[Base, ...] = ()

    @classmethod
    def of(cls, composed: Composed) -> Journal:
        """Returns the journal of an install that is ready."""
        return cls(
            files=composed.files,
            topics=composed.topics,
            record=composed.record,
            stamp=RevisionStamp(revision=composed.record.revision, at=composed.record.at),
            removal=composed.removal,
            seen=composed.seen,
        )

    def bases(self) -> Iterator[Base]:
        """Yields what people saved, then what the install puts into each file.

        Whoever reads a file from the install on reads this, and may save what was made of it.
        """
        yield from self.seen
        for file in self.files:
            yield Base(
                topic=topic_of(file.path),
                kind="install",
                content=file.content,
                at_ms=int(self.record.at.timestamp() * 1_000),
                revision=self.record.revision,
            )


class InstallUnfinished(Unavailable):
    """The disk stopped an install behind its journal: it will be finished, no writer is asked."""

    def __init__(self, revision: int, reason: str) -> None:
        super().__init__(
            f"Revision {revision} is not installed yet: {reason} It is finished as soon as the "
            "disk allows; nothing is lost.",
            revision=revision,
        )


class Journalling:
    """Carries installs out by their journals; nobody else may install meanwhile.

    `installs` counts those that this process finished. `late_topics` are those that somebody wrote
    to while an install exchanged their files: they are still to be taken in.
    """

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        workspace_key: int,
        intake: Intake,
        derived: Derived,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._workspace = workspace_key
        self._intake = intake
        self._derived = derived
        self.installs = 0
        self.late_topics: set[str] = set()
        # What the disk kept from being done: journalled installs, and what is derived from them.
        self._unfinished = self._stale = False

    async def carry_out(self, composed: Composed, results: Sequence[BatchResult] = ()) -> None:
        """Journals an install and finishes it.

        Raises:
            InstallUnfinished: if the disk fails behind the journal; `catch_up` finishes it.
            Unavailable: if it fails before that; nothing was changed.
        """
        install = await self._commit(composed, results)
        try:
            await self._finish(install)
        except TurnmarkError as error:
            self._unfinished = True
            raise InstallUnfinished(install.revision, error.message) from error

    async def _commit(self, composed: Composed, results: Sequence[BatchResult]) -> OpenInstall:
        """Commits what the install will do, before the first file is touched."""
        body = msgspec.json.encode(Journal.of(composed))
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

    async def _finish(self, install: OpenInstall) -> None:
        """Exchanges the files, settles the turns, refreshes what is derived."""
        journal = msgspec.json.decode(install.body, type=Journal)
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
            await self._derived.rebuild_core()
        except TurnmarkError as error:
            # The install is complete; what is derived from it is made anew when the disk allows.
            self._stale = True
            log.warning("derived_files_stale", reason=error.message)

    def _exchange(self, journal: Journal) -> None:
        write_record(self._shelf.workspace, journal.record)
        failpoint("install.recorded")
        self._shelf.bases.record(list(journal.bases()))
        failpoint("install.noted")
        exchange(
            self._shelf.workspace,
            journal.files,
            merge_topics,
            stamp=journal.stamp,
            checkpoint=lambda step: failpoint(f"install.{step}"),
        )

    def _refresh(self, journal: Journal) -> None:
        self._clear_staging()
        failpoint("install.cleared")
        for topic in journal.topics:
            self._intake.inspect(topic)
        self._derived.refresh(journal.topics, journal.record.revision)

    def _clear_staging(self) -> None:
        """Merges writes that came late into the files of ended installs, and notes which."""
        late = close_exchange(self._shelf.workspace, merge_topics)
        self.late_topics.update(topic_of(result.path) for result in late)

    async def catch_up(self) -> bool:
        """Finishes what the disk kept from being finished; tells whether there was anything.

        Raises:
            Unavailable: if the disk still fails.
        """
        was_behind = self._unfinished or self._is_stale()
        if self._unfinished:
            await self._finish_all(
                await self._store.read(lambda db: open_installs(db, self._workspace))
            )
            self._unfinished = False
        if self._is_stale():
            await anyio.to_thread.run_sync(self._clear_staging)
            await self._derived.rebuild()
            self._stale = False
        return was_behind

    def _is_stale(self) -> bool:
        """Tells whether what is derived is behind, or turned out to be damaged (law 11)."""
        return self._stale or self._shelf.index.is_damaged

    async def roll_forward(self, installs: Sequence[OpenInstall]) -> None:
        """Finishes installs that an earlier process journalled; asks no writer.

        What that process left in the staging directory after an install's end is cleared as well.
        """
        await self._finish_all(installs)
        await anyio.to_thread.run_sync(self._clear_staging)

    async def _finish_all(self, installs: Sequence[OpenInstall]) -> None:
        for install in installs:
            log.info("install_rolled_forward", revision=install.revision)
            await self._finish(install)
