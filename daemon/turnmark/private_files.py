"""Files that are their owner's alone: copied whole, flushed to the disk, known by their digest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import apsw

from turnmark_events.errors import Unavailable

FILE_MODE = 0o600
DIR_MODE = 0o700
_CHUNK_BYTES = 1 << 20

# A file that is exchanged again and again while it is copied is lived with after so many tries.
_TRIES = 20


def copy_file(source: Path, target: Path) -> None:
    """Copies one file whole: one that was exchanged while it was read is read again."""
    make_private(target.parent)
    for _ in range(_TRIES):
        try:
            with source.open("rb") as file, target.open("wb") as copy:
                os.fchmod(copy.fileno(), FILE_MODE)
                inode = os.fstat(file.fileno()).st_ino
                shutil.copyfileobj(file, copy, _CHUNK_BYTES)
                copy.flush()
                os.fsync(copy.fileno())
            if source.stat().st_ino == inode:
                return
        except FileNotFoundError:
            if not source.exists():
                target.unlink(missing_ok=True)  # taken away meanwhile: it is no part of this state
                return


def make_private(path: Path) -> None:
    """Makes a directory and what is missing above it, all private: `mkdir` minds only the last."""
    if not path.is_dir():
        make_private(path.parent)
        path.mkdir(mode=DIR_MODE)


def write_file(path: Path, content: bytes) -> None:
    """Writes a private file, durably."""
    with path.open("wb") as file:
        os.fchmod(file.fileno(), FILE_MODE)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def digest_of(path: Path) -> str:
    """Returns the digest of a file's bytes, of which only a piece is in memory at a time."""
    with path.open("rb") as file:
        total = blake2b(digest_size=32)
        while chunk := file.read(_CHUNK_BYTES):
            total.update(chunk)
        return total.hexdigest()


def sync_file(path: Path) -> None:
    """Flushes a file's bytes to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Flushes the names in a directory to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def disk_errors(doing: str) -> Generator[None]:
    """Turns errors of files and databases into `Unavailable`, which says what could not be done."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise Unavailable(f"could not {doing}: {error.strerror or error}{where}") from error
    except apsw.Error as error:
        raise Unavailable(f"could not {doing}: {error}") from error
