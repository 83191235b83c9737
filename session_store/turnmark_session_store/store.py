"""The session store: one object for all that is said, forked, taken back and marked.

`write` runs a function in the writer thread's next group and returns once its commit is durable;
`read` runs one on a snapshot beside it. The verbs are the socket's, in the shape of `requests.py`.
Events reach `publish` after the commit and before the answer, in one total order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
import anyio.to_thread
import apsw
import msgspec

from turnmark_events.errors import Unavailable
from turnmark_events.types import Event
from turnmark_session_store import event_table
from turnmark_session_store.append import Appended, AppendOrder, append
from turnmark_session_store.checkout import (
    HeadIs,
    Merged,
    Rewound,
    archive,
    checkout,
    close,
    merge,
    rewind,
)
from turnmark_session_store.database import open_writer
from turnmark_session_store.erase import Deleted, delete_session, erase_slice
from turnmark_session_store.export import ExportPage, export_session
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.identity import PreparedTurn, prepare
from turnmark_session_store.import_ends import Imported, finish_import
from turnmark_session_store.imports import (
    ImportPlan,
    begin_import,
    check_plan,
    parse_lines,
    place_slice,
)
from turnmark_session_store.model import TurnIn
from turnmark_session_store.opening import Opened, open_at_its_head
from turnmark_session_store.readers import Readers
from turnmark_session_store.requests import (
    AppendTurns,
    Archive,
    Checkout,
    ExportSession,
    ImportLines,
    ListBranch,
    ListSessions,
    Merge,
    OpenSession,
    Rewind,
    SessionRef,
    SyncTurns,
)
from turnmark_session_store.sync import Synced, sync
from turnmark_session_store.times import now_ms
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.uploads import Uploads
from turnmark_session_store.views import (
    SessionList,
    SessionShown,
    TurnList,
    list_branch,
    list_sessions,
    show_session,
)
from turnmark_session_store.writer_thread import Settle, WriterThread

T = TypeVar("T")

_INLINE_CHARACTERS = 32_768
"""Shorter texts are prepared on the event loop (under a millisecond); longer ones in a thread."""

_DISK_ERRORS = (
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.CantOpenError,
    apsw.BusyError,
    apsw.FullError,
)
"""What the world can do to a database; any other error of SQLite is a bug of ours and stays one."""


class UploadGoesOn(msgspec.Struct, frozen=True, kw_only=True):
    """`session.import`'s answer until the last frame."""

    upload: str


ImportFinished = Callable[[Transaction, str, int], None]
"""Hears in which transaction which session's turns are reachable, and since when they came."""


def _nothing_more(_tx: Transaction, _session: str, _since_ms: int) -> None:
    pass


def _nobody() -> None:
    """Stands in for a caller who does not want to know."""


class SessionStore:
    """Open it with `SessionStore.open`, inside a running event loop; close it when done."""

    def __init__(
        self,
        path: Path,
        writer: WriterThread,
        *,
        count: Callable[[str], int],
        mask: Literal["store", "exits"],
    ) -> None:
        self._writer = writer
        self._readers = Readers(path)
        self._count = count
        self._mask = mask == "store"
        self._uploads = Uploads()
        self.publish: Callable[[Sequence[Event]], None] = _ignore
        self.path = path

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        count: Callable[[str], int],
        idle_ms: int,
        mask: Literal["store", "exits"] = "store",
        clock: Callable[[], int] = now_ms,
    ) -> SessionStore:
        """Returns the store of the database at `path`, made if it is not there.

        Blocks for the check of the file and for migrations. The caller holds the state's lock.

        Raises:
            Unavailable: if the database is damaged, newer, another program's or not writable.
        """
        writer = WriterThread(open_writer(path), clock=clock, idle_ms=idle_ms)
        store = cls(path, writer, count=count, mask=mask)
        loop = asyncio.get_running_loop()

        def deliver(events: Sequence[Event], answers: Sequence[Settle]) -> None:
            loop.call_soon_threadsafe(store._deliver, events, answers)

        writer.deliver = deliver
        return store

    def _deliver(self, events: Sequence[Event], answers: Sequence[Settle]) -> None:
        if events:
            self.publish(events)
        for settle in answers:
            settle()

    async def aclose(self) -> None:
        """Finishes what is queued and closes the database; the loop goes on meanwhile."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._writer.close)
        self._readers.close()

    async def write(
        self,
        function: Callable[[Transaction], T],
        *,
        background: bool = False,
        repeatable: bool = False,
        queued: Callable[[], None] = _nobody,
    ) -> T:
        """Runs `function` in a transaction of the writer thread; returns after the commit.

        A `repeatable` one changes nothing but its transaction, so it may be called once more after
        a rollback. `queued` is called once the write has its place in the queue. A cancelled wait
        does not undo the write: it may have been committed.

        Raises:
            Unavailable: if the disk failed or is full, or the store is closing.
        """
        # A future of the loop itself: the delivery settles it there, so no hop is lost.
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._writer.submit_to(answer, function, background=background, repeatable=repeatable)
        queued()
        try:
            return await answer
        except _DISK_ERRORS as error:
            raise Unavailable(f"the session store could not be written: {error}") from error

    async def read(self, function: Callable[[apsw.Connection], T]) -> T:
        """Runs `function` on one snapshot, in a thread beside the writer."""

        def run() -> T:
            with self._readers.snapshot() as connection:
                return function(connection)

        try:
            return await anyio.to_thread.run_sync(run)
        except _DISK_ERRORS as error:
            raise Unavailable(f"the session store could not be read: {error}") from error

    async def prepare(self, turns: Sequence[TurnIn]) -> list[PreparedTurn]:
        """Returns the turns ready to be stored; long texts are worked on in a thread.

        Raises:
            Refused: if an id or a time can't be used.
        """

        def run() -> list[PreparedTurn]:
            return [prepare(turn, count=self._count, mask=self._mask) for turn in turns]

        size = sum(_length(turn) for turn in turns)
        return run() if size < _INLINE_CHARACTERS else await anyio.to_thread.run_sync(run)

    # Verbs, in the order of the socket's table.

    async def open_session(self, asked: OpenSession) -> Opened:
        """Opens a session; see `opening.open_at_its_head`."""
        return await self.write(lambda tx: open_at_its_head(tx, asked))

    async def append(self, asked: AppendTurns, queued: Callable[[], None] = _nobody) -> Appended:
        """Appends turns; acknowledged once durable. See `append.append`."""
        order = AppendOrder(
            session=asked.session,
            turns=await self.prepare(asked.turns),
            after=asked.after,
            expect=asked.expect,
            key=asked.key,
            move_head=asked.move_head,
        )
        return await self.write(lambda tx: append(tx, order), repeatable=True, queued=queued)

    async def sync(self, asked: SyncTurns, queued: Callable[[], None] = _nobody) -> Synced:
        """Brings a session to a whole message array; see `sync.sync`."""
        messages = await self.prepare(asked.messages)
        return await self.write(
            lambda tx: sync(tx, asked.session, messages, asked.key), repeatable=True, queued=queued
        )

    async def rewind(self, asked: Rewind) -> Rewound:
        """Takes back what came after a turn; see `checkout.rewind`."""
        return await self.write(lambda tx: rewind(tx, asked))

    async def checkout(self, asked: Checkout) -> HeadIs:
        """Puts the head on a turn; see `checkout.checkout`."""
        return await self.write(lambda tx: checkout(tx, asked))

    async def merge(self, asked: Merge) -> Merged:
        """Joins branches in one turn; see `checkout.merge`."""
        turn = (await self.prepare([asked.turn]))[0]
        return await self.write(lambda tx: merge(tx, asked.session, asked.tips, turn))

    async def archive(self, asked: Archive) -> None:
        """Hides a branch or all of them; see `checkout.archive`."""
        await self.write(lambda tx: archive(tx, asked))

    async def close_session(self, asked: SessionRef) -> None:
        """Notes that a session is closed."""
        await self.write(lambda tx: close(tx, asked.session))

    async def delete_session(self, asked: SessionRef) -> Deleted:
        """Deletes a session and forgets what only it reached; the words go in slices."""
        deleted = await self.write(lambda tx: delete_session(tx, asked.session))
        failpoint("erase.forgotten")
        await self.erase_forgotten()
        return deleted

    async def erase_forgotten(self) -> None:
        """Erases the words of every forgotten turn, slice by slice, behind agents' appends.

        Then nothing of them is left in the database file; in its log neither, as soon as no reader
        is in the way.
        """
        while await self.write(erase_slice, background=True):
            failpoint("erase.slice")
        await self.empty_log()

    async def empty_log(self) -> None:
        """Lets nothing stand in the database's log that was erased from the database itself.

        Where a reader is in the way it is done as soon as he is not.
        """
        self._writer.truncate_log_soon()
        await self.write(lambda _: None, background=True)

    async def trim_events(self) -> None:
        """Drops events past keeping, slice by slice, behind agents' appends."""
        while await self.write(lambda tx: event_table.trim(tx.db, tx.at_ms), background=True):
            pass

    async def export_session(self, asked: ExportSession) -> ExportPage:
        """Returns a page of a session's export lines."""
        return await self.read(lambda db: export_session(db, asked))

    async def import_lines(
        self,
        asked: ImportLines,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        finished: ImportFinished = _nothing_more,
    ) -> UploadGoesOn | Imported:
        """Takes a part of an upload; with its last part, imports it in slices.

        `progress` hears how many turns of how many are dealt with. `finished` is called in the
        transaction that makes the turns reachable.

        Raises:
            Refused: if the lines are no whole export; nothing of it is stored.
            NotFound: if `upload` is unknown: it began before a restart, or was never begun.
            Conflict: if a turn is here with other content, or the session in another namespace;
                nothing of it is stored.
        """
        upload, lines = self._uploads.collect(asked)
        if lines is None:
            return UploadGoesOn(upload=upload)

        def parse() -> ImportPlan:
            return parse_lines(lines, count=self._count, mask=self._mask)

        plan = await anyio.to_thread.run_sync(parse)
        return await self._import(plan, progress, finished)

    def header_of(self, upload: str) -> str | None:
        """Returns the first line of an upload that is under way, None where there is none."""
        return self._uploads.header_of(upload)

    async def _import(
        self, plan: ImportPlan, progress: Callable[[int, int], None], finished: ImportFinished
    ) -> Imported:
        await self.read(lambda db: check_plan(db, plan))
        await self.write(lambda tx: begin_import(tx, plan), background=True)
        failpoint("import.begun")
        position = 0
        while position < len(plan.turns):
            position = await self.write(
                partial(place_slice, plan=plan, start=position), background=True
            )
            progress(position, len(plan.turns))
            failpoint("import.placed")

        def finish(tx: Transaction) -> Imported:
            imported = finish_import(tx, plan)
            finished(tx, imported.session, plan.begun_ms)
            return imported

        return await self.write(finish, background=True)

    async def list_sessions(self, asked: ListSessions, workspace: int | None) -> SessionList:
        """Returns sessions, last updated first, with what they owe a workspace."""
        return await self.read(lambda db: list_sessions(db, asked, workspace))

    async def show_session(self, asked: SessionRef, workspace: int | None) -> SessionShown:
        """Returns a session with its branches."""
        return await self.read(lambda db: show_session(db, asked.session, workspace))

    async def list_branch(self, asked: ListBranch) -> TurnList:
        """Returns a page of the turns from the root to a tip."""
        return await self.read(lambda db: list_branch(db, asked))

    async def events_after(self, after: int, limit: int) -> list[Event]:
        """Returns events from the table; what a bus replays for who fell behind."""
        return await self.read(lambda db: event_table.events_after(db, after, limit))

    async def last_seq(self) -> int:
        """Returns the newest event's number."""
        return await self.read(event_table.last_seq)

    def statistics(self) -> dict[str, Any]:
        """Returns the writer's queue lengths and counts."""
        return self._writer.statistics()


def _length(turn: TurnIn) -> int:
    if isinstance(turn.text, str):
        return len(turn.text)
    return sum(len(part.text or "") for part in turn.text)


def _ignore(events: Sequence[Event]) -> None:
    del events
