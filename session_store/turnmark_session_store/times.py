"""Times at the store's border: RFC 3339 text outside, whole milliseconds UTC inside."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache

from turnmark_events.errors import Refused

_MS = 1_000
_EARLIEST_MS = -62_135_596_800_000
_LATEST_MS = 253_402_300_799_999


def now_ms() -> int:
    """Returns the wall clock in milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def to_rfc3339(at_ms: int) -> str:
    """Returns `at_ms` as `2026-08-09T14:02:00.000Z`."""
    return f"{_to_second(at_ms // _MS)}.{at_ms % _MS:03d}Z"


@lru_cache(maxsize=64)
def _to_second(at: int) -> str:
    return datetime.fromtimestamp(at, tz=UTC).isoformat()[:19]


def to_datetime(at_ms: int) -> datetime:
    """Returns `at_ms` as an aware datetime in UTC."""
    return datetime.fromtimestamp(at_ms // _MS, tz=UTC).replace(microsecond=at_ms % _MS * 1_000)


def from_rfc3339(text: str) -> int:
    """Returns the milliseconds since 1970 of an RFC 3339 time; one without offset counts as UTC.

    Raises:
        Refused: if `text` is no such time or lies outside the years 1 to 9999.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        at_ms = round(moment.timestamp() * _MS)
    except (ValueError, OverflowError) as error:
        raise Refused(
            f"{text!r} is not a time; write RFC 3339, such as 2026-08-09T14:02:00Z"
        ) from error
    if not _EARLIEST_MS <= at_ms <= _LATEST_MS:
        raise Refused(f"the time {text!r} is out of range; years 1 to 9999 are known")
    return at_ms
