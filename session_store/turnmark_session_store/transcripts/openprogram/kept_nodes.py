"""The nodes of sessions that are being written, kept so that only changed files are read again."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from turnmark_session_store.transcripts.openprogram.homes import META, entries_of
from turnmark_session_store.transcripts.openprogram.nodes import Node, read_node
from turnmark_session_store.transcripts.openprogram.reader import SessionFiles, files_with


class Stamp(NamedTuple):
    """What tells that a file is another one, or was written since: a name is given anew."""

    size: int
    mtime_ns: int
    inode: int


class _Kept(NamedTuple):
    path: Path
    stamp: Stamp
    node: Node | str


class KeptNodes:
    """Reads sessions' directories; holds the words of those that it is not told to forget.

    A node's file is replaced whole, so one that has its old stamp says what it said. Not for
    several threads at once.
    """

    def __init__(self) -> None:
        self._of: dict[Path, dict[str, _Kept]] = {}

    def files_of(self, home: Path) -> SessionFiles:
        """Returns what a session's files hold; only what is new or changed is read.

        Raises:
            Unavailable: if a file can't be read.
            OSError: if the directory can't be.
        """
        before, kept = self._of.get(home, {}), dict[str, _Kept]()
        for entry in entries_of(home):
            stamp = stamp_of(entry) if entry.name != META else None
            if stamp is None:
                continue
            one = before.get(entry.name)
            if one is None or one.stamp != stamp:
                path = Path(entry.path)
                one = _Kept(path, stamp, read_node(path))
            kept[entry.name] = one
        self._of[home] = kept
        return files_with(home.name, [home], [(one.path, one.node) for one in kept.values()])

    def forget_all_but(self, homes: Collection[Path]) -> None:
        """Drops what was read of all other sessions."""
        self._of = {home: kept for home, kept in self._of.items() if home in homes}


def stamp_of(entry: os.DirEntry[str]) -> Stamp | None:
    """Returns a file's stamp; None if it was replaced or taken away since its name was read."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino)
