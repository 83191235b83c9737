"""What the live sets of all readers share: files that grow, and what is held of them.

A reader says with classes of its own what it makes of a record, and which lines hold the turns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec

from turnmark_session_store.transcripts.checkpoints import Checkpoint
from turnmark_session_store.transcripts.line_file import LineFile, Look, Reached
from turnmark_session_store.transcripts.live import LiveSet, Patience
from turnmark_session_store.transcripts.reader import ReadWarning


class TakesRecords(Protocol):
    """What a reader makes of one file, record by record."""

    def take(self, line: int, record: dict[str, Any], /) -> object:
        """Takes the next record of the file, of the line with this number."""
        ...


Transcript = TypeVar("Transcript", bound=TakesRecords)


class GrowingFile(ABC, Generic[Transcript]):
    """One file of a session, with the `transcript` that the lines that have ended make.

    `is_gone` says that it was not there at the last look; what was read of it is kept.
    """

    def __init__(self, path: Path, session: str, known: Reached | None = None) -> None:
        self.lines = LineFile(path, known=known)
        self.session = session
        self.transcript = self.begin()
        self.rewritten = False
        self.unread = 0
        self.grown_at = 0.0
        self.is_gone = False
        self._rest_taken = False

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.lines.path

    @abstractmethod
    def begin(self) -> Transcript:
        """Returns a transcript of which nothing is read yet."""

    def read_on(self, now: float) -> None:
        """Reads the lines that have ended since.

        Raises:
            OSError: if the file is there and can't be read.
        """
        look = self.lines.advance(self._take, warn=self._warn, restart=self._restart)
        self.is_gone = look is Look.GONE
        reached = self.lines.reached
        if look in (Look.GROWN, Look.REPLACED) and reached is not None:
            self.grown_at = min(now, reached.stamp.mtime_ns / 1e9)
            self._rest_taken = False

    def take_rest(self) -> None:
        """Takes a whole last line that never ended, once: its writer is gone."""
        self._rest_taken = True
        record = self.lines.rest()
        if record is not None:
            self._take(len(self.lines.starts) + 1, record)

    @property
    def waits_for_end(self) -> bool:
        """Whether a last line stands there that has not ended and was not given up."""
        return self.lines.has_rest and not self._rest_taken

    def start_of(self, line: int) -> int:
        """Returns the byte at which a line begins."""
        starts = self.lines.starts
        return starts[line - 1] if line <= len(starts) else self.lines.position

    def _take(self, line: int, record: dict[str, Any]) -> None:
        self.transcript.take(line, record)

    def _warn(self, warning: ReadWarning) -> None:
        del warning  # counted: a line may hold what must not be logged
        self.unread += 1

    def _restart(self) -> None:
        """Forgets what was taken: another file has taken the name."""
        self.transcript = self.begin()
        self.rewritten = True


File = TypeVar("File", bound=GrowingFile[Any])
BeginFile = Callable[[Path, str, Reached | None], File]
"""Makes a file of which nothing is read yet: its path, its session, and what was read before."""


class GrowingSet(ABC, Generic[File]):
    """The part of a `LiveSet` that is the same for every agent."""

    def __init__(self, patience: Patience, begin_file: BeginFile[File]) -> None:
        self.files: dict[Path, File] = {}
        self.patience = patience
        self._begin_file = begin_file
        self._held_since: dict[str, float] = {}

    @abstractmethod
    def lines_of(self, file: File, turns: Collection[str]) -> Iterable[int]:
        """Returns the numbers of the lines of a file that hold these turns."""

    def add(self, session: str, paths: Collection[Path], known: Mapping[Path, Reached]) -> None:
        """Adds the files of a session; those that are there stay as far as they are read.

        `known` says what an earlier process read of some: one that no longer fits was rewritten.
        """
        for path in paths:
            if path not in self.files:
                self.files[path] = self._begin_file(path, session, known.get(path))

    def leave_out(self, session: str) -> None:
        """Takes a session's files out again."""
        self.files = {path: file for path, file in self.files.items() if file.session != session}

    def take_over(self, other: LiveSet) -> None:
        """Takes over the files of another set, and since when its turns are held."""
        assert isinstance(other, type(self))  # noqa: S101  the tail keeps one reader's sets
        self.files.update(other.files)
        self._held_since.update(other._held_since)  # noqa: SLF001 - of the same class

    @property
    def paths(self) -> Collection[Path]:
        """The files of the set."""
        return self.files.keys()

    @property
    def rewritten(self) -> bool:
        """Whether words that were read before may have changed."""
        return any(file.rewritten for file in self.files.values())

    def rewriting_was_seen(self) -> None:
        """Says that the changed words were dealt with."""
        for file in self.files.values():
            file.rewritten = False

    @property
    def grown_at(self) -> float:
        """When a file of the set was written last, in seconds since 1970."""
        return max((file.grown_at for file in self.files.values()), default=0.0)

    @property
    def unread(self) -> int:
        """How many lines could not be taken."""
        return sum(file.unread for file in self.files.values())

    def read_on(self, now: float) -> None:
        """Reads every file forward; blocks on disk.

        Raises:
            OSError: if a file is there and can't be read; the others were read.
        """
        failed: OSError | None = None
        for file in self.files.values():
            try:
                file.read_on(now)
            except OSError as error:
                failed = error
            if file.waits_for_end and now - file.grown_at >= self.patience.orphan_seconds:
                file.take_rest()
        if failed is not None:
            raise failed

    def checkpoints(self, held: Collection[str]) -> list[Checkpoint]:
        """Returns how far each file is when all turns but `held` are in the store."""
        found: list[Checkpoint] = []
        for file in self.files.values():
            reached = file.lines.reached
            if reached is None:
                continue
            starts = [file.start_of(line) for line in self.lines_of(file, held)] if held else []
            position = min(starts, default=reached.position)
            found.append(
                Checkpoint(
                    path=file.path,
                    session=file.session,
                    reached=msgspec.structs.replace(reached, position=position),
                    done=not starts and not file.waits_for_end,
                )
            )
        return found

    def may_wait(self, turn: str, file: File, waiting: Waiting) -> bool:
        """Returns whether a turn still waits for what decides about it: for a minute, once held."""
        since = self._held_since.setdefault(turn, min(waiting.now, file.grown_at))
        return waiting.until(since + self.patience.orphan_seconds)

    def hold_only(self, held: Collection[str]) -> None:
        """Forgets since when turns were held that no longer are."""
        self._held_since = {turn: since for turn, since in self._held_since.items() if turn in held}

    def due_with_ends(self, due: float | None) -> float | None:
        """Returns the earlier of `due` and when a line that has not ended is given up."""
        moments = [
            file.grown_at + self.patience.orphan_seconds
            for file in self.files.values()
            if file.waits_for_end
        ]
        return min([*moments, *([] if due is None else [due])], default=None)


class Waiting:
    """Decides what waits, and notes when it will have waited long enough."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.due: float | None = None

    def until(self, moment: float) -> bool:
        """Returns whether a moment is still to come."""
        if moment <= self.now:
            return False
        self.due = moment if self.due is None else min(self.due, moment)
        return True


def hold_followers(
    order: Iterable[str], predecessors: Mapping[str, str | None], held: set[str]
) -> None:
    """Adds to `held` what follows a held turn; in `order` each stands behind its predecessor."""
    for turn in order:
        if predecessors[turn] in held:
            held.add(turn)


class GrowingReader(ABC):
    """The part of a `LiveReader` that is the same for every agent.

    `kept_in` are the directories below the agent's own in which transcripts lie.
    """

    agent: ClassVar[str]
    namespace: ClassVar[str | None]
    kept_in: ClassVar[tuple[str, ...]] = (".",)

    def __init__(self, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns where below its directory the agent keeps its transcripts."""
        return tuple(root / name for name in self.kept_in)

    @abstractmethod
    def session_of(self, path: Path) -> str | None:
        """Returns the session that a file belongs to, None if it is no transcript, or not yet.

        Raises:
            OSError: if it has to be read for that and can't be.
        """

    @abstractmethod
    def live_set(self) -> LiveSet:
        """Returns an empty set."""
