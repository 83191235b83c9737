"""What every reader of transcripts gives back, whatever the agent stores: sessions of turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from pathlib import Path, PurePath
from typing import Protocol

import msgspec

from turnmark_session_store.model import CallerRef, TurnIn
from turnmark_session_store.requests import ForkPoint


class ReadWarning(msgspec.Struct, frozen=True, kw_only=True):
    """One record that could not be taken as it stands; the rest of its file was read.

    `file` is the path as the reader was given it, `line` counts from 1 (0: the whole file).
    `reason` never quotes the record.
    """

    file: str
    line: int
    reason: str


class ReadTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a transcript, with its place in the DAG.

    `turn.id` is always set, `turn.metadata["origin"]` holds `{"file": name, "line": n}`.
    `predecessor` is the id of a turn of this session or of one that was yielded before it; None is
    a root, with `lost_predecessor` if the record named a predecessor that is nowhere in the set.
    `session` is where it was first said, which is the session that lists it wherever that session
    is part of the set.
    """

    turn: TurnIn
    predecessor: str | None
    session: str
    lost_predecessor: bool = False


class ReadSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a transcript.

    `turns` are the turns that this session adds to the set, parents before children; a turn that an
    earlier session said is not listed again. `tips` are the leaves that the session reaches, also
    where they belong to an earlier session; `head` is one of them, or a turn above one where the
    agent was moved to it, or None if nothing is live.
    `taken_back` are turns of which a record says that they were retracted: they stand in `turns`,
    nothing that is live hangs from them, and they are no tips. `namespace` is None where ids are
    those of the family, or names one (`family:<session>`): a guess, for a session that the store
    doesn't know and that was not forked from one it does. `forked_from` is a pointer: its session
    and turn need not be part of the set.
    """

    session: str
    agent: str
    title: str | None = None
    project: str | None = None
    namespace: str | None = None
    forked_from: ForkPoint | None = None
    caller: CallerRef | None = None
    turns: tuple[ReadTurn, ...] = ()
    tips: tuple[str, ...] = ()
    head: str | None = None
    taken_back: tuple[str, ...] = ()
    warnings: tuple[ReadWarning, ...] = ()


def predecessors_first(sessions: Iterable[ReadSession]) -> Iterator[ReadSession]:
    """Yields sessions so that each turn is listed once, and none before its predecessor.

    They may form a circle: an origin whose file lost a record goes on from the copy of it that its
    fork still holds. What is only there is then listed by the first session that rests on it. And
    a fork that lost its pointer holds copies that nothing else tells from its own.
    """
    ordered = list(sessions)
    later: dict[str | None, tuple[ReadSession, ReadTurn]] = {}
    for one in ordered:
        for turn in one.turns:
            later.setdefault(turn.turn.id, (one, turn))
    for one in ordered:
        listed: list[ReadTurn] = []
        for turn in one.turns:
            above: list[ReadTurn] = []
            found = later.pop(turn.turn.id, None)
            while found is not None:
                owner, at = found
                is_own = owner is one
                above.append(at if is_own else msgspec.structs.replace(at, session=one.session))
                found = later.pop(at.predecessor, None)
            listed += reversed(above)
        is_same = len(listed) == len(one.turns) and all(map(is_, listed, one.turns))
        yield one if is_same else msgspec.structs.replace(one, turns=tuple(listed))


def is_within(project: str | None, directories: Sequence[PurePath]) -> bool:
    """Returns whether a project is one of these directories or below one."""
    return project is not None and any(map(PurePath(project).is_relative_to, directories))


class SkippingReader:
    """What readers share that pass over what began in some directories, and what hangs from it.

    turnmark's own writer works in `skip_directories`, and memory must not feed on itself.
    """

    def __init__(self, *, skip_directories: Sequence[Path] = ()) -> None:
        self._skip_directories = tuple(skip_directories)


class Reader(Protocol):
    """Reads the transcripts of one agent."""

    @property
    def agent(self) -> str:
        """The agent's name, as in the configuration's `[transcripts]`."""
        ...

    def recognises(self, path: Path, head: bytes) -> bool:
        """Returns whether `path`, whose first bytes are `head`, is a transcript of this agent."""
        ...

    def read(self, paths: Sequence[Path]) -> Iterator[ReadSession]:
        """Yields the sessions of a set of finished transcripts; blocks on disk.

        All pointers of the set are resolved before the first session is yielded, and the origin of
        a fork or of a sub-agent comes before it. The order of `paths` makes no difference.

        Raises:
            Unavailable: if a file cannot be read.
        """
        ...
