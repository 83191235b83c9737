"""A session that is followed, with those it rests on: what is in the store, and what comes next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnmark_session_store.fences import cut_fences
from turnmark_session_store.identity import PreparedTurn, content_digest
from turnmark_session_store.imports import ImportPlan
from turnmark_session_store.model import MemoryMode, TurnIn
from turnmark_session_store.recordable import text_of
from turnmark_session_store.transcripts.checkpoints import Checkpoint
from turnmark_session_store.transcripts.live import LiveSet, Standing
from turnmark_session_store.transcripts.placing import StoredTurn, plan_of
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be placed of one session; ids are those of the store.

    `turns` are the new ones, `read` tells the rest. `origins` maps a turn that is a new wording to
    the record's own id. `more_tips` are new wordings of turns that are no tips.
    """

    read: ReadSession
    turns: tuple[ReadTurn, ...]
    origins: dict[str, str]
    more_tips: tuple[str, ...]

    def plan(self, prepared: Sequence[PreparedTurn], memory: MemoryMode) -> ImportPlan:
        """Returns the plan that places it; `prepared` are its turns made ready."""
        mode = None if memory == "on" else memory
        return plan_of(self.read, self.turns, prepared, more_tips=self.more_tips, memory=mode)


class Followed:
    """Sessions that are read and resolved together. Times are in seconds since 1970.

    `stored` are the turns that are known to be in the store, `due` when to look again although
    nothing changed, `rests_until` before when not to look.
    """

    def __init__(self, session: str, live: LiveSet) -> None:
        self.session = session
        self.sessions: set[str] = set()
        self.live = live
        self.stored: dict[str, StoredTurn] = {}
        self.held: frozenset[str] = frozenset()
        self.due: float | None = None
        self.touched_at = 0.0
        self.rests_until = 0.0
        self._told: dict[str, Any] = {}
        self._saved: dict[Path, Checkpoint] = {}

    def join(self, other: Followed) -> None:
        """Takes over what another knows; that one is then of no use."""
        self.live.take_over(other.live)
        self.sessions |= other.sessions
        self.stored.update(other.stored)
        self._told.update(other._told)
        self._saved.update(other._saved)

    def stand(self, now: float) -> list[Work]:
        """Resolves the files; returns what is to be placed, each session after what it rests on.

        Costs CPU by the records of all files: meant for a thread.
        """
        standing = self.live.stand(self.stored.keys(), now)
        self.held, self.due = standing.held, standing.due
        names = {key: turn.latest for key, turn in self.stored.items() if turn.latest != key}
        works = [self._work(read, standing, names) for read in standing.sessions]
        return [one for one in works if one.turns or self._told.get(one.read.session) != _tale(one)]

    def was_placed(self, work: Work, prepared: Sequence[PreparedTurn]) -> None:
        """Notes that a work is in the store."""
        for turn, ready in zip(work.turns, prepared, strict=True):
            latest = turn.turn.id or ""
            self.stored[work.origins.get(latest, latest)] = StoredTurn(
                session=work.read.session, latest=latest, digest=ready.digest, gone=False
            )
        self._told[work.read.session] = _tale(work)

    def unsaved(self) -> list[Checkpoint]:
        """Returns the checkpoints that moved."""
        found = self.live.checkpoints(self.held)
        return [one for one in found if self._saved.get(one.path) != one]

    def were_saved(self, checkpoints: Collection[Checkpoint]) -> None:
        """Notes that everything up to these checkpoints is in the store."""
        self._saved.update((one.path, one) for one in checkpoints)
        self.live.rewriting_was_seen()

    def _work(self, read: ReadSession, standing: Standing, names: dict[str, str]) -> Work:
        """Returns what is new in a session; adds the names of new wordings to `names`."""
        turns: list[ReadTurn] = []
        origins: dict[str, str] = {}
        replaces = self._replaced(standing)
        late = [
            old.latest
            for new, old in replaces.items()
            if new in self.stored and old.session == read.session
        ]
        read = msgspec.structs.replace(read, taken_back=(*read.taken_back, *late))
        for one in read.turns:
            key = one.turn.id or ""
            known = self.stored.get(key)
            if known is None:
                old = replaces.get(key)
                turns.append(_superseding(one, key, old.latest if old else None))
            elif self.live.rewritten and _says_otherwise(one.turn, known):
                latest = names[key] = _next_wording(key, known.latest)
                origins[latest] = key
                turns.append(_superseding(one, latest, known.latest))
        renamed = _renamed(self._with_origin(read), names)
        return Work(
            read=renamed,
            turns=tuple(_behind(turn, names) for turn in turns),
            origins=origins,
            more_tips=tuple(latest for latest in origins if latest not in renamed.tips),
        )

    def _with_origin(self, read: ReadSession) -> ReadSession:
        """Leaves out a fork point that the session itself said first.

        While a fork's file is being copied it has nothing of its own yet, and looks like the
        origin.
        """
        point = read.forked_from
        known = self.stored.get(point.turn or "") if point is not None else None
        if known is None or known.session != read.session:
            return read
        return msgspec.structs.replace(read, forked_from=None)

    def _replaced(self, standing: Standing) -> dict[str, StoredTurn]:
        """Maps records to the turn in the store whose place they take.

        The record may be in the store already, from a fork whose file was read further: then
        nothing comes that could replace the turn, and it is taken back.
        """
        found: dict[str, StoredTurn] = {}
        for old in standing.replaced:
            known = self.stored.get(old)
            if known is None or known.gone:
                continue
            new = old
            while new in standing.replaced:  # each says more than the one before: no circle
                new = standing.replaced[new]
            found[new] = known
        return found


def _tale(work: Work) -> object:
    read = work.read
    return (read.tips, read.head, read.title, read.taken_back, read.forked_from, read.caller)


def _says_otherwise(turn: TurnIn, known: StoredTurn) -> bool:
    """Returns whether a record's words were changed in place since they were stored."""
    if known.gone or turn.caller is not None:
        return False
    raw = cut_fences(text_of(turn.text))
    return content_digest(turn.role, turn.kind, None, raw) != known.digest


def _next_wording(key: str, latest: str) -> str:
    number = int(latest.removeprefix(f"{key}~")) + 1 if latest != key else 2
    return f"{key}~{number}"


def _superseding(one: ReadTurn, key: str, old: str | None) -> ReadTurn:
    if old is None:
        return one
    turn = msgspec.structs.replace(one.turn, id=key, supersedes=old)
    return msgspec.structs.replace(one, turn=turn)


def _behind(one: ReadTurn, names: Mapping[str, str]) -> ReadTurn:
    """Returns a turn that hangs from the latest wording of its predecessor."""
    if one.predecessor is None or one.predecessor not in names:
        return one
    return msgspec.structs.replace(one, predecessor=names[one.predecessor])


def _renamed(read: ReadSession, names: Mapping[str, str]) -> ReadSession:
    if not names:
        return read
    return msgspec.structs.replace(
        read,
        tips=tuple(names.get(tip, tip) for tip in read.tips),
        head=names.get(read.head, read.head) if read.head else None,
        taken_back=tuple(names.get(turn, turn) for turn in read.taken_back),
    )
