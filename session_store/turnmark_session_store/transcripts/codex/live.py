"""Codex's files while they are written: what of them can be said for good, and what waits.

Messages are written when they are whole, so nearly all can be given out at once. What waits:

- a message that only what the model was shown tells, while its event may still come: until the
  exchange is over, or for a minute of silence;
- the first turn of a file whose history lies in another file, until that one has the line that the
  first names by its byte; after a minute the line's ordinal will do, and else the turn is a root
  with a lost predecessor;
- a sub-agent's first turn until a record names the agent; after a minute the exchange decides;
- nothing before its predecessor and its caller.

Sub-agents' threads are followed together with the thread that they are of: all of them rest on its
file, and a rule about its project is one about theirs.

A file that is moved to the archive is the same file: what was read of it under its old name is left
out as soon as it begins what stands under the new one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from turnmark_session_store.transcripts.codex.chain import Chain
from turnmark_session_store.transcripts.codex.files import Rollout
from turnmark_session_store.transcripts.codex.records import (
    open_envelope,
    read_meta,
    thread_of_name,
)
from turnmark_session_store.transcripts.codex.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.codex.set import RolloutSet, keep_one_of_each, origins_of
from turnmark_session_store.transcripts.growing import (
    GrowingFile,
    GrowingReader,
    GrowingSet,
    Waiting,
    hold_followers,
)
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.line_file import Reached
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.ordering import parents_first

_ROLLOUT = "rollout-"
# Where the first record begins: the root of an agent's family is named there, if it is at all.
_BEGINNING_BYTES = 4096
_ROOT = re.compile(rb'"session_id":\s*"([0-9a-f-]{36})"')
# The first record holds the program's instructions; none was seen that is longer than 60 KB.
_PEEKED_BYTES = 1024 * 1024


class CodexFile(GrowingFile[Rollout]):
    """One rollout, with what the lines that have ended say."""

    def __init__(self, path: Path, session: str, known: Reached | None = None) -> None:
        super().__init__(path, session, known)
        self._chain = Chain(self.transcript)
        self._chained = self.transcript.version

    def begin(self) -> Rollout:
        """Returns a rollout of which nothing is read yet."""
        return Rollout(lines=self.lines)

    @property
    def chain(self) -> Chain:
        """The turns up to now; made anew when there are more records."""
        rollout = self.transcript
        if self._chain.rollout is not rollout or self._chained != rollout.version:
            self._chain, self._chained = Chain(rollout), rollout.version
        return self._chain


class CodexLiveSet(GrowingSet[CodexFile]):
    """Codex's `LiveSet`; `families` maps threads that were found to those they are of."""

    def __init__(self, patience: Patience, families: Mapping[str, str]) -> None:
        super().__init__(patience, CodexFile)
        self._families = families

    def lines_of(self, file: CodexFile, turns: Collection[str]) -> list[int]:
        """Returns the lines of these turns, or of copies of them."""
        return [turn.said.line for turn in file.chain.turns if turn.id in turns]

    def sessions_named(self) -> set[str]:
        """Returns the threads that the records name: what they are forks of, who spawned them."""
        named: set[str] = set()
        for file in self.files.values():
            metas = file.transcript.metas
            if metas and not metas[0].by_program:
                named |= origins_of(file.transcript) | {metas[0].thread}
        return {self._families.get(thread, thread) for thread in named}

    def project_of(self, session: str) -> str | None:
        """Returns the directory in which a thread began, its agents' only without its own."""
        metas = (
            meta
            for file in self.files.values()
            if file.session == session
            for meta in file.transcript.metas[:1]
        )
        first = min(metas, key=lambda meta: (meta.parent is not None, meta.started), default=None)
        return first.cwd if first is not None else None

    def turn_ids(self) -> set[str]:
        """Returns the ids of all turns."""
        return {turn.id for file in self.files.values() for turn in file.chain.turns}

    def stand(self, placed: Collection[str], now: float) -> Standing:
        """Resolves the set; `placed` are the turns in the store. Costs CPU by the records."""
        chains = {file.chain: file for file in self.files.values()}
        resolved = RolloutSet(keep_one_of_each(chains))
        holding = _Holding(self, resolved, chains, frozenset(placed), now)
        self.hold_only(holding.held)
        return Standing(
            sessions=tuple(SessionWriter(resolved, held=holding.held).sessions()),
            held=holding.held,
            due=self.due_with_ends(holding.waiting.due),
        )


class _Holding:
    """Finds the turns that must wait."""

    def __init__(
        self,
        live: CodexLiveSet,
        resolved: RolloutSet,
        files: dict[Chain, CodexFile],
        placed: frozenset[str],
        now: float,
    ) -> None:
        self._live = live
        self._set = resolved
        self.waiting = Waiting(now)
        self._files: dict[str, CodexFile] = {}
        for thread in resolved.threads.values():
            for chain in thread.chains:
                self._files = {turn.id: files[chain] for turn in chain.turns} | self._files
        new = [turn for turn in parents_first(resolved.predecessors) if turn not in placed]
        held = {turn for turn in new if self._must_wait(turn)}
        hold_followers(new, resolved.predecessors, held)
        while late := {turn for turn in new if turn not in held and self._caller_of(turn) in held}:
            held |= late
            hold_followers(new, resolved.predecessors, held)
        self.held = frozenset(held)

    def _must_wait(self, turn: str) -> bool:
        file = self._files[turn]
        if file.transcript.is_open(self._set.turns[turn].said):
            return self.waiting.until(file.grown_at + self._live.patience.orphan_seconds)
        is_unsure = turn in self._set.lost or turn in self._set.guessed
        if is_unsure or self._is_uncertain_task(turn):
            return self._live.may_wait(turn, file, self.waiting)
        return False

    def _is_uncertain_task(self, turn: str) -> bool:
        """Returns whether a sub-agent begins with a turn, and no record names the agent yet."""
        thread = self._set.threads[self._set.owners[turn]]
        is_first = thread.is_agent and self._set.predecessors[turn] is None
        return is_first and self._set.spawn_of(thread) is None

    def _caller_of(self, turn: str) -> str | None:
        caller = self._set.callers.get(self._set.owners[turn])
        return caller.turn if caller is not None else None


class CodexLiveReader(GrowingReader):
    """Codex's `LiveReader`; its directory is the one that CODEX_HOME names.

    Threads in use and archived ones have directories of their own.
    """

    agent = AGENT
    namespace = AGENT
    kept_in = ("sessions", "archived_sessions")

    def __init__(self, patience: Patience | None = None) -> None:
        super().__init__(patience)
        self._families: dict[str, str] = {}
        self._known: dict[Path, str] = {}

    def session_of(self, path: Path) -> str | None:
        """Returns the thread whose family a file belongs to; None if it is no rollout, or not yet.

        Reads the start of a file that it was not asked about before, and remembers the answer.

        Raises:
            OSError: if it has to be read and can't be.
        """
        known = self._known.get(path)
        if known is not None:
            return known
        thread = thread_of(path)
        family = family_of(path, thread) if thread is not None else None
        if thread is None or family is None:
            return None
        self._families[thread] = self._known[path] = family
        return family

    def live_set(self) -> CodexLiveSet:
        """Returns an empty set."""
        return CodexLiveSet(self._patience, self._families)


def family_of(path: Path, thread: str) -> str | None:
    """Returns the thread of a person that a thread is of, itself if it is one or names none.

    None while too little of the file is written. Old versions name no root: their agents are
    followed by themselves.

    Raises:
        OSError: if the file can't be read.
    """
    with path.open("rb") as file:
        head = file.read(_BEGINNING_BYTES)
    line, newline, _ = head.partition(b"\n")
    found = _ROOT.search(line)
    if found is not None:
        return found[1].decode()
    return thread if newline or len(head) == _BEGINNING_BYTES else None


def thread_of(path: Path) -> str | None:
    """Returns the thread that a file belongs to, None if it is no rollout; may read its start.

    Raises:
        OSError: if it has to be read and can't be.
    """
    if path.suffix != ".jsonl" or not path.name.startswith(_ROLLOUT):
        return None
    named = thread_of_name(path.name)
    if named is not None:
        return named
    with path.open("rb") as file:
        record = parse_line(file.readline(_PEEKED_BYTES))
    envelope = open_envelope(record) if isinstance(record, dict) else None
    meta = read_meta(envelope.payload, "") if envelope is not None else None
    return meta.thread if meta is not None else path.stem
