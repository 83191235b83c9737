"""The sessions of opencode of one reading, resolved against each other.

Which session said a turn first, what stands before it, which turn began a sub-agent, and what is
taken back although a fork goes on from it (nothing is).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from turnmark_session_store.model import CallerRef
from turnmark_session_store.transcripts.opencode.chain import (
    NOTHING_IS_OPEN,
    Chain,
    ChainTurn,
    Open,
    Origin,
    SessionRecord,
    chain_of,
    said_by,
    told_agents,
)
from turnmark_session_store.transcripts.opencode.records import Message
from turnmark_session_store.transcripts.ordering import cut_cycles, in_order


class SessionSet:
    """Resolves a set of sessions once; read-only afterwards.

    `chains` are in an order in which each stands behind those that it rests on. `turns` maps each
    turn to its first occurrence, `owners` to the session of that. `callers` maps sub-agents'
    sessions to the turn that began them, `guessed` are those whose caller no record names, and
    `waiting` those whose caller may still grow.
    """

    def __init__(
        self, sessions: Iterable[SessionRecord], *, open_since: Open = NOTHING_IS_OPEN
    ) -> None:
        known = sorted(sessions, key=lambda one: (one.created_ms, one.id))
        told = told_agents(known)
        chains = {one.id: chain_of(one, told, open_since=open_since) for one in known}
        self.chains = {name: chains[name] for name in in_order(list(chains), _rests_on(known))}
        self.turns: dict[str, ChainTurn] = {}
        self.owners: dict[str, str] = {}
        self.predecessors: dict[str, str | None] = {}
        for chain in self.chains.values():
            self._take(chain)
        cut_cycles(self.predecessors, list(self.predecessors))
        self._spawned: dict[str, Mapping[str, Message]] = {}
        self.guessed: set[str] = set()
        self.waiting: set[str] = set()
        self.callers: dict[str, CallerRef] = {}
        for name in self.chains:
            self._find_caller(name)
        self.taken_back = self._taken_back()

    def shared_end(self, name: str) -> str | None:
        """Returns the last turn before a session's end that another session said; None for none."""
        at = self.chains[name].end
        while at is not None and self.owners[at] == name:
            at = self.predecessors[at]
        return at

    def _take(self, chain: Chain) -> None:
        """Takes over the turns that no chain before has."""
        first_before = self._before_first(chain)
        for turn in chain.turns:
            if turn.id not in self.turns:
                self.turns[turn.id] = turn
                self.owners[turn.id] = chain.record.id
                before = turn.before
                self.predecessors[turn.id] = first_before if before is None else before

    def _before_first(self, chain: Chain) -> str | None:
        """Returns the turn that a fork goes on from of which it has no copy; None as a rule."""
        origin = chain.record.origin
        source = self.chains.get(origin.session) if origin is not None else None
        if origin is None or source is None or any(one.id in self.turns for one in chain.turns):
            return None
        return _turn_at(source, origin)

    def _find_caller(self, name: str) -> None:
        """Notes the turn that began a sub-agent's session, and how sure that is."""
        record = self.chains[name].record
        parent = self.chains.get(record.parent or "")
        if parent is None or record.parent == name:
            return
        message = self._spawning_message(parent, record)
        if message is not None and message.id in parent.at:
            turn = parent.at[message.id]
        else:
            self.guessed.add(name)
            if message is not None or parent.open is not None:
                self.waiting.add(name)
            turn = _standing_at(parent, record.created_ms)
        if turn is not None:
            self.callers[name] = CallerRef(session=self.owners[turn], turn=turn)

    def _spawning_message(self, parent: Chain, child: SessionRecord) -> Message | None:
        """Returns the message that began a sub-agent: that names it, or the last with its task."""
        spawned = self._spawned.get(parent.record.id)
        if spawned is None:
            spawned = self._spawned[parent.record.id] = _spawned_by(parent)
        return spawned.get(child.id) or _telling_message(parent, child)

    def _taken_back(self) -> dict[str, list[str]]:
        """Returns by session the turns that were taken back and that nothing goes on from.

        Sessions that share turns name each other's as well: where both were put back behind the
        same turn, all that came after it has to go at once.
        """
        standing: set[str] = set()
        for chain in self.chains.values():
            at = chain.end
            while at is not None and at not in standing:
                standing.add(at)
                at = self.predecessors[at]
        waiting = {said_by(one) for chain in self.chains.values() for one in chain.waiting}
        own = {
            name: [
                turn.id
                for turn in chain.turns
                if turn.is_taken_back
                and turn.id not in standing
                and self.owners[turn.id] == name
                and said_by(turn.message) not in waiting
            ]
            for name, chain in self.chains.items()
        }
        found: dict[str, list[str]] = {}
        for names in self._sharing():
            gone = {name: own[name] for name in names if own[name]}
            for name in names:
                others = (turn for one, turns in gone.items() if one != name for turn in turns)
                found[name] = [*own[name], *others]
        return found

    def _sharing(self) -> list[set[str]]:
        """Returns the sessions by whether they reach a turn that another of them said."""
        groups: dict[str, set[str]] = {}
        for name, chain in self.chains.items():
            owners = {name, *(self.owners[turn.id] for turn in chain.turns)}
            joined = set[str]().union(owners, *(groups.get(owner, ()) for owner in owners))
            groups.update(dict.fromkeys(joined, joined))
        return list({id(group): group for group in groups.values()}.values())


def _rests_on(sessions: Collection[SessionRecord]) -> dict[str, set[str]]:
    """Returns by session those that must come before it: its parent, and what it is a fork of."""
    return {
        one.id: {
            *([one.parent] if one.parent is not None else []),
            *([one.origin.session] if one.origin is not None else []),
        }
        for one in sessions
    }


def _turn_at(chain: Chain, origin: Origin) -> str | None:
    """Returns the last turn that a fork shares with its origin."""
    if origin.message is None:
        return chain.end
    messages = sorted(chain.record.messages, key=lambda message: message.place)
    ids = [message.id for message in messages]
    if origin.message not in ids:
        return None
    end = ids.index(origin.message) + (1 if origin.includes else 0)
    return next((chain.at[one] for one in reversed(ids[:end]) if one in chain.at), None)


def _spawned_by(parent: Chain) -> dict[str, Message]:
    """Returns the sub-agents' sessions that messages name, each with the first that does."""
    said = [*(turn.message for turn in parent.turns), *parent.record.messages]
    said += [one.message for one in parent.record.removed]
    found: dict[str, Message] = {}
    for message in said:
        for session in message.spawned:
            found.setdefault(session, message)
    return found


def _telling_message(parent: Chain, child: SessionRecord) -> Message | None:
    """Returns the last message that told a sub-agent its task, None where none is known."""
    first = min(child.messages, key=lambda message: message.place, default=None)
    if first is None:
        return None
    told = [
        one
        for one in parent.record.messages
        if first.text in one.tasks and one.place[0] <= first.place[0]
    ]
    return max(told, key=lambda message: message.place, default=None)


def _standing_at(chain: Chain, moment_ms: int) -> str | None:
    """Returns the last turn that was said before a moment."""
    before = [
        turn.id
        for turn in chain.turns
        if not turn.is_taken_back and (turn.message.said_ms or 0) <= moment_ms
    ]
    return before[-1] if before else None
