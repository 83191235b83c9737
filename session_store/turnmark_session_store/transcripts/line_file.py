"""A file of lines that somebody still writes: read forward, each time as far as it is whole.

Two positions. `position` stands behind the last line that ended, and only it may become durable;
how far a torn line was searched for its end is kept beside it and forgotten. Before anything is
read, the file is compared with what was read of it before: another inode, a size below the
position, other bytes at the start or just before the position mean another file under the same
name, which is read from its beginning. The file is opened, read and closed; no handle is kept.
"""

from __future__ import annotations

import enum
import hashlib
import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from turnmark_session_store.transcripts.json_lines import LINE_LIMIT_BYTES, Warn, parse_line
from turnmark_session_store.transcripts.reader import ReadWarning

# Enough to hold the first record's ids and time, which no other file shares.
_COMPARED_BYTES = 4096
_SEARCHED_BYTES = 1024 * 1024
_HASH_BYTES = 16

Take = Callable[[int, dict[str, Any]], None]
"""Gets a line's number, from 1, and its object."""


class Look(enum.Enum):
    """What a file turned out to be: gone, as it was, longer, or another one under its name."""

    GONE = "gone"
    SAME = "same"
    GROWN = "grown"
    REPLACED = "replaced"


class FileStamp(msgspec.Struct, frozen=True, kw_only=True):
    """What tells cheaply whether a file is as it was."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Self:
        """Returns the stamp of a `stat` result."""
        # SQLite keeps signed 64 bits; some file systems use all of an unsigned inode.
        inode = found.st_ino - (1 << 64) if found.st_ino >= 1 << 63 else found.st_ino
        return cls(device=found.st_dev, inode=inode, size=found.st_size, mtime_ns=found.st_mtime_ns)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The hash of a stretch of a file that was read; `start` and `length` in bytes."""

    start: int = 0
    length: int = 0
    digest: bytes = b""

    @classmethod
    def of(cls, file: BinaryIO, start: int, length: int) -> Self:
        """Returns the mark of that stretch; reads it."""
        file.seek(start)
        return cls(start=start, length=length, digest=_hash(file.read(length)))

    def holds(self, file: BinaryIO) -> bool:
        """Returns whether the stretch has the bytes that it had."""
        if not self.length:
            return True
        file.seek(self.start)
        return _hash(file.read(self.length)) == self.digest


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """How far a file was read, and what it was then: all that is needed to go on from there."""

    stamp: FileStamp
    position: int
    head: Mark = Mark()
    last: Mark = Mark()

    def fits(self, file: BinaryIO, now: FileStamp) -> bool:
        """Returns whether an open file still begins with what was read."""
        same_file = (now.device, now.inode) == (self.stamp.device, self.stamp.inode)
        return (
            same_file
            and now.size >= self.position
            and self.head.holds(file)
            and self.last.holds(file)
        )


class LineFile:
    """Reads one file forward; call `advance` whenever it may have grown.

    It begins at the start of the file, also where `known` says what was read of it before: that is
    only compared. `reached` is None until the file was found once. `starts` holds the byte at which
    each line begins, 8 bytes a line.
    """

    def __init__(
        self, path: Path, *, known: Reached | None = None, limit_bytes: int = LINE_LIMIT_BYTES
    ) -> None:
        self.path = path
        self.reached: Reached | None = None
        self._known = known
        self.starts = array("Q")
        self._limit_bytes = limit_bytes
        self._searched = 0

    @property
    def position(self) -> int:
        """The byte behind the last line that ended."""
        return 0 if self.reached is None else self.reached.position

    @property
    def has_rest(self) -> bool:
        """Whether bytes stand behind the last line that ended."""
        return self.reached is not None and self.reached.stamp.size > self.reached.position

    def advance(self, take: Take, *, warn: Warn, restart: Callable[[], None]) -> Look:
        """Gives every line that has ended since to `take`; blocks on disk.

        `restart` is called before the first line where another file has taken the name: what was
        taken before is then read again as far as it is still there.

        Raises:
            OSError: if the file is there and can't be read.
        """
        try:
            with self.path.open("rb") as file:
                return self._advance(file, take, warn, restart)
        except (FileNotFoundError, NotADirectoryError):
            return Look.GONE

    def rest(self) -> dict[str, Any] | None:
        """Returns the object of a last line without its end, if it is whole; blocks on disk.

        For files that nobody writes any more. The position stays in front of it.
        """
        if self.reached is None or self.reached.stamp.size - self.position > self._limit_bytes:
            return None
        try:
            with self.path.open("rb") as file:
                file.seek(self.position)
                parsed = parse_line(file.read(self.reached.stamp.size - self.position))
        except OSError:
            return None  # gone or closed meanwhile; what is left of it can't be had
        return parsed if isinstance(parsed, dict) else None

    def _advance(self, file: BinaryIO, take: Take, warn: Warn, restart: Callable[[], None]) -> Look:
        stamp = FileStamp.of(os.fstat(file.fileno()))
        before = self.reached
        look = Look.GROWN
        if before is not None:
            if stamp == before.stamp:
                return Look.SAME
            if not before.fits(file, stamp):
                look = Look.REPLACED
                before = None
                self._searched = 0
                self.starts = array("Q")
                restart()
        elif self._known is not None and not self._known.fits(file, stamp):
            look = Look.REPLACED
            restart()
        begin = before or Reached(stamp=stamp, position=0)
        position, last_start = self._read_lines(file, begin.position, stamp.size, take, warn)
        self.reached = self._mark(file, begin, stamp, position, last_start)
        return look

    def _read_lines(
        self, file: BinaryIO, position: int, size: int, take: Take, warn: Warn
    ) -> tuple[int, int | None]:
        """Returns the new position and where the last line before it begins."""
        last_start: int | None = None
        if not self._torn_line_ended(file, position, size):
            return position, last_start
        file.seek(position)
        while position < size:
            line = file.readline(self._limit_bytes + 1)
            end = self._end_of(file, line, position)
            if end is None:
                break
            self.starts.append(position)
            last_start, position = position, end
            self._searched = end
            self._take_line(line if line.endswith(b"\n") else None, take, warn)
        return position, last_start

    def _torn_line_ended(self, file: BinaryIO, position: int, size: int) -> bool:
        """Looks for the end of a torn line; of a long one in what is new, so that it costs little.

        A short one is looked through each time: its writer may have cut it and begun anew.
        """
        if self._searched - position <= _SEARCHED_BYTES or self._searched > size:
            return True
        file.seek(self._searched)
        while self._searched < size:
            chunk = file.read(_SEARCHED_BYTES)
            if not chunk:
                break
            if b"\n" in chunk:
                return True
            self._searched += len(chunk)
        return False

    def _end_of(self, file: BinaryIO, line: bytes, start: int) -> int | None:
        """Returns where a line that was begun ends, None if it has not ended yet."""
        end = start + len(line)
        if len(line) > self._limit_bytes:
            while line and not line.endswith(b"\n"):
                line = file.readline(_SEARCHED_BYTES)
                end += len(line)
        if line.endswith(b"\n"):
            return end
        self._searched = end
        return None

    def _take_line(self, line: bytes | None, take: Take, warn: Warn) -> None:
        number = len(self.starts)
        parsed = f"longer than {self._limit_bytes} bytes" if line is None else parse_line(line)
        if isinstance(parsed, dict):
            take(number, parsed)
        elif parsed is not None:
            warn(ReadWarning(file=str(self.path), line=number, reason=parsed))

    def _mark(
        self,
        file: BinaryIO,
        before: Reached,
        stamp: FileStamp,
        position: int,
        last_start: int | None,
    ) -> Reached:
        head, last = before.head, before.last
        if head.length < min(_COMPARED_BYTES, position):
            head = Mark.of(file, 0, min(_COMPARED_BYTES, position))
        if last_start is not None:
            start = max(last_start, position - _COMPARED_BYTES)
            last = Mark.of(file, start, position - start)
        return Reached(stamp=stamp, position=position, head=head, last=last)


def _hash(read: bytes) -> bytes:
    return hashlib.blake2b(read, digest_size=_HASH_BYTES).digest()
