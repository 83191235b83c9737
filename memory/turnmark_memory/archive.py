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

from turnmark_events.errors import Unavailable
from turnmark_memory import durable
from turnmark_memory.labels import LABEL_DIGITS, label_of
from turnmark_memory.model import Evidence
from turnmark_memory.source_erasure import erase_displaced, erase_lines
from turnmark_memory.source_file import SourceFile
from turnmark_memory.source_line import ArchivedTurn, archived, decode_line
from turnmark_memory.source_map import Place, SourceMap
from turnmark_memory.workspace import Workspace

__all__ = ["Archive", "ArchivedTurn", "SourceLine"]

# BLAKE2b with a digest of 32 bytes: two labels of this length are two turns with one key.
_LABEL_HEX_LIMIT = 64
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
            erase_displaced(self._tree)
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
            read = {path: self._file(path).read(group) for path, group in by_path.items()}
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
                self._rewrites += 1
                erase_lines(self._tree, path, lines)
                self._reindex(path)
            if by_path:
                self._map.scrub()
            return sum(len(lines) for lines in by_path.values())

    def _refresh_targets(self, turns: Sequence[Evidence]) -> None:
        # Somebody may have put files back (a restored backup) since the last look: only the
        # files that will be appended to are looked at here, the rest at `refresh`.
        for path in {self._workspace.source_file(turn.agent, turn.session) for turn in turns}:
            try:
                status = self._file(path).status()
            except FileNotFoundError:
                self._map.drop_file(path)
                continue
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
        before = self._map.state(path)
        places, status = self._file(path).append(turns, before)
        self._map.add(places, path, status, before.lines + len(turns))
        return places

    def _reindex(self, path: str) -> None:
        """Reads a file anew into the map."""
        file = self._file(path)
        file.cut_torn_end()
        self._map.drop_file(path)
        group: list[Place] = []
        lines = 0
        for lines, place in file.places():  # noqa: B007  the last number counts after the loop
            if place is not None:
                group.append(place)
            if len(group) >= _REINDEX_GROUP:
                self._map.add_places(group)
                group.clear()
        self._map.add(group, path, file.status(), lines)

    def _file(self, path: str) -> SourceFile:
        return SourceFile(self._tree, path)

    def _groups(self, path: str) -> Iterator[tuple[int, bytes]]:
        """Yields (line number, line) of the whole lines, without a descriptor kept in between.

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
        return None if place is None else self._file(place.path).read([place]).get(place.label)


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


def _line(place: Place) -> SourceLine:
    return SourceLine(label=place.label, path=place.path, line=place.line)
