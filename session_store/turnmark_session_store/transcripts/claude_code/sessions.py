"""From a resolved set of Claude Code's files to the sessions that a reader gives back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from turnmark_session_store.model import CallerRef, TurnIn
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.claude_code.set import TranscriptSet, Unit
from turnmark_session_store.transcripts.claude_code.spawns import Spawns
from turnmark_session_store.transcripts.ordering import in_order, parents_first, upward
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn, predecessors_first

AGENT = "claude-code"


class SessionWriter:
    """Makes each unit of a set a `ReadSession`.

    Turns that are `held` are left out, as if they had not been said yet; what follows a held turn
    is held as well.
    """

    def __init__(self, transcripts: TranscriptSet, *, held: frozenset[str] = frozenset()) -> None:
        self._set = transcripts
        self._held = held
        self._turns = transcripts.predecessors.keys() - held
        self._listed: dict[str, list[str]] = {name: [] for name in transcripts.units}
        for turn_id in parents_first(transcripts.predecessors):
            if turn_id not in held:
                self._listed[transcripts.unit_of(turn_id)].append(turn_id)
        self.spawns = Spawns(transcripts)
        self.callers = {
            name: self.spawns.caller_of(unit)
            for name, unit in transcripts.units.items()
            if unit.agent_id is not None and unit.times
        }
        self._summaries = {
            transcripts.canonical(leaf): title
            for file in transcripts.files
            for leaf, title in file.summaries
        }

    def sessions(self) -> Iterator[ReadSession]:
        """Yields each session after those that it rests on."""
        return predecessors_first(self._in_order())

    def _in_order(self) -> Iterator[ReadSession]:
        names = list(self._set.units)
        for name in in_order(names, {name: self._rests_on(name) for name in names}):
            session = self._session(self._set.units[name])
            if session.turns or session.tips or session.warnings:
                yield session

    def _rests_on(self, name: str) -> set[str]:
        before = (self._set.predecessors[turn_id] for turn_id in self._listed[name])
        reached = (*self._reached_turns(self._set.units[name]), *(t for t in before if t))
        caller = self.callers.get(name)
        return {self._set.unit_of(t) for t in reached} | ({caller.session} if caller else set())

    def _reached_turns(self, unit: Unit) -> list[str]:
        return [row_id for row_id in unit.times if row_id in self._turns]

    def _session(self, unit: Unit) -> ReadSession:
        caller = self.callers.get(unit.name)
        tips = self._tips(unit)
        head = self._head(unit, tips)
        listed = self._listed[unit.name]
        return ReadSession(
            session=unit.name,
            agent=AGENT,
            title=self._title(unit),
            project=self._project(unit),
            namespace=AGENT,
            forked_from=self._forked_from(unit, head, tips),
            caller=caller,
            turns=tuple(self._turn(turn_id, caller) for turn_id in listed),
            tips=tips,
            head=head,
            taken_back=tuple(t for t in listed if t in self._set.taken_back),
            warnings=tuple(warning for file in unit.files for warning in file.warnings),
        )

    def _project(self, unit: Unit) -> str | None:
        own = (file.project for file in unit.files)
        copied = (self._set.rows[row_id].cwd for row_id in unit.times)
        return next((project for project in (*own, *copied) if project), None)

    def _title(self, unit: Unit) -> str | None:
        titles = [file.title for file in unit.files if file.title]
        summaries = [self._summaries[row_id] for row_id in unit.times if row_id in self._summaries]
        found = titles[-1:] or summaries[-1:]
        return found[0] if found else None

    def _turn(self, turn_id: str, caller: CallerRef | None) -> ReadTurn:
        row, words = self._set.rows[turn_id], self._set.chain.turns[turn_id]
        before = self._set.predecessors[turn_id]
        # The task that one agent wrote for another: its caller says so, or else its kind does.
        is_task = row.sidechain and before is None and words.role == "user"
        spawned = is_task and caller is not None and words.kind == "runtime"
        metadata: dict[str, Any] = {"origin": {"file": _file_name(row.file), "line": row.line}}
        if words.role == "assistant" and row.model is not None:
            metadata["model"] = row.model
        if words.cancelled:
            metadata["cancelled"] = True
        turn = TurnIn(
            id=turn_id,
            role=words.role,
            kind="turn" if spawned else words.kind,
            text=words.text,
            time=row.time or None,
            caller=caller if is_task else None,
            metadata=metadata,
        )
        return ReadTurn(
            turn=turn,
            predecessor=before,
            session=self._said_in(turn_id),
            lost_predecessor=turn_id in self._set.lost,
        )

    def _said_in(self, turn_id: str) -> str:
        """Returns the session where a turn was first said, also where only its copy is here."""
        row = self._set.rows[turn_id]
        copied_from = row.copy_of_session if row.copy_of is not None else None
        return copied_from or self._set.unit_of(turn_id)

    def _tips(self, unit: Unit) -> tuple[str, ...]:
        turns = self._reached_turns(unit)
        continued = {self._set.predecessors[turn_id] for turn_id in turns}
        continued |= self._set.taken_back
        return tuple(turn_id for turn_id in turns if turn_id not in continued)

    def _head(self, unit: Unit, tips: Sequence[str]) -> str | None:
        """Returns the tip behind which the newest row stands.

        Where the session has several roots, only rows at or below the tip that the program noted
        last are looked at: after a rewind to the start nothing else says which root is the one.
        """
        ends = self._ends(unit)
        noted = self._noted_leaf(unit)
        roots = sum(1 for t in self._reached_turns(unit) if self._set.predecessors[t] is None)
        if noted is not None and roots > 1:
            below = self._below(noted)
            ends = [row_id for row_id in ends if row_id in below] or ends
        ends.sort(key=lambda row_id: (unit.times[row_id], self._set.chain.moment(row_id)))
        for row_id in reversed(ends):
            turn_id = self._set.chain.turn_at(row_id)
            if turn_id in self._held:
                return self._said_before(turn_id, tips)
            if turn_id in tips:
                return turn_id
        return max(tips, key=self._set.chain.moment, default=None)

    def _said_before(self, turn_id: str | None, tips: Sequence[str]) -> str | None:
        """Returns the tip that a held turn will continue, or None if it will be a fork."""
        while turn_id in self._held:
            turn_id = self._set.predecessors[turn_id]
        return turn_id if turn_id in tips else None

    def _ends(self, unit: Unit) -> list[str]:
        inner = {self._set.parents[row_id] for row_id in unit.times}
        return [row_id for row_id in unit.times if row_id not in inner]

    def _noted_leaf(self, unit: Unit) -> str | None:
        leaves = (file.last_prompt_leaf for file in unit.files if file.last_prompt_leaf)
        noted = (self._set.canonical(leaf) for leaf in leaves)
        return next((leaf for leaf in noted if leaf in unit.times), None)

    def _below(self, row_id: str) -> set[str]:
        below = [row_id]
        for at in below:  # grows while it is walked
            below.extend(self._set.chain.children[at])
        return set(below)

    def _forked_from(self, unit: Unit, head: str | None, tips: Sequence[str]) -> ForkPoint | None:
        """Returns the last turn above the head, or else above another tip, that was a copy."""
        if unit.agent_id is not None:
            return None
        newest_first = sorted(tips, key=self._set.chain.moment, reverse=True)
        for at in upward((head, *newest_first), self._set.predecessors.__getitem__):
            if (session := self._said_in(at)) != unit.name:
                return ForkPoint(session=session, turn=at)
        return None


@lru_cache(maxsize=256)  # asked for each turn, of a few files: taking a path apart costs more
def _file_name(path: str) -> str:
    return PurePath(path).name
