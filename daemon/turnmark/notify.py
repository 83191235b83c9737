"""What the daemon tells systemd: ready, status, stopping, still alive (sd_notify(3))."""

from __future__ import annotations

import contextlib
import socket

# A status is one line in `systemctl status`; systemd takes datagrams of some kilobytes.
_LONGEST_STATUS_CHARS = 500


class Notifier:
    """Sends datagrams to the service manager; does nothing where there is none.

    `address` is the value of `NOTIFY_SOCKET`: a path, or a name in the abstract namespace that
    begins with `@`. Sending never waits and never fails: a manager that can't be reached must not
    stop the daemon, and has its own time limits for silence.
    """

    def __init__(self, address: str | None) -> None:
        self._address = "\0" + address[1:] if address and address[0] == "@" else address

    @property
    def listening(self) -> bool:
        """Says whether a service manager asked to be told."""
        return bool(self._address)

    def ready(self, status: str = "") -> None:
        """Says that the daemon serves, and optionally in one line how it is."""
        self._send("READY=1", *_status(status))

    def status(self, status: str) -> None:
        """Says in one line how the daemon is."""
        self._send(*_status(status))

    def stopping(self, status: str = "") -> None:
        """Says that the daemon is on its way out."""
        self._send("STOPPING=1", *_status(status))

    def watchdog(self) -> None:
        """Says that the daemon is alive; due at least every `WATCHDOG_USEC`, best at half of it."""
        self._send("WATCHDOG=1")

    def extend_start(self, seconds: float) -> None:
        """Asks for `seconds` more before the start counts as failed, as a migration may need."""
        self._send(f"EXTEND_TIMEOUT_USEC={int(seconds * 1_000_000)}")

    def _send(self, *lines: str) -> None:
        if not self._address or not lines:
            return
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        # Best effort, see the class: a lost datagram is repeated by the next one, or by nobody.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, kind) as sender:
            sender.sendto("\n".join(lines).encode(), self._address)


def _status(status: str) -> tuple[str, ...]:
    """Returns the line for a status: a newline in it would begin another variable."""
    line = " ".join(status.split())[:_LONGEST_STATUS_CHARS]
    return (f"STATUS={line}",) if line else ()
