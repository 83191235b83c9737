"""Takes fields of a type out of records in which anything may stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast


def mapping_at(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Returns the object at a key, an empty one where none is."""
    value = record.get(key)
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def list_at(record: Mapping[str, Any], key: str) -> Sequence[Any]:
    """Returns the list at a key, an empty one where none is."""
    value = record.get(key)
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def mappings_in(value: Any) -> list[Mapping[str, Any]]:
    """Returns the objects in a list; what is no list has none."""
    if not isinstance(value, list):
        return []
    items = cast("Sequence[Any]", value)
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def string_at(record: Mapping[str, Any], key: str) -> str | None:
    """Returns the string at a key, None where none is or an empty one."""
    value = record.get(key)
    return value if isinstance(value, str) and value else None


def count_at(record: Mapping[str, Any], key: str) -> int | None:
    """Returns the whole number at a key that is not negative, None where none is."""
    value = record.get(key)
    is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if is_count else None


def normal_time(value: Any) -> str | None:
    """Returns a timestamp as RFC 3339 in UTC to the microsecond at most, or None if it is none."""
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
        aware = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    precision = "microseconds" if aware.microsecond % 1000 else "milliseconds"
    return aware.replace(tzinfo=None).isoformat(timespec=precision) + "Z"
