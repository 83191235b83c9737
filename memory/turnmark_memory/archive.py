"""The archive of evidence: every turn that memory rests on, word for word, in plain files.

`sources/<agent>/<session>.jsonl` holds one JSON object a line, appended and never changed, each
with its label, so that a label resolves from these files alone. A turn is archived once, in the
file of its first session, however many sessions reach it. What `append` returned survives a power
cut; a line that a crash left torn is cut off before the next append and never read as evidence.

Where a label lies is kept in `.turnmark/sources.db`, derived: files whose size or time it doesn't
know are read again, and deleting it loses nothing. It holds no text. Memory stays flat, whatever
the number of lines.

Safe to call from several threads, one call at a time runs. Everything here blocks.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence

import apsw
import msgspec
import structlog

from turnmark_events.errors import Unavailable
from turnmark_memory import durable
from turnmark_memory.labels import LABEL_DIGITS, label_of
from turnmark_memory.model import Evidence
from turnmark_memory.rooted import names_in
from turnmark_memory.source_line import (
    FORGOTTEN_LINE,
    ArchivedTurn,
    archived,
    decode_line,
    encode_line,
)
from turnmark_memory.source_map import FileState, Place, SourceMap
from turnmark_memory.workspace import STAGING, Workspace

__all__ = ["Archive", "ArchivedTurn", "SourceLine"]

log = structlog.get_logger(__name__)

# BLAKE2b with a digest of 32 bytes: two labels of this length are two turns with one key.
_LABEL_HEX_LIMIT = 64
_FORGET_PREFIX = "forget-"
_CHUNK_BYTES = 1 << 20
# Lines that a scan reads at once.
_SCAN_GROUP = 500
# Places are written to the map in such groups while a file is read again.
_REINDEX_GROUP = 2000


class SourceLine(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn lies: `path` is relative to the workspace, `line` counts from 1."""

    label: str
    path: str
    line: int


class Archive:
    """The archive of one workspace. Close it before the workspace."""

    def __init__(self, workspace: Workspace) -> None:
        """Opens the archive and brings the map up to date with the files (reads what changed)."""
        self._workspace = workspace
        self._tree = workspace.tree
        self._mutex = threading.RLock()
        # Files written anew since the start; tells a scan that its offset is no longer good.
        self._rewrites = 0
        with _disk_errors("open the archive"):
            self._map = SourceMap(workspace.root)
            self._erase_displaced()
            self.refresh()

    def close(self) -> None:
        """Closes the map."""
        with self._mutex:
            self._map.close()

    def refresh(self) -> int:
        """Reads the files that changed behind the map's back; returns how many there were."""
        with self._mutex:
            known = self._map.files()
            changed = 0
            for path, status in self._workspace.source_files():
                if known.pop(path, None) != (status.st_size, status.st_mtime_ns):
                    self._reindex(path)
                    changed += 1
            for path in known:
                self._map.drop_file(path)
            return changed + len(known)

    def append(self, turns: Sequence[Evidence]) -> list[SourceLine]:
        """Archives what isn't yet, and returns where each of `turns` lies, in their order.

        One flush per file. A repetition after a crash changes no byte. Labels may come back
        longer than they were given, where another turn has the shorter one.

        Raises:
            Unavailable: if the disk fails; what was written of it will be found, not doubled.
        """
        with self._mutex, _disk_errors("archive turns"):
            self._refresh_targets(turns)
            found: dict[tuple[str, str], SourceLine] = {}
            fresh: dict[str, list[ArchivedTurn]] = {}
            taken: dict[str, tuple[str, str]] = {}
            for turn in turns:
                key = (turn.namespace, turn.id)
                if key in found or key in taken.values():
                    continue
                place = self._map.by_turn(*key)
                if place is not None:
                    found[key] = _line(place)
                    continue
                label = self._free_label(turn, taken)
                taken[label] = key
                path = self._workspace.source_file(turn.agent, turn.session)
                fresh.setdefault(path, []).append(archived(turn, label))
            for path, lines in fresh.items():
                for place in self._append_to(path, lines):
                    found[place.namespace, place.id] = _line(place)
            return [found[turn.namespace, turn.id] for turn in turns]

    def resolve(self, label: str) -> SourceLine | None:
        """Returns where the turn with `label` lies; None if it is unknown or forgotten."""
        with self._mutex:
            place = self._map.by_label(label)
            return None if place is None else _line(place)

    def count(self) -> int:
        """Returns how many turns are archived, without those that were forgotten."""
        with self._mutex:
            return self._map.count()

    def by_turn(self, namespace: str, turn: str) -> SourceLine | None:
        """Returns where the turn lies; None if it isn't archived or is forgotten."""
        with self._mutex:
            place = self._map.by_turn(namespace, turn)
            return None if place is None else _line(place)

    def read(self, label: str) -> ArchivedTurn | None:
        """Returns the archived turn; None if the label is unknown or forgotten."""
        with self._mutex, _disk_errors("read the archive"):
            place = self._map.by_label(label)
            turn = self._read_place(place)
            if place is not None and turn is None:
                # Somebody changed the file behind our back: the map is made anew.
                self.refresh()
                turn = self._read_place(self._map.by_label(label))
            return turn

    def read_many(self, labels: Iterable[str]) -> dict[str, tuple[SourceLine, ArchivedTurn]]:
        """Returns where these turns lie, and the turns; without those unknown or forgotten.

        Opens each file once, however many of the turns it holds.
        """
        with self._mutex, _disk_errors("read the archive"):
            by_path: dict[str, list[Place]] = {}
            for label in dict.fromkeys(labels):
                place = self._map.by_label(label)
                if place is not None:
                    by_path.setdefault(place.path, []).append(place)
            read = {path: self._read_places(path, group) for path, group in by_path.items()}
            found: dict[str, tuple[SourceLine, ArchivedTurn]] = {}
            for place in (one for group in by_path.values() for one in group):
                turn = read[place.path].get(place.label)
                if turn is not None:
                    found[place.label] = (_line(place), turn)
                elif (turn := self.read(place.label)) and (line := self.resolve(place.label)):
                    # Somebody changed the file behind our back: it was read again.
                    found[place.label] = (line, turn)
            return found

    def scan(self) -> Iterator[tuple[SourceLine, ArchivedTurn]]:
        """Yields every archived turn, file by file; what is appended meanwhile may be missing.

        Other calls, `forget` included, get their turn between groups of lines.
        """
        for path, _ in self._workspace.source_files():
            for line, content in self._groups(path):
                turn = decode_line(content)
                if turn is not None:
                    yield SourceLine(label=turn.label, path=path, line=line), turn

    def forget(self, labels: Sequence[str]) -> int:
        """Erases these turns; their lines become `{"forgotten":true}`. Returns how many there were.

        Line numbers hold. Each file is written anew, flushed and exchanged, and the bytes of the
        old one are overwritten before it is removed (file systems that copy on write, and
        backups, may keep them). Costs the size of the files.

        Raises:
            Unavailable: if the disk fails; a repetition goes on.
        """
        with self._mutex, _disk_errors("erase from the archive"):
            self.refresh()
            by_path: dict[str, set[int]] = {}
            for label in set(labels):
                place = self._map.by_label(label)
                if place is not None:
                    by_path.setdefault(place.path, set()).add(place.line)
            for path, lines in sorted(by_path.items()):
                self._rewrite(path, lines)
            if by_path:
                self._map.scrub()
            return sum(len(lines) for lines in by_path.values())

    def _refresh_targets(self, turns: Sequence[Evidence]) -> None:
        # Somebody may have put files back (a restored backup) since the last look: only the
        # files that will be appended to are looked at here, the rest at `refresh`.
        for path in {self._workspace.source_file(turn.agent, turn.session) for turn in turns}:
            try:
                fd = self._tree.open(path)
            except FileNotFoundError:
                self._map.drop_file(path)
                continue
            status = os.fstat(fd)
            os.close(fd)
            if self._map.file(path) != (status.st_size, status.st_mtime_ns):
                self._reindex(path)

    def _free_label(self, turn: Evidence, taken: dict[str, tuple[str, str]]) -> str:
        label = turn.label
        for length in range(LABEL_DIGITS, _LABEL_HEX_LIMIT + 1):
            if self._map.by_label(label) is None and label not in taken:
                return label
            longer = label_of(turn.namespace, turn.id, length)
            label = longer if len(longer) > len(turn.label) else label
        raise Unavailable(f"No label is free for turn {turn.id!r}; run `turnmark doctor`.")

    def _append_to(self, path: str, turns: list[ArchivedTurn]) -> list[Place]:
        encoded = [encode_line(turn) for turn in turns]
        with self._tree.parent(path, create=True) as (dir_fd, _):
            fd = self._tree.open(path, os.O_RDWR | os.O_APPEND, create=True)
            try:
                before = self._map.state(path)
                durable.append_durably(fd, b"".join(encoded))
                if before.size == 0:
                    os.fsync(dir_fd)
                places = _places(path, turns, encoded, before)
                self._map.add(places, path, os.fstat(fd), before.lines + len(turns))
            finally:
                os.close(fd)
        return places

    def _reindex(self, path: str) -> None:
        self._cut_torn_end(path)
        self._map.drop_file(path)
        group: list[Place] = []
        lines = 0
        for line, offset, content in self._lines(path):
            lines = line
            turn = decode_line(content)
            if turn is None:
                if content + b"\n" != FORGOTTEN_LINE:
                    log.warning("source_line_unreadable", path=path, line=line)
                continue
            group.append(_place(turn, path, line, offset, len(content) + 1))
            if len(group) >= _REINDEX_GROUP:
                self._map.add_places(group)
                group.clear()
        fd = self._tree.open(path)
        try:
            self._map.add(group, path, os.fstat(fd), lines)
        finally:
            os.close(fd)

    def _cut_torn_end(self, path: str) -> None:
        with self._tree.parent(path) as (dir_fd, _):
            os.fsync(dir_fd)
        fd = self._tree.open(path, os.O_RDWR)
        try:
            size = os.fstat(fd).st_size
            whole = _end_of_last_line(fd, size)
            if whole < size:
                log.warning("torn_source_line_cut", path=path, bytes=size - whole)
                os.ftruncate(fd, whole)
            # Lines of a killed process can be read and yet not be on the disk; from now on they
            # count as archived.
            os.fsync(fd)
        finally:
            os.close(fd)

    def _lines(self, path: str) -> Iterator[tuple[int, int, bytes]]:
        """Yields (line number, offset, line without its newline) of the whole lines of a file."""
        with os.fdopen(self._tree.open(path), "rb", buffering=_CHUNK_BYTES) as file:
            offset = 0
            for number, line in enumerate(file, start=1):
                if line.endswith(b"\n"):
                    yield number, offset, line[:-1]
                offset += len(line)

    def _groups(self, path: str) -> Iterator[tuple[int, bytes]]:
        """Yields (line number, line) as `_lines` does, without a descriptor kept in between.

        `forget` overwrites the file that it replaces: who went on reading it would miss turns.
        """
        line = offset = 0
        rewrites = -1
        while True:
            with self._mutex, os.fdopen(self._tree.open(path), "rb") as file:
                if rewrites == self._rewrites:
                    file.seek(offset)
                else:
                    for _ in range(line):
                        file.readline()
                rewrites = self._rewrites
                group = [file.readline() for _ in range(_SCAN_GROUP)]
                offset = file.tell()
            for content in group:
                if not content.endswith(b"\n"):
                    return
                line += 1
                yield line, content[:-1]

    def _read_place(self, place: Place | None) -> ArchivedTurn | None:
        return None if place is None else self._read_places(place.path, [place]).get(place.label)

    def _read_places(self, path: str, places: Iterable[Place]) -> dict[str, ArchivedTurn]:
        """Returns by label those of `places` in the file `path` at which their turns really lie."""
        try:
            fd = self._tree.open(path)
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

    def _rewrite(self, path: str, forgotten: set[int]) -> None:
        staged = _FORGET_PREFIX + durable.digest_of(path.encode())[:16]
        with (
            self._tree.directory(STAGING, create=True) as staging_fd,
            self._tree.parent(path) as (dir_fd, name),
        ):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(
                os.open(staged, flags, durable.FILE_MODE, dir_fd=staging_fd), "wb"
            ) as copy:
                for line, _, content in self._lines(path):
                    copy.write(FORGOTTEN_LINE if line in forgotten else content + b"\n")
                copy.flush()
                os.fsync(copy.fileno())
            durable.exchange_names(staging_fd, staged, dir_fd, name)
            os.fsync(dir_fd)
        self._rewrites += 1
        self._erase_displaced()
        self._reindex(path)

    def _erase_displaced(self) -> None:
        with self._tree.directory(STAGING, create=True) as staging_fd:
            mine = [name for name in names_in(staging_fd) if name.startswith(_FORGET_PREFIX)]
            for name in mine:
                durable.heal_exchange(staging_fd, name.removesuffix(durable.FALLBACK_SUFFIX))
            for name in names_in(staging_fd):
                if name in mine:
                    _overwrite(staging_fd, name)
                    os.unlink(name, dir_fd=staging_fd)
            os.fsync(staging_fd)


@contextlib.contextmanager
def _disk_errors(doing: str) -> Generator[None, None, None]:
    """Turns errors of the files and of the map beside them into ours; see `durable.disk_errors`."""
    with durable.disk_errors(doing):
        try:
            yield
        except apsw.Error as error:
            raise Unavailable(
                f"Could not {doing}: {error}. Free space or fix permissions, then try again."
            ) from error


def _overwrite(dir_fd: int, name: str) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        found = os.fstat(fd)
        # With a second name these bytes are somebody else's as well.
        left = found.st_size if found.st_nlink == 1 else 0
        while left > 0:
            left -= os.write(fd, bytes(min(left, _CHUNK_BYTES)))
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


def _line(place: Place) -> SourceLine:
    return SourceLine(label=place.label, path=place.path, line=place.line)


def _place(turn: ArchivedTurn, path: str, line: int, offset: int, length: int) -> Place:
    return Place(
        label=turn.label,
        namespace=turn.namespace,
        id=turn.id,
        path=path,
        line=line,
        offset=offset,
        length=length,
    )


def _places(
    path: str, turns: Sequence[ArchivedTurn], encoded: Sequence[bytes], before: FileState
) -> list[Place]:
    places: list[Place] = []
    offset = before.size
    for number, (turn, line) in enumerate(zip(turns, encoded, strict=True), before.lines + 1):
        places.append(_place(turn, path, number, offset, len(line)))
        offset += len(line)
    return places
