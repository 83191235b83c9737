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
from turnmark_session_store.transcripts.opencode_records import Message
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

    `at` maps each message, also one that is no turn, to the turn that stood last with it. `waiting`
    are the messages from the first one on to which more may come.
    """

    record: SessionRecord
    turns: list[ChainTurn] = field(default_factory=list[ChainTurn])
    at: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    waiting: list[Message] = field(default_factory=list[Message])

    @property
    def end(self) -> str | None:
        """The turn at which the session stands."""
        standing = (turn.id for turn in reversed(self.turns) if not turn.is_taken_back)
        return next(standing, None)

    def open_until(self, patience: Patience) -> float | None:
        """Returns when the first message that waits is given out, in seconds since 1970."""
        if not self.waiting:
            return None
        first = self.waiting[0]
        is_user = first.role == "user"
        seconds = patience.quiet_seconds if is_user else patience.orphan_seconds
        return first.touched_ms / 1000 + seconds


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
    chain = Chain(record=record)
    numbers: dict[str, int] = {}
    ordered = _ordered(record)
    open_from = _open_from(ordered, open_since)
    standing: str | None = None
    gone: list[tuple[str, int]] = []
    for index, (message, removed) in enumerate(ordered):
        if index == open_from:
            chain.waiting = [one for one, lost in ordered[index:] if lost is None]
            break
        before = standing
        if removed is not None:
            before = next((key for key, until in reversed(gone) if until > removed.said_at), before)
        if message.is_said:
            kind = _kind_in(record, message, told)
            key = _turn_id(message, kind, numbers)
            chain.turns.append(
                ChainTurn(
                    id=key,
                    message=message,
                    kind=kind,
                    before=before,
                    is_taken_back=removed is not None,
                )
            )
            if removed is None:
                standing = key
                gone.clear()
            else:
                gone.append((key, removed.removed_at))
            before = key
        chain.at[message.id] = before
    return chain


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


def _turn_id(message: Message, kind: Kind, numbers: dict[str, int]) -> str:
    """Returns a turn's id; what is said again in the same millisecond is numbered."""
    if message.made_ms is None:
        return message.id
    digest = content_digest(message.role, kind, None, message.text).hex()[:_ID_DIGITS]
    own = f"msg-{message.made_ms}-{digest}"
    number = numbers[own] = numbers.get(own, 0) + 1
    return own if number == 1 else f"{own}.{number}"


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
