"""The bus: hands every committed event, in one total order, to all who subscribed.

It lives on the event loop's thread and holds nothing that the table does not hold: if everything
in flight here were lost, each subscriber could read on from the table by `seq`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import structlog

from turnmark_events.errors import Refused
from turnmark_events.subscription import Policy, Replay, SubscriberStatistics, Subscription
from turnmark_events.types import (
    EVENT_NAMES,
    CoreRebuilt,
    Event,
    Forgotten,
    Lagged,
    NightDone,
    TipIdle,
    TipMoved,
    TurnsWritten,
)

# About 5 MB of events for a subscriber that stopped reading; a worker that is this far behind has
# stopped, not slowed down.
HIGH_WATER_EVENTS = 10_000

_CLASSES: dict[str, type[Event]] = {
    cls.__name__: cls
    for cls in (TipMoved, TipIdle, TurnsWritten, CoreRebuilt, NightDone, Forgotten, Lagged)
}


class BusStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """How much was published since the start, and who listens."""

    last_seq: int
    published: int
    out_of_order: int
    subscribers: tuple[SubscriberStatistics, ...]


class Bus:
    """Publishes events to subscriptions; used on one thread only, the event loop's.

    `replay(after, limit)` returns the stored events with seq > `after`, oldest first, at most
    `limit`, and raises `Gone` if `after` is older than what is kept. Whatever was published must
    be in the table already. `high_water` bounds each subscriber's queue.
    """

    def __init__(
        self,
        *,
        replay: Replay,
        last_seq: int = 0,
        high_water: int = HIGH_WATER_EVENTS,
        log: structlog.typing.FilteringBoundLogger | None = None,
    ) -> None:
        self._replay = replay
        self._last_seq = last_seq
        self._high_water = high_water
        self._log: structlog.typing.FilteringBoundLogger = log or structlog.get_logger(__name__)
        # A tuple, so that a subscriber may come or go while one event is being offered.
        self._subscriptions: tuple[Subscription, ...] = ()
        self._published = self._out_of_order = 0

    @property
    def last_seq(self) -> int:
        """The seq of the newest published event; at the start, what the table ended with."""
        return self._last_seq

    @property
    def replay(self) -> Replay:
        """The reader of the table."""
        return self._replay

    def publish(self, events: Sequence[Event]) -> None:
        """Offers committed events to every subscriber. Never waits, never raises.

        An event whose seq does not increase is logged as an error and dropped here; it is still
        in the table, and marks decide what is owed.
        """
        for event in events:
            if event.seq <= self._last_seq:
                self._out_of_order += 1
                self._log.error(
                    "event_out_of_order",
                    seq=event.seq,
                    last_seq=self._last_seq,
                    type=type(event).__name__,
                )
                continue
            self._last_seq = event.seq
            self._published += 1
            for subscription in self._subscriptions:
                subscription.offer(event)

    def subscribe(
        self,
        *,
        name: str,
        types: Collection[str] | None = None,
        session: str | None = None,
        policy: Policy = "lossless",
        since: int | None = None,
    ) -> Subscription:
        """Returns a subscription that starts after its `seq`; enter it to receive.

        `types` and `session` None mean all; an event that belongs to no session is not delivered
        where a session is asked for. `Lagged` is always delivered. `since` is exclusive: None is
        now, 0 the oldest kept.

        Raises:
            Refused: if `types` names an unknown type, is empty, or `since` is negative.
        """
        if since is not None and since < 0:
            raise Refused(f"`since` is {since}: it must be 0 or a seq that was delivered")
        return Subscription(
            self,
            name=name,
            policy=policy,
            types=_classes_of(types),
            session=session,
            since=since,
            high_water=self._high_water,
        )

    def attach(self, subscription: Subscription) -> None:
        """Begins offering events to `subscription`. Called by the subscription itself."""
        self._subscriptions = (*self._subscriptions, subscription)

    def detach(self, subscription: Subscription) -> None:
        """Stops offering events to `subscription`. Called by the subscription itself."""
        self._subscriptions = tuple(s for s in self._subscriptions if s is not subscription)

    def statistics(self) -> BusStatistics:
        """Returns what was published and how each subscriber keeps up."""
        return BusStatistics(
            last_seq=self._last_seq,
            published=self._published,
            out_of_order=self._out_of_order,
            subscribers=tuple(s.statistics() for s in self._subscriptions),
        )


def _classes_of(types: Collection[str] | None) -> frozenset[type[Event]] | None:
    if types is None:
        return None
    unknown = sorted(set(types) - set(EVENT_NAMES))
    if unknown or not types:
        wrong = f"unknown event type {', '.join(unknown)}" if unknown else "`types` is empty"
        raise Refused(f"{wrong}: the types are {', '.join(EVENT_NAMES)}", unknown=unknown)
    return frozenset(_CLASSES[name] for name in types)
