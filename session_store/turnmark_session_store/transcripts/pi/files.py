"""One transcript of pi as far as it is read: what its header says, and the tree of its entries.

Versions 1 to 3 are a header and entries, one a line. In version 4 the lines are mutations of a
session: entries in one of several lanes, moves of a lane, facts, and a log of operations, which
says nothing that an entry does not say when it is done.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnmark_session_store.transcripts.fields import mapping_at, string_at
from turnmark_session_store.transcripts.json_lines import read_json_lines
from turnmark_session_store.transcripts.moments import moment_ms
from turnmark_session_store.transcripts.pi.entries import EntryTree, is_plain_id, read_entry
from turnmark_session_store.transcripts.reader import ReadWarning

# The time at which a session began, and the session's id; a custom id may be any word.
_NAME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_(.+)")
_SEPARATORS = re.compile(r"[/\\]")
# Folders in which extensions keep what their sub-agents do.
_AGENT_FOLDERS = ("subagents", "subagent-artifacts")
_MAIN_LANE = "main"
# Fields of a header that name the session that it was forked from: by path, the last by id.
_PARENT_PATHS = ("parentSession", "branchedFrom", "legacyParentSessionPath")
_PARENT_ID = "parentSessionId"
# The newest version whose lines are entries, and the one whose lines are mutations.
_NEWEST_TREE = 3
_MUTATIONS = 4

LINES_LOOKED_AT = 3
"""The header is the first line, or the second behind one about the session; extensions add one."""


@dataclass(kw_only=True, eq=False)
class Transcript:
    """What one file holds.

    `session` is the id in its header, while there is none that of its name. `parent` is the id of
    the session that it was forked from or follows, `parent_path` where that one's file was.
    `created_ms` is when the file was begun: older entries are copies. `is_agent` says that it lies
    where a sub-agent's sessions do.
    """

    path: Path
    session: str = ""
    has_header: bool = False
    project: str | None = None
    parent: str | None = None
    parent_path: str | None = None
    created_ms: int | None = None
    title: str | None = None
    tree: EntryTree = field(default_factory=EntryTree)
    is_agent: bool = False
    warnings: list[ReadWarning] = field(default_factory=list[ReadWarning])
    _lanes: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    _lane: str | None = None

    def __post_init__(self) -> None:
        self.session = self.session or session_of_name(self.path.name)
        folders = self.path.parts[:-1]
        self.is_agent = any(name in _AGENT_FOLDERS or _NAME.fullmatch(name) for name in folders)

    def take(self, line: int, record: Mapping[str, Any]) -> None:
        """Adds the next record."""
        if is_header(record):
            self._take_header(record)
            return
        kind = record.get("kind")
        if isinstance(kind, str) and kind != "entry":
            self._take_mutation(kind, record)
            return
        body = record if "type" in record else mapping_at(record, "entry")
        self._take_entry(line, body, lane=string_at(record, "lane"))

    def _take_header(self, record: Mapping[str, Any]) -> None:
        """Takes the first header; others came with copied lines, and are nobody's here."""
        if self.has_header:
            return
        self.has_header = True
        self.session = session_id_of(record) or self.session
        self.tree.session = self.session
        self.project = string_at(record, "cwd")
        self.created_ms = moment_ms(record.get("createdAt", record.get("timestamp")))
        self.parent_path, self.parent = parent_of(record)
        if self.parent == self.session:
            self.parent = self.parent_path = None

    def _take_entry(self, line: int, record: Mapping[str, Any], *, lane: str | None) -> None:
        entry = read_entry(record, line)
        if entry is None:
            return
        before = len(self.tree.repeated)
        self.tree.add(entry)
        if lane is not None:
            self._lane = lane
            self._lanes[lane] = self.tree.leaf
        if len(self.tree.repeated) > before:
            reason = "repeats an entry's id with other content"
            self.warnings.append(ReadWarning(file=str(self.path), line=line, reason=reason))
        if record.get("type") == "leaf":
            self.tree.move_leaf(string_at(record, "targetId"))
        elif record.get("type") == "session_info":
            self.title = (string_at(record, "name") or "").strip() or None

    def _take_mutation(self, kind: str, record: Mapping[str, Any]) -> None:
        """Takes what a session of version 4 notes beside its entries."""
        if kind == "fact" and record.get("fact") == "name":
            self.title = (string_at(record, "name") or "").strip() or None
        lane = string_at(record, "lane")
        if kind != "lane" or lane is None:
            return
        self._lanes[lane] = string_at(record, "leafId")
        # A fork notes all its lanes behind the copied entries; the main one is where it goes on.
        at = self._lane or (_MAIN_LANE if _MAIN_LANE in self._lanes else lane)
        self.tree.move_leaf(self._lanes[at])


def read_transcript(path: Path) -> Transcript:
    """Returns what a finished file holds; reads it whole.

    Raises:
        Unavailable: if it can't be read.
    """
    found = Transcript(path=path)
    for line, record in read_json_lines(path, warn=found.warnings.append):
        found.take(line, record)
    return found


def is_header(record: Mapping[str, Any]) -> bool:
    """Returns whether a record is the first of a session."""
    return record.get("type") == "session" or record.get("kind") == "header"


def is_own_header(record: Mapping[str, Any]) -> bool:
    """Returns whether a record is the header of a session of pi, of any version."""
    if not isinstance(record.get("id"), str):
        return False
    if record.get("kind") == "header":
        return _MUTATIONS in (record.get("version"), record.get("v"))
    version = record.get("version", 1)
    is_known = isinstance(version, int) and 1 <= version <= _NEWEST_TREE
    return record.get("type") == "session" and is_known and "timestamp" in record


def session_id_of(record: Mapping[str, Any]) -> str | None:
    """Returns the id in a header, None if it can't be a session's name."""
    found = string_at(record, "id")
    return found if found is not None and is_plain_id(found) else None


def name_in(path: str) -> str:
    """Returns a file's name in a path that a record holds, of this machine or another."""
    return _SEPARATORS.split(path)[-1]


def session_of_name(name: str) -> str:
    """Returns the session that a file's name says: what follows the time, else the name."""
    stem = name.removesuffix(".jsonl")
    found = _NAME.fullmatch(stem)
    return found[1] if found else stem


def parent_of(record: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Returns where the file of the session was that a header names as its parent, and its id."""
    path = next((found for name in _PARENT_PATHS if (found := string_at(record, name))), None)
    named = string_at(record, _PARENT_ID)
    if named is None and path is not None:
        named = session_of_name(name_in(path))
    return path, named if named and is_plain_id(named) else None
