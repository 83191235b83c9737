"""How transcripts of OpenClaw rest on each other: which are one session, and which belong together.

The program calls a transcript a window on a conversation. It begins a new one whenever it wants to
be sure that nobody writes into the old one, and says why:

- `rewind`, `switch`, `compaction` and `recovery` go on with what was there: the new window holds it
  again, or hangs from it. Both are one session, under the name of the first window.
- `reset` and `rollover` begin with nothing: a new session, no fork. So does any other reason.
- a fork holds what stood before the fork again, in a conversation of its own: a session that was
  forked from another one.
- a sub-agent has a conversation of its own, too, and names the one that its task came from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping

import msgspec

_CONTINUING = ("rewind", "switch", "compaction", "recovery")
_REWIND = "rewind"
# Parts of a conversation's key: `agent:<agent>:subagent:<id>`, `agent:<agent>:cron:<job>`.
_AGENT_KEY = "agent"
_AGENT_PARTS = ("subagent",)
_SCHEDULED_PARTS = ("cron", "hook", "heartbeat")
# Behind every name in an order.
_LAST_NAME = "\U0010ffff"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a transcript besides its entries; None is what nobody says.

    `conversation` is the key of the conversation, `origin` the transcript that this one is a fork
    of, `spawned_by` the key of the conversation that began this one for a sub-agent. `external`
    names where third parties write from. `withdrawn` says that the user took it out of memory.
    `is_lasting` says that all of it is known for as long as the transcript is: an index of files
    names only the transcripts in which conversations are now. `touched_ms` is when an entry was
    added last, `speaker` the name of the one person on the other side of a direct chat.
    """

    session: str
    conversation: str | None = None
    previous: str | None = None
    reason: str | None = None
    origin: str | None = None
    spawned_by: str | None = None
    created_ms: int | None = None
    touched_ms: int | None = None
    title: str | None = None
    channel: str | None = None
    external: str | None = None
    created_via: str | None = None
    speaker: str | None = None
    withdrawn: bool = False
    is_lasting: bool = True

    @property
    def continued(self) -> str | None:
        """The transcript that this one goes on with, in the same session."""
        return self.previous if self.reason in _CONTINUING else None

    @property
    def is_rewind(self) -> bool:
        """Whether a person took words back, and this transcript begins with that."""
        return self.reason == _REWIND

    @property
    def is_agent(self) -> bool:
        """Whether another agent spawned it."""
        return self.spawned_by is not None or self._has_part(_AGENT_PARTS)

    @property
    def is_told(self) -> bool:
        """Whether what stands there with the role of the user is no person's unless it says so.

        What is not lasting doesn't count: a turn is of one kind, whenever it is read.
        """
        return self.is_lasting and (
            self.is_agent
            or self.external is not None
            or self.created_via == "cron"
            or self._has_part(_SCHEDULED_PARTS)
        )

    def _has_part(self, parts: Iterable[str]) -> bool:
        """Returns whether a conversation's key begins or ends with one, behind the agent's name."""
        key = (self.conversation or "").split(":")
        own = key[2:] if key[0] == _AGENT_KEY else key
        return not set(parts).isdisjoint(own[:1] + own[-1:])


class Windows:
    """The transcripts of a set, the oldest first, and how they hang together.

    `sessions` maps each to the name of its session, `families` to the name of its family: what
    must be read together; `members` are those of each family. A name is a transcript's, also of
    one that is not there any more, and stays the same while others come.
    """

    def __init__(self, facts: Iterable[Facts]) -> None:
        self.facts = {one.session: one for one in sorted(facts, key=_age)}
        self._conversations: dict[str, list[tuple[int, str]]] = {}
        for one in self.facts.values():
            self._conversations.setdefault(one.conversation or "", []).append(_age(one))
        self.spawners = {
            name: spawner
            for name, one in self.facts.items()
            if (spawner := self._spawner_of(one)) is not None
        }
        continued = {name: one.continued for name, one in self.facts.items()}
        rests_on = {
            name: one.continued or one.origin or self.spawners.get(name)
            for name, one in self.facts.items()
        }
        self.sessions = _firsts(continued)
        self.families = _firsts(rests_on)
        self.members: dict[str, list[Facts]] = {}
        for name, one in self.facts.items():
            self.members.setdefault(self.families[name], []).append(one)

    def place(self, name: str) -> tuple[int, str]:
        """Returns what orders the transcripts by age."""
        return _age(self.facts[name])

    def rests_on(self, name: str) -> set[str]:
        """Returns the transcripts whose entries one holds again, and the one that spawned it."""
        one = self.facts[name]
        above = (one.previous, one.origin, self.spawners.get(name))
        return {other for other in above if other is not None}

    def _spawner_of(self, one: Facts) -> str | None:
        """Returns the transcript in which the conversation that spawned another stood then."""
        if one.spawned_by is None or one.spawned_by == one.conversation:
            return None
        stood = self._conversations.get(one.spawned_by, [])
        began_before = bisect_right(stood, (one.created_ms or 0, _LAST_NAME))
        return stood[max(0, began_before - 1)][1] if stood else None


def _age(facts: Facts) -> tuple[int, str]:
    return (facts.created_ms or 0, facts.session)


def _firsts(above: Mapping[str, str | None]) -> dict[str, str]:
    """Returns where the way up from each transcript ends; on a circle, its first by name."""
    found: dict[str, str] = {}
    for name in above:
        passed: dict[str, None] = {}
        at = name
        while at not in found and at not in passed:
            passed[at] = None
            at = above.get(at) or at
        if at not in found:
            circle = list(passed)
            found[at] = min(circle[circle.index(at) :])
        found.update(dict.fromkeys(passed, found[at]))
    return found
