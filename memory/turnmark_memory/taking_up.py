"""Taking work up at a start: files, marks and index come to one revision before anybody asks.

What a dead process journalled is finished. Then the workspace is compared with what the marks say
of it: one that went back to an older revision, or lost its number, is not trusted, and what it may
no longer hold is offered again (law 5).
"""

from __future__ import annotations

import anyio.to_thread
import structlog

from turnmark_memory.failing import end_pauses_ahead
from turnmark_memory.index_file import DamagedIndex
from turnmark_memory.install import Installer
from turnmark_memory.shelf import Shelf
from turnmark_memory.whereabouts import note_place
from turnmark_memory.workspace import UnreadableRevision
from turnmark_session_store import SessionStore
from turnmark_session_store.backlog import release_backlog
from turnmark_session_store.batches import take_over
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.marks import (
    offer_failed_to,
    park_settled_after,
    reach_revision,
    workspace_revision,
)

log = structlog.get_logger(__name__)


class TakingUp:
    """The start of one workspace's memory; used once.

    `twin` is another place with the same workspace id, if there is one.
    """

    def __init__(
        self, store: SessionStore, shelf: Shelf, installer: Installer, workspace_key: int
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._installer = installer
        self._workspace = workspace_key
        self.twin: str | None = None

    async def take_up(self, *, writer: str, holds_backlog: bool) -> bool:
        """Returns whether the index had to be built anew, and with it all that is made of it.

        Turns that failed with another writer than `writer` are offered to it. Pauses that a clock
        set which was ahead are over.

        Raises:
            Unavailable: if the disk fails.
        """
        installs = await self._store.write(lambda tx: take_over(tx, self._workspace))
        failpoint("start.taken_over")
        # Before an install is finished, whose number would hide what the index lost before it.
        behind = await self._is_index_behind()
        await self._installer.roll_forward(installs)
        failpoint("start.rolled_forward")
        await self._check_revision()
        await self._look_for_a_twin()
        await self._store.write(lambda tx: offer_failed_to(tx, self._workspace, writer))
        await self._store.write(lambda tx: end_pauses_ahead(tx, self._workspace))
        if not holds_backlog:
            await self._store.write(
                lambda tx: release_backlog(tx, self._workspace), background=True
            )
        behind = behind or await self._is_index_behind()
        if behind:
            await anyio.to_thread.run_sync(self._shelf.rebuild, await self._known_revision())
        return behind

    async def _check_revision(self) -> None:
        """Compares what the workspace says of itself with what the marks rest on (law 5)."""
        stamp = await anyio.to_thread.run_sync(self._shelf.workspace.revision)
        known = await self._known_revision()
        unreadable = isinstance(stamp, UnreadableRevision)
        trusted = 0 if isinstance(stamp, UnreadableRevision) else stamp.revision
        if unreadable or trusted < known:
            parked = await self._store.write(
                lambda tx: park_settled_after(tx, self._workspace, trusted, "lost")
            )
            log.warning(
                "workspace_went_back",
                workspace=trusted,
                marks=known,
                turns_offered_again=parked,
                unreadable=unreadable,
            )
            await self._installer.went_back(known + 1)
        elif trusted > known:
            await self._store.write(lambda tx: reach_revision(tx, self._workspace, trusted))
            log.warning("marks_went_back", workspace=trusted, marks=known)

    async def _look_for_a_twin(self) -> None:
        """Notes where the workspace is, and says so if its id is at another place too (law 5)."""
        name, root = str(self._shelf.workspace.id), self._shelf.workspace.root
        others = await self._store.write(lambda tx: note_place(tx.db, name, root))
        if others:
            self.twin = str(others[0])
            log.warning("workspace_at_two_places", workspace=name, also=self.twin)

    async def _is_index_behind(self) -> bool:
        """Tells whether the index lacks an install, or turns: a power cut may cost its last writes.

        Turns of which nothing was kept come without an install, so they are counted. One that is
        damaged lacks anything.
        """
        revision = await self._known_revision()
        index, archive = self._shelf.index, self._shelf.archive

        def look() -> bool:
            try:
                return index.revision != revision or index.counts().turns != archive.count()
            except DamagedIndex:
                return True

        return await anyio.to_thread.run_sync(look)

    async def _known_revision(self) -> int:
        return await self._store.read(lambda db: workspace_revision(db, self._workspace))
