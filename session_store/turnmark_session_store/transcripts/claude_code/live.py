"""Claude Code's files while they are written: what of them can be said for good, and what waits.

A turn is given out when nothing that may still be written can change it, so that turns appended one
by one are those that a reading of the finished files gives:

- a prompt at once, as soon as its line has ended;
- an answer when its response is over: another response or a prompt follows in its chain, one of
  its fragments has a stop reason, a hook or the duration of the turn was noted behind it, or the
  file was quiet for a moment (most responses say nothing about their end);
- a turn whose chain leads to a record that is missing when that record comes; after a minute it is
  a root with a lost predecessor;
- a copy when the record that it copies is there, or after a minute: that may be a copy itself, and
  the turn's id is that of the first;
- a sub-agent's task when the records say which call spawned it; after a minute the time decides;
- nothing before its predecessor and its caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from turnmark_session_store.transcripts.claude_code.files import (
    TranscriptFile,
    as_it_stands,
    begin_file,
    take_record,
)
from turnmark_session_store.transcripts.claude_code.rows import Row
from turnmark_session_store.transcripts.claude_code.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.claude_code.set import TranscriptSet
from turnmark_session_store.transcripts.growing import GrowingFile, GrowingSet, Waiting
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.line_file import Reached
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.ordering import parents_first

_AGENT_PREFIX = "agent-"
_SUBAGENTS = "subagents"
# The first records name the session; what they inject may be long.
_PEEKED_BYTES = 256 * 1024


class LiveFile(GrowingFile):
    """One file of a session, with the rows of the lines that have ended."""

    def __init__(self, path: Path, session: str, known: Reached | None = None) -> None:
        super().__init__(path, session, known)
        self.transcript = begin_file(path)
        self.turn_rows: dict[str, int] = {}

    def take(self, number: int, record: dict[str, Any]) -> None:
        """Adds the next record."""
        row = take_record(self.transcript, record, number)
        if row is not None and row.words is not None:
            self.turn_rows.setdefault(row.uuid, row.line)

    def begin_anew(self) -> None:
        """Forgets the rows."""
        self.transcript = begin_file(self.path)
        self.turn_rows = {}


class ClaudeLiveSet(GrowingSet[LiveFile]):
    """Claude Code's `LiveSet`."""

    def __init__(self, patience: Patience) -> None:
        super().__init__(patience)
        self._canonical: Callable[[str], str] = str

    def begin_file(self, path: Path, session: str, known: Reached | None) -> LiveFile:
        """Returns a file of which nothing is read yet."""
        return LiveFile(path, session, known)

    def lines_of(self, file: LiveFile, turns: Collection[str]) -> list[int]:
        """Returns the lines of the rows that are these turns, or copies of them."""
        return [line for row, line in file.turn_rows.items() if self._canonical(row) in turns]

    def sessions_named(self) -> set[str]:
        """Returns the sessions that the records name."""
        named: set[str] = set()
        for file in self.files.values():
            for row in file.transcript.rows:
                named.add(row.session)
                if row.copy_of_session is not None:
                    named.add(row.copy_of_session)
        return named

    def project_of(self, session: str) -> str | None:
        """Returns the first working directory that a session's records name."""
        files = [file.transcript for file in self.files.values() if file.session == session]
        files.sort(key=lambda file: file.agent_id is not None)
        return next((project for file in files if (project := file.project)), None)

    def turn_ids(self) -> set[str]:
        """Returns the ids of all rows that may be turns, and of what they copy."""
        found: set[str] = set()
        for file in self.files.values():
            for row in file.transcript.rows:
                if row.words is not None:
                    found.add(row.uuid)
                    if row.copy_of is not None:
                        found.add(row.copy_of)
        return found

    def stand(self, placed: Collection[str], now: float) -> Standing:
        """Resolves the set; `placed` are the turns that are in the store. Costs CPU by the rows."""
        views = [_view(file) for file in self.files.values()]
        resolved = TranscriptSet([view for view in views if view.rows])
        self._canonical = resolved.canonical
        writer = SessionWriter(resolved)
        holding = _Holding(self, resolved, writer, frozenset(placed), now)
        held = holding.held
        self.hold_only(held)
        if held:
            writer = SessionWriter(resolved, held=held)
        return Standing(
            sessions=tuple(writer.sessions()),
            held=held,
            due=self.due_with_ends(holding.waiting.due),
            replaced=resolved.chain.replaced,
        )


class _Holding:
    """Finds the turns that must wait."""

    def __init__(
        self,
        live: ClaudeLiveSet,
        resolved: TranscriptSet,
        writer: SessionWriter,
        placed: frozenset[str],
        now: float,
    ) -> None:
        self._live = live
        self._set = resolved
        self._writer = writer
        self.waiting = Waiting(now)
        new = [t for t in parents_first(resolved.predecessors) if t not in placed]
        self._open = self._open_fragments({resolved.rows[t].file for t in new})
        held: set[str] = set()
        for turn in new:
            if resolved.predecessors[turn] in held or self._must_wait(turn):
                held.add(turn)
        self._hold_tasks(new, held)
        self.held = frozenset(held)

    def _must_wait(self, turn: str) -> bool:
        file = self._file_of(turn)
        patience = self._live.patience
        if turn in self._open and self.waiting.until(file.grown_at + patience.quiet_seconds):
            return True
        if turn in self._set.lost or self._is_copy_alone(turn):
            since = self._live.held_since(turn, min(self.waiting.now, file.grown_at))
            return self.waiting.until(since + patience.orphan_seconds)
        return False

    def _is_copy_alone(self, turn: str) -> bool:
        """Returns whether a copy's origin is not there: it may be a copy, and have another id."""
        row = self._set.rows[turn]
        return row.copy_of is not None and row.uuid != turn

    def _hold_tasks(self, new: Sequence[str], held: set[str]) -> None:
        """Holds what sub-agents were told until their callers are known and given out."""
        units = self._set.units
        tasks = [turn for turn in new if self._is_task(turn) and turn not in held]
        for turn in tasks:
            unit = units[self._set.unit_of(turn)]
            if not self._writer.spawns.is_certain(unit):
                grown_at = self._file_of(turn).grown_at
                since = self._live.held_since(turn, min(self.waiting.now, grown_at))
                if self.waiting.until(since + self._live.patience.orphan_seconds):
                    held.add(turn)
        waiting = [turn for turn in tasks if turn not in held]
        while late := [turn for turn in waiting if self._caller_of(turn) in held]:
            held.update(late)
            waiting = [turn for turn in waiting if turn not in held]
            self._hold_followers(new, held)
        self._hold_followers(new, held)

    def _hold_followers(self, new: Sequence[str], held: set[str]) -> None:
        for turn in new:
            if self._set.predecessors[turn] in held:
                held.add(turn)

    def _is_task(self, turn: str) -> bool:
        row = self._set.rows[turn]
        return row.sidechain and self._set.predecessors[turn] is None and row.words is not None

    def _caller_of(self, turn: str) -> str | None:
        caller = self._writer.callers.get(self._set.unit_of(turn))
        return caller.turn if caller is not None else None

    def _file_of(self, turn: str) -> LiveFile:
        return self._live.files[Path(self._set.rows[turn].file)]

    def _open_fragments(self, files: Collection[str]) -> set[str]:
        found: set[str] = set()
        for name in files:
            rows = self._live.files[Path(name)].transcript.rows
            found.update(self._set.canonical(row.uuid) for row in open_fragments(rows))
        return found


def open_fragments(rows: Sequence[Row]) -> Iterator[Row]:
    """Yields the rows with words of the last response of each chain, while it may go on."""
    going_on: dict[tuple[bool, str | None], str | None] = {}
    for row in reversed(rows):
        chain = (row.sidechain, row.agent_id)
        if row.response is None:
            if row.opens or row.closes:
                going_on.setdefault(chain, None)
            continue
        response = going_on.setdefault(chain, None if row.closes else row.response)
        if row.response != response or row.closes:
            going_on[chain] = None
        elif row.words is not None:
            yield row


class ClaudeCodeLiveReader:
    """Claude Code's `LiveReader`."""

    agent = AGENT
    namespace = AGENT

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directory itself: all below it are projects."""
        return (root,)

    def session_of(self, path: Path) -> str | None:
        """Returns the session that a file belongs to; see `session_of`."""
        return session_of(path)

    def live_set(self) -> ClaudeLiveSet:
        """Returns an empty set."""
        return ClaudeLiveSet(self._patience)


def session_of(path: Path) -> str | None:
    """Returns the session that a file belongs to, None if it is no transcript; may read its start.

    Raises:
        OSError: if it has to be read and can't be.
    """
    if path.suffix != ".jsonl":
        return None
    is_agent = path.stem.startswith(_AGENT_PREFIX)
    folders = path.parts[:-1]
    if _SUBAGENTS in folders[1:]:
        at = len(folders) - 1 - folders[::-1].index(_SUBAGENTS)
        return folders[at - 1] if is_agent else None
    return _named_session(path) if is_agent else path.stem


def _named_session(path: Path) -> str:
    """Returns the session that a sub-agent's file names; its own name while it names none."""
    with path.open("rb") as file:
        head = file.read(_PEEKED_BYTES)
    for line in head.split(b"\n"):
        record = parse_line(line)
        named = record.get("sessionId") if isinstance(record, dict) else None
        if isinstance(named, str) and named not in ("", path.stem):
            return named
    return path.stem


def _view(file: LiveFile) -> TranscriptFile:
    view = as_it_stands(file.transcript)
    view.warnings = []
    return view
