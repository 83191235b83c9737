"""The kinds of writers there are."""

from __future__ import annotations

from collections.abc import Callable

from turnmark_events.errors import Refused
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_memory.writers.writer import Writer

_MAKERS: dict[str, Callable[[], Writer]] = {"builtin": BuiltinWriter}

WRITER_KINDS: tuple[str, ...] = tuple(_MAKERS)


def make_writer(kind: str) -> Writer:
    """Returns a new writer of `kind`, one of `WRITER_KINDS`.

    Raises:
        Refused: if this version has no writer of that kind.
    """
    maker = _MAKERS.get(kind)
    if maker is None:
        message = f"There is no writer {kind!r}; set writer.kind to one of: {', '.join(_MAKERS)}."
        raise Refused(message, writer=kind)
    return maker()
