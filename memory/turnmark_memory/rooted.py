"""Files under one root, reached component by component, without following a link inside it.

Between a check of a path and its use somebody may put a link there; so each directory is opened
from its parent's descriptor with O_NOFOLLOW, and what was opened is what is looked at. The root
itself may be a link: where the workspace lies is the user's choice.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from pathlib import Path

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory import durable

# A topic of a person's is some kilobytes; beyond this something else got the name.
READ_LIMIT_BYTES = 64 * 1024 * 1024

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK, so that opening a FIFO doesn't wait for its other end.
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Rooted:
    """A directory and what lies under it; paths are relative, with `/`, without `.` and `..`.

    Holds one descriptor until `close`. Safe to use from several threads.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        with durable.disk_errors(f"open {root}"):
            self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Gives the root's descriptor back; the object is of no use afterwards."""
        os.close(self._fd)

    @contextlib.contextmanager
    def directory(self, path: str, *, create: bool = False) -> Generator[int, None, None]:
        """Yields a descriptor of the directory at `path` ("" is the root), valid in the block.

        Raises:
            FileNotFoundError: if it isn't there and `create` is false.
            Refused: if a component is a link or no directory, or `path` leaves the root.
            Unavailable: if a component can't be entered or created.
        """
        fd = os.dup(self._fd)
        try:
            done: list[str] = []
            for name in parts_of(path):
                done.append(name)
                parent = fd
                fd = self._enter(parent, name, "/".join(done), create=create)
                os.close(parent)
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def parent(self, path: str, *, create: bool = False) -> Generator[tuple[int, str], None, None]:
        """Yields (descriptor of the directory that holds `path`, last component)."""
        head, _, name = path.rpartition("/")
        parts_of(path)
        with self.directory(head, create=create) as fd:
            yield fd, name

    def open(self, path: str, flags: int = os.O_RDONLY, *, create: bool = False) -> int:
        """Opens the regular file at `path`; the caller closes it. Directories on the way are made.

        Raises:
            FileNotFoundError: if it isn't there and `create` is false.
            Refused: if it is a link, a directory, a FIFO, or another user's.
            Unavailable: if permissions or the disk don't let it be opened.
        """
        with self.parent(path, create=create) as (dir_fd, name):
            return open_regular(dir_fd, name, flags | (os.O_CREAT if create else 0), path)

    def read(self, path: str) -> bytes | None:
        """Returns the file's bytes, None if there is no such file; errors as for `open`."""
        try:
            fd = self.open(path)
        except FileNotFoundError:
            return None
        try:
            return read_whole(fd, path)
        finally:
            os.close(fd)

    def replace(self, path: str, content: bytes, *, staging: str) -> None:
        """Makes `path` hold `content`, durably, through the directory `staging` of the root."""
        with (
            durable.disk_errors(f"write {path}"),
            self.directory(staging, create=True) as staging_fd,
            self.parent(path, create=True) as (dir_fd, name),
        ):
            refuse_odd(dir_fd, name, path)
            durable.replace(staging_fd, dir_fd, name, content)

    def flush(self, path: str) -> None:
        """Makes what somebody else wrote at `path` last, or its absence."""
        with (
            durable.disk_errors(f"flush {path}"),
            contextlib.suppress(FileNotFoundError, Refused),
            self.parent(path) as (dir_fd, name),
        ):
            with contextlib.suppress(FileNotFoundError):
                fd = open_regular(dir_fd, name, os.O_RDONLY, path)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
            os.fsync(dir_fd)

    def remove(self, path: str) -> None:
        """Takes the regular file at `path` away, durably; none there is fine."""
        with durable.disk_errors(f"remove {path}"):
            try:
                with self.parent(path) as (dir_fd, name):
                    refuse_odd(dir_fd, name, path)
                    os.unlink(name, dir_fd=dir_fd)
                    os.fsync(dir_fd)
            except FileNotFoundError:
                return

    @staticmethod
    def _enter(parent: int, name: str, path: str, *, create: bool) -> int:
        if create:
            _make(parent, name, path)
        try:
            return os.open(name, _DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _explained(error, path, parent, name) from error


def _make(parent: int, name: str, path: str) -> None:
    with durable.disk_errors(f"create {path}"), contextlib.suppress(FileExistsError):
        os.mkdir(name, durable.DIR_MODE, dir_fd=parent)
        os.fsync(parent)


def parts_of(path: str) -> list[str]:
    """Returns the components of a relative path, none for "".

    Raises:
        Refused: if a component is empty, `.`, `..`, or holds NUL.
    """
    if not path:
        return []
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise Refused(f"{path!r} is no path inside the workspace.", path=path)
    return parts


def open_regular(dir_fd: int, name: str, flags: int, path: str) -> int:
    """Opens `name` in `dir_fd` if it is a regular file of ours; see `Rooted.open` for errors."""
    try:
        fd = os.open(name, flags | _PLAIN, durable.FILE_MODE, dir_fd=dir_fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _explained(error, path, dir_fd, name) from error
    try:
        _refuse_opened(os.fstat(fd), path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def names_in(dir_fd: int) -> list[str]:
    """Returns the names in an open directory, in no order."""
    return os.listdir(dir_fd)


def refuse_odd(dir_fd: int, name: str, path: str) -> None:
    """Checks that `name` is absent or a regular file of ours, without opening it.

    Raises:
        Refused: if it is a link, a directory, a FIFO, or another user's.
    """
    with contextlib.suppress(FileNotFoundError):
        _refuse(os.stat(name, dir_fd=dir_fd, follow_symlinks=False), path)


def read_whole(fd: int, path: str) -> bytes:
    """Returns all bytes of an open file.

    Raises:
        Refused: if it is larger than `READ_LIMIT_BYTES`.
    """
    size = os.fstat(fd).st_size
    if size > READ_LIMIT_BYTES:
        raise Refused(f"{path} has {size} bytes; split it, the limit is {READ_LIMIT_BYTES}.")
    pieces: list[bytes] = []
    while piece := os.read(fd, max(size, 1 << 16)):
        pieces.append(piece)
    return b"".join(pieces)


def _refuse(found: os.stat_result, path: str) -> None:
    mode = found.st_mode
    if stat.S_ISLNK(mode):
        raise Refused(
            f"{path} is a symbolic link, and links inside the workspace are not followed; "
            "put the file itself there.",
            path=path,
        )
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise Refused(f"{path} is {what}; move it out of the workspace.", path=path)
    if found.st_uid != os.geteuid():
        raise Refused(f"{path} belongs to another user; copy it to a file of yours.", path=path)


def _refuse_opened(found: os.stat_result, path: str) -> None:
    _refuse(found, path)
    # Root may read everything; a file that its owner can't read is still not meant to be read.
    if not found.st_mode & stat.S_IRUSR:
        raise _unreadable(path)


def _explained(error: OSError, path: str, dir_fd: int, name: str) -> Refused | Unavailable:
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        with contextlib.suppress(OSError):
            found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
            try:
                _refuse(found, path)
            except Refused as refused:
                return refused
        return Refused(f"{path} is in the way of a directory; move it.", path=path)
    if error.errno == errno.ENAMETOOLONG:
        return Refused(f"{path} is too long a name for this file system.", path=path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return _unreadable(path)
    return Unavailable(f"{path} can't be opened: {error.strerror}.", path=path)


def _unreadable(path: str) -> Unavailable:
    return Unavailable(f"{path} can't be read; give yourself access: chmod u+rw.", path=path)
