"""From a resolved set of Codex's rollouts to the sessions that a reader gives back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.codex.chain import ChainTurn
from turnmark_session_store.transcripts.codex.records import uuid_time
from turnmark_session_store.transcripts.codex.set import RolloutSet, Thread
from turnmark_session_store.transcripts.fields import normal_time
from turnmark_session_store.transcripts.ordering import in_order, parents_first, upward
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

AGENT = "codex"


class SessionWriter:
    """Makes each thread of a set a `ReadSession`.

    Turns that are `held` are left out, as if they had not been said yet; what follows a held turn
    is held as well.
    """

    def __init__(self, rollouts: RolloutSet, *, held: frozenset[str] = frozenset()) -> None:
        self._set = rollouts
        self._held = held
        self._files = {
            turn.id: chain.rollout
            for thread in reversed(list(rollouts.threads.values()))
            for chain in reversed(thread.chains)
            for turn in chain.turns
        }
        self._listed: dict[str, list[str]] = {name: [] for name in rollouts.threads}
        for turn in parents_first(rollouts.predecessors):
            if turn not in held:
                self._listed[rollouts.owners[turn]].append(turn)

    def sessions(self) -> Iterator[ReadSession]:
        """Yields each session after those that it rests on."""
        names = list(self._set.threads)
        for name in in_order(names, {name: self._rests_on(name) for name in names}):
            session = self._session(self._set.threads[name])
            if session.turns or session.tips or session.warnings:
                yield session

    def _rests_on(self, name: str) -> set[str]:
        before = (self._set.predecessors[turn] for turn in self._listed[name])
        reached = (*self._set.tips[name], *(turn for turn in before if turn is not None))
        caller = self._set.callers.get(name)
        return {self._set.owners[t] for t in reached} | ({caller.session} if caller else set())

    def _session(self, thread: Thread) -> ReadSession:
        tips = self._tips(thread)
        head = self._head(thread, tips)
        titles = (chain.rollout.title for chain in reversed(thread.chains))
        projects = (meta.cwd for chain in thread.chains for meta in chain.rollout.metas[:1])
        taken_back = self._set.taken_back[thread.name]
        return ReadSession(
            session=thread.name,
            agent=AGENT,
            title=next((title for title in titles if title), None),
            project=next((project for project in projects if project), None),
            namespace=AGENT,
            forked_from=None if thread.is_agent else self._forked_from(thread, head, tips),
            caller=self._set.callers.get(thread.name),
            turns=tuple(self._turn(turn, thread) for turn in self._listed[thread.name]),
            tips=tips,
            head=head,
            taken_back=tuple(turn for turn in taken_back if turn not in self._held),
            warnings=tuple(w for chain in thread.chains for w in chain.rollout.warnings),
        )

    def _turn(self, key: str, thread: Thread) -> ReadTurn:
        found = self._set.turns[key]
        said, before = found.said, self._set.predecessors[key]
        # What a sub-agent is told is no person's, whoever is known to have told it.
        told = said.role == "user" and (thread.is_agent or thread.meta.scheduled or said.scheduled)
        origin = {"file": self._files[key].name, "line": said.line}
        metadata: dict[str, Any] = {"origin": origin}
        if said.model is not None:
            metadata["model"] = said.model
        if said.phase is not None:
            metadata["phase"] = said.phase
        is_root = before is None and key not in self._set.lost
        turn = TurnIn(
            id=key,
            role=said.role,
            kind="runtime" if told else "turn",
            text=said.text,
            time=self._time(found, thread),
            caller=self._set.callers.get(thread.name) if is_root else None,
            metadata=metadata,
        )
        return ReadTurn(
            turn=turn,
            predecessor=before,
            session=thread.name,
            lost_predecessor=key in self._set.lost,
        )

    def _time(self, turn: ChainTurn, thread: Thread) -> str | None:
        """Returns when it was said; a copy's record has the time of the copying."""
        made, began = uuid_time(turn.said.turn), uuid_time(thread.name)
        if made is not None and began is not None and made < began:
            return normal_time(made.isoformat())
        return turn.said.time or None

    def _tips(self, thread: Thread) -> tuple[str, ...]:
        """Returns the tips; in a held one's place what stands before it, if that is a leaf."""
        tips = dict.fromkeys(self._before_held(tip) for tip in self._set.tips[thread.name])
        if not self._held:
            return tuple(tip for tip in tips if tip is not None)
        above = self._set.predecessors.__getitem__
        inner = set(upward((above(tip) for tip in tips if tip is not None), above))
        return tuple(tip for tip in tips if tip is not None and tip not in inner)

    def _before_held(self, turn: str | None) -> str | None:
        line = upward((turn,), self._set.predecessors.__getitem__)
        return next((at for at in line if at not in self._held), None)

    def _head(self, thread: Thread, tips: tuple[str, ...]) -> str | None:
        """Returns where the thread is: at the end of the newest file that ends in a tip."""
        for chain in reversed(thread.chains):
            end = self._before_held(self._set.ends[chain])
            if end in tips:
                return end
        return tips[-1] if tips else None

    def _forked_from(
        self, thread: Thread, head: str | None, tips: tuple[str, ...]
    ) -> ForkPoint | None:
        """Returns the last turn above the head, or above another tip, that another thread said."""
        for at in upward((head, *reversed(tips)), self._set.predecessors.__getitem__):
            if self._set.owners[at] != thread.name:
                return ForkPoint(session=self._set.owners[at], turn=at)
        return self._copied_point(thread)

    def _copied_point(self, thread: Thread) -> ForkPoint | None:
        """Returns the last turn that was copied from an origin whose own file is not there."""
        origin, chain = thread.meta.origin, thread.chains[0]
        copies = [turn.id for turn in chain.turns if self._set.is_copy(chain, turn)]
        if origin is None or not copies or copies[-1] in self._held:
            return None
        return ForkPoint(session=origin, turn=copies[-1])
