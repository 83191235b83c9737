"""What a client can meet beyond the daemon's own errors, and how both look on the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turnmark_events.errors import (
    Busy,
    Conflict,
    Forgotten,
    Gone,
    NotFound,
    Refused,
    Stale,
    TurnmarkError,
    Unavailable,
)

__all__ = [
    "CODES",
    "BadRequest",
    "Busy",
    "Conflict",
    "ConnectionLost",
    "DaemonFailed",
    "DaemonNotRunning",
    "Forgotten",
    "Gone",
    "NotFound",
    "Refused",
    "Stale",
    "TurnmarkError",
    "Unavailable",
    "error_of",
]

CODES: dict[str, int] = {
    "not_found": -32001,
    "conflict": -32002,
    "stale": -32003,
    "busy": -32004,
    "refused": -32005,
    "unavailable": -32006,
    "gone": -32007,
    "forgotten": -32008,
}
_INTERNAL_CODE = -32603
_CLASSES: dict[int, type[TurnmarkError]] = {
    CODES[cls.kind]: cls
    for cls in (NotFound, Conflict, Stale, Busy, Refused, Unavailable, Gone, Forgotten)
}


class DaemonNotRunning(TurnmarkError):
    """No daemon answers; the message says how to start one."""

    kind = "not_running"

    def __init__(self, tried: Sequence[Path], others: Mapping[Path, str] | None = None) -> None:
        """`others` are those of the sockets where a daemon answers that serves another state."""
        named = (
            f"{path} serves another state, {others[path]}"
            if others and path in others
            else str(path)
            for path in tried
        )
        places = ", ".join(named) or "no socket is known"
        which, same = (" for this state", " with the same --state") if others else ("", "")
        super().__init__(
            f"no turnmark daemon answers{which} ({places}): start it with `turnmark serve`{same}, "
            "or let `turnmark setup service` start it with your session",
            tried=[str(path) for path in tried],
        )


class BadRequest(Refused):
    """The daemon did not understand the request; `facts` have the JSON-RPC `code`."""

    kind = "bad_request"


class DaemonFailed(TurnmarkError):
    """The daemon met a bug; its log has the cause under `facts["error_id"]`."""


class ConnectionLost(Unavailable):
    """The daemon closed the connection before it answered.

    Whether a write was done is not known: repeat it with the same `key`.
    """


def error_of(code: int, message: str, data: dict[str, Any] | None) -> TurnmarkError:
    """Returns the error that the daemon raised, from its answer."""
    facts = {name: value for name, value in (data or {}).items() if name not in _TAKEN}
    if code in _CLASSES:
        return _CLASSES[code](message, **facts)
    if code == _INTERNAL_CODE:
        return DaemonFailed(message, **facts)
    return BadRequest(message, **facts | {"code": code})


# Names that the constructor of an error has for itself.
_TAKEN = frozenset({"kind", "message", "self"})
