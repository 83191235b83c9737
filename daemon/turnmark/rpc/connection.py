"""One client: its frames in order, its calls side by side, its writes to a session one by one."""

from __future__ import annotations

import select
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup
from msgspec import UNSET

from turnmark.errors import CODES
from turnmark.rpc.dispatch import Call, Dispatcher, Prepared, Send
from turnmark.rpc.framing import FramingLost, LineBuffer, Oversize
from turnmark.rpc.messages import (
    INVALID_REQUEST,
    PARSE_ERROR,
    BadFrame,
    Failure,
    FailureAnswer,
    Notification,
    Request,
    RequestId,
    decode_request,
    encode,
    oversize_failure,
)
from turnmark.rpc.outgoing import Outgoing

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# More requests than this at once and the connection is not read until one is answered.
MAX_IN_FLIGHT = 128
_CHUNK_BYTES = 1 << 16
# How long a closing connection may take to hand its last answers to the kernel.
_LAST_WORDS_SECONDS = 1.0
_CANCELLED = "notifications/cancelled"


class ConnectionStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """What one connection is doing."""

    name: str
    in_flight: int
    streams: int
    waiting_bytes: int


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who is at the other end, as the kernel says; the pid is for the log only."""

    pid: int
    uid: int


class _CancelParams(msgspec.Struct, frozen=True):
    request_id: int | str = msgspec.field(name="requestId")


@dataclass
class _Lane:
    """Writes of one connection to one session, in the order sent; `users` run or wait in it."""

    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))
    users: int = 0


@dataclass(eq=False)
class _Running:
    """A call that is not answered yet."""

    request: Request
    prepared: Prepared
    call: Call
    lane: _Lane | None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    @property
    def request_id(self) -> RequestId:
        return None if self.request.id is UNSET else self.request.id


@dataclass(eq=False)
class _Stream:
    run: Callable[[Send], Awaitable[None]]
    close: Callable[[], None]
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    started: bool = False


class Connection:
    """Serves one client from accept to close."""

    def __init__(
        self, sock: socket.socket, *, name: str, peer: Peer, dispatcher: Dispatcher
    ) -> None:
        self.name = name
        self.peer = peer
        self._socket = sock
        self._dispatcher = dispatcher
        self._outgoing = Outgoing(sock, on_broken=self._abandon)
        self._running: set[_Running] = set()
        self._lanes: dict[str | None, _Lane] = {}
        self._streams: dict[str, _Stream] = {}
        self._slots = anyio.Semaphore(MAX_IN_FLIGHT, fast_acquire=True)
        self._reading = anyio.CancelScope()
        self._lingering = anyio.CancelScope()
        self._settled = anyio.Event()
        self._stopped: str | None = None
        self._tasks: TaskGroup

    def statistics(self) -> ConnectionStatistics:
        """Returns what this connection is doing now."""
        return ConnectionStatistics(
            name=self.name,
            in_flight=len(self._running),
            streams=len(self._streams),
            waiting_bytes=self._outgoing.waiting_bytes,
        )

    async def run(self) -> None:
        """Serves until the client has gone and its calls are answered, or `stop` was called.

        A client that only closed its sending half still gets its answers and events.
        """
        try:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._outgoing.run)
                with self._reading:
                    await self._read()
                with self._lingering:
                    await self._wait_settled()
                self._refuse_unfinished()
                with anyio.move_on_after(_LAST_WORDS_SECONDS):
                    await self._outgoing.wait_sent()
                self._tasks.cancel_scope.cancel()
        finally:
            for key in tuple(self._streams):
                self.close_stream(key)
            self._socket.close()

    def stop(self, reason: str, grace_seconds: float) -> None:
        """Stops reading, lets calls finish for `grace_seconds`, then tells `reason` and closes."""
        self._stopped = reason
        self._reading.cancel()
        for key in tuple(self._streams):
            self.close_stream(key)
        self._lingering.deadline = anyio.current_time() + grace_seconds
        self._settle()

    def notify_nowait(self, method: str, params: Any) -> bool:
        """Sends a notification unless the client is behind on reading; says whether it did."""
        if not self._outgoing.has_room():
            return False
        self._outgoing.write(encode(Notification(method=method, params=params)))
        return True

    def open_stream(
        self, key: str, run: Callable[[Send], Awaitable[None]], close: Callable[[], None]
    ) -> None:
        """Registers a stream; `close` is called once, when it ends or is closed."""
        self._streams[key] = _Stream(run, close)

    def start_stream(self, key: str) -> None:
        """Starts a registered stream; one that was closed meanwhile stays closed."""
        stream = self._streams.get(key)
        if stream is not None and not stream.started:
            stream.started = True
            self._tasks.start_soon(self._run_stream, key, stream)

    def close_stream(self, key: str) -> bool:
        """Ends a stream; returns whether there was one."""
        stream = self._streams.pop(key, None)
        if stream is None:
            return False
        stream.scope.cancel()
        stream.close()
        self._settle()
        return True

    async def _read(self) -> None:
        buffer = LineBuffer()
        try:
            while chunk := await self._receive():
                for frame in buffer.feed(chunk):
                    await self._take(frame)
        except FramingLost as lost:
            failure = Failure(code=PARSE_ERROR, message=str(lost), data={"kind": "parse_error"})
            await self._fail(failure)
            return
        if rest := buffer.finish():
            message = f"the stream ended inside a frame, after byte {len(rest)}: no newline"
            data = {"kind": "parse_error", "position": len(rest)}
            await self._fail(Failure(code=PARSE_ERROR, message=message, data=data))
        if self._is_gone():
            self._abandon()

    async def _receive(self) -> bytes:
        while True:
            await anyio.wait_readable(self._socket)
            try:
                return self._socket.recv(_CHUNK_BYTES)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError:
                return b""  # reset by the peer: the same as closed, for us

    async def _take(self, frame: bytes | Oversize) -> None:
        if isinstance(frame, Oversize):
            await self._fail(oversize_failure(frame.limit))
            return
        request: Request | None = None
        try:
            request = decode_request(frame)
            if request.method == _CANCELLED:
                self._cancel(request)
                return
            self._check_id(request)
            prepared = self._dispatcher.prepare(request, frame)
        except BadFrame as bad:
            # A notification is never answered, unless nobody can tell that it is one.
            if request is None or request.id is not UNSET:
                await self._fail(bad.failure, bad.request_id)
            return
        # Bound: MAX_IN_FLIGHT calls; full: this client is not read, the others are.
        await self._slots.acquire()
        self._start(request, prepared)

    def _start(self, request: Request, prepared: Prepared) -> None:
        lane: _Lane | None = None
        if prepared.method.ordered:
            lane = self._lanes.setdefault(prepared.session, _Lane())
            lane.users += 1
        running = _Running(request, prepared, Call(self, token=prepared.token), lane)
        self._running.add(running)
        self._tasks.start_soon(self._run_call, running)

    async def _run_call(self, running: _Running) -> None:
        answered = False
        try:
            with running.scope:
                frame = await self._run_in_lane(running)
                if running.request.id is not UNSET:
                    await self._outgoing.wait_room()
                    self._outgoing.write(frame)
                answered = True
        finally:
            running.call.finish(answered=answered)
            self._running.discard(running)
            self._slots.release()
            self._settle()

    async def _run_in_lane(self, running: _Running) -> bytes:
        lane = running.lane
        if lane is None:
            return await self._dispatcher.run(running.prepared, running.call, running.request_id)
        # Tasks start in the order they were made and the lock is first come, first served, so the
        # writes run in the order in which they were read.
        try:
            await lane.lock.acquire()
            leave = _once(lane.lock.release)
            running.call.enter_lane(leave)
            try:
                return await self._dispatcher.run(
                    running.prepared, running.call, running.request_id
                )
            finally:
                leave()
        finally:
            lane.users -= 1
            if not lane.users:
                self._lanes.pop(running.prepared.session, None)

    async def _run_stream(self, key: str, stream: _Stream) -> None:
        try:
            with stream.scope:
                await stream.run(self._notify)
        except anyio.BrokenResourceError:
            log.debug("stream_ended_with_its_client", connection=self.name, stream=key)
        finally:
            if self._streams.get(key) is stream:
                self.close_stream(key)

    async def _notify(self, method: str, params: Any) -> None:
        await self._outgoing.wait_room()
        if self._outgoing.broken:
            raise anyio.BrokenResourceError
        self._outgoing.write(encode(Notification(method=method, params=params)))

    async def _fail(self, failure: Failure, request_id: RequestId = None) -> None:
        await self._outgoing.wait_room()
        self._outgoing.write(encode(FailureAnswer(id=request_id, error=failure)))

    def _check_id(self, request: Request) -> None:
        if request.id is UNSET or request.id is None:
            return
        if any(running.request.id == request.id for running in self._running):
            failure = Failure(
                code=INVALID_REQUEST,
                message=f"a request with id {request.id!r} is not answered yet: use a fresh id",
                data={"kind": "invalid_request"},
            )
            raise BadFrame(failure, request.id)

    def _cancel(self, request: Request) -> None:
        try:
            params = msgspec.json.decode(request.params, type=_CancelParams)
        except msgspec.DecodeError:
            log.debug("cancel_not_understood", connection=self.name)
            return
        for running in self._running:
            if running.request.id == params.request_id:
                running.scope.cancel()

    def _is_gone(self) -> bool:
        poll = select.poll()
        poll.register(self._socket, 0)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def _abandon(self) -> None:
        """Ends what only its client wanted to know; writes are finished."""
        for key in tuple(self._streams):
            self.close_stream(key)
        for running in self._running:
            if not running.prepared.method.ordered:
                running.scope.cancel()

    def _settle(self) -> None:
        if not self._running and not self._streams:
            self._settled.set()

    async def _wait_settled(self) -> None:
        while self._running or self._streams:
            self._settled = anyio.Event()
            await self._settled.wait()

    def _refuse_unfinished(self) -> None:
        for running in self._running:
            if not running.scope.cancel_called and running.request.id is not UNSET:
                failure = Failure(
                    code=CODES["unavailable"],
                    message=f"{self._stopped}: this request was not finished, repeat it",
                    data={"kind": "unavailable"},
                )
                self._outgoing.write(encode(FailureAnswer(id=running.request_id, error=failure)))
            running.scope.cancel()
        if self._stopped is not None:
            self._outgoing.write(
                encode(Notification(method="closing", params={"reason": self._stopped}))
            )


def _once(release: Callable[[], None]) -> Callable[[], None]:
    pending = [release]

    def leave() -> None:
        if pending:
            pending.pop()()

    return leave
