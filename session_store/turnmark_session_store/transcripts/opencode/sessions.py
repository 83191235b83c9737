"""From a resolved set of opencode's sessions to the sessions that a reader gives back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.moments import written_time
from turnmark_session_store.transcripts.opencode.chain import Chain
from turnmark_session_store.transcripts.opencode.set import SessionSet
from turnmark_session_store.transcripts.ordering import in_order, parents_first
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

AGENT = "opencode"
# What a session is called before it has a title of its own.
_NO_TITLE = re.compile(r"(New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z")


class SessionWriter:
    """Makes each session of a set a `ReadSession`.

    Turns that are `held` are left out, as if they had not been said yet; what follows a held turn
    is held as well.
    """

    def __init__(self, sessions: SessionSet, *, held: frozenset[str] = frozenset()) -> None:
        self._set = sessions
        self._held = held
        self._listed: dict[str, list[str]] = {name: [] for name in sessions.chains}
        for turn in parents_first(sessions.predecessors):
            if turn not in held:
                self._listed[sessions.owners[turn]].append(turn)

    def sessions(self) -> Iterator[ReadSession]:
        """Yields each session after those that it rests on."""
        names = list(self._set.chains)
        for name in in_order(names, {name: self._rests_on(name) for name in names}):
            session = self._session(name)
            if session.turns or session.tips or session.warnings:
                yield session

    def _rests_on(self, name: str) -> set[str]:
        before = (self._set.predecessors[turn] for turn in self._listed[name])
        reached = (self._end(name), *before)
        caller = self._set.callers.get(name)
        owners = {self._set.owners[turn] for turn in reached if turn is not None}
        return owners | ({caller.session} if caller else set())

    def _session(self, name: str) -> ReadSession:
        chain = self._set.chains[name]
        record = chain.record
        head = self._end(name)
        title = record.title
        taken_back = self._set.taken_back[name]
        return ReadSession(
            session=name,
            agent=AGENT,
            title=None if title is None or _NO_TITLE.fullmatch(title) else title,
            project=record.project,
            namespace=AGENT,
            forked_from=self._forked_from(chain),
            caller=self._set.callers.get(name),
            turns=tuple(self._turn(turn, name) for turn in self._listed[name]),
            tips=(head,) if head is not None else (),
            head=head,
            taken_back=tuple(turn for turn in taken_back if turn not in self._held),
            warnings=record.warnings,
        )

    def _turn(self, key: str, name: str) -> ReadTurn:
        found, before = self._set.turns[key], self._set.predecessors[key]
        message = found.message
        metadata: dict[str, Any] = {
            "origin": {"file": message.file, "line": 0, "message": message.id}
        }
        if message.model is not None and message.role == "assistant":
            metadata["model"] = message.model
        turn = TurnIn(
            id=key,
            role=message.role,
            kind=found.kind,
            text=message.text,
            time=written_time(message.said_ms),
            caller=self._set.callers.get(name) if before is None else None,
            metadata=metadata,
        )
        return ReadTurn(turn=turn, predecessor=before, session=name)

    def _end(self, name: str) -> str | None:
        """Returns the turn that a session stands at, without what is held."""
        at = self._set.chains[name].end
        while at is not None and at in self._held:
            at = self._set.predecessors[at]
        return at

    def _forked_from(self, chain: Chain) -> ForkPoint | None:
        """Returns the last turn that another session said, else what the session itself says."""
        name = chain.record.id
        shared = self._set.shared_end(name)
        if shared is not None and shared not in self._held:
            return ForkPoint(session=self._set.owners[shared], turn=shared)
        origin, began = chain.record.origin, chain.record.created_ms
        if origin is None or origin.session in self._set.chains:
            return None
        copies = [one.id for one in chain.turns if (one.message.made_ms or began) < began]
        return ForkPoint(session=origin.session, turn=copies[-1]) if copies else None
