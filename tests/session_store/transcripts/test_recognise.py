"""Tests of `session_store/transcripts/recognise.py`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from session_store.transcripts.claude_records import user, write
from turnmark_events.errors import NotFound, Refused
from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.recognise import (
    Findings,
    FoundTranscripts,
    find_transcripts,
    is_export,
)

READERS = [ClaudeCodeReader()]


def _claude(path: Path) -> Path:
    return write(path, [{"type": "permission-mode"}, user("u1", None, 0, "I live in Bergen.")])


def _found(findings: Findings) -> dict[str, list[str]]:
    return {each.agent: [path.name for path in each.paths] for each in findings.found}


def test_directories_are_searched_through_and_named_files_recognised(tmp_path: Path) -> None:
    """Transcripts and exports by their content, in sorted order, each once."""
    second = _claude(tmp_path / "projects" / "b" / "2.jsonl")
    _claude(tmp_path / "projects" / "a" / "1.jsonl")
    export = write(tmp_path / "out.jsonl", [{"type": "turnmark-export", "version": 1}])
    findings = find_transcripts([second, tmp_path / "projects", export], readers=READERS)
    assert _found(findings) == {"claude-code": ["1.jsonl", "2.jsonl"], "turnmark": ["out.jsonl"]}
    assert findings.passed_over == ()


def test_other_files_in_directories_are_passed_over(tmp_path: Path) -> None:
    """Agents keep caches, notes and settings beside their transcripts."""
    _claude(tmp_path / "1.jsonl")
    notes = tmp_path / "memory" / "notes.md"
    notes.parent.mkdir()
    notes.write_text("# 笔记")
    index = write(tmp_path / "sessions-index.json", [{"entries": []}])
    findings = find_transcripts([tmp_path], readers=READERS)
    assert findings.passed_over == (notes, index)


def test_a_named_file_of_no_agent_is_refused_by_name(tmp_path: Path) -> None:
    """The message says what was expected."""
    path = write(tmp_path / "x.jsonl", [{"hello": 1}])
    with pytest.raises(Refused, match=r"x\.jsonl.*claude-code.*turnmark-export"):
        find_transcripts([path], readers=READERS)


def test_a_directory_with_nothing_to_import_is_refused(tmp_path: Path) -> None:
    """A wrong directory is said, not silently imported as nothing."""
    write(tmp_path / "d" / "x.jsonl", [{"hello": 1}])
    with pytest.raises(Refused, match=r"x\.jsonl"):
        find_transcripts([tmp_path / "d"], readers=READERS)


def test_empty_files_are_nobodys(tmp_path: Path) -> None:
    """An agent leaves files of no bytes; that is no error, named or not."""
    (tmp_path / "0.jsonl").touch()
    for paths in ([tmp_path], [tmp_path / "0.jsonl"]):
        assert find_transcripts(paths, readers=READERS) == Findings(found=(), passed_over=())


def test_links_in_directories_are_not_followed(tmp_path: Path) -> None:
    """Neither to files nor to directories; a pipe is not opened."""
    outside = _claude(tmp_path / "outside" / "o.jsonl")
    _claude(tmp_path / "in" / "i.jsonl")
    (tmp_path / "in" / "file.jsonl").symlink_to(outside)
    (tmp_path / "in" / "folder").symlink_to(outside.parent)
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    os.mkfifo(tmp_path / "in" / "pipe.jsonl")
    findings = find_transcripts([tmp_path / "in"], readers=READERS)
    assert _found(findings) == {"claude-code": ["i.jsonl"]}


def test_what_is_no_file_is_refused_and_what_is_not_there_not_found(tmp_path: Path) -> None:
    """Both name the path."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Refused, match="pipe"):
        find_transcripts([tmp_path / "pipe"], readers=READERS)
    with pytest.raises(NotFound, match="gone"):
        find_transcripts([tmp_path / "gone"], readers=READERS)


def test_a_named_agent_takes_named_files_and_filters_directories(tmp_path: Path) -> None:
    """`--agent` overrules what a named file looks like."""
    odd = write(tmp_path / "odd.jsonl", [{"hello": 1}])
    _claude(tmp_path / "d" / "1.jsonl")
    write(tmp_path / "d" / "2.jsonl", [{"type": "turnmark-export"}])
    findings = find_transcripts([odd, tmp_path / "d"], readers=READERS, agent="claude-code")
    assert _found(findings) == {"claude-code": ["1.jsonl", "odd.jsonl"]}
    with pytest.raises(Refused, match=r"nobody.*claude-code"):
        find_transcripts([odd], readers=READERS, agent="nobody")


def test_the_answer_is_a_value(tmp_path: Path) -> None:
    """Two looks at the same files are equal."""
    path = _claude(tmp_path / "1.jsonl")
    found = FoundTranscripts(agent="claude-code", paths=(path,))
    expected = Findings(found=(found,), passed_over=())
    assert find_transcripts([path, path], readers=READERS) == expected


@pytest.mark.parametrize(
    ("head", "is_ours"),
    [
        (b'{"type":"turnmark-export"}', True),
        (b'{"type":"turnmark-export","x":1}\n{"more"', True),
        (b'{"type":"session"}\n{"type":"turnmark-export"}', False),
        (b'["turnmark-export"]', False),
        (b"", False),
        (b"[" * 100_000, False),
    ],
)
def test_an_export_is_known_by_its_first_line(head: bytes, is_ours: bool) -> None:
    """And by nothing else."""
    assert is_export(head) is is_ours


@pytest.mark.parametrize(
    ("name", "line", "ours"),
    [
        ("a.jsonl", json.dumps(user("u", None, 0, "x")), True),
        ("a.jsonl", '{"type":"summary","summary":"S","leafUuid":"u"}', True),
        ("a.jsonl", '{"type":"file-history-snapshot","messageId":"m"}', True),
        ("a.jsonl", "\0\0" + json.dumps(user("u", None, 0, "x")), True),
        ("a.jsonl", json.dumps(user("u", None, 0, "x" * 400))[:-100], True),
        ("a.jsonl", '{"type":"session","id":"s","cwd":"/"}', False),
        ("a.jsonl", '{"type":"message","id":"m","parentId":null}', False),
        ("a.jsonl", '{"display":"hi","project":"/x","sessionId":"s"}', False),
        ("a.jsonl", "[1]", False),
        ("a.json", json.dumps(user("u", None, 0, "x")), False),
    ],
)
def test_claude_code_is_known_by_its_records(name: str, line: str, ours: bool) -> None:
    """Not by the place of the file; a head that ends inside a long line is enough."""
    assert ClaudeCodeReader().recognises(Path(name), line.encode()) is ours
