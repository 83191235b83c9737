"""The transcripts of one reading, resolved against each other: which turn is whose, what before.

A fork's file begins with a copy of its origin's entries, of all or of one path, and names that
file in its header. All sessions that are forked from one, however far up, are a family, and ids are
those of the family: what stands in several of its files is one turn, of the session that came
first. A header may also name a session that it merely follows; then nothing is shared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import NamedTuple

import msgspec

from turnmark_session_store.names import FAMILY
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.ordering import cut_cycles, in_order, parents_first
from turnmark_session_store.transcripts.pi.entries import TreeTurn
from turnmark_session_store.transcripts.pi.files import (
    Transcript,
    is_header,
    name_in,
    parent_of,
    session_id_of,
)

# A header is a few hundred bytes; what it holds of an extension's own may be more.
_HEADER_BYTES = 256 * 1024
_ENDING = ".jsonl"
_IN_KEY = "\0"

Key = str
"""A family and a turn's id in it."""


class SharedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of the set: where it stands in the session that said it first."""

    turn: TreeTurn
    owner: str
    file: Transcript
    predecessor: Key | None


@dataclass(kw_only=True, eq=False)
class Session:
    """One session to be and its files, the longest first: a file may have been copied.

    `reached` are its turns in the order of its files, `ends` where each file stands.
    """

    name: str
    family: str
    files: list[Transcript] = field(default_factory=list[Transcript])
    reached: dict[Key, None] = field(default_factory=dict[Key, None])
    ends: list[Key | None] = field(default_factory=list["Key | None"])

    @property
    def parent(self) -> str | None:
        """Returns the session that its header names as its parent."""
        return next((one.parent for one in self.files if one.parent is not None), None)

    @property
    def namespace(self) -> str:
        """Returns the namespace of its turns."""
        return f"{FAMILY}{self.family}"


class _Origin(NamedTuple):
    """A session that a header names as its parent, where its file was, and whose header it is."""

    name: str
    path: str | None
    near: Path


class TranscriptSet:
    """Resolves a set of transcripts once; read-only afterwards.

    `turns` holds each turn once, under its key; `sessions` stand behind those that they were
    forked from. `known` are ids of turns in the store; see `EntryTree.turns`.
    """

    def __init__(self, files: Iterable[Transcript], *, known: Collection[str] = ()) -> None:
        self.sessions = _sessions_of(files)
        self.turns: dict[Key, SharedTurn] = {}
        self._trees = {
            file: file.tree.turns(known)
            for session in self.sessions.values()
            for file in session.files
        }
        self._join_families()
        for session in self.sessions.values():
            for file in session.files:
                self._take(session, file)
        self.predecessors: dict[Key, Key | None] = {
            key: shared.predecessor for key, shared in self.turns.items()
        }
        cut_cycles(self.predecessors, list(self.predecessors))

    def in_order(self) -> list[Key]:
        """Returns all turns, each behind its predecessor."""
        return parents_first(self.predecessors)

    def lines_of(self, file: Transcript, turns: Collection[Key]) -> list[int]:
        """Returns the lines of a file that hold these turns, or copies of them."""
        return [
            turn.entry.line
            for turn in self._trees.get(file, {}).values()
            if _key(self.sessions[file.session].family, turn.id) in turns
        ]

    def _take(self, session: Session, file: Transcript) -> None:
        for turn in self._trees[file].values():
            key = _key(session.family, turn.id)
            before = turn.predecessor
            if key not in self.turns:
                self.turns[key] = SharedTurn(
                    turn=turn,
                    owner=session.name,
                    file=file,
                    predecessor=_key(session.family, before) if before is not None else None,
                )
            session.reached[key] = None
        head = file.tree.head()
        session.ends.append(_key(session.family, head) if head is not None else None)

    def _join_families(self) -> None:
        """Joins forks whose origin is gone with the family whose entries they begin with."""
        families: dict[str, set[str]] = {}
        for session in self.sessions.values():
            ids = families.setdefault(session.family, set())
            ids.update(*(self._trees[file] for file in session.files))
        for family in [name for name in families if name not in self.sessions]:
            begins = families[family]
            other = next(
                (one for one, ids in families.items() if one != family and ids & begins), None
            )
            if other is None:
                continue
            families[other] |= families.pop(family)
            for session in self.sessions.values():
                session.family = other if session.family == family else session.family


def _key(family: str, turn: str) -> Key:
    return f"{family}{_IN_KEY}{turn}"


def id_of(key: Key) -> str:
    """Returns a turn's id in its family."""
    return key.partition(_IN_KEY)[2]


def _sessions_of(files: Iterable[Transcript]) -> dict[str, Session]:
    """Returns the sessions, each behind the one that it was forked from."""
    found: dict[str, Session] = {}
    ordered = sorted(files, key=lambda one: (one.created_ms or 0, one.path.name, str(one.path)))
    for file in ordered:
        session = found.setdefault(file.session, Session(name=file.session, family=file.session))
        session.files.append(file)
    for session in found.values():
        session.files.sort(key=lambda one: -len(one.tree))
        session.family = _family_of(session, found)
    rests_on = {
        name: (one.parent,) if one.parent is not None else () for name, one in found.items()
    }
    return {name: found[name] for name in in_order(list(found), rests_on)}


def _family_of(session: Session, sessions: dict[str, Session]) -> str:
    """Returns the session furthest up, as far as headers say, in the set or where they lie."""
    name, seen = session.name, {session.name}
    origin = _origin_in(session.files)
    while origin is not None:
        if origin.name in seen:
            return min(seen)
        name = origin.name
        seen.add(name)
        above = sessions.get(name)
        origin = _origin_in(above.files) if above is not None else _origin_at(origin)
    return name


def _origin_in(files: Iterable[Transcript]) -> _Origin | None:
    for file in files:
        if file.parent is not None:
            return _Origin(file.parent, file.parent_path, file.path)
    return None


def _places_of(origin: _Origin) -> Iterator[Path]:
    """Yields where the file of a session may be, by what a header says of it."""
    if origin.path is None:
        # Only its id is known, which its name ends in.
        yield from sorted(origin.near.parent.glob(f"*_{escape(origin.name)}{_ENDING}"))
        return
    name = name_in(origin.path)
    if name.endswith(_ENDING):
        yield Path(origin.path)
        yield origin.near.with_name(name)


def _origin_at(origin: _Origin) -> _Origin | None:
    """Returns what a session of which only its file is known was forked from; reads its header.

    The file is looked for where it was when it was forked, and beside the fork.
    """
    for path in _places_of(origin):
        try:
            with path.open("rb") as file:
                record = parse_line(file.readline(_HEADER_BYTES))
        except (OSError, ValueError):
            continue  # it is gone, or on another machine: its name has to do
        if isinstance(record, dict) and is_header(record) and session_id_of(record) == origin.name:
            above, parent = parent_of(record)
            return _Origin(parent, above, path) if parent is not None else None
    return None
