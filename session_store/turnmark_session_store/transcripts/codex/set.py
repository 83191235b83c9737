"""The rollouts of one reading, resolved against each other: which turn is whose, and what before.

A thread may have several files: a revert begins a new one, whose first record says behind which
line of which file its history ends; a fork does the same with a line of another thread. Older forks
copy their origin's lines instead, and so did older sub-agents.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from turnmark_session_store.model import CallerRef
from turnmark_session_store.transcripts.codex.chain import Chain, ChainTurn
from turnmark_session_store.transcripts.codex.files import Rollout
from turnmark_session_store.transcripts.codex.records import Base, Meta, uuid_time
from turnmark_session_store.transcripts.ordering import cut_cycles, in_order, upward


@dataclass(kw_only=True, eq=False)
class Thread:
    """One session to be: a thread and its files, the oldest first. `meta` is the first file's."""

    name: str
    meta: Meta
    chains: list[Chain] = field(default_factory=list[Chain])

    @property
    def is_agent(self) -> bool:
        """Returns whether another agent spawned it."""
        return self.meta.parent is not None


class _History(NamedTuple):
    """The turn behind which a file goes on, None for none, and how far that can be trusted."""

    turn: str | None
    is_lost: bool
    is_guessed: bool


class RolloutSet:
    """Resolves a set of rollouts once; read-only afterwards.

    `turns` maps each turn's id to its first occurrence, origins before their forks, and `owners` to
    the thread of that. `predecessors` holds None for roots, `lost` the roots whose file names a
    history that is not there, `guessed` the turns behind one that was found by its ordinal alone,
    where the byte is known. `ends` maps each chain to the turn that it stands at.
    """

    def __init__(self, chains: Iterable[Chain]) -> None:
        self.threads = _threads_of(chains)
        self.turns: dict[str, ChainTurn] = {}
        self.owners: dict[str, str] = {}
        self.predecessors: dict[str, str | None] = {}
        self.lost: set[str] = set()
        self.guessed: set[str] = set()
        self._copies: dict[Chain, set[str]] = {}
        for thread in self.threads.values():
            for chain in thread.chains:
                self._copies[chain] = self._copies_in(thread, chain)
                self._take(thread, chain)
        self._lose_what_is_nobodys()
        cut_cycles(self.predecessors, list(self.predecessors))
        self.ends = {
            chain: self._turn_at(chain, None)
            for thread in self.threads.values()
            for chain in thread.chains
        }
        self.callers = {
            name: caller
            for name, thread in self.threads.items()
            if thread.is_agent and (caller := self._caller_of(thread)) is not None
        }
        self.tips = {name: self._tips_of(thread) for name, thread in self.threads.items()}
        self.taken_back = self._taken_back()

    def is_copy(self, chain: Chain, turn: ChainTurn) -> bool:
        """Returns whether a turn stands in a chain as a copy of another thread's."""
        return turn.id in self._copies[chain]

    def spawn_of(self, thread: Thread) -> tuple[Chain, int] | None:
        """Returns the record that names a sub-agent's thread: its file and line."""
        parent = self.threads.get(thread.meta.parent or "")
        for chain in parent.chains if parent is not None else ():
            line = chain.rollout.spawns.get(thread.name)
            if line is not None:
                return chain, line
        return None

    def _take(self, thread: Thread, chain: Chain) -> None:
        """Takes over the turns that no chain before has; a sub-agent's copies are nobody's here."""
        for turn in chain.turns:
            if turn.id in self.turns or (thread.is_agent and self.is_copy(chain, turn)):
                continue
            self.turns[turn.id] = turn
            self.owners[turn.id] = thread.name
            before = turn.before
            if thread.is_agent and before is not None and before in self._copies[chain]:
                before = None
            if before is None and not thread.is_agent:
                before = self._before_file(chain, turn.id)
            self.predecessors[turn.id] = before

    def _lose_what_is_nobodys(self) -> None:
        """Makes roots of turns behind a sub-agent's copy of what is not there itself."""
        for turn, before in self.predecessors.items():
            if before is not None and before not in self.turns:
                self.predecessors[turn] = None
                self.lost.add(turn)

    def _before_file(self, chain: Chain, first: str) -> str | None:
        """Returns the turn behind which a file's history goes on; notes what is not certain."""
        base = _base_of(chain)
        if base is None:
            return None
        history = self._history_before(chain, base)
        if history.is_lost:
            self.lost.add(first)
        if history.is_guessed:
            self.guessed.add(first)
        return history.turn

    def _turn_at(self, chain: Chain, line: int | None) -> str | None:
        """Returns the turn that stood last before a line, also in the files that it rests on."""
        standing = chain.standing_at(line)
        if standing is not None:
            return standing.id
        base = _base_of(chain)
        return self._history_before(chain, base).turn if base is not None else None

    def _history_before(self, chain: Chain, base: Base) -> _History:
        """Returns the turn that stood last where a base says that a file's history ends."""
        seen = {chain}
        is_guessed = False
        while True:
            found = self._at_base(chain, base)
            if found is None:
                return _History(None, is_lost=True, is_guessed=is_guessed)
            chain, line, by_byte = found
            is_guessed = is_guessed or not by_byte
            standing = chain.standing_at(line)
            above = _base_of(chain)
            if standing is not None or above is None or chain in seen:
                turn = standing.id if standing is not None else None
                return _History(turn, is_lost=False, is_guessed=is_guessed)
            seen.add(chain)
            base = above

    def _at_base(self, chain: Chain, base: Base) -> tuple[Chain, int, bool] | None:
        """Returns the file that a base names, the first line behind it, and whether by its byte.

        Ordinals repeat in the files of a thread that was reverted; only in the right one a line
        ends at the base's byte. Without such a one the last file before counts that has the line:
        the right one was written anew, or is not there yet.
        """
        thread = self.threads.get(base.thread)
        others = [one for one in (thread.chains if thread is not None else ()) if one is not chain]
        for other in others:
            line = _line_at(other.rollout, base)
            if line is not None:
                return other, line, True
        found: tuple[Chain, int, bool] | None = None
        started = chain.rollout.metas[0].started
        for other in others:
            line = other.rollout.line_of(base.end_ordinal - 1)
            if line is not None and (found is None or other.rollout.metas[0].started <= started):
                found = other, line + 1, base.end_byte is None
        return found

    def _copies_in(self, thread: Thread, chain: Chain) -> set[str]:
        """Returns the turns of a chain that other threads said first."""
        meta = chain.rollout.metas[0]
        origins = {one.thread for one in chain.rollout.metas} | {meta.origin, meta.parent}
        origins -= {thread.name, None}
        if not origins:
            return set()
        began = uuid_time(thread.name)
        return {turn.id for turn in chain.turns if self._is_foreign(turn, thread, meta, began)}

    def _is_foreign(
        self, turn: ChainTurn, thread: Thread, meta: Meta, began: datetime | None
    ) -> bool:
        said = turn.said
        if self.owners.get(turn.id, thread.name) != thread.name:
            return True
        if meta.own_from is not None and said.ordinal is not None and said.ordinal < meta.own_from:
            return True
        if said.thread is not None and said.thread != thread.name:
            return True
        made = uuid_time(said.turn)
        return made is not None and began is not None and made < began

    def _caller_of(self, thread: Thread) -> CallerRef | None:
        """Returns the turn that spawned a sub-agent: before the record of it, else by exchange."""
        spawn = self.spawn_of(thread)
        turn = self._turn_at(*spawn) if spawn is not None else None
        if turn not in self.turns:
            exchange = thread.chains[0].rollout.spawned_by
            said = (
                key
                for key, one in self.turns.items()
                if exchange is not None
                and one.said.turn == exchange
                and self.owners[key] != thread.name
            )
            turn = next(said, None)
        return CallerRef(session=self.owners[turn], turn=turn) if turn is not None else None

    def _tips_of(self, thread: Thread) -> tuple[str, ...]:
        """Returns the leaves that a thread reaches, in the order of its files."""
        ends = dict.fromkeys(self.ends[chain] for chain in thread.chains)
        found = [end for end in ends if end is not None]
        if thread.is_agent:
            found = [end for end in found if self.owners.get(end) == thread.name]
        above = self.predecessors.get
        inner = set(upward(map(above, found), above))
        return tuple(end for end in found if end not in inner and end in self.turns)

    def _taken_back(self) -> dict[str, list[str]]:
        """Returns by thread the turns of it that were rolled back and that nothing goes on from."""
        tips = (tip for tips in self.tips.values() for tip in tips)
        standing = set(upward(tips, self.predecessors.__getitem__))
        return {
            name: [
                turn.id
                for chain in thread.chains
                for turn in chain.turns
                if turn.rolled_back is not None
                and turn.id not in standing
                and self.owners.get(turn.id) == name
                and not self.is_copy(chain, turn)
            ]
            for name, thread in self.threads.items()
        }


def keep_one_of_each(chains: Iterable[Chain]) -> list[Chain]:
    """Leaves out what begins a longer rollout of its name: one that is moved may be seen twice."""
    kept: dict[str, list[Chain]] = {}
    for chain in sorted(chains, key=lambda one: (-len(one.entries), str(one.rollout.path))):
        same = kept.setdefault(chain.rollout.name, [])
        if not any(chain.entries == longer.entries[: len(chain.entries)] for longer in same):
            same.append(chain)
    return [chain for same in kept.values() for chain in same]


def _threads_of(chains: Iterable[Chain]) -> dict[str, Thread]:
    """Returns the threads of people and their agents, each behind those that it rests on."""
    read = [
        (chain.rollout.metas[0], chain)
        for chain in chains
        if chain.rollout.metas and not chain.rollout.metas[0].by_program
    ]
    read.sort(key=lambda one: (one[0].started, one[1].rollout.name))
    threads: dict[str, Thread] = {}
    for meta, chain in read:
        thread = threads.setdefault(meta.thread, Thread(name=meta.thread, meta=meta))
        thread.chains.append(chain)
    rests_on = {name: _rests_on(thread) for name, thread in threads.items()}
    return {name: threads[name] for name in in_order(list(threads), rests_on)}


def _rests_on(thread: Thread) -> set[str]:
    named: set[str] = set()
    for chain in thread.chains:
        named |= origins_of(chain.rollout)
    return named - {thread.name}


def origins_of(rollout: Rollout) -> set[str]:
    """Returns the other threads that a rollout names: what it is a fork of, who spawned it."""
    named = {meta.thread for meta in rollout.metas}
    for meta in rollout.metas:
        named |= {one for one in (meta.origin, meta.parent) if one is not None}
        if meta.base is not None:
            named.add(meta.base.thread)
    return named - {rollout.metas[0].thread} if rollout.metas else set()


def _base_of(chain: Chain) -> Base | None:
    """Returns what a file's history rests on; a sub-agent's begins with its task."""
    meta = chain.rollout.meta
    return None if meta is None or meta.parent is not None else meta.base


def _line_at(rollout: Rollout, base: Base) -> int | None:
    """Returns the first line behind a base's byte, if the line before it has the base's ordinal."""
    if base.end_byte is None:
        return None
    starts = rollout.lines.starts
    index = bisect_left(starts, base.end_byte)
    ends_there = rollout.lines.position if index == len(starts) else starts[index]
    if ends_there != base.end_byte or rollout.ordinal_of(index) != base.end_ordinal - 1:
        return None
    return index + 1
