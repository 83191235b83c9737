"""What happened: typed events, and the bus that hands them to whoever subscribed.

Promises, order and what a slow subscriber costs are in `events/README.md`; open `types.py` next.
"""

from typing import TYPE_CHECKING

from turnmark_events.lazy_exports import exported_lazily

if TYPE_CHECKING:
    from turnmark_events.bus import Bus, BusStatistics
    from turnmark_events.subscription import Policy, Replay, SubscriberStatistics, Subscription
    from turnmark_events.types import (
        EVENT_NAMES,
        CoreRebuilt,
        Event,
        Forgotten,
        Lagged,
        MoveCause,
        NightDone,
        Outcome,
        TipIdle,
        TipMoved,
        TurnsWritten,
        decode_event,
        encode_event,
    )
else:
    __getattr__ = exported_lazily(
        __name__,
        {
            "bus": "Bus BusStatistics",
            "subscription": "Policy Replay SubscriberStatistics Subscription",
            "types": "EVENT_NAMES CoreRebuilt Event Forgotten Lagged MoveCause NightDone Outcome "
            "TipIdle TipMoved TurnsWritten decode_event encode_event",
        },
    )

__all__ = [
    "EVENT_NAMES",
    "Bus",
    "BusStatistics",
    "CoreRebuilt",
    "Event",
    "Forgotten",
    "Lagged",
    "MoveCause",
    "NightDone",
    "Outcome",
    "Policy",
    "Replay",
    "SubscriberStatistics",
    "Subscription",
    "TipIdle",
    "TipMoved",
    "TurnsWritten",
    "decode_event",
    "encode_event",
]
