"""Reads one file of Claude Code: its rows, and the facts about the session around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from turnmark_session_store.transcripts.claude_code.rows import Row, Words, read_row
from turnmark_session_store.transcripts.json_lines import read_json_lines
from turnmark_session_store.transcripts.reader import ReadWarning, is_within

_AGENT_PREFIX = "agent-"
_SUBAGENTS = "subagents"


@dataclass(kw_only=True, eq=False)
class TranscriptFile:
    """What one file holds. `session` is its own session; rows copied from others name theirs.

    `agent_id` is set for the file of a sub-agent, whose `session` is then the one that spawned it.
    """

    path: Path
    session: str
    agent_id: str | None
    rows: list[Row] = field(default_factory=list[Row])
    custom_title: str | None = None
    made_title: str | None = None
    summaries: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    last_prompt_leaf: str | None = None
    last_time: str = ""
    warnings: list[ReadWarning] = field(default_factory=list[ReadWarning])

    @property
    def project(self) -> str | None:
        """Returns the first working directory that a row names."""
        return next((row.cwd for row in self.rows if row.cwd), None)

    def is_within(self, directories: Sequence[Path]) -> bool:
        """Returns whether the session began in one of these directories."""
        return is_within(self.project, directories)


def read_file(path: Path) -> TranscriptFile:
    """Reads a finished transcript, line by line; blocks on disk.

    Raises:
        Unavailable: if the file cannot be read.
    """
    file = begin_file(path)
    for line, record in read_json_lines(path, warn=file.warnings.append):
        take_record(file, record, line)
    return as_it_stands(file)


def begin_file(path: Path) -> TranscriptFile:
    """Returns a transcript of which nothing is read yet."""
    return TranscriptFile(path=path, session=path.stem, agent_id=_agent_of(path))


def take_record(file: TranscriptFile, record: Mapping[str, Any], line: int) -> Row | None:
    """Adds the next record of a file; returns its row if it is part of the chain."""
    path = file.path
    row = read_row(record, file=str(path), line=line, session=path.stem, time=file.last_time)
    if row is None:
        _take_fact(file, record)
        return None
    # A row without a time was written after the one before it; that is all one can know.
    file.last_time = row.time or file.last_time
    file.rows.append(row)
    return row


def as_it_stands(file: TranscriptFile) -> TranscriptFile:
    """Returns the file with the session that its rows up to now say; it can be added to further."""
    if file.agent_id is None:
        return replace(file, session=_own_session(file.path, file.rows))
    copied = replace(file)
    _make_sub_agent(copied)
    return copied


def _take_fact(file: TranscriptFile, record: Mapping[str, Any]) -> None:
    match record:
        case {"type": "custom-title", "customTitle": str(title)}:
            file.custom_title = title
        case {"type": "ai-title", "aiTitle": str(title)} | {
            "type": "ai-title",
            "title": str(title),
        }:
            file.made_title = title
        case {"type": "summary", "summary": str(title), "leafUuid": str(leaf)}:
            file.summaries.append((leaf, title))
        case {"type": "last-prompt", "leafUuid": str(leaf)}:
            file.last_prompt_leaf = leaf
        case _:
            pass


def _own_session(path: Path, rows: Sequence[Row]) -> str:
    """Returns the session that the file is named after, else the one that was said there last."""
    if not rows or any(row.session == path.stem for row in rows):
        return path.stem
    return max(rows, key=lambda row: (row.time, row.line)).session


def _agent_of(path: Path) -> str | None:
    return path.stem.removeprefix(_AGENT_PREFIX) if path.stem.startswith(_AGENT_PREFIX) else None


def _make_sub_agent(file: TranscriptFile) -> None:
    """Puts all rows under the session that spawned the agent: by directory, else by the rows."""
    parts = file.path.parts
    own = f"{_AGENT_PREFIX}{file.agent_id}"
    if _SUBAGENTS in parts[1:]:
        file.session = parts[len(parts) - 1 - parts[::-1].index(_SUBAGENTS) - 1]
    else:
        named = (row.session for row in file.rows if row.session not in (own, file.path.stem))
        file.session = next(named, "")
    file.rows = [
        msgspec.structs.replace(
            row,
            session=file.session,
            sidechain=True,
            agent_id=row.agent_id or file.agent_id,
            words=_as_spoken_to_agent(row),
        )
        for row in file.rows
    ]


def _as_spoken_to_agent(row: Row) -> Words | None:
    words = row.words
    if words is None or words.role != "user" or words.kind != "turn":
        return words
    return msgspec.structs.replace(words, kind="runtime")


def title_of(file: TranscriptFile) -> str | None:
    """Returns the title that a person gave, else the one that the program made."""
    return file.custom_title or file.made_title
