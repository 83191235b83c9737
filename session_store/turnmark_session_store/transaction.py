"""One write request's view of the database: the connection, the time, and the events it caused."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from turnmark_events.types import Event, TipMoved
from turnmark_session_store import event_table
from turnmark_session_store.times import to_rfc3339

_encoder = msgspec.json.Encoder()


class Transaction:
    """What a write function gets: it reads and writes `db`, and records what happened.

    Runs on the writer thread: an exception rolls back this request and not its neighbours in the
    group. Events recorded here are published after the commit, and only then.

    `cursor` is the one for all its statements, of which the next ends the one before: making one
    for each costs as much as a small statement. Without it the transaction makes its own.
    """

    def __init__(
        self, db: apsw.Connection, at_ms: int, idle_ms: int, cursor: apsw.Cursor | None = None
    ) -> None:
        self.db = db
        self.at_ms = at_ms
        self.idle_ms = idle_ms
        self.events: list[Event] = []
        self.cursor = cursor or db.cursor()
        self._at: str | None = None
        self._ids: dict[int, str] = {}
        self._branches: dict[int, str] = {}

    @property
    def at(self) -> str:
        """The transaction's time as RFC 3339."""
        if self._at is None:
            self._at = to_rfc3339(self.at_ms)
        return self._at

    def turn_id(self, turn: int | None) -> str | None:
        """Returns the public id of a turn's integer key, read once; None for None."""
        if turn is None:
            return None
        known = self._ids.get(turn)
        if known is None:
            known = self._ids[turn] = str(self.value("SELECT key FROM turn WHERE id = ?", (turn,)))
        return known

    def knows(self, turn: int, key: str) -> None:
        """Remembers the public id of a turn that was just read or written."""
        self._ids[turn] = key

    def branch_name(self, branch: int) -> str:
        """Returns the public name of a branch's integer key, read once."""
        known = self._branches.get(branch)
        if known is None:
            found = self.value("SELECT name FROM branch WHERE id = ?", (branch,))
            known = self._branches[branch] = str(found)
        return known

    def names(self, branch: int, name: str) -> None:
        """Remembers the public name of a branch that was just read or made."""
        self._branches[branch] = name

    def execute(self, sql: str, parameters: Any = ()) -> None:
        """Runs one statement whose rows nobody needs."""
        self.cursor.execute(sql, parameters)

    def row(self, sql: str, parameters: Any = ()) -> Any:
        """Returns the first row, or None."""
        return self.cursor.execute(sql, parameters).fetchone()

    def rows(self, sql: str, parameters: Any = ()) -> list[Any]:
        """Returns all rows."""
        return list[Any](self.cursor.execute(sql, parameters))

    def value(self, sql: str, parameters: Any = ()) -> Any:
        """Returns the first column of the first row, or None."""
        found = self.cursor.execute(sql, parameters).fetchone()
        return None if found is None else found[0]

    def insert(self, sql: str, parameters: Any = ()) -> int:
        """Runs one INSERT and returns the new row's integer key."""
        self.cursor.execute(sql, parameters)
        return self.db.last_insert_rowid()

    def record(
        self,
        event: type[msgspec.Struct],
        facts: dict[str, Any],
        *,
        session: int | None = None,
        branch: int | None = None,
        tips: tuple[int | None, int | None] = (None, None),
        heads: tuple[int | None, int | None] = (None, None),
    ) -> int:
        """Writes an event's row and keeps the event for after the commit; returns its `seq`."""
        seq = self.insert(
            "INSERT INTO event (at_ms, type, session, branch, old, new, head_old, head_new, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                self.at_ms,
                event.__name__,
                session,
                branch,
                *tips,
                *heads,
                _encoder.encode(facts),
            ),
        )
        # The hot path builds the event from what is at hand; the others are converted like rows.
        if event is TipMoved:
            self.events.append(TipMoved(seq=seq, at=self.at, **facts))
        else:
            self.events.append(event_table.build(event.__name__, seq, self.at_ms, facts))
        return seq
