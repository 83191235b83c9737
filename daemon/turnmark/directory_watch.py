"""Hears what is created, replaced or written right in some directories, and in none below them.

For programs that keep much beside what they tell: a repository in each session, say. The general
watcher takes all that is below a root, or sets all of its roots up anew when one comes. Here a
directory costs one watch, comes and goes by itself, and the loop sleeps on the kernel's descriptor
(inotify): nothing is polled.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

import anyio
import msgspec
import structlog

from turnmark_events.errors import Unavailable

log = structlog.get_logger(__name__)

# include/uapi/linux/inotify.h
_CLOSE_WRITE: Final = 0x8
_MOVED_TO: Final = 0x80
_CREATE: Final = 0x100
_DELETE_SELF: Final = 0x400
_MOVE_SELF: Final = 0x800
_OVERFLOW: Final = 0x4000
_IGNORED: Final = 0x8000
_ONLY_DIRECTORIES: Final = 0x01000000
_MASK: Final = _CLOSE_WRITE | _MOVED_TO | _CREATE | _DELETE_SELF | _MOVE_SELF | _ONLY_DIRECTORIES
_FLAGS: Final = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT: Final = struct.Struct("iIII")
# Room for some hundred events at a look; one that has a name of 255 bytes must fit.
_READ_BYTES: Final = 64 * 1024


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What was heard: paths in followed directories; `lost` says that more may have changed.

    A directory that is followed no longer, because it went, is a path of its own.
    """

    paths: frozenset[Path]
    lost: bool


class DirectoryWatch:
    """Follows directories that may change from time to time; a context manager, for one task.

    Raises:
        Unavailable: on making it, if the system has no such thing or gives no more.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(self._libc, "inotify_init1"):
            raise Unavailable("this system tells of no changes in directories")
        self._fd = int(self._libc.inotify_init1(_FLAGS))
        if self._fd < 0:
            raise Unavailable(f"no watch on directories: {os.strerror(ctypes.get_errno())}")
        self._watches: dict[Path, int] = {}
        # The system gives one watch to a directory, whatever paths lead to it.
        self._paths: dict[int, dict[Path, None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def follow(self, directories: Iterable[Path]) -> list[Path]:
        """Follows just these from now on; returns those that are new, in their order.

        Look at the new ones: what happened in them before is not told. One that is not there, or
        that the system gives no watch for, is left out, the latter with a warning.
        """
        wanted = dict.fromkeys(directories)
        for path in self._watches.keys() - wanted.keys():
            watch = self._watches.pop(path)
            names = self._paths.get(watch, {})
            names.pop(path, None)
            if not names:
                self._libc.inotify_rm_watch(self._fd, watch)
                self._paths.pop(watch, None)
        return [path for path in wanted if path not in self._watches and self._add(path)]

    def _add(self, path: Path) -> bool:
        watch = int(self._libc.inotify_add_watch(self._fd, os.fsencode(path), _MASK))
        if watch >= 0:
            self._watches[path] = watch
            self._paths.setdefault(watch, {})[path] = None
            return True
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            log.warning("directory_not_watched", path=str(path), reason=error.strerror)
        return False

    def _drop(self, watch: int) -> None:
        for path in self._paths.pop(watch, {}):
            del self._watches[path]

    async def wait(self) -> Changes:
        """Returns what has changed, once something has."""
        while True:
            await anyio.wait_readable(self._fd)
            try:
                told = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                continue
            return self._heard(told)

    def _heard(self, told: bytes) -> Changes:
        paths: set[Path] = set()
        lost, at = False, 0
        while at < len(told):
            watch, mask, _, length = _EVENT.unpack_from(told, at)
            at += _EVENT.size + length
            name = told[at - length : at].rstrip(b"\0")
            lost = lost or bool(mask & _OVERFLOW)
            for directory in self._paths.get(watch, ()):
                paths.add(directory / os.fsdecode(name) if name else directory)
            if mask & _MOVE_SELF:
                self._libc.inotify_rm_watch(self._fd, watch)
            if mask & (_IGNORED | _MOVE_SELF):
                self._drop(watch)
        return Changes(paths=frozenset(paths), lost=lost)
