"""What every tail does, whatever it follows: waits for a cause, does all that is due, waits again.

Nothing is polled. A file event (`changed`), a wish for a look at everything (`rescan`) or the
nearest deadline wakes one task. Events are hints: one that is lost costs a later look, no turn.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypedDict

import anyio
import msgspec
import structlog
from anyio.abc import TaskStatus

from turnmark_events.errors import TurnmarkError
from turnmark_session_store.deadline import DeadlineTimer, Wake
from turnmark_session_store.model import MemoryMode
from turnmark_session_store.store import SessionStore
from turnmark_session_store.times import to_rfc3339
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.checkpoints import connect_sources, connected_sources
from turnmark_session_store.transcripts.failures import Failures

log = structlog.get_logger(__name__)

# Resolving costs time by the length of a session: at most a quarter of the time is spent on it.
REST_PER_WORK = 3.0
# But a line is to be a turn in a second: a rest that is no longer than an event takes to be told
# delays nothing. Where resolving takes longer than that, half of the time is spent on it.
_UNNOTICED_REST_SECONDS = 0.3

State = Literal["waiting", "scanning", "following"]
Placed = Callable[[Transaction, str, int], None]
"""Called in the transaction that brought turns to a session, with the session's name and the time
(ms) at which the source was connected."""
MemoryFor = Callable[[str | None, str], MemoryMode]
"""Says how a session, by project and name, may be remembered."""


class TailStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far an agent's transcripts are followed; sizes in bytes.

    `state` is `waiting` while the directory is not there, `scanning` while older files are read.
    `held` counts turns that wait to be whole, `unread` records that could not be taken.
    `last_error` is why a session can't be followed now, `next_try` when it is tried again.
    """

    state: State
    path: str
    files: int
    bytes_done: int
    bytes_total: int
    held: int
    unread: int
    last_error: str | None
    next_try: str | None = None


def always_on(project: str | None, session: str) -> MemoryMode:
    """Lets every session be remembered."""
    del project, session
    return "on"


def nothing_more(tx: Transaction, session: str, connected_ms: int) -> None:
    """Does nothing in the transaction that brought turns."""
    del tx, session, connected_ms


class TailOptions(TypedDict, total=False):
    """What a tail may be told: as a rule every session is remembered, and nothing more is done."""

    memory_for: MemoryFor
    placed: Placed
    rest_per_work: float


class Tail(ABC):
    """Follows one agent's sessions below `root`, in the directories `places`.

    Of those that are `flat_places`, only what lies right in them has to be watched.
    """

    def __init__(
        self,
        store: SessionStore,
        agent: str,
        root: Path,
        places: tuple[Path, ...],
        *,
        memory_for: MemoryFor = always_on,
        placed: Placed = nothing_more,
        rest_per_work: float = REST_PER_WORK,
    ) -> None:
        self.root = root
        self.places = places
        self.flat_places: Collection[Path] = ()
        self.agent = agent
        self._store = store
        self._memory_for = memory_for
        self._placed = placed
        self._rest_per_work = rest_per_work
        self._timer: DeadlineTimer | None = None
        self._connected_ms = 0
        self._scan_wanted = True
        self._dirty: set[Path] = set()
        self._failures = Failures()
        self._caught_up = anyio.Event()

    def changed(self, paths: Iterable[Path]) -> None:
        """Says that files or directories changed, came or went; returns at once."""
        self._dirty.update(paths)
        self._wake()

    def rescan(self) -> None:
        """Asks for a look at everything below the root: after lost events, or a sleep."""
        self._scan_wanted = True
        self._wake()

    async def catch_up(self) -> None:
        """Looks at everything below the root; returns when all that is final is placed."""
        caught_up = self._caught_up
        self.rescan()
        await caught_up.wait()

    def was_connected(self, at_ms: int) -> None:
        """Says when its source was first connected; see `connect`, without which it asks itself."""
        self._connected_ms = at_ms

    @abstractmethod
    def status(self) -> TailStatus:
        """Returns how far it is."""

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follows until cancelled; the first scan goes on behind what changes meanwhile."""
        with DeadlineTimer(lambda: datetime.now(UTC)) as self._timer:
            task_status.started()
            while True:
                await self.deal_with_all()
                if await self._timer.wait_until(self._deadline()) is Wake.CLOCK_SET:
                    self._scan_wanted = True  # the machine slept, and events with it

    async def deal_with_all(self) -> None:
        """Does all that is due now, and returns."""
        if not self._connected_ms:
            await connect(self._store, [self])
        while await self._do_next():
            pass
        self._caught_up.set()
        self._caught_up = anyio.Event()

    @abstractmethod
    async def _do_next(self) -> bool:
        """Does the next thing that is due; False where nothing is."""

    @abstractmethod
    def _moments(self) -> list[float]:
        """Returns when something will be due, in seconds since 1970."""

    def _deadline(self) -> datetime | None:
        moments = self._moments()
        return datetime.fromtimestamp(min(moments), UTC) if moments else None

    def _wake(self) -> None:
        if self._timer is not None:
            self._timer.set_changed()

    def _rest_after(self, spent_seconds: float) -> float:
        longest = max(spent_seconds, _UNNOTICED_REST_SECONDS)
        return min(self._rest_per_work * spent_seconds, longest)

    def _tell_of_scan(self, event: str, **counts: int) -> None:
        """Logs what a look at everything found; an agent that is not installed is no news."""
        tell = log.info if any(counts.values()) else log.debug
        tell(event, agent=self.agent, **counts)

    def _failed(self, what: str, error: Exception) -> float:
        """Notes why something can't be followed; returns when to try it again.

        It is logged when it fails first, or for another reason, and not at each try.
        """
        reason = error.message if isinstance(error, TurnmarkError) else _sentence(error)
        if self._failures.note(what, reason, time.time()):
            log.warning("transcript_not_followed", session=what, reason=reason)
        return self._failures.next_try(what)

    @property
    def _last_error(self) -> str | None:
        last = self._failures.last
        return None if last is None else last.reason

    @property
    def _next_try(self) -> str | None:
        last = self._failures.last
        return None if last is None else to_rfc3339(round(last.next_try * 1000))


async def connect(store: SessionStore, tails: Collection[Tail]) -> None:
    """Tells tails when their sources were first connected, which is now for new ones.

    All in one commit, and in none where no source is new.
    """
    agents = {tail.agent for tail in tails}
    known = await store.read(connected_sources)
    if not agents <= known.keys():
        known = await store.write(partial(connect_sources, agents=agents))
    for tail in tails:
        tail.was_connected(known[tail.agent])


def _sentence(error: Exception) -> str:
    name = os.fsdecode(getattr(error, "filename", None) or "a transcript")
    return f"{name} can't be read: {getattr(error, 'strerror', None) or error}"
