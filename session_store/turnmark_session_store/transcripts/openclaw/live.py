"""OpenClaw's files while they are written, up to 2026.7: its `LiveReader`.

A line is final as soon as it has ended. Only a turn whose chain leads to an entry that is nowhere
waits for that entry; after a minute it is a root with a lost predecessor. Transcripts that rest on
each other (forks, and sub-agents by the index) are read together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path, PurePath

from turnmark_session_store.transcripts.growing import (
    GrowingFile,
    GrowingReader,
    GrowingSet,
    Waiting,
)
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.openclaw.database import AGENTS
from turnmark_session_store.transcripts.openclaw.files import (
    FOLDER,
    INDEX,
    families_of,
    name_of,
    read_index,
    with_origin,
)
from turnmark_session_store.transcripts.openclaw.sessions import AGENT, SessionWriter
from turnmark_session_store.transcripts.openclaw.set import Family, Transcript
from turnmark_session_store.transcripts.openclaw.windows import Facts
from turnmark_session_store.transcripts.reader import ReadSession, predecessors_first


class OpenClawFile(GrowingFile[Transcript]):
    """One transcript, with the entries of the lines that have ended."""

    def begin(self) -> Transcript:
        """Returns a transcript of which nothing is read yet."""
        facts = Facts(session=self.session, is_lasting=False)
        return Transcript(facts=facts, file=self.path.name)

    def place(self, facts: Facts) -> Transcript:
        """Returns the transcript with what is known of it besides its lines."""
        self.transcript.facts = facts
        return with_origin(self.transcript)


class OpenClawLiveSet(GrowingSet[OpenClawFile]):
    """OpenClaw's `LiveSet`."""

    def __init__(self, patience: Patience) -> None:
        super().__init__(patience, OpenClawFile)

    def lines_of(self, file: OpenClawFile, turns: Collection[str]) -> list[int]:
        """Returns the lines of the entries that are these turns, or copies of them."""
        return [entry.line for entry in file.transcript.entries if entry.key in turns]

    def sessions_named(self) -> set[str]:
        """Returns the transcripts that others are copies of, or were spawned from."""
        indexes = self._indexes()
        found: set[str] = set()
        for file in self.files.values():
            index = indexes[file.path.parent]
            facts = file.place(index.get(file.session, file.transcript.facts)).facts
            found |= {file.session} | ({facts.origin} if facts.origin is not None else set())
            found |= {
                name
                for name, other in index.items()
                if other.conversation == facts.spawned_by is not None
            }
        return found

    def project_of(self, session: str) -> str | None:
        """Returns the directory in which a session began."""
        headers = (
            file.transcript.header for file in self.files.values() if file.session == session
        )
        return next((one.cwd for one in headers if one is not None and one.cwd), None)

    def turn_ids(self) -> set[str]:
        """Returns the ids of all entries that may be turns."""
        return {
            entry.key
            for file in self.files.values()
            for entry in file.transcript.entries
            if entry.words is not None
        }

    def stand(self, placed: Collection[str], now: float) -> Standing:
        """Resolves the set; `placed` are the turns in the store. Costs CPU by the entries."""
        indexes = self._indexes()
        transcripts = [
            file.place(indexes[file.path.parent].get(file.session, file.transcript.facts))
            for file in self.files.values()
        ]
        waiting = Waiting(now)
        sessions: list[ReadSession] = []
        held: set[str] = set()
        for family in families_of(transcripts):
            held |= self._held(family, placed, waiting)
            sessions += SessionWriter(family, held=held).sessions()
        self.hold_only(held)
        return Standing(
            sessions=tuple(predecessors_first(sessions)),
            held=frozenset(held),
            due=self.due_with_ends(waiting.due),
        )

    def _held(self, family: Family, placed: Collection[str], waiting: Waiting) -> set[str]:
        files = {file.transcript: file for file in self.files.values()}
        held: set[str] = set()
        for turn in family.turns.values():
            if turn.id in placed:
                continue
            is_held = turn.predecessor in held
            if is_held or (
                turn.is_lost and self.may_wait(turn.id, files[turn.transcript], waiting)
            ):
                held.add(turn.id)
        return held

    def _indexes(self) -> dict[Path, Mapping[str, Facts]]:
        folders = {path.parent for path in self.files}
        return {folder: read_index(folder / INDEX) for folder in folders}


class OpenClawLiveReader(GrowingReader):
    """OpenClaw's `LiveReader`; its directory is the state directory."""

    agent = AGENT
    namespace = AGENT
    kept_in = (AGENTS,)

    def session_of(self, path: Path) -> str | None:
        """Returns what the transcript in a file is called, None if it is none."""
        return name_of(path) if _is_in_place(path) else None

    def live_set(self) -> OpenClawLiveSet:
        """Returns an empty set."""
        return OpenClawLiveSet(self._patience)


def _is_in_place(path: PurePath) -> bool:
    folders = path.parts[-4:-1]
    return len(folders) == 3 and (folders[0], folders[2]) == (AGENTS, FOLDER)  # noqa: PLR2004
