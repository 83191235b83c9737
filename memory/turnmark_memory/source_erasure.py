"""Erasing lines of the archive: the file is written anew without them, its old bytes overwritten.

Line numbers hold: a placeholder stands where a turn was. File systems that copy on write, and
backups, may keep the old bytes.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from turnmark_memory import durable
from turnmark_memory.rooted import Rooted, names_in
from turnmark_memory.source_file import SourceFile
from turnmark_memory.source_line import FORGOTTEN_LINE
from turnmark_memory.workspace import STAGING

_PREFIX = "forget-"
_CHUNK_BYTES = 1 << 20


def erase_lines(tree: Rooted, path: str, forgotten: Collection[int]) -> None:
    """Puts a file without its `forgotten` lines (from 1) in place of the one at `path`, durably."""
    staged = _PREFIX + durable.digest_of(path.encode())[:16]
    with (
        tree.directory(STAGING, create=True) as staging_fd,
        tree.parent(path) as (dir_fd, name),
    ):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(staged, flags, durable.FILE_MODE, dir_fd=staging_fd), "wb") as copy:
            for line, _, content in SourceFile(tree, path).lines():
                copy.write(FORGOTTEN_LINE if line in forgotten else content + b"\n")
            copy.flush()
            os.fsync(copy.fileno())
        durable.exchange_names(staging_fd, staged, dir_fd, name)
        os.fsync(dir_fd)
    erase_displaced(tree)


def erase_displaced(tree: Rooted) -> None:
    """Overwrites and removes what was displaced; at a start, what a crash left of it."""
    with tree.directory(STAGING, create=True) as staging_fd:
        for name in _displaced(staging_fd):
            durable.heal_exchange(staging_fd, name.removesuffix(durable.FALLBACK_SUFFIX))
        for name in _displaced(staging_fd):  # under other names, where one was healed
            _overwrite(staging_fd, name)
            os.unlink(name, dir_fd=staging_fd)
        os.fsync(staging_fd)


def _displaced(staging_fd: int) -> list[str]:
    return [name for name in names_in(staging_fd) if name.startswith(_PREFIX)]


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
