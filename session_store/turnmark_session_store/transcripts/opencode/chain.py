"""The turns of one session of opencode: their ids, their order, and what was taken back.

Copies of a message have other ids than the message, and nothing points from one to the other: what
they keep is when it was made, by whom, and the words. So these make the id of a turn, and a fork's
copy, its origin, a second store and an export all come to the same turn, whichever is read first.
The project is left out: a session changes it when its directory becomes a repository. The same
words made in the same millisecond by the same side are taken for copies of each other.

Messages of the program's first version, which copied nothing, keep their own ids.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from turnmark_session_store.identity import content_digest
from turnmark_session_store.model import Kind
from turnmark_session_store.transcripts.live import Patience
from turnmark_session_store.transcripts.opencode.records import Message
from turnmark_session_store.transcripts.opencode.words import PART_BREAK
from turnmark_session_store.transcripts.reader import ReadWarning

_ID_DIGITS = 16


# Where the log of a session ends, and behind that.
_LOG_END, _BEHIND_LOG = 2**63 - 1, 2**63


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a record says was taken back.

    `said_at` and `removed_at` are places in the session's log; what the session's own marker takes
    back was said before that, and is the last that was taken.
    """

    message: Message
    said_at: int = _LOG_END
    removed_at: int = _BEHIND_LOG

    @property
    def by_marker(self) -> bool:
        """Whether the session's marker says so, and not its log."""
        return self.removed_at == _BEHIND_LOG


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a session says that it was forked: a session, and a message of it.

    `includes` says whether that message is the last that both share, or the first that they don't.
    """

    session: str
    message: str | None
    includes: bool


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A session as one store tells it. `messages` are those that stand, in any order.

    `rank` is the higher the more the store is to be believed. `by_program` says that nobody is
    spoken to there. Times are in milliseconds since 1970.
    """

    id: str
    rank: int
    title: str | None
    project: str | None
    parent: str | None
    created_ms: int
    updated_ms: int
    messages: tuple[Message, ...]
    removed: tuple[Removed, ...] = ()
    origin: Origin | None = None
    by_program: bool = False
    warnings: tuple[ReadWarning, ...] = ()


class Open(NamedTuple):
    """Since when (milliseconds) what was typed, and what was answered, may still grow."""

    typed_ms: int
    answered_ms: int


NOTHING_IS_OPEN = Open(2**63, 2**63)
"""For finished stores."""


class Said(NamedTuple):
    """What two copies of a message have in common, whatever is known of who was spoken to."""

    made_ms: int | None
    role: str
    text: str


@dataclass(kw_only=True, eq=False, slots=True)
class ChainTurn:
    """One turn of a session; `before` is what stood last when it was said, None for nothing."""

    id: str
    message: Message
    kind: Kind
    before: str | None
    is_taken_back: bool


@dataclass(kw_only=True, eq=False, slots=True)
class Chain:
    """The turns of a session, each once, in its order.

    `at` maps each message, also one that is no turn, to the turn that stood last with it. `open` is
    the first message to which more may come, and `waiting` are the messages that wait for it. It
    waits itself unless it is an answer whose first pieces are whole: these are a turn.
    """

    record: SessionRecord
    turns: list[ChainTurn] = field(default_factory=list[ChainTurn])
    at: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    open: Message | None = None
    waiting: list[Message] = field(default_factory=list[Message])

    @property
    def end(self) -> str | None:
        """The turn at which the session stands."""
        standing = (turn.id for turn in reversed(self.turns) if not turn.is_taken_back)
        return next(standing, None)

    def open_until(self, patience: Patience) -> float | None:
        """Returns when the open message counts as whole, in seconds since 1970, if there is one."""
        if self.open is None:
            return None
        is_user = self.open.role == "user"
        seconds = patience.quiet_seconds if is_user else patience.orphan_seconds
        return self.open.touched_ms / 1000 + seconds


def said_by(message: Message) -> Said:
    """Returns what a copy of a message has in common with it."""
    return Said(message.made_ms, message.role, message.text)


def told_agents(sessions: Collection[SessionRecord]) -> set[Said]:
    """Returns what sub-agents were told: a copy of it is no person's either."""
    return {
        said_by(message)
        for session in sessions
        if session.parent is not None
        for message in session.messages
        if message.role == "user" and message.made_ms is not None
    }


def chain_of(record: SessionRecord, told: Collection[Said], *, open_since: Open) -> Chain:
    """Returns the turns of a session.

    What was written after `open_since` and does not say that it is whole may still grow, and so it
    waits, with all that comes after it. `told` are the tasks of sub-agents.
    """
    ordered = _ordered(record)
    open_from = _open_from(ordered, open_since)
    chaining = _Chaining(record, told)
    for message, removed in ordered[:open_from]:
        chaining.chain.at[message.id] = chaining.add(message, removed)
    if open_from < len(ordered):
        chaining.leave_open(ordered[open_from:])
    return chaining.chain


class _Chaining:
    """Makes a chain of messages in their order."""

    def __init__(self, record: SessionRecord, told: Collection[Said]) -> None:
        self.chain = Chain(record=record)
        self._told = told
        self._numbers: dict[str, int] = {}
        self._standing: str | None = None
        self._gone: list[tuple[str, int]] = []

    def add(self, message: Message, removed: Removed | None) -> str | None:
        """Adds the next message; returns the turn that stands last with it."""
        before = self._before(removed)
        if not message.is_said:
            return before
        kind = _kind_in(self.chain.record, message, self._told)
        key = _numbered_id(message, kind, self._numbers)
        turn = ChainTurn(
            id=key, message=message, kind=kind, before=before, is_taken_back=removed is not None
        )
        self.chain.turns.append(turn)
        if removed is None:
            self._standing = key
            self._gone.clear()
        else:
            self._gone.append((key, removed.removed_at))
        return key

    def leave_open(self, rest: Sequence[tuple[Message, Removed | None]]) -> None:
        """Adds what is whole of a message to which more may come, and lets what follows wait."""
        [(message, removed), *others] = rest
        self.chain.open = message
        if message.ended:
            self.add(_as_far_as_whole(message), removed)
        waiting = others if message.ended else rest
        self.chain.waiting = [one for one, gone in waiting if gone is None]

    def _before(self, removed: Removed | None) -> str | None:
        """Returns what stood last when a message was said, also if it was taken back later."""
        if removed is None:
            return self._standing
        there = (key for key, until in reversed(self._gone) if until > removed.said_at)
        return next(there, self._standing)


def _as_far_as_whole(message: Message) -> Message:
    """Returns an answer with those of its first pieces that are whole."""
    pieces = message.pieces[: message.ended]
    return msgspec.structs.replace(message, pieces=pieces, text=PART_BREAK.join(pieces))


def earlier_ids(turn: ChainTurn) -> list[str]:
    """Returns the ids that an answer had while it was written: with fewer pieces, not stopped yet.

    They are those of a turn that is said once in its millisecond, as all are in fact.
    """
    message = turn.message
    if message.made_ms is None:
        return []
    texts = (PART_BREAK.join(message.pieces[:count]) for count in range(1, len(message.pieces) + 1))
    ids = (turn_id(message, "turn", text) for text in texts)
    return [one for one in ids if one != turn.id]


def _ordered(record: SessionRecord) -> list[tuple[Message, Removed | None]]:
    """Returns the messages in order, each with what took it back; those that are there win."""
    ids = {message.id for message in record.messages}
    marked: list[tuple[Message, Removed | None]] = [(one, None) for one in record.messages]
    marked += [(one.message, one) for one in record.removed if one.message.id not in ids]
    return sorted(marked, key=lambda one: one[0].place)


def _open_from(ordered: Sequence[tuple[Message, Removed | None]], open_since: Open) -> int:
    """Returns the index of the first message that may still grow, else how many there are.

    What was typed stands when anything follows it, an answer when another one does.
    """
    there = [at for at, (_, removed) in enumerate(ordered) if removed is None]
    answers = [at for at in there if ordered[at][0].role == "assistant"]
    ends = ((answers[-1:], open_since.answered_ms), (there[-1:], open_since.typed_ms))
    for [*last], since in ends:
        for at in last:
            message = ordered[at][0]
            if not message.is_whole and message.touched_ms > since:
                return at
    return len(ordered)


def _kind_in(record: SessionRecord, message: Message, told: Collection[Said]) -> Kind:
    """Returns the kind of a turn: what a sub-agent is told is no person's."""
    if message.role != "user":
        return message.kind
    by_agent = record.parent is not None or said_by(message) in told
    return "runtime" if by_agent else message.kind


def _numbered_id(message: Message, kind: Kind, numbers: dict[str, int]) -> str:
    """Returns a turn's id; what is said again in the same millisecond is numbered."""
    if message.made_ms is None:
        return message.id
    own = turn_id(message, kind, message.text)
    number = numbers[own] = numbers.get(own, 0) + 1
    return own if number == 1 else f"{own}.{number}"


def turn_id(message: Message, kind: Kind, text: str) -> str:
    """Returns the id of what a message says, by its moment and its words."""
    digest = content_digest(message.role, kind, None, text).hex()[:_ID_DIGITS]
    return f"{digest}-{message.made_ms}"


def best_of_each(sessions: Sequence[SessionRecord]) -> list[SessionRecord]:
    """Returns each session once, as the store tells it that is to be believed most.

    A store that has none of its messages says nothing of it.
    """
    best: dict[str, SessionRecord] = {}
    for one in sessions:
        other = best.get(one.id)
        if other is None or _weight(other) < _weight(one):
            best[one.id] = one
    return list(best.values())


def _weight(one: SessionRecord) -> tuple[bool, int, int, int]:
    return bool(one.messages or one.removed), one.rank, one.updated_ms, len(one.messages)


def without_sessions(
    sessions: Collection[SessionRecord], left_out: Collection[str]
) -> list[SessionRecord]:
    """Leaves sessions out, with all sub-agents that they and these began."""
    out = set(left_out)
    parents: Mapping[str, str | None] = {one.id: one.parent for one in sessions}
    while more := {name for name, parent in parents.items() if parent in out and name not in out}:
        out |= more
    return [one for one in sessions if one.id not in out]


def without_program(sessions: Collection[SessionRecord]) -> list[SessionRecord]:
    """Leaves out the sessions in which the program talks to itself."""
    return without_sessions(sessions, {one.id for one in sessions if one.by_program})
