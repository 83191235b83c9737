"""A disk that can be cut off: what of a directory a power cut would leave, at any moment.

Kill -9 loses nothing that was written, so it can't tell a flush from none. Here bytes last only
once their file was flushed, and names once their directory was; a rename reaches both of its
directories at once. Databases are SQLite's affair and are taken as they are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_Inode = tuple[int, int]
_Entries = dict[str, _Inode]


class Disk:
    """What would be left of the tree below `root`; made by `watched`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: dict[_Inode, _Entries] = {}
        self._bytes: dict[_Inode, bytes] = {}
        self._pins: dict[_Inode, int] = {}
        self.flushes = 0
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            self._flush_folder(folder)
        for path in root.rglob("*"):
            if path.is_file():
                self._flush_file(path)

    def flushed(self, fd: int) -> None:
        """Takes a flush of a file or a directory into account."""
        self.flushes += 1
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            self._flush_names(Path(f"/proc/self/fd/{fd}").resolve())
        else:
            self._flush_file(Path(f"/proc/self/fd/{fd}"))

    @property
    def names(self) -> set[str]:
        """The names right in the root that would be left."""
        return set(self._names[_inode(self._root)])

    def leave(self, place: Path, *, without: tuple[str, ...] = ()) -> Path:
        """Writes what a cut at this moment would leave to `place`; returns it.

        Databases named in `without` are lost: nothing promises that what is derived lasts.
        """
        place.mkdir()
        self._leave(_inode(self._root), self._root, place, without)
        return place

    def close(self) -> None:
        """Lets go of the files."""
        for pin in self._pins.values():
            os.close(pin)
        self._pins.clear()

    def _leave(self, folder: _Inode, there: Path, place: Path, without: tuple[str, ...]) -> None:
        for name, inode in self._names.get(folder, {}).items():
            if (there / name).is_dir():
                (place / name).mkdir()
                self._leave(inode, there / name, place / name, without)
            elif not _is_database(name):
                (place / name).write_bytes(self._bytes.get(inode, b""))
                (place / name).chmod(0o600)
        for path in there.iterdir():
            if path.name.endswith((".db", ".db-wal")) and not path.name.startswith(without):
                (place / path.name).write_bytes(path.read_bytes())

    def _flush_file(self, path: Path) -> None:
        self._bytes[self._pinned(path)] = path.read_bytes()

    def _flush_names(self, folder: Path) -> None:
        """Flushes a directory, and the other end of each rename from it or into it."""
        before = set(self._names.get(_inode(folder), {}).values())
        moved = before ^ set(self._flush_folder(folder).values())
        for other in [one for one in self._root.rglob("*") if one.is_dir()] if moved else ():
            there = set(self._names.get(_inode(other), {}).values())
            if other != folder and moved & there ^ moved & set(self._entries(other).values()):
                self._flush_folder(other)

    def _flush_folder(self, folder: Path) -> _Entries:
        self._names[_inode(folder)] = entries = self._entries(folder)
        return entries

    def _entries(self, folder: Path) -> _Entries:
        found: _Entries = {}
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):  # gone again: another thread is at work
                found[entry.name] = self._pinned(Path(entry.path))
        return found

    def _pinned(self, path: Path) -> _Inode:
        """Returns the inode of a file, kept so that no later file gets its number."""
        inode = _inode(path)
        if inode not in self._pins:
            self._pins[inode] = os.open(path, os.O_PATH)
        return inode


@contextmanager
def watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Disk]:
    """Gives the disk below `root`, which is safe as it is now; its flushes are heard of."""
    disk = Disk(root)
    with monkeypatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, disk.flushed)
        try:
            yield disk
        finally:
            disk.close()


def _inode(path: Path) -> _Inode:
    found = path.stat()
    return found.st_dev, found.st_ino


def _is_database(name: str) -> bool:
    return ".db" in Path(name).suffixes or name.endswith((".db-wal", ".db-shm"))
