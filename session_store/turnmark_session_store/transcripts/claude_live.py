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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnmark_session_store.transcripts.checkpoints import Checkpoint
from turnmark_session_store.transcripts.claude_files import (
    TranscriptFile,
    as_it_stands,
    begin_file,
    take_record,
)
from turnmark_session_store.transcripts.claude_rows import Row
from turnmark_session_store.transcripts.claude_sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.claude_set import TranscriptSet
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.line_file import LineFile, Look, Reached
from turnmark_session_store.transcripts.live import LiveSet, Patience, Standing
from turnmark_session_store.transcripts.ordering import parents_first
from turnmark_session_store.transcripts.reader import ReadWarning

_AGENT_PREFIX = "agent-"
_SUBAGENTS = "subagents"
# The first records name the session; what they inject may be long.
_PEEKED_BYTES = 256 * 1024


class LiveFile:
    """One file of a session, with the rows of the lines that have ended."""

    def __init__(self, path: Path, session: str, known: Reached | None = None) -> None:
        self.lines = LineFile(path, known=known)
        self.session = session
        self.transcript = begin_file(path)
        self.rewritten = False
        self.unread = 0
        self.grown_at = 0.0
        self.turn_rows: dict[str, int] = {}
        self._rest_taken = False

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.lines.path

    def read_on(self, now: float) -> None:
        """Reads the lines that have ended since.

        Raises:
            OSError: if the file is there and can't be read.
        """
        look = self.lines.advance(self._take, warn=self._warn, restart=self._restart)
        reached = self.lines.reached
        if look in (Look.GROWN, Look.REPLACED) and reached is not None:
            self.grown_at = min(now, reached.stamp.mtime_ns / 1e9)
            self._rest_taken = False

    def take_rest(self) -> None:
        """Takes a whole last line that never ended, once: its writer is gone."""
        self._rest_taken = True
        record = self.lines.rest()
        if record is not None:
            self._take(len(self.lines.starts) + 1, record)

    @property
    def waits_for_end(self) -> bool:
        """Whether a last line stands there that has not ended and was not given up."""
        return self.lines.has_rest and not self._rest_taken

    def start_of(self, turn_row: str) -> int:
        """Returns the byte at which the line of a row begins."""
        line = self.turn_rows[turn_row]
        starts = self.lines.starts
        return starts[line - 1] if line <= len(starts) else self.lines.position

    def _take(self, number: int, record: dict[str, Any]) -> None:
        row = take_record(self.transcript, record, number)
        if row is not None and row.words is not None:
            self.turn_rows.setdefault(row.uuid, row.line)

    def _warn(self, warning: ReadWarning) -> None:
        del warning  # counted: a line may hold what must not be logged
        self.unread += 1

    def _restart(self) -> None:
        self.transcript = begin_file(self.path)
        self.turn_rows = {}
        self.rewritten = True


class ClaudeLiveSet:
    """Claude Code's `LiveSet`."""

    def __init__(self, patience: Patience) -> None:
        self.files: dict[Path, LiveFile] = {}
        self._patience = patience
        self._held_since: dict[str, float] = {}
        self._canonical: Callable[[str], str] = str

    def add(self, session: str, paths: Collection[Path], known: Mapping[Path, Reached]) -> None:
        """Adds the files of a session; those that are there stay as far as they are read.

        `known` says what an earlier process read of some: one that no longer fits was rewritten.
        """
        for path in paths:
            if path not in self.files:
                self.files[path] = LiveFile(path, session, known.get(path))

    def leave_out(self, session: str) -> None:
        """Takes a session's files out again."""
        self.files = {path: file for path, file in self.files.items() if file.session != session}

    def take_over(self, other: LiveSet) -> None:
        """Takes over the files of another set, and since when its turns are held."""
        assert isinstance(other, ClaudeLiveSet)  # noqa: S101  the tail keeps one reader's sets
        self.files.update(other.files)
        self._held_since.update(other._held_since)  # noqa: SLF001 - of the same class

    @property
    def paths(self) -> Collection[Path]:
        """The files of the set."""
        return self.files.keys()

    @property
    def rewritten(self) -> bool:
        """Whether words that were read before may have changed."""
        return any(file.rewritten for file in self.files.values())

    def rewriting_was_seen(self) -> None:
        """Says that the changed words were dealt with."""
        for file in self.files.values():
            file.rewritten = False

    @property
    def grown_at(self) -> float:
        """When a file of the set was written last, in seconds since 1970."""
        return max((file.grown_at for file in self.files.values()), default=0.0)

    @property
    def unread(self) -> int:
        """How many lines could not be taken."""
        return sum(file.unread for file in self.files.values())

    def read_on(self, now: float) -> None:
        """Reads every file forward; blocks on disk.

        Raises:
            OSError: if a file is there and can't be read; the others were read.
        """
        failed: OSError | None = None
        for file in self.files.values():
            try:
                file.read_on(now)
            except OSError as error:
                failed = error
            if file.waits_for_end and now - file.grown_at >= self._patience.orphan_seconds:
                file.take_rest()
        if failed is not None:
            raise failed

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
        held, due = holding.held, holding.due
        self._held_since = {turn: since for turn, since in self._held_since.items() if turn in held}
        for file in self.files.values():
            if file.waits_for_end:
                given_up = file.grown_at + self._patience.orphan_seconds
                due = given_up if due is None else min(due, given_up)
        if held:
            writer = SessionWriter(resolved, held=held)
        return Standing(
            sessions=tuple(writer.sessions()),
            held=held,
            due=due,
            replaced=resolved.chain.replaced,
        )

    def checkpoints(self, held: Collection[str]) -> list[Checkpoint]:
        """Returns how far each file is when all turns but `held` are in the store."""
        found: list[Checkpoint] = []
        for file in self.files.values():
            reached = file.lines.reached
            if reached is None:
                continue
            rows = [row for row in file.turn_rows if self._canonical(row) in held] if held else []
            starts = [file.start_of(row) for row in rows]
            position = min(starts, default=reached.position)
            found.append(
                Checkpoint(
                    path=file.path,
                    session=file.session,
                    reached=msgspec.structs.replace(reached, position=position),
                    done=not starts and not file.waits_for_end,
                )
            )
        return found

    def held_since(self, turn: str, at: float) -> float:
        """Returns since when a turn is held, `at` if it was not."""
        return self._held_since.setdefault(turn, at)

    @property
    def patience(self) -> Patience:
        """How long to wait."""
        return self._patience


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
        self._now = now
        self.due: float | None = None
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
        if turn in self._open and self._waits_until(file.grown_at + patience.quiet_seconds):
            return True
        if turn in self._set.lost or self._is_copy_alone(turn):
            since = self._live.held_since(turn, min(self._now, file.grown_at))
            return self._waits_until(since + patience.orphan_seconds)
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
                since = self._live.held_since(turn, min(self._now, self._file_of(turn).grown_at))
                if self._waits_until(since + self._live.patience.orphan_seconds):
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

    def _waits_until(self, moment: float) -> bool:
        if moment <= self._now:
            return False
        self.due = moment if self.due is None else min(self.due, moment)
        return True

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

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()

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
