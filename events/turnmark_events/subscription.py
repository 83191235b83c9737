"""One subscriber's view of the bus: a bounded queue of live events, and the table behind it.

A subscription is in one of two modes. *Live*: what is published is queued here. *Behind*: nothing
is queued; pages are read from the table until the newest published event is reached, and then it
is live again. The step from behind to live happens between two awaits of one thread, so no event
falls between the table and the queue, and none comes from both.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol, Self

import anyio
import msgspec
import structlog

from turnmark_events.errors import Busy, Gone, Refused
from turnmark_events.types import Event, Lagged, TipMoved

Policy = Literal["lossless", "coalesce", "disconnect"]
Replay = Callable[[int, int], Awaitable[Sequence[Event]]]
_Key = int | tuple[str, str]

# One page from the table: large enough that the query's fixed cost vanishes, small enough that a
# thousand subscribers catching up at once hold only tens of megabytes.
REPLAY_PAGE = 500

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class SubscriberStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What one subscriber has done so far.

    `queued` events wait in memory, `lagged` is how often the subscriber fell behind.
    """

    name: str
    policy: Policy
    seq: int
    behind: bool
    queued: int
    delivered: int
    coalesced: int
    lagged: int


class Source(Protocol):
    """What a subscription needs of its bus."""

    @property
    def last_seq(self) -> int:
        """The newest published seq."""
        ...

    @property
    def replay(self) -> Replay:
        """Reads the table."""
        ...

    def attach(self, subscription: Subscription) -> None:
        """Begins offering events to it."""
        ...

    def detach(self, subscription: Subscription) -> None:
        """Stops offering events to it."""
        ...


class Subscription:
    """An async iterator of events for one consumer task.

    Open inside `async with`, or between `open` and `close`.

    Delivered seqs strictly increase; a `Lagged` repeats the seq of the event before it. Waiting
    for an event may be cancelled at any point without losing one.
    """

    def __init__(
        self,
        source: Source,
        *,
        name: str,
        policy: Policy,
        types: frozenset[type[Event]] | None,
        session: str | None,
        since: int | None,
        high_water: int,
    ) -> None:
        self.name = name
        self.policy: Policy = policy
        self.seq = source.last_seq if since is None else since
        self._source = source
        self._types = types
        self._session = session
        self._since = since
        self._high_water = high_water
        self._pending: OrderedDict[_Key, Event] = OrderedDict()
        # Moves that were merged in memory when the queue was dropped: their first `old` lies
        # before the place from which the table is read again.
        self._carried: dict[_Key, TipMoved] = {}
        self._read = self.seq  # everything up to here was delivered, is pending, or is filtered out
        self._last = self.seq  # the seq of the last delivered event
        self._behind = True
        self._open = False
        self._failure: Busy | None = None
        self._lag_due = False
        self._waiting: anyio.Event | None = None
        self._delivered = self._coalesced = self._lagged = 0

    async def __aenter__(self) -> Self:
        """Opens, see `open`."""
        await self.open()
        return self

    async def open(self) -> None:
        """Begins to receive; nothing after `seq` is missed, whenever this is called.

        Raises:
            Gone: if `since` is older than what the table keeps; `oldest` says what it keeps.
            Refused: if `since` is newer than anything that has happened.
        """
        if self._since is not None and self._since != self._source.last_seq:
            await self._find_start()
        self._open = True
        self._behind = self._read < self._source.last_seq
        self._source.attach(self)

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the iteration, also for a task that waits in it; closing twice is harmless."""
        self._open = False
        self._source.detach(self)
        self._pending.clear()
        self._carried.clear()
        self._wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Returns the next event, waiting for it.

        Raises:
            Busy: if the policy is `disconnect` and the queue ran over; `last` is where to resume.
            Gone: if the table no longer holds what this subscriber has yet to see.
        """
        while self._open:
            if self._failure is not None:
                raise self._failure
            if self._lag_due:
                self._lag_due = False
                return Lagged(seq=self._last, at=_now(), last=self._last)
            if self._pending:
                _, event = self._pending.popitem(last=False)
                self._last = event.seq
                self._delivered += 1
                return event
            await (self._read_page() if self._behind else self._wait())
        raise StopAsyncIteration

    def offer(self, event: Event) -> None:
        """Takes a published event, if it is wanted; never waits. Called by the bus."""
        if self._behind or event.seq <= self._read:
            return
        self._read = event.seq
        if not self._wants(event):
            return
        self._queue(event)
        if len(self._pending) > self._high_water:
            self._fall_behind()
        self._wake()

    def statistics(self) -> SubscriberStatistics:
        """Returns the counters of this subscriber."""
        return SubscriberStatistics(
            name=self.name,
            policy=self.policy,
            seq=self._last,
            behind=self._behind,
            queued=len(self._pending),
            delivered=self._delivered,
            coalesced=self._coalesced,
            lagged=self._lagged,
        )

    async def _find_start(self) -> None:
        if self.seq > self._source.last_seq:
            # A client may have seen an event through the table before the bus published it.
            if not await self._source.replay(self.seq - 1, 1):
                raise Refused(
                    f"seq {self.seq} has not happened yet, the last is {self._source.last_seq}: "
                    "subscribe without `since`, or with 0 for all that is kept",
                    last=self._source.last_seq,
                )
        elif self.seq > 0:
            await self._source.replay(self.seq, 1)  # only to hear that it is gone

    async def _read_page(self) -> None:
        newest = self._source.last_seq
        page = await self._replay_after(self._read, min(REPLAY_PAGE, self._high_water))
        for event in page:
            if event.seq > self._read:
                self._read = event.seq
                if self._wants(event):
                    self._queue(event)
        # The table holds all that is published, so an empty page proves that nothing up to
        # `newest` is missing; what was published while it was read needs another page.
        if not page:
            self._read = max(self._read, newest)
        if self._read >= self._source.last_seq:
            self._behind = False
            self._carried.clear()

    async def _replay_after(self, after: int, limit: int) -> Sequence[Event]:
        try:
            return await self._source.replay(after, limit)
        except Gone as gone:
            oldest = gone.facts.get("oldest")
            if after == 0 and self._since == 0 and isinstance(oldest, int):
                return await self._source.replay(oldest - 1, limit)
            raise

    async def _wait(self) -> None:
        if self._waiting is not None:
            message = f"subscription {self.name!r} is already being read by another task"
            raise RuntimeError(message)
        self._waiting = anyio.Event()
        try:
            await self._waiting.wait()
        finally:
            self._waiting = None

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.set()

    def _wants(self, event: Event) -> bool:
        if self._types is not None and type(event) not in self._types:
            return False
        return self._session is None or getattr(event, "session", None) == self._session

    def _queue(self, event: Event) -> None:
        if self.policy != "coalesce" or not isinstance(event, TipMoved):
            self._pending[event.seq] = event
            return
        key = (event.session, event.branch)
        first = self._pending.pop(key, None) or self._carried.pop(key, None)
        if isinstance(first, TipMoved):
            self._coalesced += 1
            event = msgspec.structs.replace(event, old=first.old, head_old=first.head_old)
        self._pending[key] = event

    def _fall_behind(self) -> None:
        first = next(iter(self._pending.values()))
        self._lagged += 1
        log.warning(
            "subscriber_lagged",
            subscriber=self.name,
            policy=self.policy,
            queued=len(self._pending),
            last=self._last,
        )
        if self.policy == "disconnect":
            self._failure = Busy(
                f"subscriber {self.name!r} was disconnected: more than {self._high_water} events "
                f"waited for it; subscribe again with since={self._last}",
                last=self._last,
            )
            self._source.detach(self)
        else:
            moves = {k: e for k, e in self._pending.items() if isinstance(k, tuple)}
            self._carried.update((k, e) for k, e in moves.items() if isinstance(e, TipMoved))
            self._read = first.seq - 1
            self._behind = self._lag_due = True
        self._pending.clear()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
