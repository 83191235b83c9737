"""How numbers, times, speakers and sources read in the answers of commands."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

Fields = Mapping[str, Any]


def count(number: int, noun: str) -> str:
    """Returns `1 turn`, `1,200 turns`; a noun that ends in `ch` takes `es`."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def local_time(moment: str | None) -> str:
    """Returns an RFC 3339 time to the minute in local time; what is no time comes back as it is."""
    if not moment:
        return ""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):
        return moment


def speaker(said: Any) -> str:
    """Returns a speaker as `Dana (u-17)`, from a name alone or from `{id, name}`."""
    if not isinstance(said, Mapping):
        return str(said or "")
    fields: Fields = said  # pyright: ignore[reportUnknownVariableType] # decoded JSON
    name, identity = fields.get("name"), fields.get("id")
    return f"{name} ({identity})" if name and identity else str(name or identity or "")


def source(fields: Fields) -> str:
    """Returns where a source stands and who said it when, on one line."""
    place = fields.get("path") or ""
    if place and fields.get("line") is not None:
        place = f"{place}:{fields['line']}"
    parts = (
        speaker(fields.get("speaker")),
        local_time(fields.get("time")),
        str(fields.get("session") or ""),
        place,
    )
    return " · ".join(part for part in parts if part)


def plain(value: Any) -> str:
    """Returns any JSON value as a person reads it: `yes`, `1,200`, `a, b`, `name: 3`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        items: Fields = value  # pyright: ignore[reportUnknownVariableType] # decoded JSON
        return ", ".join(f"{key}: {plain(item)}" for key, item in items.items()) or "-"
    if isinstance(value, list):
        listed: list[Any] = value  # pyright: ignore[reportUnknownVariableType] # decoded JSON
        # Facts of one are parted by commas already.
        between = "; " if any(isinstance(item, Mapping) for item in listed) else ", "
        return between.join(plain(item) for item in listed) or "-"
    return str(value)
