"""Moments in the records of other programs: numbers of seconds or milliseconds, or written times.

What can't be when something was said is none: no number, zero and before, not a number of this
world, beyond the year 9999.
"""

from __future__ import annotations

from typing import Any

from turnmark_session_store.times import from_rfc3339, to_rfc3339
from turnmark_session_store.transcripts.fields import normal_time

_LATEST_MS = 253_402_300_799_999
# As seconds the year 5138, as milliseconds March 1973: nothing was said to a program on that side.
_MILLISECONDS_FROM = 100_000_000_000


def moment_ms(value: Any, *, seconds: bool = False) -> int | None:
    """Returns a moment in milliseconds since 1970, None if it can't be one.

    With `seconds`, a number that is too small for milliseconds counts as seconds.
    """
    if isinstance(value, str):
        written = normal_time(value)
        value = None if written is None else from_rfc3339(written)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if not 0 < value <= _LATEST_MS:
        return None
    return round(value * 1_000 if seconds and value < _MILLISECONDS_FROM else value)


def written_time(at_ms: int | None) -> str | None:
    """Returns milliseconds since 1970 as RFC 3339 in UTC."""
    return None if at_ms is None else to_rfc3339(at_ms)
