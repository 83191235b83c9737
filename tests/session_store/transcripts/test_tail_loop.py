"""Tests of `session_store/transcripts/tail_loop.py`: what all tails of a daemon do together."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_store.stage import Stage
from session_store.transcripts.note_database import NoteReader
from turnmark_session_store.transcripts.checkpoints import connected_sources
from turnmark_session_store.transcripts.claude_code.live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.pi.live import PiLiveReader
from turnmark_session_store.transcripts.tail import TranscriptTail
from turnmark_session_store.transcripts.tail_loop import Tail, connect


def tails_of(stage: Stage, root: Path) -> list[Tail]:
    """Tails of three agents, none of whom has anything to follow."""
    return [
        TranscriptTail(stage.store, ClaudeCodeLiveReader(), root),
        TranscriptTail(stage.store, PiLiveReader(), root),
        DatabaseTail(stage.store, NoteReader(), root),
    ]


@pytest.mark.anyio
async def test_all_sources_are_connected_in_one_commit_and_only_once(
    stage: Stage, tmp_path: Path
) -> None:
    """A start that finds them connected commits nothing, whether they are told or ask."""
    stage.clock.at_ms = 1_786_269_606_000
    await connect(stage.store, tails_of(stage, tmp_path))
    assert stage.store.statistics()["requests"] == 1
    known = await stage.store.read(connected_sources)
    assert (len(known), len(set(known.values()))) == (3, 1)
    stage.clock.at_ms += 1_000
    again = tails_of(stage, tmp_path)
    await connect(stage.store, again)
    for tail in (*again, *tails_of(stage, tmp_path)):
        await tail.deal_with_all()
    assert stage.store.statistics()["requests"] == 1
    assert await stage.store.read(connected_sources) == known
