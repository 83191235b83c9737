"""Batches for tests of writers that ask a model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from turnmark_memory.model import Batch, Evidence, ShownBlock

START = datetime(2026, 8, 9, 14, 2, tzinfo=UTC)


def turn(text: str, number: int = 1, **more: Any) -> Evidence:
    """Returns the turn of that number; labels and ids follow from it."""
    fields: dict[str, Any] = {
        "key": number,
        "namespace": "claude-code",
        "id": f"id-{number}",
        "label": f"s-{number:012x}",
        "session": "s",
        "agent": "claude-code",
        "project": "/home/robin/demo",
        "role": "user",
        "speaker_id": None,
        "speaker_name": None,
        "time": START + timedelta(minutes=number),
        "text": text,
        "tokens": len(text.split()),
    }
    return Evidence(**fields | more)


def block(number: int, text: str, *cites: str, topic: str = "people/dana") -> ShownBlock:
    """Returns a block as a writer is shown it."""
    return ShownBlock(
        block=f"b-{number:08x}",
        topic=topic,
        heading=None,
        text=text,
        cites=cites or ("s-ffffffffffff",),
        hash="h",
    )


def batch(
    *turns: str | Evidence,
    blocks: Sequence[ShownBlock] = (),
    topics: Sequence[tuple[str, str]] = (),
) -> Batch:
    """Returns a batch; texts become turns of their own."""
    made = [
        turn(one, number) if isinstance(one, str) else one
        for number, one in enumerate(turns, start=1)
    ]
    return Batch(turns=tuple(made), blocks=tuple(blocks), topics=tuple(topics))
