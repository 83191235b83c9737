"""From a resolved set of pi's transcripts to the sessions that a reader gives back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.ordering import in_order, upward
from turnmark_session_store.transcripts.pi.set import (
    Key,
    Session,
    SharedTurn,
    TranscriptSet,
    id_of,
)
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

AGENT = "pi"


class SessionWriter:
    """Makes each session of a set a `ReadSession`.

    Turns that are `held` are left out, as if they had not been said yet; what follows a held turn
    is held as well.
    """

    def __init__(self, transcripts: TranscriptSet, *, held: frozenset[Key] = frozenset()) -> None:
        self._set = transcripts
        self._held = held
        self._listed: dict[str, list[Key]] = {name: [] for name in transcripts.sessions}
        for key in transcripts.in_order():
            if key not in held:
                self._listed[transcripts.turns[key].owner].append(key)

    def sessions(self) -> Iterator[ReadSession]:
        """Yields each session after those that it rests on."""
        names = list(self._set.sessions)
        for name in in_order(names, {name: self._rests_on(name) for name in names}):
            session = self._session(self._set.sessions[name])
            if session.turns or session.tips or session.warnings:
                yield session

    def _rests_on(self, name: str) -> set[str]:
        return {self._set.turns[key].owner for key in self._set.sessions[name].reached}

    def _session(self, session: Session) -> ReadSession:
        tips = self._tips(session)
        head = self._head(session, tips)
        point = self._forked_from(session, head, tips)
        return ReadSession(
            session=session.name,
            agent=AGENT,
            title=next((file.title for file in session.files if file.title), None),
            project=next((file.project for file in session.files if file.project), None),
            namespace=session.namespace,
            forked_from=point,
            turns=tuple(self._turn(key) for key in self._listed[session.name]),
            tips=tuple(map(id_of, tips)),
            head=id_of(head) if head is not None else None,
            warnings=tuple(w for file in session.files for w in file.warnings),
        )

    def _turn(self, key: Key) -> ReadTurn:
        shared = self._set.turns[key]
        before = self._set.predecessors[key]
        words, entry = shared.turn.words, shared.turn.entry
        metadata: dict[str, Any] = {"origin": {"file": shared.file.path.name, "line": entry.line}}
        if words.model is not None:
            metadata["model"] = words.model
        if words.cancelled:
            metadata["cancelled"] = True
        turn = TurnIn(
            id=id_of(key),
            role=words.role,
            kind="runtime" if _is_told(shared) else words.kind,
            text=words.text,
            speaker=words.speaker,
            time=entry.time,
            metadata=metadata,
        )
        return ReadTurn(
            turn=turn,
            predecessor=id_of(before) if before is not None else None,
            session=shared.owner,
            lost_predecessor=shared.turn.is_lost,
        )

    def _tips(self, session: Session) -> list[Key]:
        """Returns the leaves that a session reaches, in the order of its files."""
        reached = [key for key in session.reached if key not in self._held]
        inner = {self._set.predecessors[key] for key in reached}
        return [key for key in reached if key not in inner]

    def _head(self, session: Session, tips: list[Key]) -> Key | None:
        """Returns where the longest file stands, else its last turn."""
        line = upward(session.ends[:1], self._set.predecessors.__getitem__)
        last = tips[-1] if tips else None
        return next((at for at in line if at not in self._held), last)

    def _forked_from(self, session: Session, head: Key | None, tips: list[Key]) -> ForkPoint | None:
        """Returns the last turn above the head, or above another tip, that another session said."""
        for at in upward((head, *reversed(tips)), self._set.predecessors.__getitem__):
            shared = self._set.turns[at]
            if shared.owner != session.name:
                return ForkPoint(session=shared.owner, turn=id_of(at))
            if _is_copy(shared) and session.parent not in (None, *self._set.sessions):
                return ForkPoint(session=session.parent or "", turn=id_of(at))
        return None


def _is_copy(shared: SharedTurn) -> bool:
    """Returns whether an entry is older than the file in which it stands."""
    written, created = shared.turn.entry.written_ms, shared.file.created_ms
    return written is not None and created is not None and written < created


def _is_told(shared: SharedTurn) -> bool:
    """Returns whether an agent was told this by another one: no person said it."""
    words = shared.turn.words
    is_prompt = words.role == "user" and words.kind == "turn"
    return is_prompt and shared.file.is_agent and not _is_copy(shared)
