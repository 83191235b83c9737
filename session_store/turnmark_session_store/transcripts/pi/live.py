"""pi's files while they are written: what of them can be said for good, and what waits.

Messages are written when they are whole, so nearly all can be given out at once. What waits:

- a turn whose chain leads to an entry that is missing, until that one comes; after a minute it is a
  root with a lost predecessor;
- a fork whose origin's file was not seen yet, as it may itself be a fork: which family they are of
  is decided once; after a minute the names say it;
- nothing before its predecessor.

A file of an old version that is opened again is written anew in place. It is then read from its
beginning, and its turns are called what they were called before.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from turnmark_session_store.transcripts.growing import GrowingFile, GrowingSet, Waiting
from turnmark_session_store.transcripts.json_lines import parse_line
from turnmark_session_store.transcripts.line_file import Reached
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.pi.files import Transcript, session_id_of
from turnmark_session_store.transcripts.pi.reader import is_own_header
from turnmark_session_store.transcripts.pi.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.pi.set import Key, TranscriptSet

# The header is the first line, or the second behind one about the session; it is short.
_LINES_LOOKED_AT = 3
_BEGINNING_BYTES = 64 * 1024


class PiFile(GrowingFile):
    """One transcript, with what the lines that have ended say."""

    def __init__(self, path: Path, session: str, known: Reached | None = None) -> None:
        super().__init__(path, session, known)
        self.transcript = Transcript(path=path)

    def take(self, number: int, record: dict[str, Any]) -> None:
        """Adds the next record."""
        self.transcript.take(number, record)

    def begin_anew(self) -> None:
        """Forgets what was said."""
        self.transcript = Transcript(path=self.path)


class PiLiveSet(GrowingSet[PiFile]):
    """pi's `LiveSet`."""

    def __init__(self, patience: Patience) -> None:
        super().__init__(patience)
        self._resolved = TranscriptSet(())

    def begin_file(self, path: Path, session: str, known: Reached | None) -> PiFile:
        """Returns a file of which nothing is read yet."""
        return PiFile(path, session, known)

    def lines_of(self, file: PiFile, turns: Collection[Key]) -> list[int]:
        """Returns the lines of these turns, or of copies of them."""
        return self._resolved.lines_of(file.transcript, turns)

    def sessions_named(self) -> set[str]:
        """Returns the sessions that the headers name: their own, and what they are forks of."""
        read = [file.transcript for file in self._read()]
        parents = {one.parent for one in read if one.parent is not None}
        return parents | {one.session for one in read}

    def project_of(self, session: str) -> str | None:
        """Returns the directory in which a session began."""
        projects = (
            file.transcript.project
            for file in self.files.values()
            if session in (file.session, file.transcript.session)
        )
        return next((project for project in projects if project), None)

    def turn_ids(self) -> set[str]:
        """Returns the ids that the turns may have in the store."""
        return set[str]().union(*(file.transcript.tree.candidates() for file in self._read()))

    def stand(self, placed: Collection[str], now: float) -> Standing:
        """Resolves the set; `placed` are the ids in the store. Costs CPU by the entries."""
        files = {file.transcript: file for file in self._read()}
        self._resolved = TranscriptSet(files, known=placed)
        waiting = Waiting(now)
        held: set[Key] = set()
        for key in self._resolved.in_order():
            is_held = self._resolved.predecessors[key] in held
            if is_held or self._must_wait(key, files, placed, waiting):
                held.add(key)
        self.hold_only(held)
        writer = SessionWriter(self._resolved, held=frozenset(held))
        return Standing(
            sessions=tuple(writer.sessions()),
            held=frozenset(held),
            due=self.due_with_ends(waiting.due),
        )

    def _read(self) -> list[PiFile]:
        return [file for file in self.files.values() if file.transcript.has_header]

    def _must_wait(
        self,
        key: Key,
        files: dict[Transcript, PiFile],
        placed: Collection[str],
        waiting: Waiting,
    ) -> bool:
        shared = self._resolved.turns[key]
        family = self._resolved.sessions[shared.owner].family
        is_sure = family in self._resolved.sessions and not shared.turn.is_lost
        if is_sure or shared.turn.id in placed:
            return False
        if not shared.turn.is_lost and self._resolved.predecessors[key] is not None:
            return False  # what stands above it was given out, and decided the family
        file = files[shared.file]
        since = self.held_since(key, min(waiting.now, file.grown_at))
        return waiting.until(since + self.patience.orphan_seconds)


class PiLiveReader:
    """pi's `LiveReader`; its directory is the one in which sessions are kept."""

    agent = AGENT
    namespace = None

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directory itself: below it, each project has one."""
        return (root,)

    def session_of(self, path: Path) -> str | None:
        """Returns the session that a file belongs to; see `session_of`."""
        return session_of(path)

    def live_set(self) -> PiLiveSet:
        """Returns an empty set."""
        return PiLiveSet(self._patience)


def session_of(path: Path) -> str | None:
    """Returns the session that a file's header names, None if it has none, or not yet.

    Raises:
        OSError: if the file can't be read.
    """
    if path.suffix != ".jsonl":
        return None
    with path.open("rb") as file:
        head = file.read(_BEGINNING_BYTES)
    for line in head.split(b"\n")[:-1][:_LINES_LOOKED_AT]:
        record = parse_line(line)
        if isinstance(record, dict) and is_own_header(record):
            return session_id_of(record)
    return None
