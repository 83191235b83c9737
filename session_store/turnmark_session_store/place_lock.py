"""One holder per place: a lock on a file that the kernel frees when its holder dies.

The daemon holds one in its state directory and one in its workspace. The lock is an `flock`, not
the existence of the file: after SIGKILL or a power cut nothing is stale and nothing needs repair.
The file holds the holder's pid as text, for people and for the message of whoever comes second;
it is never removed, because removing it would let two holders lock two different inodes.
"""

from __future__ import annotations

import fcntl
import os
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from turnmark_events.errors import Busy, Refused, Unavailable

# A pid has at most 7 digits on Linux; more is not ours.
_PID_BYTES = 32


class PlaceTaken(Busy):
    """Another process holds the place; `facts["pid"]` is its pid, None if it left none."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid is not None else "another process"
        super().__init__(
            f"{path.parent} is in use by {holder}; stop it, or name another place with --state "
            "and --workspace.",
            path=str(path),
            pid=pid,
        )


class PlaceLock:
    """A held lock. Leaving the `with` block, `release`, or the death of the process frees it."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd: int | None = fd

    def release(self) -> None:
        """Frees the lock; a second call does nothing."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()


def hold_lock(path: Path) -> PlaceLock:
    """Takes the lock at `path` without waiting, creating the file (0600) where there is none.

    The descriptor is closed on exec, so a child program never keeps the place taken; a bare
    `fork` shares it.

    Raises:
        PlaceTaken: if another process (or another lock of this one) holds it.
        Refused: if `path` is a symbolic link or no regular file.
        Unavailable: if the file can't be opened or locked.
    """
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        pid = _pid_in(fd)
        os.close(fd)
        raise PlaceTaken(path, pid) from None
    except OSError as error:
        os.close(fd)
        raise Unavailable(
            f"{path} can't be locked: {error.strerror}; mend that, or choose another place.",
            path=str(path),
        ) from error
    return PlaceLock(path, fd)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    if path.is_symlink():
        raise Refused(f"{path} is a symbolic link; remove it, a lock must be a file of its own.")
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        raise Unavailable(f"{path} can't be opened: {error.strerror}.", path=str(path)) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise Refused(f"{path} is not a regular file; remove it and start again.", path=str(path))
    return fd


def _pid_in(fd: int) -> int | None:
    # The holder writes its pid right after it has the lock; in between the file may be empty.
    text = os.pread(fd, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None
