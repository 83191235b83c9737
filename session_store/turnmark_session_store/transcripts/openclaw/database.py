"""Reads OpenClaw's databases, finished or while they are written: its `DatabaseReader`.

Rows are whole as soon as they are there, and one transaction shows the rows that belong together.
Only a turn whose chain leads to an entry that is nowhere waits, for a minute from when it was
written: then it is a root with a lost predecessor. Each agent has a database of its own, and is
followed by itself: a sub-agent that another agent's database tells of has no caller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from turnmark_session_store.transcripts.database_file import Database, stamp_of
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.line_file import FileStamp
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.openclaw.entries import Entry
from turnmark_session_store.transcripts.openclaw.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.openclaw.set import Family, Transcript
from turnmark_session_store.transcripts.openclaw.tables import (
    NAME,
    read_directories,
    read_facts,
    read_rows,
    read_states,
)
from turnmark_session_store.transcripts.openclaw.windows import Facts, Windows
from turnmark_session_store.transcripts.reader import predecessors_first

AGENTS = "agents"
"""Where below the state directory each agent has its directory."""

_FINGERPRINT_BYTES = 16


class OpenClawDatabaseReader:
    """OpenClaw's `DatabaseReader`; its directory is the state directory."""

    agent = AGENT

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._windows: dict[Path, tuple[tuple[FileStamp | None, ...], Windows]] = {}

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directory of the agents."""
        return (root / AGENTS,)

    def databases(self, root: Path) -> list[Path]:
        """Returns the databases of all agents."""
        if root.name == NAME:
            return [root]
        return sorted((root / AGENTS).glob(f"*/agent/{NAME}"))

    def conversations(self, db: Database) -> Sequence[Conversation]:
        """Returns the families of transcripts; looks at the index of all entries."""
        windows = self._windows_of(db)
        states, directories = read_states(db), read_directories(db)
        return [
            Conversation(
                name=family,
                fingerprint=_digest([(one, states.get(one.session)) for one in members]),
                sessions=self._directories(windows, members, directories),
                touched_at=max((one.touched_ms or 0) / 1000 for one in members),
            )
            for family, members in windows.members.items()
        ]

    def read(
        self, db: Database, conversation: Conversation, *, without: Collection[str], now: float
    ) -> Standing:
        """Returns the sessions of a family of transcripts, and what waits."""
        windows = self._windows_of(db)
        transcripts = [
            read_transcript(db, facts)
            for facts in windows.members.get(conversation.name, ())
            if windows.sessions[facts.session] not in without
        ]
        family = Family(windows, transcripts)
        held, due = self._held(family, now)
        return Standing(
            sessions=tuple(predecessors_first(SessionWriter(family, held=held).sessions())),
            held=held,
            due=due,
        )

    def _windows_of(self, db: Database) -> Windows:
        """Returns how all transcripts rest on each other: read again once the files changed.

        Reading all of them for each conversation would cost the square of their number. What was
        committed between two looks at the files is seen at the next one, which it brings about.
        """
        stamps = tuple(map(_stamp, (db.path, db.path.with_name(f"{db.path.name}-wal"))))
        known = self._windows.get(db.path)
        if known is None or known[0] != stamps:
            known = self._windows[db.path] = (stamps, Windows(read_facts(db)))
        return known[1]

    def _held(self, family: Family, now: float) -> tuple[frozenset[str], float | None]:
        """Returns the turns that wait for an entry above them, and until when the first does."""
        held: set[str] = set()
        ends: list[float] = []
        for turn in family.turns.values():
            written = (turn.entry.written_ms or 0) / 1000
            end = written + self._patience.orphan_seconds
            # What claims to be of the future would wait for as long as it liked.
            if turn.is_lost and written <= now < end:
                held.add(turn.id)
                ends.append(end)
            elif turn.predecessor in held:
                held.add(turn.id)
        return frozenset(held), min(ends, default=None)

    def _directories(
        self, windows: Windows, members: Sequence[Facts], directories: dict[str, str]
    ) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for one in members:
            session = windows.sessions[one.session]
            found[session] = found.get(session) or directories.get(one.session)
        return found


def _stamp(path: Path) -> FileStamp | None:
    try:
        return stamp_of(path)
    except FileNotFoundError:
        return None


def read_transcript(db: Database, facts: Facts) -> Transcript:
    """Returns a transcript with all that its rows say; of one that is withdrawn as well."""
    transcript = Transcript(facts=facts, file=db.path.name)
    for number, found in read_rows(db, facts.session):
        if isinstance(found, str):
            transcript.warn(number, found)
        elif isinstance(found, Entry):
            transcript.entries.append(found)
        else:
            transcript.take(number, found)
    return transcript


def _digest(members: Sequence[object]) -> bytes:
    return hashlib.blake2b(msgspec.json.encode(members), digest_size=_FINGERPRINT_BYTES).digest()
