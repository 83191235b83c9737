"""Finds an agent's transcripts below a directory, by name; nothing is read but where it must be."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from turnmark_session_store.transcripts.line_file import FileStamp


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript, the session that it belongs to, and what it was when it was found."""

    path: Path
    session: str
    stamp: FileStamp


def files_below(place: Path, session_of: Callable[[Path], str | None]) -> list[FoundFile]:
    """Returns the transcripts at or below `place`; blocks on disk.

    What is not there or can't be looked at is left out: the next look may find it. Links are not
    followed below `place`: they would lead out, or to the same file twice.
    """
    found: list[FoundFile] = []
    for path in _paths_at(place):
        try:
            status = path.lstat()
            session = session_of(path) if stat.S_ISREG(status.st_mode) else None
        except OSError:
            continue
        if session is not None:
            found.append(FoundFile(path=path, session=session, stamp=FileStamp.of(status)))
    return found


def _paths_at(place: Path) -> Iterator[Path]:
    if not place.is_dir():
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names))
