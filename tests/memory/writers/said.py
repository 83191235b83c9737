"""Turns, batches and shown blocks for the tests of the built-in writer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from turnmark_memory.model import Add, Batch, Edits, Evidence, Retire, Revise, ShownBlock
from turnmark_memory.writers.builtin import BuiltinWriter

MONDAY = datetime(2026, 10, 5, 9, tzinfo=UTC)


def turn(text: str, number: int = 1, **changes: Any) -> Evidence:
    """Returns a user's turn of Robin, with `changes`."""
    fields: dict[str, Any] = {
        "key": number,
        "namespace": "test",
        "id": f"t{number}",
        "label": f"s-{number:012x}",
        "session": "one",
        "agent": "test",
        "project": None,
        "role": "user",
        "speaker_id": "u-17",
        "speaker_name": "Robin",
        "time": MONDAY + timedelta(minutes=number),
        "text": text,
        "tokens": 10,
    }
    if changes.get("role") == "assistant":
        fields |= {"speaker_id": None, "speaker_name": None}
    return Evidence(**fields | changes)


def talk(*lines: str, project: str | None = None, first: int = 1) -> tuple[Evidence, ...]:
    """Returns the turns of lines like `Robin: I prefer tea.`; `A` is the assistant, `U` unnamed."""
    turns: list[Evidence] = []
    for number, line in enumerate(lines, first):
        who, text = line.split(": ", 1)
        name = None if who in "AU" else who
        turns.append(
            turn(
                text,
                number,
                role="assistant" if who == "A" else "user",
                speaker_name=name,
                speaker_id=name and name.lower(),
                project=project,
            )
        )
    return tuple(turns)


def batch(*turns: Evidence, blocks: tuple[ShownBlock, ...] = (), topics: Any = ()) -> Batch:
    return Batch(turns=turns, blocks=blocks, topics=topics)


def shown(
    text: str, *cites: str, topic: str = "people/robin", block: str = "b-af3dee4f"
) -> ShownBlock:
    return ShownBlock(block=block, topic=topic, heading="Facts", text=text, cites=cites, hash="h1")


def edits_of(asked: Batch) -> tuple[Any, ...]:
    answer = BuiltinWriter().distil(asked)
    return answer.edits if isinstance(answer, Edits) else ()


def adds_of(asked: Batch) -> list[Add]:
    return [edit for edit in edits_of(asked) if isinstance(edit, Add)]


def retired_of(asked: Batch) -> list[Retire]:
    return [edit for edit in edits_of(asked) if isinstance(edit, Retire)]


def revised_of(asked: Batch) -> list[Revise]:
    return [edit for edit in edits_of(asked) if isinstance(edit, Revise)]


def texts_of(*turns: Evidence) -> list[str]:
    return [add.text for add in adds_of(batch(*turns))]
