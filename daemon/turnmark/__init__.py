"""turnmark: a memory daemon for AI agents, and the clients that speak to it.

`connect` is for asynchronous programs, `connect_sync` for the rest; both find the daemon by
themselves. The process starts in `main.py`.
"""

from turnmark.client import EventStream, Memory, connect
from turnmark.client_sync import SyncClient, SyncEventStream, connect_sync
from turnmark.errors import BadRequest, ConnectionLost, DaemonFailed, DaemonNotRunning

__all__ = [
    "BadRequest",
    "ConnectionLost",
    "DaemonFailed",
    "DaemonNotRunning",
    "EventStream",
    "Memory",
    "SyncClient",
    "SyncEventStream",
    "connect",
    "connect_sync",
]
