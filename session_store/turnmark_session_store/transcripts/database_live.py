"""What a reader offers for an agent that keeps its transcripts in SQLite, and what it gives back.

There is no position behind which all is new: rows are changed, flagged and deleted where they are.
So a reader says first, at little cost, which conversations a database holds and what tells each
from how it was (`conversations`), and then reads one of them whole (`read`). An import reads all of
them once, a tail those that changed: both come to the same turns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from turnmark_session_store.transcripts.database_file import Database, read_database
from turnmark_session_store.transcripts.live import Standing
from turnmark_session_store.transcripts.reader import ReadSession, is_within


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """Sessions of one database that point at each other, and so are read together.

    `name` stays the same while the conversation grows; two of one database differ. `fingerprint`
    differs as soon as reading it would give anything else; that it differs needlessly costs a
    reading. `sessions` maps each session to the directory in which it began, None if that is not
    known. `touched_at` is when something was last said, in seconds since 1970: the newest is read
    first.
    """

    name: str
    fingerprint: bytes
    sessions: dict[str, str | None]
    touched_at: float = 0.0

    def sessions_within(self, directories: Sequence[Path]) -> set[str]:
        """Returns the sessions that began in one of these directories."""
        return {name for name, place in self.sessions.items() if is_within(place, directories)}


class SourceReader(Protocol):
    """Finds where an agent keeps conversations that are changed in place."""

    @property
    def agent(self) -> str:
        """The agent's name, as in the configuration's `[transcripts]`."""
        ...

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns the directories below `root` whose files tell of changes."""
        ...

    def databases(self, root: Path) -> Collection[Path]:
        """Returns the databases of sessions that are there; `root` may be one itself.

        Looks at names alone and into no directory where none can be: asked when anything changes
        in a place that is no known database.

        Raises:
            OSError: if a directory is there and can't be looked at.
        """
        ...


@runtime_checkable
class ReadsFlatPlaces(Protocol):
    """A `SourceReader` of an agent that has more than its sessions in one of its places.

    Its own code, say, and caches: watching all that is below would cost a watch a directory.
    """

    def flat_places(self, root: Path) -> Collection[Path]:
        """Returns those of its places in which only what lies right in them tells of changes."""
        ...


class DatabaseReader(SourceReader, Protocol):
    """Reads the transcripts of one agent out of its databases, finished or still written."""

    def conversations(self, db: Database) -> Sequence[Conversation]:
        """Returns what the database holds; asked at each change, so it reads no words."""
        ...

    def read(
        self, db: Database, conversation: Conversation, *, without: Collection[str], now: float
    ) -> Standing:
        """Returns the sessions of a conversation, each after what it rests on, and what waits.

        Sessions `without` memory are left out as if they were not there. A turn that is still
        written is held, with all that hangs from it, until `due` at most; `now` is in seconds since
        1970, and past every `due` where it is infinite. A turn has the same id at each reading,
        also where its row has another one by then, and no other turn of its family has it. One
        whose words were changed since keeps its id: what the store holds is superseded.
        """
        ...


def finished_sessions(
    reader: DatabaseReader, path: Path, *, skip_directories: Sequence[Path] = ()
) -> Iterator[ReadSession]:
    """Yields all sessions of a database as they stood at one moment, with nothing waited for.

    Sessions that began in one of `skip_directories` are left out: turnmark's own writer works
    there, and memory must not feed on itself.

    Raises:
        Unavailable: if it can't be read.
    """

    def read(db: Database) -> list[ReadSession]:
        found: list[ReadSession] = []
        for one in reader.conversations(db):
            own = one.sessions_within(skip_directories)
            if own < one.sessions.keys():
                found += reader.read(db, one, without=own, now=math.inf).sessions
        return found

    yield from read_database(path, read, is_long=True)
