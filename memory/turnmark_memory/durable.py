"""Durable steps on files: what has returned survives kill -9 and a power cut.

The rule behind all of them: bytes are flushed before a name points at them, and a name is flushed
(by an fsync of its directory) before anybody relies on it. Functions work on (directory
descriptor, name) pairs, so that no path is resolved twice; `rooted.py` walks to the directory.
All of them block. Errors are plain `OSError`s; `disk_errors` turns them into ours at the border.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import os
from collections.abc import Callable, Generator

from turnmark_events.errors import Unavailable

FILE_MODE = 0o600
DIR_MODE = 0o700

# linux/fs.h
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2

# The file system (EINVAL, EOPNOTSUPP) or the kernel (ENOSYS) doesn't know a flag of renameat2.
_LACKING = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})

# Names that the fallback of `exchange_names` may leave behind at a crash; see `heal_exchange`.
FALLBACK_SUFFIX = ".old"
# A name under which bytes may be torn; whoever finds one may delete it.
TORN_SUFFIX = ".tmp"

# Errors that a person can do something about.
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_IN_THE_WAY = frozenset({errno.EEXIST, errno.ENOTDIR, errno.EISDIR})


def digest_of(content: bytes) -> str:
    """Returns the hash by which contents of files are compared: BLAKE2b, 64 hex digits."""
    return hashlib.blake2b(content, digest_size=32).hexdigest()


@contextlib.contextmanager
def disk_errors(doing: str) -> Generator[None, None, None]:
    """Turns an `OSError` of the body into an error of ours; `doing` ends "Could not …".

    Raises:
        Unavailable: if the body raises `OSError`.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unavailable(
            f"Could not {doing}: {reason}. {_advice(error.errno)}",
            errno=error.errno,
        ) from error


def _advice(number: int | None) -> str:
    """Returns what a person can do about an error of the system."""
    if number in _NO_ROOM:
        return "Free some space, then try again."
    if number in _NOT_ALLOWED:
        return "Let this user write there, then try again."
    if number in _IN_THE_WAY:
        return "Something else is there: move it away, or name another place."
    return "Check the disk, then try again."


def write_all(fd: int, content: bytes) -> None:
    """Writes every byte of `content`, however often the kernel takes only a part."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def stage(dir_fd: int, name: str, content: bytes) -> None:
    """Puts `content` at `name`: whole and flushed before the name exists.

    A crash leaves at most `name` + `TORN_SUFFIX`. The directory is *not* flushed: the caller does
    it once for all that it stages. An existing `name` is replaced.
    """
    torn = name + TORN_SUFFIX
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(torn, flags, FILE_MODE, dir_fd=dir_fd)
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(torn, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)


def replace(staging_fd: int, dir_fd: int, name: str, content: bytes) -> None:
    """Makes `name` hold `content`, durably; readers see the old file or the new one, whole.

    Whatever was there is gone: for files that a person may edit use `exchange.exchange`.
    """
    staged = _staged_name(name)
    stage(staging_fd, staged, content)
    os.rename(staged, name, src_dir_fd=staging_fd, dst_dir_fd=dir_fd)
    os.fsync(dir_fd)


def append_durably(fd: int, content: bytes) -> None:
    """Appends `content` to a file opened with O_APPEND and flushes it, its new size included.

    A crash in between can leave a part of `content`: the reader must know a torn end.
    """
    write_all(fd, content)
    os.fdatasync(fd)


def exchange_names(a_fd: int, a: str, b_fd: int, b: str) -> None:
    """Swaps two existing files, so that none of them is ever without a name.

    Where the kernel or the file system lacks RENAME_EXCHANGE, `b`'s file gets a second name
    (a hard link) before `a` replaces it. The difference: a file that a person saves by rename
    between those two calls (microseconds) is lost there, and nowhere else.

    Raises:
        FileNotFoundError: if one of them isn't there; nothing was changed.
    """
    try:
        _renameat2(a_fd, a, b_fd, b, _RENAME_EXCHANGE)
    except OSError as error:
        if error.errno not in _LACKING:
            raise
        _exchange_by_link(a_fd, a, b_fd, b)


def heal_exchange(a_fd: int, a: str) -> None:
    """Completes or drops what a crash inside the fallback of `exchange_names` left at `a`."""
    old = a + FALLBACK_SUFFIX
    if not _exists(a_fd, old):
        return
    if _exists(a_fd, a):
        os.unlink(old, dir_fd=a_fd)
    else:
        os.rename(old, a, src_dir_fd=a_fd, dst_dir_fd=a_fd)


def rename_new(a_fd: int, a: str, b_fd: int, b: str) -> None:
    """Renames `a` to `b` unless there is a `b`; without RENAME_NOREPLACE, by link and unlink.

    Raises:
        FileExistsError: if there is a `b`; nothing was changed.
        FileNotFoundError: if there is no `a`.
    """
    try:
        _renameat2(a_fd, a, b_fd, b, _RENAME_NOREPLACE)
    except OSError as error:
        if error.errno not in _LACKING:
            raise
        os.link(a, b, src_dir_fd=a_fd, dst_dir_fd=b_fd, follow_symlinks=False)
        os.unlink(a, dir_fd=a_fd)


def _exchange_by_link(a_fd: int, a: str, b_fd: int, b: str) -> None:
    old = a + FALLBACK_SUFFIX
    os.stat(a, dir_fd=a_fd, follow_symlinks=False)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(old, dir_fd=a_fd)
    os.link(b, old, src_dir_fd=b_fd, dst_dir_fd=a_fd, follow_symlinks=False)
    os.rename(a, b, src_dir_fd=a_fd, dst_dir_fd=b_fd)
    os.rename(old, a, src_dir_fd=a_fd, dst_dir_fd=a_fd)


def _exists(dir_fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _staged_name(name: str) -> str:
    # Short whatever the name's length, and the same at a retry, so that nothing piles up.
    return "file-" + hashlib.blake2b(os.fsencode(name), digest_size=12).hexdigest()


@functools.cache
def _libc_renameat2() -> Callable[..., int] | None:
    # glibc has it from 2.28 on; without it the fallbacks do.
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return None
    c_int, c_name = ctypes.c_int, ctypes.c_char_p
    function.argtypes = (c_int, c_name, c_int, c_name, ctypes.c_uint)
    function.restype = c_int
    return function  # type: ignore[no-any-return]  # ctypes types its functions at run time


def _renameat2(a_fd: int, a: str, b_fd: int, b: str, flags: int) -> None:
    function = _libc_renameat2()
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), a, None, b)
    if function(a_fd, os.fsencode(a), b_fd, os.fsencode(b), flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), a, None, b)
