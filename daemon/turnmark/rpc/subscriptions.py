"""Events on the wire: `events.subscribe` and `events.unsubscribe` over the bus."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

import msgspec

from turnmark.rpc.dispatch import Call, Method, Send
from turnmark.rpc.messages import failure_of
from turnmark_events import Bus, Subscription
from turnmark_events.errors import NotFound, TurnmarkError

# SQLite's largest number: no event has a later one.
_LAST_SEQ = (1 << 63) - 1


class Subscribe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`events.subscribe`: None means all types, all sessions, from now on."""

    types: list[str] | None = None
    session: str | None = None
    since: Annotated[int, msgspec.Meta(ge=0, le=_LAST_SEQ)] | None = None
    policy: Literal["lossless", "coalesce"] = "lossless"


class Unsubscribe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`events.unsubscribe`."""

    subscription: str


def subscription_methods(bus: Bus) -> Mapping[str, Method[Any]]:
    """Returns the two methods over `bus`.

    The subscription ends with its connection. If it ends by itself (the table dropped what the
    client had yet to see), the client gets a notification `events.ended` with the error.
    """
    numbers = itertools.count(1)

    async def subscribe(params: Subscribe, call: Call) -> dict[str, Any]:
        key = f"sub-{next(numbers)}"
        subscription = bus.subscribe(
            name=f"{call.connection}/{key}",
            types=params.types,
            session=params.session,
            policy=params.policy,
            since=params.since,
        )
        await subscription.open()
        call.open_stream(key, partial(_pump, key, subscription), subscription.close)
        return {"subscription": key, "seq": subscription.seq}

    async def unsubscribe(params: Unsubscribe, call: Call) -> dict[str, Any]:
        if not call.close_stream(params.subscription):
            raise NotFound(
                f"this connection has no subscription {params.subscription[:100]!r}",
                subscription=params.subscription[:100],
            )
        return {}

    return {
        "events.subscribe": Method(params=Subscribe, call=subscribe),
        "events.unsubscribe": Method(params=Unsubscribe, call=unsubscribe),
    }


async def _pump(key: str, subscription: Subscription, send: Send) -> None:
    try:
        async for event in subscription:
            await send("event", {"subscription": key, "event": event})
    except TurnmarkError as error:
        await send("events.ended", {"subscription": key, "error": failure_of(error)})
