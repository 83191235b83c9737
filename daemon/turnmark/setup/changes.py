"""A file as it is and as it will be: shown as a diff, carried out whole or not at all."""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from pathlib import Path

import msgspec

from turnmark_events.errors import Conflict, Unavailable

BACKUP_SUFFIX = ".before-turnmark"

_DIR_MODE = 0o700
_FILE_MODE = 0o600


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds (None: there is none) before and after."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_needed(self) -> bool:
        """Says whether anything would change."""
        return self.before != self.after


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All that one setup or undo does: files, directories that must be there, and commands.

    The order is that of carrying out: directories, files, commands.
    """

    files: tuple[FileChange, ...] = ()
    directories: tuple[Path, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    before_files: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> tuple[FileChange, ...]:
        """The files that would change."""
        return tuple(file for file in self.files if file.is_needed)


def read_file(path: Path) -> bytes | None:
    """Returns what a file holds, None where there is none.

    Raises:
        Unavailable: if it can't be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(f"{path} can't be read: {error.strerror}", path=str(path)) from error


def backup_of(path: Path) -> Path:
    """Returns where what stood at `path` is kept."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def diff_of(change: FileChange) -> list[str]:
    """Returns a change as the lines of a unified diff."""
    before, after = (_lines(content) for content in (change.before, change.after))
    old = str(change.path) if change.before is not None else "/dev/null"
    new = str(change.path) if change.after is not None else "/dev/null"
    return list(difflib.unified_diff(before, after, old, new, lineterm=""))


def carry_out(change: FileChange) -> None:
    """Makes the change, durably; a file that is a link is changed where it leads.

    Raises:
        Conflict: if the file is not any more what the change was made from.
        Unavailable: if the disk or the rights don't allow it.
    """
    path = change.path.resolve()
    if read_file(path) != change.before:
        raise Conflict(
            f"{change.path} was changed meanwhile; nothing was done, run it again",
            path=str(change.path),
        )
    try:
        if change.after is None:
            path.unlink()
        else:
            _replace(path, change.after)
    except OSError as error:
        raise Unavailable(
            f"{change.path} can't be changed: {error.strerror}", path=str(change.path)
        ) from error


def make_directory(path: Path) -> None:
    """Makes a private directory with its parents.

    Raises:
        Unavailable: if the disk or the rights don't allow it.
    """
    try:
        path.mkdir(mode=_DIR_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{path} can't be made: {error.strerror}", path=str(path)) from error


def _replace(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=_DIR_MODE, parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else _FILE_MODE
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _lines(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode("utf-8", "replace").splitlines()
