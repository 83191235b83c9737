"""One file of the archive: one turn a line, appended, flushed, read at its place, cut if torn."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import structlog

from turnmark_memory import durable
from turnmark_memory.rooted import Rooted
from turnmark_memory.source_line import FORGOTTEN_LINE, ArchivedTurn, decode_line, encode_line
from turnmark_memory.source_map import FileState, Place

log = structlog.get_logger(__name__)

_CHUNK_BYTES = 1 << 20


class SourceFile:
    """The file at `path` below a workspace; one caller at a time. Everything blocks."""

    def __init__(self, tree: Rooted, path: str) -> None:
        self._tree = tree
        self._path = path

    def status(self) -> os.stat_result:
        """Returns the file's status.

        Raises:
            FileNotFoundError: if it is not there.
        """
        fd = self._tree.open(self._path)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def append(
        self, turns: Sequence[ArchivedTurn], before: FileState
    ) -> tuple[list[Place], os.stat_result]:
        """Appends lines, durably, to a file that is as `before`; returns where they lie."""
        encoded = [encode_line(turn) for turn in turns]
        with self._tree.parent(self._path, create=True) as (dir_fd, _):
            fd = self._tree.open(self._path, os.O_RDWR | os.O_APPEND, create=True)
            try:
                durable.append_durably(fd, b"".join(encoded))
                if before.size == 0:
                    os.fsync(dir_fd)
                return list(self._appended(turns, encoded, before)), os.fstat(fd)
            finally:
                os.close(fd)

    def _appended(
        self, turns: Sequence[ArchivedTurn], encoded: Sequence[bytes], before: FileState
    ) -> Iterator[Place]:
        offset = before.size
        for number, (turn, line) in enumerate(zip(turns, encoded, strict=True), before.lines + 1):
            yield self._place(turn, number, offset, len(line))
            offset += len(line)

    def lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Yields (line number, offset, line without its newline) of the whole lines of a file."""
        with os.fdopen(self._tree.open(self._path), "rb", buffering=_CHUNK_BYTES) as file:
            offset = 0
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield number, offset, line[:-1]
                offset += len(line)

    def places(self) -> Iterator[tuple[int, Place | None]]:
        """Yields each line's number, and its place where it holds a turn."""
        for line, offset, content in self.lines():
            turn = decode_line(content)
            if turn is not None:
                yield line, self._place(turn, line, offset, len(content) + 1)
                continue
            if content + b"\n" != FORGOTTEN_LINE:
                log.warning("source_line_unreadable", path=self._path, line=line)
            yield line, None

    def _place(self, turn: ArchivedTurn, line: int, offset: int, length: int) -> Place:
        return Place(
            label=turn.label,
            namespace=turn.namespace,
            id=turn.id,
            path=self._path,
            line=line,
            offset=offset,
            length=length,
        )

    def read(self, places: Iterable[Place]) -> dict[str, ArchivedTurn]:
        """Returns by label those of `places` at which their turns really lie."""
        try:
            fd = self._tree.open(self._path)
        except FileNotFoundError:
            return {}
        try:
            read = (
                (place.label, decode_line(os.pread(fd, place.length, place.offset).rstrip(b"\n")))
                for place in places
            )
            return {label: turn for label, turn in read if turn and turn.label == label}
        finally:
            os.close(fd)

    def cut_torn_end(self) -> None:
        """Cuts off what a crash left of a line, and flushes all before it."""
        with self._tree.parent(self._path) as (dir_fd, _):
            os.fsync(dir_fd)
        fd = self._tree.open(self._path, os.O_RDWR)
        try:
            size = os.fstat(fd).st_size
            whole = _end_of_last_line(fd, size)
            if whole < size:
                log.warning("torn_source_line_cut", path=self._path, bytes=size - whole)
                os.ftruncate(fd, whole)
            # Lines of a killed process can be read and yet not be on the disk; from now on they
            # count as archived.
            os.fsync(fd)
        finally:
            os.close(fd)


def _end_of_last_line(fd: int, size: int) -> int:
    end = size
    while end > 0:
        start = max(0, end - _CHUNK_BYTES)
        at = os.pread(fd, end - start, start).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        end = start
    return 0
