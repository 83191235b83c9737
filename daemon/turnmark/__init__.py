"""turnmark: a memory daemon for AI agents, and the clients that speak to it.

`connect` is for asynchronous programs, `connect_sync` for the rest; both find the daemon by
themselves. What they raise is a `TurnmarkError`. The process starts in `main.py`.
"""

from typing import TYPE_CHECKING

from turnmark_events.lazy_exports import exported_lazily

if TYPE_CHECKING:
    from turnmark.client import EventStream, Memory, connect
    from turnmark.client_sync import SyncClient, SyncEventStream, connect_sync
    from turnmark.errors import (
        BadRequest,
        Busy,
        Conflict,
        ConnectionLost,
        DaemonFailed,
        DaemonNotRunning,
        Forgotten,
        Gone,
        NotFound,
        Refused,
        Stale,
        TurnmarkError,
        Unavailable,
    )
else:
    __getattr__ = exported_lazily(
        __name__,
        {
            "client": "EventStream Memory connect",
            "client_sync": "SyncClient SyncEventStream connect_sync",
            "errors": "BadRequest Busy Conflict ConnectionLost DaemonFailed DaemonNotRunning"
            " Forgotten Gone NotFound Refused Stale TurnmarkError Unavailable",
        },
    )

__all__ = [
    "BadRequest",
    "Busy",
    "Conflict",
    "ConnectionLost",
    "DaemonFailed",
    "DaemonNotRunning",
    "EventStream",
    "Forgotten",
    "Gone",
    "Memory",
    "NotFound",
    "Refused",
    "Stale",
    "SyncClient",
    "SyncEventStream",
    "TurnmarkError",
    "Unavailable",
    "connect",
    "connect_sync",
]
