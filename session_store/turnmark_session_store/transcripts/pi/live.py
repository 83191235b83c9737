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

from turnmark_session_store.transcripts.growing import (
    GrowingFile,
    GrowingReader,
    GrowingSet,
    Waiting,
)
from turnmark_session_store.transcripts.json_lines import objects_in
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.pi.files import (
    LINES_LOOKED_AT,
    Transcript,
    is_own_header,
    session_id_of,
)
from turnmark_session_store.transcripts.pi.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.pi.set import Key, TranscriptSet

# Headers are short.
_PEEKED_BYTES = 64 * 1024


class PiFile(GrowingFile[Transcript]):
    """One transcript, with what the lines that have ended say."""

    def begin(self) -> Transcript:
        """Returns a transcript of which nothing is read yet."""
        return Transcript(path=self.path)


class PiLiveSet(GrowingSet[PiFile]):
    """pi's `LiveSet`."""

    def __init__(self, patience: Patience) -> None:
        super().__init__(patience, PiFile)
        self._resolved = TranscriptSet(())

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
            file = files[self._resolved.turns[key].file]
            is_held = self._resolved.predecessors[key] in held
            if is_held or (self._is_unsure(key, placed) and self.may_wait(key, file, waiting)):
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

    def _is_unsure(self, key: Key, placed: Collection[str]) -> bool:
        """Returns whether it is open what a turn hangs from, or of which family it is."""
        shared = self._resolved.turns[key]
        if shared.turn.id in placed:
            return False
        if shared.turn.is_lost:
            return True
        family = self._resolved.sessions[shared.owner].family
        # What stands above a turn was given out, and decided the family.
        return family not in self._resolved.sessions and self._resolved.predecessors[key] is None


class PiLiveReader(GrowingReader):
    """pi's `LiveReader`; its directory is the one in which sessions are kept."""

    agent = AGENT
    namespace = None

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
        lines = file.read(_PEEKED_BYTES).split(b"\n")[:-1]
    headers = filter(is_own_header, objects_in(lines[:LINES_LOOKED_AT]))
    return next(map(session_id_of, headers), None)
