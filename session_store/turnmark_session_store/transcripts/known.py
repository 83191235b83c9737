"""What the store holds of sessions that are read together, and what of them comes next.

Turns are known by their ids within a namespace: the agent's where its ids are global, else that of
the family. A session's namespace is the one that the store gave it; one that the store doesn't know
is given that of the session it was forked from, else one of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from turnmark_session_store.fences import cut_fences
from turnmark_session_store.identity import PreparedTurn, content_digest
from turnmark_session_store.imports import ImportPlan
from turnmark_session_store.model import Kind, MemoryMode
from turnmark_session_store.names import FAMILY, is_family
from turnmark_session_store.recordable import text_of
from turnmark_session_store.store import SessionStore
from turnmark_session_store.transcripts.live import Standing
from turnmark_session_store.transcripts.placing import (
    StoredTurn,
    find_namespaces,
    find_stored,
    plan_of,
)
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be placed of one session; ids are those of the store.

    `turns` are the new ones, `read` tells the rest, its namespace always. `origins` maps a turn
    that is a new wording to the record's own id. `more_tips` are new wordings of turns that are no
    tips.
    """

    read: ReadSession
    turns: tuple[ReadTurn, ...]
    origins: dict[str, str]
    more_tips: tuple[str, ...]

    def plan(self, prepared: Sequence[PreparedTurn], memory: MemoryMode) -> ImportPlan:
        """Returns the plan that places it; `prepared` are its turns made ready."""
        mode = None if memory == "on" else memory
        return plan_of(self.read, self.turns, prepared, more_tips=self.more_tips, memory=mode)


class Known:
    """The turns of some sessions that are known to be in the store, by namespace and id."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, StoredTurn]] = {}
        self._namespaces: dict[str, str] = {}
        self._told: dict[str, Any] = {}

    @property
    def ids(self) -> set[str]:
        """The ids of all of them."""
        return set[str]().union(*self.stored.values())

    @property
    def owners(self) -> set[str]:
        """The sessions under which they were appended."""
        return {turn.session for turns in self.stored.values() for turn in turns.values()}

    async def look_up(
        self,
        store: SessionStore,
        ids: Collection[str],
        *,
        sessions: Collection[str],
        namespace: str | None,
    ) -> None:
        """Learns which of `ids` are in the store: in `namespace`, or in those of `sessions`."""
        if namespace is None:
            self._namespaces |= await store.read(partial(find_namespaces, sessions=sessions))
        here = {self._namespaces[one] for one in sessions if one in self._namespaces}
        for name in sorted(here) if namespace is None else [namespace]:
            stored = self.stored.setdefault(name, {})
            unknown = [one for one in ids if one not in stored]
            stored |= await store.read(partial(find_stored, namespace=name, ids=unknown))

    def join(self, other: Known) -> None:
        """Takes over what another knows."""
        for namespace, turns in other.stored.items():
            self.stored.setdefault(namespace, {}).update(turns)
        self._namespaces |= other._namespaces
        self._told |= other._told

    def works(self, standing: Standing, *, rewritten: bool) -> list[Work]:
        """Returns what is to be placed, each session after what it rests on.

        Only where words may have been `rewritten` are those compared that are in the store.
        """
        names = {
            namespace: {key: one.latest for key, one in stored.items() if one.latest != key}
            for namespace, stored in self.stored.items()
        }
        works: list[Work] = []
        for read in standing.sessions:
            namespace = self._namespace_of(read)
            named = msgspec.structs.replace(read, namespace=namespace)
            renamed = names.setdefault(namespace, {})
            works.append(self._work(named, standing, renamed, rewritten=rewritten))
        return [one for one in works if one.turns or self._told.get(one.read.session) != _tale(one)]

    def was_placed(self, work: Work, prepared: Sequence[PreparedTurn]) -> None:
        """Notes that a work is in the store."""
        stored = self.stored.setdefault(work.read.namespace or "", {})
        for turn, ready in zip(work.turns, prepared, strict=True):
            latest = turn.turn.id or ""
            stored[work.origins.get(latest, latest)] = StoredTurn(
                session=work.read.session, latest=latest, digest=ready.digest, gone=False
            )
        self._told[work.read.session] = _tale(work)

    def _namespace_of(self, read: ReadSession) -> str:
        """Returns the namespace of a session's turns, as its import would choose it."""
        if read.namespace is not None and not is_family(read.namespace):
            return read.namespace
        origin = read.forked_from.session if read.forked_from is not None else read.session
        for session in (read.session, origin):
            if session in self._namespaces:
                return self._namespaces.setdefault(read.session, self._namespaces[session])
        family = read.namespace or f"{FAMILY}{read.session}"
        return self._namespaces.setdefault(read.session, family)

    def _work(
        self, read: ReadSession, standing: Standing, names: dict[str, str], *, rewritten: bool
    ) -> Work:
        """Returns what is new in a session; adds the names of new wordings to `names`."""
        stored = self.stored.get(read.namespace or "", {})
        turns: list[ReadTurn] = []
        origins: dict[str, str] = {}
        replaces = _replaced(standing, stored)
        late = [
            old.latest
            for new, old in replaces.items()
            if new in stored and old.session == read.session
        ]
        read = msgspec.structs.replace(read, taken_back=(*read.taken_back, *late))
        for one in read.turns:
            key = one.turn.id or ""
            known = stored.get(key)
            if known is None:
                old = replaces.get(key)
                turns.append(_superseding(one, key, old.latest if old else None))
            elif rewritten and _says_otherwise(one, known):
                latest = names[key] = _next_wording(key, known.latest)
                origins[latest] = key
                turns.append(_superseding(one, latest, known.latest))
        renamed = _renamed(_with_origin(read, stored), names)
        return Work(
            read=renamed,
            turns=tuple(_behind(turn, names) for turn in turns),
            origins=origins,
            more_tips=tuple(latest for latest in origins if latest not in renamed.tips),
        )


def _with_origin(read: ReadSession, stored: Mapping[str, StoredTurn]) -> ReadSession:
    """Leaves out a fork point that the session itself said first.

    While a fork's file is being copied it has nothing of its own yet, and looks like the origin.
    """
    point = read.forked_from
    known = stored.get(point.turn or "") if point is not None else None
    if known is None or known.session != read.session:
        return read
    return msgspec.structs.replace(read, forked_from=None)


def _replaced(standing: Standing, stored: Mapping[str, StoredTurn]) -> dict[str, StoredTurn]:
    """Maps records to the turn in the store whose place they take.

    The record may be in the store already, from a fork whose file was read further: then nothing
    comes that could replace the turn, and it is taken back.
    """
    found: dict[str, StoredTurn] = {}
    for old in standing.replaced:
        known = stored.get(old)
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


def _says_otherwise(one: ReadTurn, known: StoredTurn) -> bool:
    """Returns whether a record's words were changed in place since they were stored.

    What a sub-agent was told is of another kind while its caller is not there, and no other words.
    """
    turn = one.turn
    if known.gone or turn.caller is not None:
        return False
    raw = cut_fences(text_of(turn.text))
    speaker = turn.speaker.id if turn.speaker is not None else None
    is_task = turn.role == "user" and turn.kind == "runtime" and one.predecessor is None
    kinds: tuple[Kind, ...] = (turn.kind, "turn") if is_task else (turn.kind,)
    return known.digest not in (content_digest(turn.role, kind, speaker, raw) for kind in kinds)


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
