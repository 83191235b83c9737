"""What is made of topics and sources: index, timeline and `core.md`. Rebuilt, never repaired.

After an install only what it touched is made anew. Deleting any of it loses nothing (law 11).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio.to_thread
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_events.types import CoreRebuilt
from turnmark_memory.core_page import CorePage, render_core
from turnmark_memory.shelf import Shelf
from turnmark_memory.timeline import Timeline
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_path import CORE
from turnmark_memory.workspace import CORE_PAGE, STAGING
from turnmark_session_store import SessionStore
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.marks import workspace_revision
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)


class Derived:
    """What one workspace's files are made into; nobody may install meanwhile.

    `core` is the core page as it was rendered last.
    """

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
        self._timeline = Timeline(shelf.workspace, shelf.index)
        self.core = CorePage(text="", tokens=0, blocks=(), left_out=())

    def refresh(self, topics: Sequence[str], revision: int) -> None:
        """Brings index and timeline in step with `topics`, of which an install wrote `revision`.

        Blocks. The number comes last: until it stands, the next start builds the index anew.

        Raises:
            Unavailable: if the disk fails.
        """
        for topic in topics:
            self._shelf.shelve(topic)
        self._refresh_days()
        self._shelf.index.revision = revision

    async def rebuild(self) -> None:
        """Makes all of it anew from the files.

        Raises:
            Unavailable: if the disk fails.
        """
        revision = await self._store.read(lambda db: workspace_revision(db, self._workspace))
        await anyio.to_thread.run_sync(self._shelf.rebuild, revision)
        await self.rebuild_timeline(whole=True)
        await self.rebuild_core()

    async def rebuild_timeline(self, *, whole: bool) -> None:
        """Makes the timeline right: its missing and needless pages, or the bytes of all of them."""
        timeline = self._timeline
        await anyio.to_thread.run_sync(timeline.rebuild if whole else timeline.complete)

    async def rebuild_core(self) -> CorePage:
        """Renders `core.md` from `topics/core.md`; says so if its bytes changed."""
        await anyio.to_thread.run_sync(self._refresh_days)
        self.core, changed = await anyio.to_thread.run_sync(self._render_core)
        if changed:
            await self._store.write(self._say_rebuilt)
        return self.core

    def _refresh_days(self) -> None:
        self._timeline.refresh(self._shelf.take_stale_days())

    def _say_rebuilt(self, tx: Transaction) -> None:
        facts = {
            "workspace": str(self._shelf.workspace.id),
            "tokens": self.core.tokens,
            "left_out": list(self.core.left_out),
        }
        tx.record(CoreRebuilt, facts)

    def _render_core(self) -> tuple[CorePage, bool]:
        """Returns the page, and whether the file's bytes had to change for it."""
        try:
            source = self._shelf.load(CORE) or b""
        except Refused as error:
            log.warning("core_topic_unusable", reason=error.message)
            return self.core, False
        embedded = _Embedded(self._shelf)
        page = render_core(source, embedded.block, self._core_tokens, self._count)
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


class _Embedded:
    """The topics that the core page embeds, each read once; one that can't be read is left out."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._topics: dict[str, Topic | None] = {}

    def block(self, topic: str, block: str) -> Block | None:
        if topic not in self._topics:
            self._topics[topic] = self._load(topic)
        found = self._topics[topic]
        return None if found is None else found.block(block)

    def _load(self, topic: str) -> Topic | None:
        try:
            return self._shelf.load(topic)
        except (Refused, Unavailable) as error:
            log.warning("topic_unreadable", topic=topic, reason=error.message)
            return None
