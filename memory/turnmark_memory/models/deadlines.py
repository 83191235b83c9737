"""How long each step of asking a model may take."""

from __future__ import annotations

from typing import Final

import msgspec

# A server that is there accepts a connection at once; one across the world in some seconds.
_CONNECT_SECONDS: Final = 10.0

# Once an answer has begun it is on its way: some APIs send blank lines meanwhile.
_STALL_SECONDS: Final = 60.0


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines of one answer, each counted from where its step begins.

    `first_byte_seconds` counts from the connection to the answer's first byte; an API that is not
    asked to stream sends it when the model is done. `stall_seconds` is the longest pause inside an
    answer. `total_seconds` bounds everything.
    """

    connect_seconds: float
    first_byte_seconds: float
    stall_seconds: float
    total_seconds: float


def deadlines_within(total_seconds: float) -> Deadlines:
    """Returns the deadlines for an answer that may take so long in all."""
    return Deadlines(
        connect_seconds=min(_CONNECT_SECONDS, total_seconds),
        first_byte_seconds=total_seconds,
        stall_seconds=min(_STALL_SECONDS, total_seconds),
        total_seconds=total_seconds,
    )
