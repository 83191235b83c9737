"""Memory: one object for what is recalled, owed, written and kept. Open it beside a session store.

`open` takes the workspace's lock, finishes what a dead process journalled, and looks whether the
workspace is the one that the marks speak of. `run` starts the worker and the night.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.bus import Bus
from turnmark_events.errors import Unavailable
from turnmark_memory.adopting import Adopted, Adopting
from turnmark_memory.archive import Archive
from turnmark_memory.asking import Asking
from turnmark_memory.bases import Bases, Problem
from turnmark_memory.breaker import Breaker
from turnmark_memory.citing import Citing
from turnmark_memory.context import Context, ContextAnswer
from turnmark_memory.core_page import CoreAnswer
from turnmark_memory.editing import Edited, Editing
from turnmark_memory.embedding.embedder import Embedder
from turnmark_memory.embedding.meaning import Meaning
from turnmark_memory.flushing import FlushAnswer, Flushing, Progress
from turnmark_memory.forgetting import ForgetPlan, Forgetting, Forgot
from turnmark_memory.index import Index
from turnmark_memory.index_file import DamagedIndex
from turnmark_memory.install import Installer
from turnmark_memory.locality import BUILTIN, local_sessions, open_topics
from turnmark_memory.models.model import Model
from turnmark_memory.night import NightClock, next_due
from turnmark_memory.night_work import NightWork
from turnmark_memory.organizing import Organized, Organizing
from turnmark_memory.owing import OwedPage, owed_page
from turnmark_memory.planning import Look
from turnmark_memory.project_core import core_within
from turnmark_memory.quiet import QuietEdits
from turnmark_memory.recall import Recall, RecallAnswer
from turnmark_memory.relations import StoreRelations
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
from turnmark_memory.selecting import Selecting, Topics
from turnmark_memory.shelf import Shelf
from turnmark_memory.showing import Shown, show
from turnmark_memory.taking_back import TakingBack
from turnmark_memory.topic_listing import TopicList, list_topics
from turnmark_memory.undoing import Undoing, Undone
from turnmark_memory.uses import Uses
from turnmark_memory.whereabouts import note_place
from turnmark_memory.worker import Worker
from turnmark_memory.workspace import (
    BASES_FILE,
    CORE_PAGE,
    INDEX_FILE,
    TOPICS,
    RevisionStamp,
    UnreadableRevision,
    Workspace,
)
from turnmark_memory.writers.writer import Writer
from turnmark_memory.writing import Writing
from turnmark_session_store import SessionStore
from turnmark_session_store.backlog import park_backlog, release_backlog
from turnmark_session_store.batches import take_over
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.marks import (
    park_settled_after,
    workspace_key,
    workspace_revision,
)
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)

T = TypeVar("T")

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
        self._selector = selector
        self._meaning = Meaning(shelf.index, shelf.vectors, embedder)
        self._recall = Recall(
            shelf.index,
            StoreRelations(store),
            count,
            dense=None if embedder is None else self._meaning,
            selecting=None if selector is None else Selecting(selector, hide=self._open_topics),
        )
        self._uses = Uses(shelf.workspace.tree)
        self._context = Context(self._recall, self._read_core, count, self._uses.note)
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
        shelf = await anyio.to_thread.run_sync(lambda: _open_shelf(root, count))
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
            _close_shelf(shelf)
            raise
        return memory

    async def _take_up(self) -> None:
        """Brings files, marks and index to one revision before anybody asks for anything."""
        installs = await self._store.write(lambda tx: take_over(tx, self.key))
        failpoint("start.taken_over")
        # Before an install is finished, whose number would hide what the index lost before it.
        behind = await self._is_index_behind()
        await self.installer.roll_forward(installs)
        failpoint("start.rolled_forward")
        await self._organizing.load()
        await self._check_revision()
        await self._look_for_a_twin()
        await self._store.write(lambda tx: _offer_to_new_writer(tx, self.key, self._writer.name))
        if not self.holds_backlog:
            await self._store.write(lambda tx: release_backlog(tx, self.key), background=True)
        await self._begin_nights()
        behind = behind or await self._is_index_behind()
        if behind:
            revision = await self._store.read(lambda db: workspace_revision(db, self.key))
            await anyio.to_thread.run_sync(self._shelf.rebuild, revision)
        await self._edits.rescan()
        await self.installer.rebuild_timeline(whole=behind)
        await self.installer.rebuild_core()

    async def _is_index_behind(self) -> bool:
        """Tells whether the index lacks an install, or turns: a power cut may cost its last writes.

        Turns of which nothing was kept come without an install, so they are counted.
        """
        revision = await self._store.read(lambda db: workspace_revision(db, self.key))
        index, archive = self._shelf.index, self._shelf.archive

        def look() -> bool:
            return index.revision != revision or index.counts().turns != archive.count()

        return await anyio.to_thread.run_sync(look)

    async def _look_for_a_twin(self) -> None:
        """Notes where the workspace is, and says so if its id is at another place too (law 5)."""
        root = self._shelf.workspace.root
        others = await self._store.write(lambda tx: note_place(tx.db, self.workspace, root))
        self._twin = str(others[0]) if others else None
        if self._twin is not None:
            log.warning("workspace_at_two_places", workspace=self.workspace, also=self._twin)

    async def _begin_nights(self) -> None:
        """Lets a new workspace begin with the next night: it has missed none."""
        if self._settings.nightly is None or await self._organizing.last_night() is not None:
            return
        day, due = next_due(datetime.now(UTC), None, self._settings.nightly)
        begun = day if due <= datetime.now(UTC) else day - timedelta(days=1)
        await self._store.write(
            lambda tx: tx.execute(
                "UPDATE workspace SET last_night = ? WHERE id = ?", (begun.isoformat(), self.key)
            )
        )

    async def _check_revision(self) -> None:
        """Compares what the workspace says of itself with what the marks rest on (law 5)."""
        stamp = await anyio.to_thread.run_sync(self._shelf.workspace.revision)
        known = await self._store.read(lambda db: workspace_revision(db, self.key))
        if isinstance(stamp, RevisionStamp) and stamp.revision == known:
            return
        if isinstance(stamp, RevisionStamp) and stamp.revision > known:
            await self._store.write(lambda tx: _reach(tx, self.key, stamp.revision))
            log.warning("marks_went_back", workspace=stamp.revision, marks=known)
            return
        trusted = 0 if isinstance(stamp, UnreadableRevision) else stamp.revision
        parked = await self._store.write(
            lambda tx: park_settled_after(tx, self.key, trusted, "lost")
        )
        log.warning(
            "workspace_went_back",
            workspace=trusted,
            marks=known,
            turns_offered_again=parked,
            unreadable=isinstance(stamp, UnreadableRevision),
        )
        await self.installer.went_back(known + 1)

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
        _close_shelf(self._shelf)

    @property
    def workspace(self) -> str:
        """The workspace's `w-` id."""
        return str(self._shelf.workspace.id)

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
        shown = await self._over_index(lambda: show(self._store, self._shelf, asked.ref))
        if shown.kind == "block":
            self._uses.note([shown.ref])
        return shown

    async def _over_index(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Asks the index; one that turns out to be damaged is built anew, once, and asked again."""
        try:
            return await ask()
        except DamagedIndex as error:
            log.warning("index_damaged", reason=error.message)
            revision = await self._store.read(lambda db: workspace_revision(db, self.key))
            await anyio.to_thread.run_sync(self._shelf.rebuild, revision)
            return await ask()

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

    def _read_core(self, project: str | None) -> str:
        """Returns the core page, for readers of `project` what is theirs of it."""
        content = self._shelf.workspace.tree.read(CORE_PAGE)
        core = "" if content is None else content.decode("utf-8", "replace")
        return core if project is None else core_within(core, project, self._shelf.index)


def _open_shelf(root: Path, count: Callable[[str], int]) -> Shelf:
    workspace = Workspace.open(root)
    try:
        archive = Archive(workspace)
        index = Index.open(workspace.root / INDEX_FILE)
        bases = Bases.open(workspace.root / BASES_FILE)
    except BaseException:
        workspace.close()
        raise
    return Shelf(workspace, archive, index, count, bases)


def _close_shelf(shelf: Shelf) -> None:
    shelf.bases.close()
    shelf.vectors.close()
    shelf.index.close()
    shelf.archive.close()
    shelf.workspace.close()


def _offer_to_new_writer(tx: Transaction, key: int, writer: str) -> None:
    """Offers turns that failed alone again, where another writer is configured since."""
    tx.execute(
        "UPDATE mark SET reason = 'rewrite', at_ms = ? WHERE workspace = ?"
        " AND outcome = 'parked' AND reason = 'failed' AND writer <> ?",
        (tx.at_ms, key, writer),
    )


def _reach(tx: Transaction, key: int, revision: int) -> None:
    tx.execute("UPDATE workspace SET revision = ? WHERE id = ?", (revision, key))
