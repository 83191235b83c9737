"""The JSON schema of a model's answer to a batch, in the part of JSON schema that servers know.

Every object lists all its names as required and allows no others, as strict servers want it; what
may be left out is null instead.
"""

from __future__ import annotations

from typing import Any, Final

NAME: Final = "memory_edits"

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_MAYBE: Final[dict[str, Any]] = {"type": ["string", "null"]}
_TEXTS: Final[dict[str, Any]] = {"type": "array", "items": _TEXT}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _edit(op: str, **properties: dict[str, Any]) -> dict[str, Any]:
    return _object(op={"type": "string", "enum": [op]}, **properties)


_EDITS: Final = [
    _edit("add", topic=_TEXT, heading=_MAYBE, text=_TEXT, cites=_TEXTS),
    _edit("revise", block=_TEXT, text=_TEXT, cites=_TEXTS),
    _edit("retire", block=_TEXT, reason=_TEXT, successor=_MAYBE),
    _edit("move", block=_TEXT, topic=_TEXT, heading=_MAYBE),
    _edit("merge", blocks=_TEXTS, text=_TEXT, topic=_MAYBE, heading=_MAYBE),
    _edit(
        "split",
        block=_TEXT,
        parts={"type": "array", "items": _object(text=_TEXT, cites=_TEXTS)},
    ),
]

SCHEMA: Final = _object(edits={"type": "array", "items": {"anyOf": _EDITS}}, nothing=_MAYBE)
