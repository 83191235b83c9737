"""The graph of one OpenProgram session: which nodes are turns, and how they hang together.

The conversation is what `predecessor` leads through. Calls of tools, and what a tool asked a model
by itself, hang beside it by `caller`; they are turns only where the conversation goes on from them.
Nodes that nobody said are passed through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from turnmark_session_store.transcripts.openprogram.nodes import Node
from turnmark_session_store.transcripts.openprogram.words import (
    is_machinery,
    is_pointer,
    is_rewound,
    is_unfinished,
)
from turnmark_session_store.transcripts.ordering import cut_cycles, in_order


class _Behind(NamedTuple):
    """The turn before a node; `is_lost` says that the way there ends at nothing, or in a circle."""

    turn: str | None
    is_lost: bool


class SessionGraph:
    """One session's nodes, resolved.

    `parents` are the turns, parents and callers first, each with the one before it; `callers` maps
    the first turns of sub-agents to the turns that they were spawned from. `lost` are turns whose
    predecessor is nowhere; `inner` were said inside a tool. `taken_back` are the turns that a
    record retracts and that nothing live hangs from; `tips` are the leaves of the others, `head`
    is where the agent is, one of the live turns.
    """

    def __init__(self, nodes: Mapping[str, Node], head: str | None) -> None:
        self.nodes = dict(sorted(nodes.items(), key=lambda item: item[1].place))
        self._passed: dict[str, _Behind] = {}
        self._above: dict[str, str | None] = {}
        said = [key for key, node in self.nodes.items() if self._is_said(node)]
        parents = self._with_what_they_rest_on(said)
        self.lost = {key for key in parents if self._behind(key).is_lost}
        order = [key for key in self.nodes if key in parents]
        in_place = {key: parents[key] for key in order}
        self.lost.update(cut_cycles(in_place, order))
        self.parents = in_place
        self.callers = self._callers()
        self.parents = {key: in_place[key] for key in in_order(order, self._rests_on())}
        self.inner = {key for key in self.parents if self._is_inner(self.nodes[key])}
        live = self._live()
        self.taken_back = tuple(key for key in self.parents if key not in live)
        self.tips = self._leaves(live)
        self.head = self._head(head, live)

    def _callers(self) -> dict[str, str]:
        roots = ((key, self.nodes[key]) for key in self.parents)
        found = {key: self.turn_above(node.caller) for key, node in roots if node.is_spawn_root}
        return {key: caller for key, caller in found.items() if caller not in (None, key)}

    def _rests_on(self) -> dict[str, tuple[str, ...]]:
        edges = ((key, (parent, self.callers.get(key))) for key, parent in self.parents.items())
        return {key: tuple(one for one in both if one is not None) for key, both in edges}

    def turn_above(self, key: str | None) -> str | None:
        """Returns the turn that `key` is, or that it was called from; None if it leads nowhere."""
        passed: list[str] = []
        while key is not None and key not in self.parents and key not in self._above:
            if key not in self.nodes:
                return None
            self._above[key] = None  # as long as the way may lead back here
            passed.append(key)
            node = self.nodes[key]
            key = node.caller or node.predecessor
        found = self._above.get(key, key) if key is not None else None
        self._above.update(dict.fromkeys(passed, found))
        return found

    def _is_said(self, node: Node) -> bool:
        """Tells whether a node is part of the conversation for its own sake."""
        if node.role == "code" or is_machinery(node) or is_pointer(node) or is_unfinished(node):
            return False
        return not self._is_inner(node)

    def _is_inner(self, node: Node) -> bool:
        """Tells whether a node was said to or by a tool, and not in the conversation."""
        if node.is_spawn_root or node.caller is None:
            return False
        caller = self.nodes.get(node.caller)
        return caller is not None and (caller.role == "code" or node.predecessor is None)

    def _with_what_they_rest_on(self, said: Iterable[str]) -> dict[str, str | None]:
        parents: dict[str, str | None] = {}
        waiting = list(said)
        while waiting:
            key = waiting.pop()
            if key in parents:
                continue
            before = self._behind(key).turn
            parents[key] = before
            if before is not None:
                waiting.append(before)
        return parents

    def _behind(self, key: str) -> _Behind:
        """Returns what a node hangs from, past all that nobody said; each way is gone once."""
        passed: list[str] = []
        at = self.nodes[key].predecessor
        while at is not None and at not in self._passed:
            node = self.nodes.get(at)
            if node is None or not is_machinery(node):
                break
            self._passed[at] = _Behind(turn=None, is_lost=True)  # a circle leads nowhere
            passed.append(at)
            at = node.predecessor
        if at is None:
            found = _Behind(turn=None, is_lost=False)
        elif at in self._passed:
            found = self._passed[at]
        else:
            found = _Behind(turn=at if at in self.nodes else None, is_lost=at not in self.nodes)
        self._passed.update(dict.fromkeys(passed, found))
        return _Behind(turn=None, is_lost=True) if found.turn == key else found

    def _live(self) -> set[str]:
        """Returns the turns that stand, and those that something that stands hangs from."""
        live: set[str] = set()
        for key in reversed(list(self.parents)):
            if key not in live and is_rewound(self.nodes[key]):
                continue
            at: str | None = key
            while at is not None and at not in live:
                live.add(at)
                at = self.parents[at]
        return live

    def _leaves(self, live: Collection[str]) -> tuple[str, ...]:
        inner = {self.parents[key] for key in live}
        return tuple(key for key in self.parents if key in live and key not in inner)

    def _head(self, head: str | None, live: Collection[str]) -> str | None:
        """Returns the turn at the program's pointer, else before it; the last tip without one."""
        at = self.turn_above(head)
        while at is not None and at not in live:
            at = self.parents[at]
        if at is None and self.tips:
            spawned = self._spawned()
            at = max(self.tips, key=lambda key: (key not in spawned, self.nodes[key].place))
        return at

    def _spawned(self) -> set[str]:
        """Returns the turns of sub-agents' branches."""
        found: set[str] = set()
        for key, parent in self.parents.items():
            if parent in found or self.nodes[key].is_spawn_root:
                found.add(key)
        return found
