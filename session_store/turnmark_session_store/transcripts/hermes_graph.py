"""The turns of Hermes' sessions that point at each other, each said once.

Rows are in the order in which they were written, and each turn stands behind the last one before it
that still holds. The same turn may stand in many rows: a compaction writes the end of the talk
again, a branch copies its origin's, and what was said is told by its role, its words and its time.
Some copies got a new time: behind a summary, and at the start of a branch, rows that repeat what
was said before, in its order, are copies as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from turnmark_session_store.model import CallerRef
from turnmark_session_store.transcripts.hermes_records import HermesRow, HermesSession
from turnmark_session_store.transcripts.hermes_words import Words, is_summary, words_of
from turnmark_session_store.transcripts.ordering import in_order

Relation = Literal["goes on", "branch", "agent", "linked", "none"]
"""What a session is to the one that its pointer names."""

# Copies that are not told by their time are at least so many rows in a row, or the very last ones.
_COPIED_ROWS = 2
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
    """One row with words. `opens` says that copies may begin here."""

    row: HermesRow
    words: Words
    opens: bool

    @property
    def sign(self) -> tuple[str, str]:
        """What a copy shares with it whatever its time."""
        return self.words.role, self.words.text

    def id_at(self, stamp: str) -> str:
        """Returns its id, the same for each row that holds it with its time."""
        content = "\0".join([*self.sign, stamp])
        return hashlib.blake2b(content.encode(), digest_size=_ID_BYTES).hexdigest()


@dataclass
class GraphTurn:
    """One turn, under the session that said it first."""

    said: Said
    session: str
    predecessor: str | None


@dataclass
class Talk:
    """One session, resolved. `line` are its turns in order, with copies, `end` where it is.

    `stands` tells of each whether its last row says that it holds.
    """

    session: HermesSession
    family: str
    line: list[str] = field(default_factory=list[str])
    stands: dict[str, bool] = field(default_factory=dict[str, bool])
    end: str | None = None
    caller: CallerRef | None = None
    places: dict[int, str | None] = field(default_factory=dict[int, "str | None"])


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
        said = _said_in(self._rows[session.id], session, copies=relation == "branch")
        shown = before.line if before is not None and is_kin else []
        talk.line = self._identified(talk, said, shown)
        for one, key in zip(said, talk.line, strict=True):
            talk.stands[key] = not one.row.is_taken_back
        if before is not None and relation == "agent":
            talk.caller = self._caller(before, said)
        at = self._start(talk, before) if before is not None and is_kin else None
        self._chain(talk, said, at if relation in ("goes on", "branch") else None)

    def _identified(self, talk: Talk, said: Sequence[Said], shown: Sequence[str]) -> list[str]:
        """Returns the id of each row's turn: a known one for a copy."""
        known = self.turns[talk.family]
        signs = {key: turn.said.sign for key, turn in known.items()}
        line = list(shown)
        copied: Sequence[str] = ()
        start = 0
        for index, one in enumerate(said):
            if one.opens:
                copied = _repeated([late.sign for late in said[index:]], line, signs)
                start = index
            copy = copied[index - start] if index - start < len(copied) else None
            key = self._key(one, signs, copy)
            signs.setdefault(key, one.sign)
            line.append(key)
        return line[len(shown) :]

    @staticmethod
    def _key(one: Said, signs: Mapping[str, tuple[str, str]], copy: str | None) -> str:
        """Returns a row's id; one without a time is told by how often it was said before."""
        if one.row.stamp is not None:
            key = one.id_at(one.row.stamp)
            return key if key in signs or copy is None else copy
        return copy or one.id_at(f"#{sum(sign == one.sign for sign in signs.values())}")

    def _start(self, talk: Talk, before: Talk) -> str | None:
        """Returns the turn behind which a session goes on, unless copies say otherwise."""
        at = talk.session.branched_at
        if at is None or at not in before.places:
            return before.end
        found = before.places[at]
        turns, turn = self.turns[talk.family], found
        while turn is not None and not before.stands.get(turn, True):
            talk.stands[turn] = True  # taken back there, and gone on from here
            turn = turns[turn].predecessor
        return found

    def _chain(self, talk: Talk, said: Sequence[Said], at: str | None) -> None:
        """Hangs each turn from the last one before it that holds."""
        turns = self.turns[talk.family]
        late: str | None = None
        for one, key in zip(said, talk.line, strict=True):
            if key not in turns:
                above = at if talk.stands[key] or late is None else late
                turns[key] = GraphTurn(one, talk.session.id, above)
            if talk.stands[key]:
                at, late = key, None
            elif turns[key].session == talk.session.id:
                late = key
            talk.places[one.row.number] = key if talk.stands[key] else late
        talk.end = at

    def _caller(self, before: Talk, said: Sequence[Said]) -> CallerRef | None:
        """Returns the turn whose call of a tool names the task of a sub-agent."""
        task = next((one.words.text for one in said if one.words.role == "user"), None)
        if task is None:
            return None
        at: str | None = None
        found: str | None = None
        for row in self._rows[before.session.id]:
            at = before.places.get(row.number, at)
            if any(_names(arguments, task) for arguments in row.calls):
                found = at
        return CallerRef(session=before.session.id, turn=found) if found is not None else None


def _said_in(rows: Iterable[HermesRow], session: HermesSession, *, copies: bool) -> list[Said]:
    """Returns the rows with words. Only the program answers to what only the program asked."""
    said: list[Said] = []
    opens, is_review = copies, False
    for row in rows:
        opens = opens or is_summary(row)
        words = words_of(row)
        if words is None:
            continue
        is_review = words.is_review or (is_review and words.role == "assistant")
        told = session.is_agent and words.role == "user"
        if (is_review or told or session.is_scheduled) and words.kind == "turn":
            words = Words(role=words.role, kind="runtime", text=words.text)
        said.append(Said(row, words, opens))
        opens = False
    return said


def _repeated(
    late: Sequence[tuple[str, str]], line: Sequence[str], signs: Mapping[str, tuple[str, str]]
) -> Sequence[str]:
    """Returns the turns of `line` that rows repeat in its order, the longest such stretch."""
    best: Sequence[str] = ()
    for start in range(len(line) - 1, -1, -1):
        length = 0
        while (
            length < len(late)
            and start + length < len(line)
            and signs[line[start + length]] == late[length]
        ):
            length += 1
        is_end = start + length == len(line)
        if length > len(best) and (is_end or length >= _COPIED_ROWS):
            best = line[start : start + length]
    return best


def _names(arguments: str, task: str) -> bool:
    """Returns whether one of a tool's arguments stands in a sub-agent's task."""
    try:
        found: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return False
    return any(len(text) >= _TASK_CHARS and text in task for text in _strings(found))


def _strings(value: Any) -> Iterable[str]:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            stack += one.values()
        elif isinstance(one, list):
            stack += one
