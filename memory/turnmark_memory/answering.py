"""What memory answers from its index: recall, the context of an agent, one thing shown.

An index that turns out to be damaged is built anew from the files, once, and asked again (law 11).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio.to_thread
import msgspec
import structlog

from turnmark_memory.context import Context, ContextAnswer
from turnmark_memory.dense import Dense
from turnmark_memory.index_file import DamagedIndex
from turnmark_memory.locality import local_sessions, open_topics
from turnmark_memory.models.model import Model
from turnmark_memory.project_core import core_within
from turnmark_memory.recall import Recall, RecallAnswer
from turnmark_memory.relations import StoreRelations
from turnmark_memory.requests import ContextRequest, RecallRequest, ShowRequest
from turnmark_memory.selecting import Selecting, Topics
from turnmark_memory.shelf import Shelf
from turnmark_memory.showing import Shown, show
from turnmark_memory.uses import Uses
from turnmark_memory.workspace import CORE_PAGE
from turnmark_session_store import SessionStore
from turnmark_session_store.marks import workspace_revision

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Answering:
    """Answers from one workspace's index; what is shown is noted among the `uses`."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        workspace_key: int,
        *,
        count: Callable[[str], int],
        uses: Uses,
        dense: Dense | None,
        selector: Model | None,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._workspace = workspace_key
        self._uses = uses
        self._selector = selector
        selecting = None if selector is None else Selecting(selector, hide=self._open_topics)
        self._recall = Recall(
            shelf.index, StoreRelations(store), count, dense=dense, selecting=selecting
        )
        self._context = Context(self._recall, self._read_core, count, uses.note)

    async def recall(self, asked: RecallRequest) -> RecallAnswer:
        """Returns what memory holds about a query; see `recall.Recall`.

        A question from a local session is not put to a model elsewhere: words answer it.
        """
        if asked.mode == "select" and await self._is_kept_from_selector(asked.session):
            asked = msgspec.structs.replace(asked, mode="hybrid")
        return await self._over_index(lambda: self._recall.recall(asked))

    async def _is_kept_from_selector(self, session: str | None) -> bool:
        if session is None or self._selector is None or self._selector.is_local:
            return False
        return session in await self._store.read(local_sessions)

    async def _open_topics(self, topics: Topics) -> Topics:
        """Returns the topics but those that hold only what local sessions said."""
        kept_in = await self._store.read(local_sessions)
        return await anyio.to_thread.run_sync(
            lambda: open_topics(self._shelf.index, topics, kept_in)
        )

    async def context(self, asked: ContextRequest) -> ContextAnswer:
        """Returns the text to put before an agent; see `context.Context`."""
        return await self._over_index(lambda: self._context.context(asked))

    def _read_core(self, project: str | None) -> str:
        """Returns the core page, for readers of `project` what is theirs of it."""
        content = self._shelf.workspace.tree.read(CORE_PAGE)
        core = "" if content is None else content.decode("utf-8", "replace")
        return core if project is None else core_within(core, project, self._shelf.index)

    async def show(self, asked: ShowRequest) -> Shown:
        """Returns a block, a source, a topic or a turn with its provenance."""
        shown = await self._over_index(lambda: show(self._store, self._shelf, asked.ref))
        if shown.kind == "block":
            self._uses.note([shown.ref])
        return shown

    async def _over_index(self, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            return await ask()
        except DamagedIndex as error:
            log.warning("index_damaged", reason=error.message)
            revision = await self._store.read(lambda db: workspace_revision(db, self._workspace))
            await anyio.to_thread.run_sync(self._shelf.rebuild, revision)
            return await ask()
