"""The one thread that writes: it takes what is queued, commits it as one group, and says so.

A lone writer waits for nobody; 64 writers share one fsync (timerless group commit). A request that
fails rolls back itself and not its neighbours: each has a savepoint of its own. Only repeatable
requests at the beginning of a group are tried without, since hardly one ever fails; if one does,
they are rolled back together and done again, each in its savepoint. Agents' requests go first;
background work (imports, erasures) is cut into slices by those who ask for it, and one slice at
most rides in each group.

Source: facts measured for the design: 8 / 64 / 256 appends in one transaction are 7 / 33 / 62 times
cheaper than one each, and a failed fsync must not be tried again on the same file.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import apsw
import structlog

from turnmark_events.errors import TurnmarkError, Unavailable
from turnmark_events.types import Event
from turnmark_session_store.database import BUSY_MS
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.times import now_ms
from turnmark_session_store.transaction import Transaction

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
GROUP_LIMIT = 256
"""Past 256 requests a group gains little and its first waits longer."""

_BEGIN = "BEGIN IMMEDIATE"

log = structlog.get_logger(__name__)

Settle = Callable[[], None]
Deliver = Callable[[Sequence[Event], Sequence[Settle]], None]
"""Gets a group's events in order and the callables that answer its requests, after the commit."""


class Answer(Protocol[T_contra]):
    """Where a request's outcome goes: a future of a loop or of a thread."""

    def done(self) -> bool:
        """Whether nobody waits for it any more."""
        ...

    def set_result(self, result: T_contra, /) -> None:
        """Takes what the write returned."""
        ...

    def set_exception(self, exception: BaseException, /) -> None:
        """Takes what the write raised."""
        ...


@dataclass(slots=True)
class _Request(Generic[T]):
    write: Callable[[Transaction], T]
    answer: Answer[T]
    repeatable: bool = False
    result: T | None = None
    error: BaseException | None = None
    events: Sequence[Event] = ()

    def settle(self) -> None:
        if self.answer.done():  # whoever asked was cancelled
            return
        if self.error is not None:
            self.answer.set_exception(self.error)
        else:
            self.answer.set_result(self.result)  # type: ignore[arg-type]


def deliver_here(events: Sequence[Event], answers: Sequence[Settle]) -> None:
    """Answers on the writer thread itself; for programs without an event loop."""
    del events
    for settle in answers:
        settle()


class WriterThread:
    """Owns the writing connection; `submit` may be called from any thread."""

    def __init__(
        self,
        connection: apsw.Connection,
        *,
        deliver: Deliver = deliver_here,
        clock: Callable[[], int] = now_ms,
        idle_ms: int = 1_800_000,
    ) -> None:
        self._db = connection
        self._cursor = connection.cursor()
        self._idle_ms = idle_ms
        self.deliver = deliver
        self._clock = clock
        self._agents: deque[_Request[Any]] = deque()
        self._background: deque[_Request[Any]] = deque()
        self._wanted = threading.Condition()
        self._closing = False
        self._truncates = False
        self.broken: str | None = None
        self._groups = 0
        self._requests = 0
        self._thread = threading.Thread(target=self._run, name="turnmark-writer", daemon=True)
        self._thread.start()

    def submit(self, write: Callable[[Transaction], T], *, background: bool = False) -> Future[T]:
        """Queues `write` and returns its answer, set once the group's commit is durable."""
        answer: Future[T] = Future()
        self.submit_to(answer, write, background=background)
        return answer

    def submit_to(
        self,
        answer: Answer[T],
        write: Callable[[Transaction], T],
        *,
        background: bool = False,
        repeatable: bool = False,
    ) -> None:
        """Queues `write`, to be answered through `deliver` into `answer`.

        A `repeatable` one changes nothing but the transaction that it is given: it may be rolled
        back and called once more, and only what its last call returned counts.

        The queue is unbounded here on purpose: its bound is the number of requests that clients
        may have under way, which the socket's connections limit.
        """
        with self._wanted:
            if self._closing or self.broken:
                answer.set_exception(self._unavailable())
                return
            queue = self._background if background else self._agents
            queue.append(_Request(write, answer, repeatable))
            self._wanted.notify()

    def truncate_log_soon(self) -> None:
        """Empties the write-ahead log after the next group, or as soon as no reader is in the way.

        For erasures: what was overwritten in the database stands in the log until then.
        """
        self._truncates = True

    def statistics(self) -> dict[str, Any]:
        """Returns queue lengths and counts since start."""
        return {
            "queued": len(self._agents),
            "queued_background": len(self._background),
            "groups": self._groups,
            "requests": self._requests,
            "broken": self.broken,
        }

    def close(self) -> None:
        """Finishes what is queued, moves the log into the database and closes the connection."""
        with self._wanted:
            if self._closing:
                return
            self._closing = True
            self._wanted.notify()
        self._thread.join()

    def _run(self) -> None:
        while group := self._take():
            try:
                self._commit(group)
            except Exception as error:
                # A bug, or a loop that is gone: whoever waits is told, and nothing more is written.
                log.exception("writer_failed", requests=len(group))
                self.broken = self.broken or str(error)
                self._give_up(group, error)
                self._deliver(group)
        if self.broken:
            # What the failed write left in the log is for the next start to judge, not for us.
            self._db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        else:
            self._checkpoint()
        self._db.close()

    def _truncate_log(self) -> None:
        self._db.set_busy_timeout(0)  # a reader in the way must not hold up the next group
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._truncates = False
        except apsw.BusyError:
            log.info("log_truncation_put_off")
        except apsw.Error as error:
            log.warning("checkpoint_failed", error=str(error))
        finally:
            self._db.set_busy_timeout(BUSY_MS)

    def _checkpoint(self) -> None:
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:  # a reader is in the way, or the disk: the log keeps it all
            log.warning("checkpoint_failed", error=str(error))

    def _take(self) -> list[_Request[Any]]:
        with self._wanted:
            while not (self._agents or self._background or self._closing):
                self._wanted.wait()
            group = [self._agents.popleft() for _ in range(min(GROUP_LIMIT, len(self._agents)))]
            if self._background:
                group.append(self._background.popleft())
            return group

    def _commit(self, group: list[_Request[Any]]) -> None:
        self._groups += 1
        self._requests += len(group)
        if self.broken:
            self._fail(group, self._unavailable())
        else:
            try:
                self._write(group)
            except (apsw.Error, OSError) as error:
                self._give_up(group, error)
            failpoint("store.after_commit")
        if self._truncates and not self.broken:
            self._truncate_log()
        self._deliver(group)

    def _deliver(self, group: list[_Request[Any]]) -> None:
        events = [event for request in group for event in request.events]
        try:
            self.deliver(events, [request.settle for request in group])
        except RuntimeError:  # the loop was closed while its requests were under way
            log.warning("answers_not_delivered", requests=len(group))

    def _write(self, group: list[_Request[Any]]) -> None:
        self._cursor.execute(_BEGIN)
        if len(group) == 1:
            self._apply_alone(group[0])
        else:
            for request in group[self._apply_together(group) :]:
                self._apply(request)
        failpoint("store.before_commit")
        if self._db.in_transaction:
            self._cursor.execute("COMMIT")

    def _apply_alone(self, request: _Request[Any]) -> None:
        """Applies the only request of a group: its savepoint is the transaction itself."""
        self._call(request)
        if request.error is not None:
            self._cursor.execute("ROLLBACK")

    def _apply_together(self, group: list[_Request[Any]]) -> int:
        """Applies the repeatable requests that `group` begins with; returns how many stand now.

        A savepoint saves each page that its request changes, which costs a tenth of an append. If
        one of the requests fails, the transaction begins anew and none of them stands.
        """
        for number, request in enumerate(group):
            if not request.repeatable:
                return number
            self._call(request)
            if request.error is not None:
                self._cursor.execute("ROLLBACK")
                self._cursor.execute(_BEGIN)
                return 0
        return len(group)

    def _apply(self, request: _Request[Any]) -> None:
        self._cursor.execute("SAVEPOINT request")
        self._call(request)
        if request.error is not None:
            self._cursor.execute("ROLLBACK TO request")
        self._cursor.execute("RELEASE request")

    def _call(self, request: _Request[Any]) -> None:
        transaction = Transaction(self._db, self._clock(), self._idle_ms, self._cursor)
        request.error, request.events = None, ()  # of a call that was rolled back
        try:
            request.result = request.write(transaction)
        except Exception as error:
            if isinstance(error, apsw.Error) and (
                not self._db.in_transaction or _is_failed_sync(error)
            ):
                raise  # SQLite rolled the whole group back (disk full, I/O error)
            request.error = _as_answer(error)
        else:
            request.events = transaction.events

    def _give_up(self, group: list[_Request[Any]], error: Exception) -> None:
        if self._db.in_transaction:
            self._cursor.execute("ROLLBACK")
        if _is_failed_sync(error):
            self.broken = str(error)
        log.error("commit_failed", requests=len(group), error=str(error), read_only=self.broken)
        self._fail(group, self._unavailable(error))

    def _fail(self, group: list[_Request[Any]], error: TurnmarkError) -> None:
        for request in group:
            request.error, request.events = error, ()

    def _unavailable(self, error: Exception | None = None) -> TurnmarkError:
        if self.broken:
            return Unavailable(
                f"the session store is read-only since a write to disk failed ({self.broken}); "
                "check the disk, then restart turnmark: nothing acknowledged was lost"
            )
        if isinstance(error, apsw.FullError):
            return Unavailable(
                "the disk is full: nothing of this request was stored. Free some space and try "
                "again; reading works on"
            )
        if error is not None:
            return Unavailable(f"nothing was stored: {error}; try again")
        return Unavailable("turnmark is shutting down; nothing of this request was stored")


def _is_failed_sync(error: Exception) -> bool:
    """After one, the kernel may have dropped what it could not write: never try it again."""
    extended = getattr(error, "extendedresult", 0)
    return extended in (apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC)


def _as_answer(error: Exception) -> Exception:
    if isinstance(error, apsw.FullError):
        return Unavailable(
            "the disk is full: nothing of this request was stored. Free some space and try again"
        )
    return error
