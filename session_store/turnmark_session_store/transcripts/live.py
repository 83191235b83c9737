"""What a reader offers for files that are still written, and what it gives back.

`Reader` reads finished sets of files; a `LiveReader` reads the same files while they grow and says
of each turn whether it stands for good. Both must come to the same turns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from turnmark_session_store.transcripts.checkpoints import Checkpoint
from turnmark_session_store.transcripts.line_file import Reached
from turnmark_session_store.transcripts.reader import ReadSession


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait for what may still be written.

    `quiet_seconds` is no longer than the shortest time in which a file event is told (one step of
    the watcher): an answer is then whole at the first look at it and needs no second one. Fragments
    of a response come seconds apart, but what they say doesn't change; only endpoints that write
    snapshots do that, and a snapshot that comes later takes the place of the earlier one.
    """

    quiet_seconds: float = 0.25
    orphan_seconds: float = 60.0


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a set of live files says now, without the turns that are `held` back.

    `due` is when more can be said although nothing more is written, in seconds since 1970; None
    if only further lines can change anything. `replaced` maps records that are no turns to the
    record that says the same and more.
    """

    sessions: tuple[ReadSession, ...]
    held: frozenset[str] = frozenset()
    due: float | None = None
    replaced: dict[str, str] = {}


class LiveSet(Protocol):
    """Files that must be resolved together, read forward. Used by one thread at a time."""

    @property
    def rewritten(self) -> bool:
        """Whether words that were read before may have changed."""
        ...

    def rewriting_was_seen(self) -> None:
        """Says that the changed words were dealt with."""
        ...

    @property
    def grown_at(self) -> float:
        """When a file of the set was written last, in seconds since 1970."""
        ...

    @property
    def unread(self) -> int:
        """How many lines could not be taken."""
        ...

    @property
    def paths(self) -> Collection[Path]:
        """The files of the set."""
        ...

    def add(self, session: str, paths: Collection[Path], known: Mapping[Path, Reached]) -> None:
        """Adds a session's files; `known` is what an earlier process read of them."""
        ...

    def leave_out(self, session: str) -> None:
        """Takes a session's files out again."""
        ...

    def take_over(self, other: LiveSet) -> None:
        """Takes over the files of another set of the same reader."""
        ...

    def read_on(self, now: float) -> None:
        """Reads what has been written since; blocks on disk.

        Raises:
            OSError: if a file is there and can't be read; the others were read.
        """
        ...

    def project_of(self, session: str) -> str | None:
        """Returns the directory in which a session began, None while no record says it."""
        ...

    def sessions_named(self) -> set[str]:
        """Returns the sessions that the records lead to."""
        ...

    def turn_ids(self) -> set[str]:
        """Returns the ids of all records that may be turns."""
        ...

    def stand(self, placed: Collection[str], now: float) -> Standing:
        """Resolves the set; `placed` are the turns in the store. Costs CPU by its records."""
        ...

    def checkpoints(self, held: Collection[str]) -> list[Checkpoint]:
        """Returns how far each file is when all turns but `held` are in the store."""
        ...


class LiveReader(Protocol):
    """Reads the transcripts of one agent while they are written."""

    @property
    def agent(self) -> str:
        """The agent's name, as in the configuration's `[transcripts]`."""
        ...

    @property
    def namespace(self) -> str | None:
        """The namespace of its ids where they are global, None where they are the family's."""
        ...

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns where below its directory the agent keeps its transcripts."""
        ...

    def session_of(self, path: Path) -> str | None:
        """Returns the session that a file belongs to, None if it is no transcript.

        Raises:
            OSError: if it has to be read for that and can't be.
        """
        ...

    def live_set(self) -> LiveSet:
        """Returns an empty set."""
        ...
