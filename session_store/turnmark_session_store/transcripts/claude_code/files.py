"""Reads one file of Claude Code: its rows, and the facts about the session around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from turnmark_session_store.transcripts.claude_code.records import Row, Words, read_row
from turnmark_session_store.transcripts.json_lines import read_json_lines
from turnmark_session_store.transcripts.reader import ReadWarning, is_within

AGENT_PREFIX = "agent-"
SUBAGENTS = "subagents"


@dataclass(kw_only=True, eq=False)
class Transcript:
    """What one file holds. `session` is its own session; rows copied from others name theirs.

    `agent_id` is set for the file of a sub-agent, whose `session` is then the one that spawned it.
    """

    path: Path
    session: str = ""
    agent_id: str | None = None
    rows: list[Row] = field(default_factory=list[Row])
    custom_title: str | None = None
    made_title: str | None = None
    summaries: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    last_prompt_leaf: str | None = None
    last_time: str = ""
    warnings: list[ReadWarning] = field(default_factory=list[ReadWarning])

    def __post_init__(self) -> None:
        self.session = self.session or self.path.stem
        self.agent_id = _agent_of(self.path)

    def take(self, line: int, record: Mapping[str, Any]) -> None:
        """Adds the next record."""
        stem = self.path.stem
        row = read_row(record, file=str(self.path), line=line, session=stem, time=self.last_time)
        if row is None:
            self._take_fact(record)
            return
        # A row without a time was written after the one before it; that is all one can know.
        self.last_time = row.time or self.last_time
        self.rows.append(row)

    def as_it_stands(self) -> Transcript:
        """Returns it with the session that its rows up to now say; more can be added to this."""
        if self.agent_id is None:
            return replace(self, session=_own_session(self.path, self.rows))
        copied = replace(self)
        _make_sub_agent(copied)
        return copied

    @property
    def title(self) -> str | None:
        """Returns the title that a person gave, else the one that the program made."""
        return self.custom_title or self.made_title

    @property
    def project(self) -> str | None:
        """Returns the first working directory that a row names."""
        return next((row.cwd for row in self.rows if row.cwd), None)

    def is_within(self, directories: Sequence[Path]) -> bool:
        """Returns whether the session began in one of these directories."""
        return is_within(self.project, directories)

    def _take_fact(self, record: Mapping[str, Any]) -> None:
        match record:
            case {"type": "custom-title", "customTitle": str(title)}:
                self.custom_title = title
            case {"type": "ai-title", "aiTitle": str(title)} | {
                "type": "ai-title",
                "title": str(title),
            }:
                self.made_title = title
            case {"type": "summary", "summary": str(title), "leafUuid": str(leaf)}:
                self.summaries.append((leaf, title))
            case {"type": "last-prompt", "leafUuid": str(leaf)}:
                self.last_prompt_leaf = leaf
            case _:
                pass


def read_transcript(path: Path) -> Transcript:
    """Returns what a finished file holds; reads it whole.

    Raises:
        Unavailable: if it can't be read.
    """
    found = Transcript(path=path)
    for line, record in read_json_lines(path, warn=found.warnings.append):
        found.take(line, record)
    return found.as_it_stands()


def _own_session(path: Path, rows: Sequence[Row]) -> str:
    """Returns the session that the file is named after, else the one that was said there last."""
    if not rows or any(row.session == path.stem for row in rows):
        return path.stem
    return max(rows, key=lambda row: (row.time, row.line)).session


def _agent_of(path: Path) -> str | None:
    return path.stem.removeprefix(AGENT_PREFIX) if path.stem.startswith(AGENT_PREFIX) else None


def _make_sub_agent(file: Transcript) -> None:
    """Puts all rows under the session that spawned the agent: by directory, else by the rows."""
    parts = file.path.parts
    own = f"{AGENT_PREFIX}{file.agent_id}"
    if SUBAGENTS in parts[1:]:
        file.session = parts[len(parts) - 1 - parts[::-1].index(SUBAGENTS) - 1]
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
