"""Local sessions: what may not leave this machine, whoever writes.

A turn is local if the session that it was first appended to is. Turns that a local session took
over from another one are not: they were said where nothing kept them in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import apsw

from turnmark_memory.index import Index
from turnmark_memory.writers.writer import Writer
from turnmark_session_store.queries import json_keys, rows_of

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
        (json_keys(turns),),
    )
    return {turn for (turn,) in rows}


def local_sessions(db: apsw.Connection) -> frozenset[str]:
    """Returns the names of all local sessions."""
    return frozenset(
        name for (name,) in rows_of(db, "SELECT name FROM session WHERE memory = 'local'", ())
    )


def rests_on(index: Index, labels: Iterable[str], sessions: Collection[str]) -> bool:
    """Tells whether any of the turns with `labels` was said in one of `sessions`."""
    turns = (index.turn(label) for label in labels)
    return any(turn is not None and turn.session in sessions for turn in turns)


def open_topics(
    index: Index, topics: Iterable[tuple[str, str]], sessions: Collection[str]
) -> list[tuple[str, str]]:
    """Returns the topics, each with what it is about, but those that hold only `sessions`' words.

    The very name of such a topic may be theirs.
    """
    return [(topic, about) for topic, about in topics if not _holds_only(index, topic, sessions)]


def _holds_only(index: Index, topic: str, sessions: Collection[str]) -> bool:
    if not sessions:
        return False
    cited = [block.cites for block in index.blocks_of(topic) if block.cites]
    return bool(cited) and all(rests_on(index, cites, sessions) for cites in cited)
