"""Hermes' databases while they are written: what changed, and what of it waits.

Rows are written when they are whole, so all that is said is final but for one thing: a sub-agent's
task waits, for a minute at most, for the row of its origin that calls it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from turnmark_session_store.transcripts.database_file import Database, directory_of, unknown_tables
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.hermes.graph import HermesGraph, origin_of, relation_to
from turnmark_session_store.transcripts.hermes.records import (
    MESSAGES,
    HermesSession,
    is_hermes,
    rows_in,
    seconds,
    sessions_in,
)
from turnmark_session_store.transcripts.hermes.sessions import AGENT, sessions_of
from turnmark_session_store.transcripts.live import Patience, Standing

DATABASE: Final = "state.db"
_PROFILES = "profiles"


class HermesDatabaseReader:
    """Hermes' `DatabaseReader`; its directory is the one that HERMES_HOME names."""

    agent = AGENT

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directory itself, where the first profile's database is, and the others'."""
        top = directory_of(root)
        return (top, root / _PROFILES) if top == root else (top,)

    def flat_places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directory itself: the program may be installed in it, with all it needs."""
        return (directory_of(root),)

    def databases(self, root: Path) -> Collection[Path]:
        """Returns the database of each profile that is there."""
        if root.is_file():
            return [root]
        profiles = root / _PROFILES
        found = [root / DATABASE, *profiles.glob(f"*/{DATABASE}")]
        return [path for path in found if path.is_file()]

    def conversations(self, db: Database) -> Sequence[Conversation]:
        """Returns sessions by the one that they all lead to.

        Raises:
            Unavailable: if it has tables, and they are not Hermes'.
        """
        if not is_hermes(db):
            if db.is_empty():
                return []
            raise unknown_tables(db, "Hermes")
        sessions = sessions_in(db)
        tallies = _tallies(db)
        found: dict[str, list[HermesSession]] = {}
        for one in sessions.values():
            found.setdefault(_root_of(one, sessions), []).append(one)
        return [
            Conversation(
                name=root,
                fingerprint=_fingerprint([(one, tallies.get(one.id)) for one in ones]),
                sessions=_projects(ones, sessions),
                touched_at=max(
                    (seconds(tallies[one.id][-1]) or 0.0 for one in ones if one.id in tallies),
                    default=0.0,
                ),
            )
            for root, ones in found.items()
        ]

    def read(
        self, db: Database, conversation: Conversation, *, without: Collection[str], now: float
    ) -> Standing:
        """Returns the sessions of a conversation; a sub-agent waits for the call that made it."""
        sessions = sessions_in(db, conversation.sessions.keys() - set(without))
        graph = HermesGraph(sessions, {name: rows_in(db, name) for name in sessions})
        waits = _waiting(graph, now, self._patience.orphan_seconds)
        found = sessions_of(
            graph,
            files=dict.fromkeys(sessions, db.path.name),
            projects=conversation.sessions,
            held=waits,
        )
        return Standing(
            sessions=tuple(found),
            held=frozenset(key for name in waits for key in graph.talks[name].line),
            due=min(waits.values(), default=None),
        )


def _tallies(db: Database) -> dict[str, tuple[Any, ...]]:
    """Returns what tells cheaply whether a session's rows changed, and the time of the newest.

    An index of Hermes' own holds all that is asked for: no row is read.
    """
    columns = db.columns_of(MESSAGES)
    if not {"id", "session_id", "timestamp"} <= columns:
        return {}
    active = "sum(active * id)" if "active" in columns else "NULL"
    tally = ["session_id", "max(id)", "count(*)", active, "max(timestamp)"]
    rows = db.select(tally, f"FROM {MESSAGES} GROUP BY session_id")
    return {row[0]: row[1:] for row in rows}


def _root_of(session: HermesSession, sessions: Mapping[str, HermesSession]) -> str:
    """Returns the session that all pointers lead to; the first by name in a circle."""
    seen = {session.id}
    at = session
    while (origin := sessions.get(origin_of(at) or "")) is not None:
        if relation_to(at, origin) == "none":
            break
        if origin.id in seen:
            return min(seen)
        seen.add(origin.id)
        at = origin
    return at.id


def _projects(
    ones: Sequence[HermesSession], sessions: Mapping[str, HermesSession]
) -> dict[str, str | None]:
    """Returns where each session began: a copy of a talk is no less private than the talk."""
    found: dict[str, str | None] = {}
    for one in ones:
        at: HermesSession | None = one
        seen: set[str] = set()
        while at is not None and at.project is None and at.id not in seen:
            seen.add(at.id)
            at = sessions.get(origin_of(at) or "")
        found[one.id] = at.project if at is not None else None
    return found


def _fingerprint(ones: Iterable[tuple[HermesSession, tuple[Any, ...] | None]]) -> bytes:
    return hashlib.blake2b(repr(list(ones)).encode("utf-8", "replace"), digest_size=16).digest()


def _waiting(graph: HermesGraph, now: float, seconds: float) -> dict[str, float]:
    """Returns the sessions that wait, with until when: sub-agents that no call names yet.

    With them waits what goes on from them, and what they called for.
    """
    waits: dict[str, float] = {}
    for name, talk in graph.talks.items():
        before = graph.talks.get(origin_of(talk.session) or "")
        if before is None:
            continue
        if before.session.id in waits:
            waits[name] = waits[before.session.id]
        elif talk.session.is_agent and talk.caller is None:
            until = (talk.session.started_at or -math.inf) + seconds
            if now < until <= now + seconds:
                waits[name] = until
    return waits
