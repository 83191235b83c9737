"""Memory: one object for what is recalled, owed, written and kept. Open it beside a session store.

`open` takes the workspace's lock, finishes what a dead process journalled, and looks whether the
workspace is the one that the marks speak of. `run` starts the worker and the night.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.bus import Bus
from turnmark_events.errors import Unavailable
from turnmark_memory.adopting import Adopted, Adopting
from turnmark_memory.answering import Answering
from turnmark_memory.asking import Asking
from turnmark_memory.bases import Problem
from turnmark_memory.breaker import Breaker
from turnmark_memory.citing import Citing
from turnmark_memory.context import ContextAnswer
from turnmark_memory.core_page import CoreAnswer
from turnmark_memory.editing import Edited, Editing
from turnmark_memory.embedding.embedder import Embedder
from turnmark_memory.embedding.meaning import Meaning
from turnmark_memory.flushing import FlushAnswer, Flushing, Progress
from turnmark_memory.forgetting import ForgetPlan, Forgetting, Forgot
from turnmark_memory.index_file import DamagedIndex
from turnmark_memory.install import Installer
from turnmark_memory.locality import BUILTIN
from turnmark_memory.models.model import Model
from turnmark_memory.night import NightClock
from turnmark_memory.night_work import NightWork
from turnmark_memory.organizing import Organized, Organizing
from turnmark_memory.owing import OwedPage, owed_page
from turnmark_memory.planning import Look
from turnmark_memory.quiet import QuietEdits
from turnmark_memory.recall import RecallAnswer
from turnmark_memory.remembering import Remembered, Remembering
from turnmark_memory.requests import (
    AdoptRequest,
    ContextRequest,
    CoreRequest,
    EditRequest,
    FlushRequest,
    ForgetRequest,
    HistoryRequest,
    OrganizeRequest,
    OwedRequest,
    RecallRequest,
    RememberRequest,
    ShowRequest,
    TopicsRequest,
    UndoRequest,
)
from turnmark_memory.revision_listing import RevisionList, list_revisions
from turnmark_memory.shelf import Shelf
from turnmark_memory.showing import Shown
from turnmark_memory.taking_back import TakingBack
from turnmark_memory.taking_up import TakingUp
from turnmark_memory.topic_listing import TopicList, list_topics
from turnmark_memory.undoing import Undoing, Undone
from turnmark_memory.uses import Uses
from turnmark_memory.worker import Worker
from turnmark_memory.workspace import TOPICS
from turnmark_memory.writers.writer import Writer
from turnmark_memory.writing import Writing
from turnmark_session_store import SessionStore
from turnmark_session_store.backlog import park_backlog
from turnmark_session_store.marks import workspace_key
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)

_FAILED = frozenset({"failed"})


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the memory is told: budgets in tokens; `nightly` None switches the night off.

    `holds_backlog` says that turns from before their source was connected are only written when
    asked for; the built-in writer writes them all the same.
    """

    trigger_tokens: int
    core_tokens: int
    nightly: time | None
    mask_on_exit: bool = False
    holds_backlog: bool = True


class Memory:
    """One workspace at work; made by `Memory.open`, closed by `close`.

    Each of `before_night` is awaited before a night reads what is owed: looks at whatever may have
    been missed (law 10). The owner adds to it before `run`.
    """

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        key: int,
        writer: Writer,
        settings: MemorySettings,
        count: Callable[[str], int],
        counter: str,
        *,
        tidier: Model | None = None,
        selector: Model | None = None,
        embedder: Embedder | None = None,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self.key = key
        self._settings = settings
        self._counter = counter
        self._writer = writer
        self.installer = Installer(store, shelf, key, core_tokens=settings.core_tokens, count=count)
        asking = Asking(writer, Breaker())
        self._writing = Writing(
            store, shelf, self.installer, asking, key, mask_on_exit=settings.mask_on_exit
        )
        self._taking_back = TakingBack(store, shelf, self.installer, key)
        self.worker = Worker(
            store, self._writing, self._taking_back, key, trigger_tokens=settings.trigger_tokens
        )
        self._flushing = Flushing(
            store,
            shelf,
            self.worker,
            key,
            writer=writer.name,
            trigger_tokens=settings.trigger_tokens,
            spares_local=asking.keeps_apart,
        )
        self._meaning = Meaning(shelf.index, shelf.vectors, embedder)
        self._uses = Uses(shelf.workspace.tree)
        self._answering = Answering(
            store,
            shelf,
            key,
            count=count,
            uses=self._uses,
            dense=None if embedder is None else self._meaning,
            selector=selector,
        )
        citing = Citing(store, shelf, mask_on_exit=settings.mask_on_exit)
        self._editing = Editing(shelf, self.installer, citing)
        self._remembering = Remembering(store, shelf, key, self._editing, citing)
        self._adopting = Adopting(store, shelf, key, self.installer, citing)
        self._undoing = Undoing(store, shelf, self.installer)
        self._forgetting = Forgetting(
            store, shelf, self._editing, self._taking_back, recall=self.recall, erase=self._erase
        )
        self._edits = QuietEdits(self.installer, shelf.workspace.root)
        self.before_night: list[Callable[[], Awaitable[None]]] = []
        self._night: NightClock | None = None
        self._day = datetime.now().astimezone().date()
        self._organizing = Organizing(
            store,
            shelf,
            self.installer,
            key,
            NightWork(store, shelf, self.installer, uses=self._uses, count=count, model=tidier),
            finish_owed=self._finish_owed,
            core=self._core_answer,
            owed=self._count_owed,
            offer_uncited=self._flushing.offer_uncited,
            cost_of_uncited=self._flushing.cost_of_uncited,
        )
        self._tasks: anyio.abc.TaskGroup | None = None
        self._twin: str | None = None

    @classmethod
    async def open(
        cls,
        store: SessionStore,
        root: Path,
        writer: Writer,
        settings: MemorySettings,
        *,
        count: Callable[[str], int],
        counter: str,
        tidier: Model | None = None,
        selector: Model | None = None,
        embedder: Embedder | None = None,
    ) -> Memory:
        """Returns the memory of the workspace at `root`, whole and trusted.

        Finishes journalled installs, offers again what an older workspace no longer holds, and
        rebuilds the index where it is behind.

        Raises:
            PlaceTaken: if another daemon has the workspace.
            Refused: if the workspace can't be used; the message says what to do.
            Unavailable: if the disk fails.
        """
        shelf = await anyio.to_thread.run_sync(lambda: Shelf.open(root, count))
        try:
            name = str(shelf.workspace.id)
            key = await store.write(lambda tx: workspace_key(tx, name))
            memory = cls(
                store,
                shelf,
                key,
                writer,
                settings,
                count,
                counter,
                tidier=tidier,
                selector=selector,
                embedder=embedder,
            )
            await memory._take_up()
        except BaseException:
            shelf.close()
            raise
        return memory

    async def _take_up(self) -> None:
        """Brings everything to one revision before anybody asks for anything.

        An index that turns out to be damaged on the way is built anew from the files (law 11).
        """
        try:
            await self._bring_to_one_revision()
        except DamagedIndex as error:
            log.warning("index_damaged", reason=error.message)
            await self.installer.catch_up()
            await self._bring_to_one_revision()

    async def _bring_to_one_revision(self) -> None:
        taking_up = TakingUp(self._store, self._shelf, self.installer, self.key)
        rebuilt = await taking_up.take_up(
            writer=self._writer.name, holds_backlog=self.holds_backlog
        )
        self._twin = taking_up.twin
        await self._organizing.load(self._settings.nightly)
        await self._edits.rescan()
        await self.installer.rebuild_timeline(whole=rebuilt)
        await self.installer.rebuild_core()

    async def run(self, bus: Bus, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Runs the worker and the night until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            await tasks.start(self._run_worker, bus)
            tasks.start_soon(self._edits.run)
            tasks.start_soon(self._uses.run)
            await tasks.start(self._run_meaning)
            if self._settings.nightly is not None:
                self._night = NightClock(
                    self._settings.nightly,
                    last_done=self._organizing.last_night,
                    night=self._run_night,
                )
                tasks.start_soon(self._night.run)
            else:
                days = NightClock(time(0), last_done=self._last_day, night=self._begin_day)
                tasks.start_soon(days.run)
            task_status.started()

    async def _last_day(self) -> date:
        return self._day

    async def _begin_day(self, day: date) -> None:
        """Tries again what could not be written, where no night does it: a day may change that."""
        self._day = day
        self.worker.flush_later(Look(moved=None, whole=frozenset(), reasons=_FAILED, at_once=True))
        await self._compact()

    async def _run_worker(self, bus: Bus, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        await self.worker.run(bus, task_status=task_status)

    async def _run_meaning(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        await self._meaning.run(task_status=task_status)

    def close(self) -> None:
        """Closes index, archive and workspace; nothing may be running any more."""
        self._uses.write()
        self._shelf.close()

    @property
    def workspace(self) -> str:
        """The workspace's `w-` id."""
        return str(self._shelf.workspace.id)

    async def recall(self, asked: RecallRequest) -> RecallAnswer:
        """Returns what memory holds about a query; see `answering.Answering`."""
        return await self._answering.recall(asked)

    async def context(self, asked: ContextRequest) -> ContextAnswer:
        """Returns the text to put before an agent; see `context.Context`."""
        return await self._answering.context(asked)

    async def core(self, asked: CoreRequest) -> CoreAnswer:
        """Returns the core page as it was rendered last."""
        del asked
        return self._core_answer()

    def _core_answer(self) -> CoreAnswer:
        page = self.installer.core
        return CoreAnswer(
            text=page.text,
            tokens=page.tokens,
            counter=self._counter,
            blocks=page.blocks,
            left_out=page.left_out,
        )

    async def topics(self, asked: TopicsRequest) -> TopicList:
        """Returns the topics by name."""
        return await anyio.to_thread.run_sync(lambda: list_topics(self._shelf.index, asked))

    async def edit(self, asked: EditRequest) -> Edited:
        """Changes blocks as a person asks for it; see `editing.Editing`."""
        return await self._editing.edit(asked)

    async def remember(self, asked: RememberRequest) -> Remembered:
        """Writes one block at once; see `remembering.Remembering`."""
        return await self._remembering.remember(asked)

    async def adopt(self, asked: AdoptRequest) -> Adopted:
        """Takes over what another memory knows; see `adopting.Adopting`."""
        return await self._adopting.adopt(asked)

    async def history(self, asked: HistoryRequest) -> RevisionList:
        """Returns the revisions, newest first."""
        workspace = self._shelf.workspace
        return await anyio.to_thread.run_sync(lambda: list_revisions(workspace, asked))

    async def undo(self, asked: UndoRequest) -> Undone:
        """Takes one revision back; see `undoing.Undoing`."""
        return await self._undoing.undo(asked)

    async def show(self, asked: ShowRequest) -> Shown:
        """Returns a block, a source, a topic or a turn with its provenance."""
        return await self._answering.show(asked)

    async def owed(self, asked: OwedRequest) -> OwedPage:
        """Returns what the live tips owe this workspace."""
        resting = self.worker.resting
        return await self._store.read(lambda db: owed_page(db, self.key, asked, resting=resting))

    @property
    def holds_backlog(self) -> bool:
        """Tells whether old turns wait to be asked for: the built-in writer costs nothing."""
        return self._settings.holds_backlog and not self._writer.name.startswith(BUILTIN)

    def hold_imported(self, tx: Transaction, session: str, since_ms: int) -> None:
        """Holds what an import brought from `since_ms` on, in the transaction that brings it."""
        if self.holds_backlog:
            park_backlog(tx, self.key, session, since_ms, stored_from_ms=since_ms)

    async def flush(
        self, asked: FlushRequest, progress: Progress = lambda _done, _total, _what: None
    ) -> FlushAnswer:
        """Writes what is owed in a scope, one attempt a batch; see `flushing.Flushing`."""
        return await self._flushing.flush(asked, progress)

    async def session_closed(self, session: str) -> None:
        """Lets what a session owes be written now; returns at once."""
        self.worker.flush_later(Look(moved=None, whole=None, session=session, at_once=True))

    async def organize(
        self, asked: OrganizeRequest, progress: Progress = lambda _done, _total, _what: None
    ) -> Organized:
        """Runs the night now, or decides about what it held; see `organizing.Organizing`."""
        return await self._organizing.organize(asked, progress, self._tasks)

    async def _run_night(self, day: date) -> None:
        await self._organizing.night(day)
        await self._compact()

    async def _compact(self) -> None:
        """Merges what the index was written in; a disk that fails is told to who asks next."""
        try:
            await anyio.to_thread.run_sync(self._shelf.index.compact)
        except Unavailable as error:
            log.warning("index_not_compacted", reason=error.message)

    async def _finish_owed(self, progress: Progress) -> None:
        """Looks at what may have been missed (law 10), then writes what is owed."""
        for looks_again in self.before_night:
            await looks_again()
        await self._edits.rescan()
        look, due = await self._flushing.snapshot(
            Look(moved=None, whole=None, reasons=_FAILED, at_once=True)
        )
        await self.worker.flush(
            look, lambda turns: progress(turns, max(turns, due.turns), "turns written")
        )

    async def _count_owed(self) -> int:
        return (await self.owed(OwedRequest())).turns

    async def forget(self, asked: ForgetRequest) -> ForgetPlan | Forgot:
        """Says what would be erased, or erases it; see `forgetting.Forgetting`."""
        return await self._forgetting.forget(asked)

    async def forgotten(self, turns: list[int]) -> None:
        """Erases turns that the store has forgotten from sources, index and blocks."""
        await self._erase(turns, ())

    async def _erase(self, turns: Sequence[int], removed: Collection[str]) -> None:
        """Erases from all that memory keeps, and lets be written again what else was said there."""
        again = await self._taking_back.erase(turns, removed)
        await self.installer.rebuild_core()
        await self._store.empty_log()  # the installs of the erasure stood there, too
        if again:
            within = frozenset(again)
            self.worker.flush_later(Look(moved=None, whole=None, at_once=True, within=within))

    @property
    def topics_folder(self) -> Path:
        """The directory whose files people edit; what changes in it goes to `files_changed`."""
        return self._shelf.workspace.root / TOPICS

    async def files_changed(self, paths: Iterable[str]) -> None:
        """Takes in what people did to files of topics; see `quiet.QuietEdits`."""
        await self._edits.files_changed(paths)

    async def rescan(self) -> None:
        """Takes in what people did anywhere, for when file events may be lost."""
        await self._edits.rescan()

    def problems(self) -> list[Problem]:
        """Returns what a person should look at in topic files, a bounded number."""
        return self.installer.problems()

    def statistics(self) -> dict[str, Any]:
        """Returns what the memory is doing, for `status`."""
        night = self._night.next if self._night is not None else None
        return {
            "workspace": self.workspace,
            "path": str(self._shelf.workspace.root),
            "twin": self._twin,
            "writer": self._writer.name,
            "counter": self._counter,
            "installs": self.installer.installs,
            "core_tokens": self.installer.core.tokens,
            "problems": self.problems(),
            "next_night": None if night is None else night.astimezone(UTC),
            "embedder": self._meaning.status(),
            **self.worker.statistics(),
            **self._organizing.statistics(),
        }
