"""Turns and blocks for tests of the index and of recall."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from turnmark_memory.index_schema import BlockDoc, TurnDoc

START = datetime(2026, 8, 9, 14, 2, tzinfo=UTC)


def turn(
    label: str,
    text: str,
    position: int = 0,
    *,
    session: str = "s1",
    speaker: str | None = "Dana",
    role: str = "user",
    project: str | None = None,
    day: int = 0,
) -> TurnDoc:
    """Returns a turn whose id is its label."""
    return TurnDoc(
        label=label,
        namespace="claude-code",
        id=f"id-{label}",
        session=session,
        agent="claude-code",
        project=project,
        role=role,
        speaker_id=None if speaker is None else f"u-{speaker.casefold()}",
        speaker_name=speaker,
        time=START + timedelta(days=day, minutes=position),
        text=text,
        path=f"sources/claude-code/{session}.jsonl",
        line=position + 1,
        position=position,
    )


def block(
    name: str,
    text: str,
    *cites: str,
    topic: str = "people/dana",
    superseded_by: str | None = None,
    aliases: tuple[str, ...] = (),
) -> BlockDoc:
    """Returns a block of a topic."""
    return BlockDoc(
        block=name,
        topic=topic,
        text=text,
        cites=cites,
        superseded_by=superseded_by,
        superseded_on=None if superseded_by is None else "2026-08-10",
        aliases=aliases,
    )
