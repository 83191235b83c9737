"""Which compressed rollouts are not read."""

from __future__ import annotations

from pathlib import Path

from turnmark_session_store.transcripts.codex.compressed import compressed_below


def test_finds_those_that_nobody_has_decompressed(tmp_path: Path) -> None:
    """In every directory below; places that are not there hold none."""
    day = tmp_path / "sessions" / "2026" / "08"
    day.mkdir(parents=True)
    for name in ("a.jsonl", "a.jsonl.zst", "会话.jsonl.zst", "b.zst", "c.jsonl"):
        (day / name).write_bytes(b"")
    found = compressed_below([tmp_path / "sessions", tmp_path / "archived_sessions"])
    assert list(found) == [day / "会话.jsonl.zst"]
