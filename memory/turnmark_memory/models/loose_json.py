"""JSON of unknown shape, looked at piece by piece: nothing of it is what it should be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast


def object_in(value: Any) -> dict[str, Any]:
    """Returns a JSON object, an empty one for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_in(value: Any) -> list[Any]:
    """Returns a JSON array, an empty one for anything else."""
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []
