"""What is on its way to one client: written at once where the socket takes it, else bounded."""

from __future__ import annotations

import socket
from collections.abc import Callable

import anyio

# Over this, whoever wants to send waits. One largest ordinary frame.
ROOM_BYTES = 1 << 20
_SEND_BYTES = 1 << 18


class Outgoing:
    """The sending half of a connection.

    `write` never waits and has no bound of its own: its callers wait for `wait_room` first, so at
    most `ROOM_BYTES` and one frame for each of them are held. Once the peer is gone, writes are
    dropped, and `on_broken` is called once.
    """

    def __init__(self, sock: socket.socket, *, on_broken: Callable[[], None]) -> None:
        self._socket = sock
        self._on_broken = on_broken
        self._waiting = bytearray()
        self._changed = anyio.Event()
        self.broken = False

    @property
    def waiting_bytes(self) -> int:
        """How much the client has yet to read, the kernel's buffer aside."""
        return len(self._waiting)

    def has_room(self) -> bool:
        """Whether a sender may write now."""
        return self.broken or len(self._waiting) < ROOM_BYTES

    async def wait_room(self) -> None:
        """Waits until the client has read enough."""
        while not self.has_room():
            await self._changed.wait()

    async def wait_sent(self) -> None:
        """Waits until the kernel has taken everything."""
        while self._waiting and not self.broken:
            await self._changed.wait()

    def write(self, frame: bytes) -> None:
        """Hands the frame to the kernel, or keeps what it does not take for `run`."""
        if self.broken:
            return
        if self._waiting:
            self._waiting += frame
            return
        sent = self._send(frame)
        if sent < len(frame) and not self.broken:
            self._waiting += memoryview(frame)[sent:]
            self._announce()

    async def run(self) -> None:
        """Sends what is waiting, as the socket takes it; sleeps while nothing is."""
        while not self.broken:
            if not self._waiting:
                await self._changed.wait()
                continue
            await anyio.wait_writable(self._socket)
            sent = self._send(bytes(self._waiting[:_SEND_BYTES]))
            del self._waiting[:sent]
            self._announce()

    def _send(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            # The peer is gone; the reading half will see it too and end the connection.
            self.broken = True
            self._waiting.clear()
            self._announce()
            self._on_broken()
            return 0

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
