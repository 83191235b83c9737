"""A daemon's socket without a daemon: a server with a few methods, and a raw client."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
import msgspec

from turnmark.rpc import Call, Method, Server, subscription_methods
from turnmark_events import Bus, Event
from turnmark_events.errors import Gone, Stale


class Anything(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Params of the methods of these tests."""

    session: str = "s"
    text: str = ""
    number: int = 0
    names: list[str] = []


class Stage:
    """What the methods of these tests touch: a log of what ran, gates to hold calls, a table."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.gates: dict[str, anyio.Event] = {}
        self.started: dict[str, anyio.Event] = {}
        self.cancelled: list[str] = []
        self.rows: list[Event] = []
        self.oldest = 0
        self.bus = Bus(replay=self.replay, high_water=100)

    async def replay(self, after: int, limit: int) -> Sequence[Event]:
        """One query of the event table."""
        if after + 1 < self.oldest:
            raise Gone("dropped", oldest=self.oldest)
        return [event for event in self.rows if event.seq > after][:limit]

    def publish(self, *events: Event) -> None:
        """Commits and publishes."""
        self.rows.extend(events)
        self.bus.publish(events)

    def gate(self, text: str) -> anyio.Event:
        """The event that the call with this text waits for."""
        return self.gates.setdefault(text, anyio.Event())

    async def wait_started(self, text: str) -> None:
        """Waits until the call with this text runs."""
        await self.started.setdefault(text, anyio.Event()).wait()

    async def echo(self, params: Anything, call: Call) -> Any:
        """Answers with its params."""
        return params

    async def held(self, params: Anything, call: Call) -> Any:
        """Answers once its gate is open, and says when it runs, ends or is cancelled."""
        self.ran.append(f"begin {params.text}")
        call.progress(0)
        self.started.setdefault(params.text, anyio.Event()).set()
        try:
            await self.gate(params.text).wait()
        except BaseException:
            self.cancelled.append(params.text)
            raise
        self.ran.append(f"end {params.text}")
        return params.text

    async def queued(self, params: Anything, call: Call) -> Any:
        """Like `held`, but lets the next write go at once."""
        call.queued()
        return await self.held(params, call)

    async def stepwise(self, params: Anything, call: Call) -> Any:
        """Reports `number` steps."""
        for step in range(params.number):
            call.progress(step + 1, params.number, f"第{step + 1}步")
        return {}

    async def stale(self, params: Anything, call: Call) -> Any:
        """Fails with one of our errors."""
        raise Stale("the head is t-9: look again and retry", head="t-9", place=Path("/x"))

    async def broken(self, params: Anything, call: Call) -> Any:
        """Fails with a bug."""
        raise ZeroDivisionError("secret detail")

    async def long(self, params: Anything, call: Call) -> Any:
        """Answers with `number` bytes of text."""
        return "a" * params.number

    def methods(self) -> Mapping[str, Method[Any]]:
        """The table."""
        table: dict[str, Method[Any]] = {
            name: Method(params=Anything, call=call)
            for name, call in {
                "echo": self.echo,
                "turn.echo": self.echo,
                "session.import": self.echo,
                "held": self.held,
                "stepwise": self.stepwise,
                "stale": self.stale,
                "broken": self.broken,
                "long": self.long,
            }.items()
        }
        table["write"] = Method(params=Anything, call=self.held, ordered=True)
        table["queued"] = Method(params=Anything, call=self.queued, ordered=True)
        return {**table, **subscription_methods(self.bus)}


class RawClient:
    """A client that can send any bytes."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""
        self._ids = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stream.aclose()

    async def send(self, data: bytes) -> None:
        """Sends bytes as they are."""
        await self.stream.send(data)

    async def request(self, method: str, params: object = None, **fields: object) -> int:
        """Sends one request and returns its id."""
        self._ids += 1
        frame: dict[str, object] = {"jsonrpc": "2.0", "id": self._ids, "method": method}
        if params is not None:
            frame["params"] = params
        await self.send(json.dumps(frame | fields).encode() + b"\n")
        return self._ids

    async def read(self) -> dict[str, Any]:
        """The next frame; raises EndOfStream when the server has closed."""
        while b"\n" not in self._buffer:
            self._buffer += await self.stream.receive()
        line, self._buffer = self._buffer.split(b"\n", 1)
        frame: dict[str, Any] = json.loads(line)
        assert frame["jsonrpc"] == "2.0"
        return frame

    async def call(self, method: str, params: object = None, **fields: object) -> dict[str, Any]:
        """Sends one request and returns the next frame, which must be its answer."""
        number = await self.request(method, params, **fields)
        answer = await self.read()
        assert answer["id"] == number
        return answer

    async def assert_alive(self) -> None:
        """The connection still answers."""
        assert (await self.call("echo", {"text": "还在"}))["result"]["text"] == "还在"


@asynccontextmanager
async def place() -> AsyncIterator[Path]:
    """A directory with a short path, for a socket's sake."""
    directory = Path(tempfile.mkdtemp(prefix="tm-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


class Serving:
    """A running server and what it serves."""

    def __init__(self, path: Path, stage: Stage, server: Server) -> None:
        self.path = path
        self.stage = stage
        self.server = server

    async def connect(self) -> RawClient:
        """A new raw client."""
        return RawClient(await anyio.connect_unix(self.path))


@asynccontextmanager
async def serving(
    methods: Mapping[str, Method[Any]] | None = None, *, grace_seconds: float = 0.2
) -> AsyncIterator[Serving]:
    """A server on a socket of its own, stopped at the end; everything within 60 seconds."""
    stage = Stage()
    async with place() as directory:
        path = directory / "run" / "t.sock"
        server = Server(
            path=path, methods={**stage.methods(), **(methods or {})}, grace_seconds=grace_seconds
        )
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                await group.start(server.run)
                try:
                    yield Serving(path, stage, server)
                finally:
                    server.stop()


def unread_socket(path: Path) -> socket.socket:
    """A connected client that will not read."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with suppress(BlockingIOError):
        sock.connect(str(path))
    return sock
