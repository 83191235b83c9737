"""One timer for one task: sleeps until a UTC deadline, and notices when the clock itself moves.

On Linux the wait is a timerfd on CLOCK_REALTIME with cancel-on-set: the kernel ends it when the
deadline comes, when someone sets the clock and when the machine resumes from suspend. Elsewhere it
is one long monotonic sleep, after which the wall clock is looked at. Neither wakes up in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import os
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol, Self

import anyio
from anyio.lowlevel import checkpoint

# include/uapi/linux/timerfd.h and time.h
_CLOCK_REALTIME = 0
_TFD_TIMER_ABSTIME = 1
_TFD_TIMER_CANCEL_ON_SET = 2
_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC

# A timer must be armed to be told that the clock was set; this is "never" (the year 2200).
_NEVER_SECONDS = 7_258_118_400.0
# A wall clock that disagrees by more than this with a monotonic sleep was set, not merely slewed:
# NTP slews by at most 0.5 ms a second, 1.8 s in an hour.
_SET_TOLERANCE_SECONDS = 2.0


class Wake(enum.Enum):
    """Why a wait ended: the deadline came, `set_changed` was called, or the clock was set."""

    DUE = "due"
    CHANGED = "changed"
    CLOCK_SET = "clock_set"


class _Alarm(Protocol):
    """What can be armed for a moment, waited for and rung from another thread."""

    async def wait(self, seconds: float | None) -> Wake: ...

    def ring(self) -> None: ...

    def close(self) -> None: ...


class DeadlineTimer:
    """Waits for one deadline at a time on behalf of one task; a context manager.

    `now` is the clock that deadlines are compared with, aware and in UTC. It is read once before
    and once after each sleep.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._alarm: _Alarm = _TimerFd() if sys.platform == "linux" else _LongSleep(now)
        self._changed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees the descriptors; no wait may be running. Closing twice is harmless."""
        self._alarm.close()

    def set_changed(self) -> None:
        """Ends the running wait, or the next one, with `Wake.CHANGED`. Safe from any thread."""
        self._changed = True
        self._alarm.ring()

    async def wait_until(self, deadline: datetime | None) -> Wake:
        """Sleeps until `deadline` (None: for ever) or until something else ends the wait.

        A deadline in the past is due at once. After `CLOCK_SET` the caller looks at its deadlines
        anew. A wait may be cancelled without losing a `set_changed`.
        """
        while True:
            remaining = None if deadline is None else (deadline - self._now()).total_seconds()
            if self._changed:
                self._changed = False
                return Wake.CHANGED
            if remaining is not None and remaining <= 0:
                await checkpoint()
                return Wake.DUE
            wake = await self._alarm.wait(remaining)
            if wake is Wake.CLOCK_SET:
                return wake


class _Spec(ctypes.Structure):
    """`struct itimerspec` of a 64-bit Linux: interval, then value."""

    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class _TimerFd:
    """A timerfd through the C library: Python has `os.timerfd_create` from 3.13 on only."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.timerfd_create(_CLOCK_REALTIME, _TFD_FLAGS)
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._rung = self._was_set = False

    async def wait(self, seconds: float | None) -> Wake:
        self._arm(_NEVER_SECONDS if seconds is None else time.time() + seconds)
        # Another thread may have rung before the line above; what it armed is overwritten then.
        if not self._rung and not self._was_set:
            await anyio.wait_readable(self._fd)
        self._rung = False
        return self._outcome()

    def ring(self) -> None:
        self._rung = True
        self._arm(0.0)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _arm(self, at: float) -> None:
        # Zero would disarm; a nanosecond after the epoch is over and rings at once.
        nanoseconds = max(1, int(at * 1e9))
        spec = _Spec(0, 0, *divmod(nanoseconds, 1_000_000_000))
        flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
        if self._libc.timerfd_settime(self._fd, flags, ctypes.byref(spec), None) < 0:
            number = ctypes.get_errno()
            if number != errno.ECANCELED:
                raise OSError(number, os.strerror(number))
            # It is armed all the same, and the clock was set since it was armed before.
            self._was_set = True

    def _outcome(self) -> Wake:
        if self._was_set:
            self._was_set = False
            return Wake.CLOCK_SET
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return Wake.CHANGED
        except OSError as error:
            if error.errno != errno.ECANCELED:
                raise
            return Wake.CLOCK_SET
        return Wake.DUE


class _LongSleep:
    """A pipe to ring with and a monotonic sleep; for systems without timerfd."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)

    async def wait(self, seconds: float | None) -> Wake:
        wall, monotonic = self._now(), time.monotonic()
        with anyio.move_on_after(seconds):
            await anyio.wait_readable(self._reader)
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)
        slept = timedelta(seconds=time.monotonic() - monotonic)
        off = abs((self._now() - wall - slept).total_seconds())
        return Wake.CLOCK_SET if off > _SET_TOLERANCE_SECONDS else Wake.DUE

    def ring(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: it rings already
            os.write(self._writer, b"!")

    def close(self) -> None:
        for fd in (self._reader, self._writer):
            if fd >= 0:
                os.close(fd)
        self._reader = self._writer = -1
