"""opencode's databases while they are written: what of them can be said for good, and what waits.

Rows are written anew while an answer streams in. So a message waits, with all that comes after it:

- an answer until a piece of it is whole, as each part of text says of itself; what comes to it then
  takes the place of that, and what follows it waits until it says that it is complete, or the next
  one has begun, or nothing was written of it for a minute;
- what a person typed, whose parts are rows of their own, until something follows it or nothing was
  written for half a second;
- what a sub-agent's session holds, until the call that began it is complete, or a minute is over.

A person who undoes something often does it again a moment later, and what was taken back once stays
so. So a session's marker counts when it has stood for ten seconds, or when what is behind it is
deleted, which is noticed by a process that saw the marker. A row that is gone without a record
takes nothing back.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from turnmark_session_store.transcripts.database_file import (
    Database,
    directory_of,
    unknown_tables,
)
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.opencode.chain import (
    Open,
    Removed,
    Said,
    SessionRecord,
    earlier_ids,
    said_by,
    without_program,
    without_sessions,
)
from turnmark_session_store.transcripts.opencode.families import families
from turnmark_session_store.transcripts.opencode.info import SessionRow
from turnmark_session_store.transcripts.opencode.records import Message
from turnmark_session_store.transcripts.opencode.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.opencode.set import SessionSet
from turnmark_session_store.transcripts.opencode.tables import (
    has_sessions,
    read_session,
    session_rows,
    sessions_of_moments,
)
from turnmark_session_store.transcripts.ordering import parents_first

_RELEASED: Final = "opencode.db"
PATTERNS: Final = (_RELEASED, "opencode-*.db")
"""How databases are called: other channels of the program than the released one have their own."""

PATIENCE: Final = Patience(quiet_seconds=0.5)
"""How long to wait for what may still be written."""

# How long something that was undone may be done again.
_UNDO_SECONDS: Final = 10.0
# Sessions of which it is known what was behind the last marker.
_MARKED_SESSIONS: Final = 64


class OpencodeDatabaseReader:
    """opencode's `DatabaseReader`; its directory is `opencode` below XDG_DATA_HOME."""

    agent = AGENT

    def __init__(
        self, patience: Patience = PATIENCE, *, undo_seconds: float = _UNDO_SECONDS
    ) -> None:
        self._patience = patience
        self._undo_seconds = undo_seconds
        self._marked: dict[tuple[Path, str], list[Message]] = {}

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directory of the databases; `root` may be a database itself."""
        return (directory_of(root),)

    def flat_places(self, root: Path) -> Collection[Path]:
        """Returns the same: below lie the program's own code and copies of people's projects."""
        return self.places(root)

    def databases(self, root: Path) -> Collection[Path]:
        """Returns the databases that are there."""
        if root.is_file():
            return [root]
        return sorted({path for pattern in PATTERNS for path in root.glob(pattern)})

    def conversations(self, db: Database) -> Sequence[Conversation]:
        """Returns the families of sessions.

        Raises:
            Unavailable: if nothing in it is a table of opencode's that is known.
        """
        if db.path.name == _RELEASED and not (has_sessions(db) or db.is_empty()):
            raise unknown_tables(db, "opencode")
        return families(db, session_rows(db))

    def read(
        self, db: Database, conversation: Conversation, *, without: Collection[str], now: float
    ) -> Standing:
        """Returns the sessions of a family, and what waits."""
        rows = session_rows(db)
        records: list[SessionRecord] = []
        undone: dict[str, float] = {}
        for name in sorted(conversation.sessions):
            if name not in rows:
                continue
            until = rows[name].updated_ms / 1000 + self._undo_seconds
            if rows[name].revert is not None and until > now:
                undone[f"{name}.revert"] = until
            records.append(self._record(db, rows[name], is_sure=until <= now))
        kept = _without_kept_elsewhere(db, rows, records)
        found = stand(without_sessions(kept, without), self._patience, now)
        return msgspec.structs.replace(
            found,
            held=found.held | undone.keys(),
            due=min(
                [*undone.values(), *([found.due] if found.due is not None else [])], default=None
            ),
        )

    def _record(self, db: Database, row: SessionRow, *, is_sure: bool) -> SessionRecord:
        """Returns a session; what is behind a marker stands until that is sure."""
        record = read_session(db, row)
        key = (db.path, row.id)
        if row.revert is None:
            return _without_deleted(record, self._marked.get(key, ()))
        self._marked.pop(key, None)
        self._marked[key] = [one.message for one in record.removed if one.by_marker]
        if len(self._marked) > _MARKED_SESSIONS:
            del self._marked[next(iter(self._marked))]
        return record if is_sure else read_session(db, msgspec.structs.replace(row, revert=None))


def stand(records: Iterable[SessionRecord], patience: Patience, now: float) -> Standing:
    """Resolves sessions; where `now` (seconds since 1970) is infinite, nothing waits."""
    records = without_program(list(records))
    if math.isinf(now):
        return Standing(sessions=tuple(SessionWriter(SessionSet(records)).sessions()))
    resolved = SessionSet(
        records,
        open_since=Open(
            typed_ms=round((now - patience.quiet_seconds) * 1000),
            answered_ms=round((now - patience.orphan_seconds) * 1000),
        ),
    )
    holding = _Holding(resolved, patience, now)
    return Standing(
        sessions=tuple(SessionWriter(resolved, held=frozenset(holding.held)).sessions()),
        held=frozenset(holding.held | holding.waiting),
        due=holding.due,
        replaced={
            earlier: turn.id
            for chain in resolved.chains.values()
            for turn in chain.turns
            if resolved.owners[turn.id] == chain.record.id
            for earlier in earlier_ids(turn)
        },
    )


def _without_deleted(record: SessionRecord, behind: Collection[Message]) -> SessionRecord:
    """Returns a session of which was deleted what its last marker took back, and is not there."""
    known = {one.id for one in record.messages} | {one.message.id for one in record.removed}
    there = {said_by(one) for one in record.messages}
    deleted = [one for one in behind if one.id not in known and said_by(one) not in there]
    if not deleted:
        return record
    removed = (*record.removed, *(Removed(message=one) for one in deleted))
    return msgspec.structs.replace(record, removed=removed)


def _without_kept_elsewhere(
    db: Database, rows: Mapping[str, SessionRow], records: Sequence[SessionRecord]
) -> list[SessionRecord]:
    """Returns sessions that take back nothing of which a session beyond them has a copy.

    That is a fork, or its origin, whose first message is gone: nothing else shows that they belong
    together.
    """
    moments = {one.message.made_ms for record in records for one in record.removed} - {None}
    own = {record.id for record in records}
    kept: set[Said] = set()
    for name in sessions_of_moments(db, moments) - own if moments else ():
        if name in rows:
            kept.update(map(said_by, read_session(db, rows[name]).messages))
    return [
        msgspec.structs.replace(
            record,
            removed=tuple(one for one in record.removed if said_by(one.message) not in kept),
        )
        for record in records
    ]


class _Holding:
    """Finds the turns that must wait, and the messages that are no turns yet."""

    def __init__(self, resolved: SessionSet, patience: Patience, now: float) -> None:
        self._set = resolved
        self._moments: list[float] = []
        self.waiting: set[str] = set()
        self.held: set[str] = set()
        for chain in resolved.chains.values():
            said = [one.id for one in chain.waiting if one.is_said]
            if said and chain.open_until(patience) is not None:
                self.waiting.update(said)
                self._moments.append(chain.open_until(patience) or 0.0)
        for name in resolved.chains:
            until = self._unsure_until(name, patience)
            if until is not None and until > now:
                self._moments.append(until)
                self._hold(name)
        self._hold_followers()

    @property
    def due(self) -> float | None:
        """When more can be said although nothing more is written."""
        return min(self._moments, default=None)

    def _unsure_until(self, name: str, patience: Patience) -> float | None:
        """Returns until when a sub-agent's caller may change, None where it can't."""
        record = self._set.chains[name].record
        if name in self._set.waiting:
            parent = self._set.chains[record.parent or ""]
            return parent.open_until(patience)
        if name in self._set.guessed:
            return record.created_ms / 1000 + patience.orphan_seconds
        return None

    def _hold(self, name: str) -> None:
        self.held.update(turn for turn, owner in self._set.owners.items() if owner == name)

    def _hold_followers(self) -> None:
        """Holds what hangs from held turns, or was begun by one."""
        order = parents_first(self._set.predecessors)
        while True:
            before = len(self.held)
            for turn in order:
                if self._set.predecessors[turn] in self.held:
                    self.held.add(turn)
            for name, caller in self._set.callers.items():
                if caller.turn in self.held:
                    self._hold(name)
            if len(self.held) == before:
                return
