"""From a resolved family of OpenClaw's transcripts to the sessions that a reader gives back."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import accumulate
from typing import Any

from turnmark_session_store.model import CallerRef, Speaker, TurnIn
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.openclaw.set import Family, Transcript, Turn, rewound
from turnmark_session_store.transcripts.ordering import in_order
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

AGENT = "openclaw"
# Behind every moment: no entry is known to have been written then.
_LATEST = 1 << 62


class SessionWriter:
    """Makes each session of a family a `ReadSession`.

    Turns that are `held` are left out, as if they had not been said yet; what follows a held turn
    is held as well.
    """

    def __init__(self, family: Family, *, held: Collection[str] = ()) -> None:
        self._family = family
        self._sessions = list(dict.fromkeys(map(family.session_of, family.transcripts)))
        self._turns = {key: turn for key, turn in family.turns.items() if key not in held}
        self._listed: dict[str, list[str]] = {name: [] for name in self._sessions}
        for key in self._turns:
            self._listed[family.owners[key]].append(key)
        self._spawns = {
            entry.spawned: (transcript, entry.id)
            for transcript in reversed(family.transcripts)
            for entry in reversed(transcript.entries)
            if entry.spawned is not None
        }
        self._written: dict[str, list[int]] = {}
        self._callers = {
            name: caller for name in self._sessions if (caller := self._caller_of(name)) is not None
        }
        rests_on = {name: self._rests_on(name) for name in self._sessions}
        self._order = in_order(self._sessions, rests_on)
        self._taken_back = self._rewound_for_good()
        # The last that reaches a turn tells that it was taken back: before that it may be live.
        self._tellers = {key: name for name in self._order for key in self._gone(name)}

    def sessions(self) -> Iterator[ReadSession]:
        """Yields each session after those that it rests on."""
        for name in self._order:
            session = self._session(name)
            if session.turns or session.tips or session.taken_back or session.warnings:
                yield session

    def _rests_on(self, name: str) -> set[str]:
        caller = self._callers.get(name)
        # An entry may hang from one that only another session's transcript holds.
        before = (self._turns[key].predecessor for key in self._listed[name])
        reached = (*self._reached(name), *(key for key in before if key is not None))
        above = {self._family.owners[key] for key in reached}
        return above | ({caller.session} if caller is not None else set())

    def _session(self, name: str) -> ReadSession:
        transcripts = self._family.of_session(name)
        tips = self._tips(name)
        head = self._head(name, tips)
        listed = self._listed[name]
        cwds = (one.header.cwd for one in transcripts if one.header is not None)
        titles = (one.facts.title for one in reversed(transcripts))
        return ReadSession(
            session=name,
            agent=AGENT,
            title=next((title for title in titles if title), None),
            project=next((cwd for cwd in cwds if cwd), None),
            namespace=AGENT,
            forked_from=self._forked_from(name, head, tips),
            caller=self._callers.get(name),
            turns=tuple(self._turn(self._turns[key], name) for key in listed),
            tips=tips,
            head=head,
            taken_back=tuple(key for key in self._gone(name) if self._tellers[key] == name),
            warnings=tuple(warning for one in transcripts for warning in one.warnings),
        )

    def _turn(self, turn: Turn, session: str) -> ReadTurn:
        words, facts = turn.words, turn.transcript.facts
        is_told = words.role == "user" and facts.is_told and not words.by_person
        is_root = turn.predecessor is None and not turn.is_lost
        speaker = words.speaker
        if speaker is None and words.role == "user" and facts.speaker and not is_told:
            speaker = Speaker(name=facts.speaker)
        return ReadTurn(
            turn=TurnIn(
                id=turn.id,
                role=words.role,
                kind="runtime" if is_told and words.kind == "turn" else words.kind,
                text=words.text,
                speaker=speaker,
                time=turn.entry.time,
                caller=self._callers.get(session) if is_root else None,
                metadata=self._metadata(turn, is_root=is_root),
            ),
            predecessor=turn.predecessor,
            session=session,
            lost_predecessor=turn.is_lost,
        )

    def _metadata(self, turn: Turn, *, is_root: bool) -> dict[str, Any]:
        facts = turn.transcript.facts
        told = {
            "origin": {
                "file": turn.transcript.file,
                "line": turn.entry.line,
                "transcript": facts.session,
            },
            "model": turn.words.model,
            "cancelled": turn.words.cancelled or None,
            "channel": facts.channel,
            "external": facts.external,
            # A reset begins with nothing: only this says what was talked of before.
            "previous_session": facts.previous if is_root and not facts.continued else None,
        }
        return {name: value for name, value in told.items() if value is not None}

    def _reached(self, name: str) -> list[str]:
        return [key for key in self._family.reached.get(name, ()) if key in self._turns]

    def _gone(self, name: str) -> list[str]:
        """Returns what a session reached and was taken back, or taken out of memory."""
        back = (key for key in self._reached(name) if key in self._taken_back)
        return [*back, *self._family.withdrawn.get(name, ())]

    def _rewound_for_good(self) -> set[str]:
        """Returns the turns that were taken back, but for those that something live hangs from."""
        back = rewound(self._family)
        if not back:
            return back
        ends: list[str | None] = []
        for name in self._sessions:
            ends += (key for key in self._leaves(name, ()) if key not in back)
            ends.append(self._stands_at(name))
        return back - set(self._family.upward(*ends))

    def _leaves(self, name: str, gone: Collection[str]) -> list[str]:
        reached = [key for key in self._reached(name) if key not in gone]
        continued = {self._turns[key].predecessor for key in reached}
        return [key for key in reached if key not in continued]

    def _tips(self, name: str) -> tuple[str, ...]:
        return tuple(self._leaves(name, self._taken_back))

    def _stands_at(self, name: str) -> str | None:
        """Returns the turn at which the newest transcript of a session stands."""
        newest = self._family.of_session(name)[-1]
        end = self._family.turn_at(newest, self._family.end_of(newest))
        return next((at for at in self._family.upward(end) if at in self._turns), None)

    def _head(self, name: str, tips: tuple[str, ...]) -> str | None:
        """Returns the turn at which the session stands, which may be inside a branch."""
        reached = set(self._reached(name)) - self._taken_back
        line = self._family.upward(self._stands_at(name))
        return next((at for at in line if at in reached), next(reversed(tips), None))

    def _caller_of(self, name: str) -> CallerRef | None:
        """Returns the turn that spawned a sub-agent: the record names it, else the time does."""
        first = self._family.of_session(name)[0]
        spawner = self._family.windows.spawners.get(first.facts.session)
        if spawner is None:
            return None
        turn = self._named_spawn(first) or self._spawn_by_time(first, spawner)
        if turn not in self._turns or self._family.owners[turn] == name:
            return None
        return CallerRef(session=self._family.owners[turn], turn=turn)

    def _named_spawn(self, first: Transcript) -> str | None:
        transcript, entry = self._spawns.get(first.facts.conversation or "", (first, None))
        return self._family.turn_at(transcript, entry)

    def _spawn_by_time(self, first: Transcript, spawner: str) -> str | None:
        """Returns the turn that the last entry stands behind that was written before it began."""
        began, transcript = first.facts.created_ms, self._family.transcript(spawner)
        if began is None or transcript is None:
            return None
        if spawner not in self._written:
            # Of each entry, when the first of it and all behind it was written.
            written = (
                _LATEST if one.written_ms is None else one.written_ms
                for one in reversed(transcript.entries)
            )
            self._written[spawner] = list(accumulate(written, min))[::-1]
        place = bisect_right(self._written[spawner], began)
        return self._family.turn_at(transcript, transcript.entries[place - 1].id) if place else None

    def _forked_from(self, name: str, head: str | None, tips: tuple[str, ...]) -> ForkPoint | None:
        """Returns the last turn above the head, or another tip, that was copied from the origin."""
        first = self._family.of_session(name)[0]
        origin = first.facts.origin
        if origin is None:
            return None
        began = first.header.started_ms if first.header is not None else None
        for key in self._family.upward(head, *reversed(tips)):
            owner = self._family.owners[key]
            if owner != name:
                return ForkPoint(session=owner, turn=key)
            written = self._turns[key].entry.written_ms
            if began is not None and written is not None and written < began:
                session = self._family.windows.sessions.get(origin, origin)
                return ForkPoint(session=session, turn=key)
        return None
