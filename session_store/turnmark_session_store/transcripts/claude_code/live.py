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

from turnmark_session_store.transcripts.claude_code.files import (
    AGENT_PREFIX,
    SUBAGENTS,
    Transcript,
)
from turnmark_session_store.transcripts.claude_code.records import Row
from turnmark_session_store.transcripts.claude_code.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.claude_code.set import TranscriptSet
from turnmark_session_store.transcripts.fields import string_at
from turnmark_session_store.transcripts.growing import (
    GrowingFile,
    GrowingReader,
    GrowingSet,
    Waiting,
    hold_followers,
)
from turnmark_session_store.transcripts.json_lines import objects_in
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.ordering import parents_first

# The first records name the session; what they inject may be long.
_PEEKED_BYTES = 256 * 1024


class ClaudeCodeFile(GrowingFile[Transcript]):
    """One transcript, with the rows of the lines that have ended."""

    def begin(self) -> Transcript:
        """Returns a transcript of which nothing is read yet."""
        return Transcript(path=self.path)

    def view(self) -> Transcript:
        """Returns it with the session that its rows up to now say."""
        view = self.transcript.as_it_stands()
        view.warnings = []
        return view


class ClaudeCodeLiveSet(GrowingSet[ClaudeCodeFile]):
    """Claude Code's `LiveSet`."""

    def __init__(self, patience: Patience) -> None:
        super().__init__(patience, ClaudeCodeFile)
        self._canonical: Callable[[str], str] = str

    def lines_of(self, file: ClaudeCodeFile, turns: Collection[str]) -> list[int]:
        """Returns the lines of the rows that are these turns, or copies of them."""
        rows = (row for row in file.transcript.rows if row.words is not None)
        return [row.line for row in rows if self._canonical(row.uuid) in turns]

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
        views = [file.view() for file in self.files.values()]
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
        live: ClaudeCodeLiveSet,
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
        quiet = self._live.patience.quiet_seconds
        if turn in self._open and self.waiting.until(file.grown_at + quiet):
            return True
        is_unsure = turn in self._set.lost or self._is_copy_alone(turn)
        return is_unsure and self._live.may_wait(turn, file, self.waiting)

    def _is_copy_alone(self, turn: str) -> bool:
        """Returns whether a copy's origin is not there: it may be a copy, and have another id."""
        row = self._set.rows[turn]
        return row.copy_of is not None and row.uuid != turn

    def _hold_tasks(self, new: Sequence[str], held: set[str]) -> None:
        """Holds what sub-agents were told until their callers are known and given out."""
        tasks = [turn for turn in new if self._is_task(turn) and turn not in held]
        held.update(turn for turn in tasks if self._is_uncertain_task(turn))
        hold_followers(new, self._set.predecessors, held)
        while late := {
            turn for turn in tasks if turn not in held and self._caller_of(turn) in held
        }:
            held |= late
            hold_followers(new, self._set.predecessors, held)

    def _is_uncertain_task(self, turn: str) -> bool:
        """Returns whether a record may still come that says which call spawned a sub-agent."""
        unit = self._set.units[self._set.unit_of(turn)]
        is_certain = self._writer.spawns.is_certain(unit)
        return not is_certain and self._live.may_wait(turn, self._file_of(turn), self.waiting)

    def _is_task(self, turn: str) -> bool:
        row = self._set.rows[turn]
        return row.sidechain and self._set.predecessors[turn] is None and row.words is not None

    def _caller_of(self, turn: str) -> str | None:
        caller = self._writer.callers.get(self._set.unit_of(turn))
        return caller.turn if caller is not None else None

    def _file_of(self, turn: str) -> ClaudeCodeFile:
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


class ClaudeCodeLiveReader(GrowingReader):
    """Claude Code's `LiveReader`; its directory is the one of projects."""

    agent = AGENT
    namespace = AGENT

    def session_of(self, path: Path) -> str | None:
        """Returns the session that a file belongs to; see `session_of`."""
        return session_of(path)

    def live_set(self) -> ClaudeCodeLiveSet:
        """Returns an empty set."""
        return ClaudeCodeLiveSet(self._patience)


def session_of(path: Path) -> str | None:
    """Returns the session that a file belongs to, None if it is no transcript; may read its start.

    Raises:
        OSError: if it has to be read and can't be.
    """
    if path.suffix != ".jsonl":
        return None
    is_agent = path.stem.startswith(AGENT_PREFIX)
    folders = path.parts[:-1]
    if SUBAGENTS in folders[1:]:
        at = len(folders) - 1 - folders[::-1].index(SUBAGENTS)
        return folders[at - 1] if is_agent else None
    return _named_session(path) if is_agent else path.stem


def _named_session(path: Path) -> str:
    """Returns the session that a sub-agent's file names; its own name while it names none."""
    with path.open("rb") as file:
        records = objects_in(file.read(_PEEKED_BYTES).split(b"\n"))
    named = (string_at(record, "sessionId") for record in records)
    return next((name for name in named if name not in (None, path.stem)), None) or path.stem
