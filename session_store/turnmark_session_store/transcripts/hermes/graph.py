"""The turns of Hermes' sessions that point at each other, each said once.

Rows are in the order in which they were written, and each turn stands behind the last one before it
that still holds. The same turn may stand in many rows: a compaction writes the end of the talk
again, a branch copies its origin's, and what was said is told by its role, its words and its time.
Some copies got a new time: rows that were written at once with a summary, or with a branch, and
repeat the end of what the model was shown before, are copies as well.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal

from turnmark_session_store.model import CallerRef
from turnmark_session_store.transcripts.hermes.records import HermesRow, HermesSession
from turnmark_session_store.transcripts.hermes.words import Words, is_summary, words_of
from turnmark_session_store.transcripts.ids import hash_of
from turnmark_session_store.transcripts.ordering import in_order

Relation = Literal["goes on", "branch", "agent", "linked", "none"]
"""What a session is to the one that its pointer names."""

# Copies are written at once with what they follow; nobody reads and answers in so short a time.
_AT_ONCE_SECONDS = 5.0
# A task is told from other strings among a tool's arguments by its length.
_TASK_CHARS = 8
_ID_BYTES = 16


def origin_of(session: HermesSession) -> str | None:
    """Returns the session that one points at, by the relation written down or else its pointer."""
    markers = session.markers
    return markers.get("_delegate_from") or markers.get("_branched_from") or session.origin


def relation_to(session: HermesSession, origin: HermesSession) -> Relation:
    """Returns what a session is to its origin; one that only followed it has none."""
    if session.is_agent:
        return "agent"
    if "_reset_from" in session.markers or "reset" in (origin.end_reason or ""):
        return "none"
    if "_branched_from" in session.markers or origin.end_reason == "branched":
        return "branch"
    return "goes on" if origin.end_reason == "compression" else "linked"


@dataclass(frozen=True)
class Said:
    """One row with words. `opens` says that copies may begin here, written not long after `at`."""

    row: HermesRow
    words: Words
    opens: bool
    at: float | None

    @property
    def is_at_once(self) -> bool:
        """Whether it can be a copy by when it was written."""
        if self.at is None or self.row.at is None:
            return True
        return self.row.at <= self.at + _AT_ONCE_SECONDS

    @property
    def sign(self) -> tuple[str, str]:
        """What a copy shares with it whatever its time."""
        return self.words.role, self.words.text

    def id_at(self, stamp: str) -> str:
        """Returns its id, the same for each row that holds it with its time."""
        content = "\0".join([*self.sign, stamp])
        return hash_of(content, size_bytes=_ID_BYTES)


@dataclass
class GraphTurn:
    """One turn, under the session that said it first."""

    said: Said
    session: str
    predecessor: str | None


@dataclass
class Talk:
    """One session, resolved: its rows with words and their turns, and the turn where it `end`s.

    `stands` tells of each turn whether its last row says that it holds.
    """

    session: HermesSession
    family: str
    said: list[Said] = field(default_factory=list[Said])
    line: list[str] = field(default_factory=list[str])
    stands: dict[str, bool] = field(default_factory=dict[str, bool])
    end: str | None = None
    caller: CallerRef | None = None

    def shown_at(self, limit: float) -> list[str]:
        """Returns the turns of its rows up to a number, without those taken back."""
        return [
            key
            for one, key in zip(self.said, self.line, strict=True)
            if one.row.number <= limit and self.stands[key]
        ]


class HermesGraph:
    """Sessions of one conversation, resolved; an origin that is not among them is not missed.

    `talks` stand in the order in which they rest on each other. `turns` are those of each family,
    `standing` those that hold in any of its sessions.
    """

    def __init__(
        self, sessions: Mapping[str, HermesSession], rows: Mapping[str, Sequence[HermesRow]]
    ) -> None:
        self.talks: dict[str, Talk] = {}
        self.turns: dict[str, dict[str, GraphTurn]] = {}
        self._rows = rows
        rests_on = {
            one.id: [origin] if (origin := origin_of(one)) is not None else []
            for one in sessions.values()
        }
        for name in in_order(list(sessions), rests_on):
            self._add(sessions[name], sessions.get(origin_of(sessions[name]) or ""))
        self.standing: dict[str, set[str]] = {family: set() for family in self.turns}
        for talk in self.talks.values():
            self.standing[talk.family] |= {key for key, holds in talk.stands.items() if holds}
        self._inner = {
            family: {turns[key].predecessor for key in self.standing[family]}
            for family, turns in self.turns.items()
        }

    def tips_of(self, talk: Talk) -> tuple[str, ...]:
        """Returns where a session ends, and its turns that hold and that nothing hangs from."""
        turns, standing = self.turns[talk.family], self.standing[talk.family]
        inner = self._inner[talk.family]
        own = [
            key
            for key, turn in turns.items()
            if turn.session == talk.session.id and key in standing and key not in inner
        ]
        return tuple(dict.fromkeys([*own, *([talk.end] if talk.end is not None else [])]))

    def _add(self, session: HermesSession, origin: HermesSession | None) -> None:
        before = self.talks.get(origin.id) if origin is not None else None
        relation = relation_to(session, origin) if origin is not None else "none"
        is_kin = before is not None and relation in ("goes on", "branch", "linked")
        talk = Talk(session, before.family if before is not None and is_kin else session.id)
        self.talks[session.id] = talk
        self.turns.setdefault(talk.family, {})
        talk.said = _said_in(self._rows[session.id], session, copies=relation == "branch")
        shown = self._shown(talk, before, relation) if before is not None and is_kin else []
        talk.line = self._identified(talk, shown)
        for one, key in zip(talk.said, talk.line, strict=True):
            talk.stands[key] = not one.row.is_taken_back
        if before is not None and relation == "agent":
            talk.caller = self._caller(before, talk)
        at = shown[-1] if shown and self._follows(talk, relation) else None
        self._chain(talk, self._held_here(talk, before, at) if before is not None else None)

    def _follows(self, talk: Talk, relation: Relation) -> bool:
        """Returns whether a session goes on from its origin without a copy that says where.

        A branch from an origin that showed nothing begins with a row of its own.
        """
        rows = self._rows[talk.session.id]
        if relation == "branch" and talk.session.branched_at is None:
            return bool(rows) and is_summary(rows[0])
        return relation in ("goes on", "branch") and bool(talk.said)

    def _shown(self, talk: Talk, before: Talk, relation: Relation) -> list[str]:
        """Returns what the model was shown of the origin when a session began, in order.

        Rows tell by their numbers which were there by then; where a repair wrote them again since,
        all count for a session that goes on.
        """
        limit = talk.session.branched_at
        if limit is not None:
            own = (
                key
                for one, key in zip(before.said, before.line, strict=True)
                if one.row.number == limit
            )
            return [*before.shown_at(limit - 1), *own]
        numbers = (row.number for row in self._rows[talk.session.id])
        there = before.shown_at(min(numbers, default=0) - 1)
        if there or relation != "goes on":
            return there
        return before.shown_at(math.inf) or ([before.end] if before.end is not None else [])

    def _held_here(self, talk: Talk, before: Talk, at: str | None) -> str | None:
        """Returns `at`; what was taken back in its origin holds here, if this goes on from it."""
        turns, turn = self.turns[talk.family], at
        while turn is not None and not before.stands.get(turn, True):
            talk.stands[turn] = True
            turn = turns[turn].predecessor
        return at

    def _identified(self, talk: Talk, shown: Sequence[str]) -> list[str]:
        """Returns the id of each row's turn: a known one for a copy."""
        signs = {key: turn.said.sign for key, turn in self.turns[talk.family].items()}
        times = Counter(signs.values())
        holding = list(shown)
        found: list[str] = []
        copied: Sequence[str] = ()
        start = 0
        for index, one in enumerate(talk.said):
            if one.opens:
                late = takewhile(lambda said: said.is_at_once, talk.said[index:])
                copied, start = _repeated([said.sign for said in late], holding, signs), index
            # One without a time is told by how often it was said before.
            key = one.id_at(one.row.stamp or f"#{times[one.sign]}")
            is_known = one.row.stamp is not None and key in signs
            if not is_known and index - start < len(copied):
                key = copied[index - start]
            if key not in signs:
                signs[key] = one.sign
                times[one.sign] += 1
            found.append(key)
            if not one.row.is_taken_back:
                holding.append(key)
        return found

    def _chain(self, talk: Talk, at: str | None) -> None:
        """Hangs each turn from the last one before it that holds."""
        turns = self.turns[talk.family]
        late: str | None = None
        for one, key in zip(talk.said, talk.line, strict=True):
            if key not in turns:
                above = at if talk.stands[key] or late is None else late
                turns[key] = GraphTurn(one, talk.session.id, above)
            if talk.stands[key]:
                at, late = key, None
            elif turns[key].session == talk.session.id:
                late = key
        talk.end = at

    def _caller(self, before: Talk, talk: Talk) -> CallerRef | None:
        """Returns the turn whose call of a tool names the task of a sub-agent."""
        task = next((one.words.text for one in talk.said if one.words.role == "user"), None)
        if task is None:
            return None
        keys = {one.row.number: key for one, key in zip(before.said, before.line, strict=True)}
        rows: Sequence[HermesRow] = self._rows[before.session.id]
        at: str | None = None
        for row in rows:
            if row.number in keys:
                at = keys[row.number]
            if any(_names(arguments, task) for arguments in row.calls):
                return CallerRef(session=before.session.id, turn=at) if at is not None else None
        return None


def _said_in(rows: Iterable[HermesRow], session: HermesSession, *, copies: bool) -> list[Said]:
    """Returns the rows with words. Only the program answers to what only the program asked."""
    said: list[Said] = []
    opens, is_review, at = copies, False, session.started_at
    for row in rows:
        if is_summary(row):
            opens, at = True, row.at
        words = words_of(row)
        if words is None:
            continue
        is_review = words.is_review or (is_review and words.role == "assistant")
        told = session.is_agent and words.role == "user"
        if (is_review or told or session.is_scheduled) and words.kind == "turn":
            words = Words(role=words.role, kind="runtime", text=words.text)
        said.append(Said(row, words, opens, at))
        opens = False
    return said


def _repeated(
    late: Sequence[tuple[str, str]], shown: Sequence[str], signs: Mapping[str, tuple[str, str]]
) -> Sequence[str]:
    """Returns the end of what was shown that rows repeat from the first on, the longest one."""
    for start in range(max(len(shown) - len(late), 0), len(shown)):
        # Nothing is cut out before it is known to fit: a branch may have copied a talk of years.
        if all(signs[shown[at]] == late[at - start] for at in range(start, len(shown))):
            return shown[start:]
    return ()


def _names(arguments: str, task: str) -> bool:
    """Returns whether one of a tool's arguments stands in a sub-agent's task."""
    try:
        found: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return any(len(text) >= _TASK_CHARS and text in task for text in _strings(found))


def _strings(value: Any) -> Iterable[str]:
    stack: list[Any] = [value]
    while stack:
        one: Any = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            stack += one.values()
        elif isinstance(one, list):
            stack += one
