"""The event table as the outbox: subscribers read on from it by `seq`; rows are kept a while."""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from turnmark_events.errors import Gone
from turnmark_events.types import Event
from turnmark_session_store.queries import row_of, rows_of, value_of
from turnmark_session_store.times import to_rfc3339

KEPT_ROWS = 1_000_000
KEPT_MS = 30 * 86_400_000
"""Rows are kept for thirty days or a million, whichever is more."""


def build(name: str, seq: int, at_ms: int, facts: dict[str, Any]) -> Event:
    """Returns the event that a row stands for."""
    found = {"type": name, "seq": seq, "at": to_rfc3339(at_ms), **facts}
    event: Event = msgspec.convert(found, Event)
    return event


def events_after(db: apsw.Connection, after: int, limit: int) -> list[Event]:
    """Returns at most `limit` events with `seq > after`, oldest first.

    Raises:
        Gone: if rows after `after` have been dropped already; `facts["oldest"]` is the oldest kept.
    """
    oldest = value_of(db, "SELECT min(seq) FROM event")
    if after > 0 and oldest is not None and after + 1 < oldest:
        raise Gone(
            f"events up to {oldest - 1} are no longer kept; subscribe again with since: 0",
            oldest=oldest,
        )
    rows = rows_of(
        db,
        "SELECT type, seq, at_ms, body FROM event WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, limit),
    )
    return [build(name, seq, at_ms, msgspec.json.decode(body)) for name, seq, at_ms, body in rows]


def last_seq(db: apsw.Connection) -> int:
    """Returns the newest `seq` that was ever given, 0 for a new store."""
    row = row_of(db, "SELECT seq FROM sqlite_sequence WHERE name = 'event'")
    return 0 if row is None else int(row[0])


def trim(db: apsw.Connection, at_ms: int, limit: int = 1_000) -> int:
    """Drops at most `limit` rows past keeping; returns how many went."""
    newest = last_seq(db)
    rows_of(
        db,
        "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE seq <= ? AND at_ms < ?"
        " ORDER BY seq LIMIT ?)",
        (newest - KEPT_ROWS, at_ms - KEPT_MS, limit),
    )
    return db.changes()
