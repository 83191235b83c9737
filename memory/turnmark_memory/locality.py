"""Local sessions: what may not leave this machine, whoever writes.

A turn is local if the session that it was first appended to is. Turns that a local session took
over from another one are not: they were said where nothing kept them in.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from turnmark_memory.writers.writer import Writer
from turnmark_session_store.queries import rows_of

BUILTIN = "builtin/"
"""How the names of the built-in writer begin: no model, no network, no cost."""


def is_local(writer: Writer) -> bool:
    """Tells whether what a writer is asked stays here; one that doesn't say so is taken to send."""
    return writer.name.startswith(BUILTIN) or getattr(writer, "is_local", False) is True


def local_turns(db: apsw.Connection, turns: Iterable[int]) -> set[int]:
    """Returns those of `turns` that were said in a local session."""
    rows = rows_of(
        db,
        "SELECT turn.id FROM json_each(?) AS asked JOIN turn ON turn.id = asked.value"
        " JOIN session ON session.id = turn.session WHERE session.memory = 'local'",
        ("[" + ",".join(map(str, turns)) + "]",),
    )
    return {turn for (turn,) in rows}


def local_sessions(db: apsw.Connection) -> frozenset[str]:
    """Returns the names of all local sessions."""
    return frozenset(
        name for (name,) in rows_of(db, "SELECT name FROM session WHERE memory = 'local'", ())
    )
