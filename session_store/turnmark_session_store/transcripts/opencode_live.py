"""opencode's databases while they are written: what of them can be said for good, and what waits.

Rows are written anew while an answer streams in. So a message waits, with all that comes after it:

- an answer until it says that it is complete, or the next one has begun, or nothing was written of
  it for a minute;
- what a person typed, whose parts are rows of their own, until something follows it or nothing was
  written for half a second;
- what a sub-agent's session holds, until the call that began it is complete, or a minute is over.

A marker of a session takes back what is behind it at once, although the program could still put it
in again: a person has asked for that. What the program then deletes was taken back before, or its
log says so; a row that is gone without a record takes nothing back.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.opencode_chain import (
    Open,
    SessionRecord,
    without_sessions,
)
from turnmark_session_store.transcripts.opencode_families import families
from turnmark_session_store.transcripts.opencode_sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.opencode_set import SessionSet
from turnmark_session_store.transcripts.opencode_tables import read_session, session_rows
from turnmark_session_store.transcripts.ordering import parents_first

PATTERNS: Final = ("opencode.db", "opencode-*.db")
"""How databases are called: other channels of the program than the released one have their own."""

_PATIENCE: Final = Patience(quiet_seconds=0.5)


class OpencodeDatabases:
    """opencode's `DatabaseReader`; its directory is `opencode` below XDG_DATA_HOME."""

    agent = AGENT

    def __init__(self, patience: Patience = _PATIENCE) -> None:
        self._patience = patience

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directory of the databases; `root` may be a database itself."""
        return (root.parent if root.suffix else root,)

    def databases(self, root: Path) -> Collection[Path]:
        """Returns the databases that are there."""
        if root.is_file():
            return [root]
        return sorted({path for pattern in PATTERNS for path in root.glob(pattern)})

    def conversations(self, db: Database) -> Sequence[Conversation]:
        """Returns the families of sessions."""
        return families(db, session_rows(db))

    def read(
        self, db: Database, conversation: Conversation, *, without: Collection[str], now: float
    ) -> Standing:
        """Returns the sessions of a family, and what waits."""
        rows = session_rows(db)
        records = [
            read_session(db, rows[name]) for name in sorted(conversation.sessions) if name in rows
        ]
        return stand(without_sessions(records, without), self._patience, now)


def stand(records: Iterable[SessionRecord], patience: Patience, now: float) -> Standing:
    """Resolves sessions; where `now` (seconds since 1970) is infinite, nothing waits."""
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
    )


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
