"""A model's server on loopback: real HTTP, the two APIs, and a script of what it does.

`model_server` serves inside the test's loop; `served_in_a_thread` serves beside a test that blocks,
or a daemon in another process. What is asked is kept in `requests`.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import anyio
import anyio.abc
import anyio.from_thread
import msgspec

_MOST_BYTES = 64 * 1024 * 1024
_REASONS = {200: "OK", 302: "Found", 400: "Bad Request", 404: "Not Found", 500: "Oops"}


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request that came: where, with which headers (lower case), and its JSON body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def api(self) -> Literal["openai", "anthropic"]:
        """The API that is spoken."""
        return "anthropic" if self.path.endswith("/messages") else "openai"

    @property
    def instructions(self) -> str:
        """What is asked of the model."""
        if self.api == "anthropic":
            return str(self.body["system"])
        return str(self.body["messages"][0]["content"])

    @property
    def material(self) -> str:
        """What the model is given."""
        return str(self.body["messages"][-1]["content"])

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The material's lines, each of which is one JSON object."""
        return [json.loads(line) for line in self.material.split("\n")]

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The turns to distil."""
        return [line for line in self.lines if "ref" in line]


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What the server does about a request.

    `hang_after` bytes of headers and body together it goes silent; `reset_after` as many it breaks
    the connection; `drip_seconds` is the pause after each byte of the body. None does nothing of
    the kind.
    """

    status: int = 200
    headers: Mapping[str, str] = {}
    body: bytes = b""
    kind: str = "application/json"
    length: int | None = None
    hang_after: int | None = None
    reset_after: int | None = None
    drip_seconds: float | None = None


Script = Callable[[Asked], Act]


class ModelServer:
    """The server while it runs; set `script` to change what it does."""

    def __init__(self, port: int, script: Script) -> None:
        self.port = port
        self.script = script
        self.requests: list[Asked] = []

    @property
    def address(self) -> str:
        """The base URL, without a path."""
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, stream: anyio.abc.SocketStream) -> None:
        """Answers one request on a connection and closes it."""
        async with stream:
            try:
                asked = await _read(stream)
                self.requests.append(asked)
                await _perform(stream, self.script(asked))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                return  # the client had enough


@asynccontextmanager
async def model_server(script: Script) -> AsyncGenerator[ModelServer, None]:
    """Gives a server that does as `script` says."""
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener,
        anyio.create_task_group() as tasks,
    ):
        server = ModelServer(listener.extra(anyio.abc.SocketAttribute.local_port), script)
        tasks.start_soon(listener.serve, server.serve)
        try:
            yield server
        finally:
            tasks.cancel_scope.cancel("the test is over")


@contextmanager
def served_in_a_thread(script: Script) -> Iterator[ModelServer]:
    """Gives a server with a loop of its own."""
    with (
        anyio.from_thread.start_blocking_portal("asyncio") as portal,
        portal.wrap_async_context_manager(model_server(script)) as server,
    ):
        yield server


@contextmanager
def deaf_port() -> Iterator[int]:
    """Gives a port where nobody takes a connection: its queue is full."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(8)]
        try:
            for one in waiting:
                one.setblocking(False)
                one.connect_ex(listening.getsockname())
            yield listening.getsockname()[1]
        finally:
            for one in waiting:
                one.close()


async def _read(stream: anyio.abc.SocketStream) -> Asked:
    received = b""
    while b"\r\n\r\n" not in received:
        received += await stream.receive()
        if not received[:1].isalpha():
            raise anyio.EndOfStream  # no HTTP: a server hangs up
    head, _, body = received.partition(b"\r\n\r\n")
    first, *rest = head.decode("ascii").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
    }
    while len(body) < int(headers.get("content-length", "0")) < _MOST_BYTES:
        body += await stream.receive()
    return Asked(path=first.split()[1], headers=headers, body=json.loads(body))


async def _perform(stream: anyio.abc.SocketStream, act: Act) -> None:
    length = len(act.body) if act.length is None else act.length
    lines = [f"HTTP/1.1 {act.status} {_REASONS.get(act.status, 'Status')}"]
    lines += [f"content-type: {act.kind}"] if act.kind else []
    lines += [f"{name}: {value}" for name, value in act.headers.items()]
    lines += [f"content-length: {length}", "connection: close"]
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    if act.drip_seconds is not None:
        await stream.send(head)
        for byte in act.body:
            await stream.send(bytes([byte]))
            await anyio.sleep(act.drip_seconds)  # the fault itself, not a wait for something
        return
    for limit in (act.hang_after, act.reset_after):
        if limit is not None:
            await stream.send((head + act.body)[: limit if limit >= 0 else len(head) - limit - 1])
    if act.hang_after is not None:
        await anyio.sleep_forever()
    if act.reset_after is not None:
        raw = stream.extra(anyio.abc.SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return
    await stream.send(head + act.body)


def says(text: str | None, *, asked: Asked, **more: Any) -> Act:
    """Returns a model's whole answer in the envelope of the API that was asked.

    `reason` is why it stopped, in that API's words, `prompt_tokens` what it counted; anything else
    goes into the message (chat completions) or beside the content (Messages).
    """
    reason = more.pop("reason", None)
    prompt_tokens = more.pop("prompt_tokens", 7)
    if asked.api == "anthropic":
        content = [] if text is None else [{"type": "text", "text": text}]
        body = {
            "type": "message",
            "role": "assistant",
            "content": content,
            "stop_reason": reason or "end_turn",
            "usage": {"input_tokens": prompt_tokens, "output_tokens": 3},
        } | more
    else:
        message = {"role": "assistant", "content": text} | more
        body = {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": reason or "stop"}],
            "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": 3},
        }
    return Act(body=json.dumps(body).encode())


def fails(status: int, error: Any = None, **headers: str) -> Act:
    """Returns an error answer as both APIs shape it."""
    body = {"error": error if error is not None else {"message": "no", "type": "some_error"}}
    return Act(status=status, headers=headers, body=json.dumps(body).encode())


def edits(*found: Mapping[str, Any]) -> str:
    """Returns an answer with these edits."""
    return json.dumps({"edits": list(found), "nothing": None}, ensure_ascii=False)


def adds(text: str, cites: Sequence[str], topic: str = "subjects/facts") -> dict[str, Any]:
    """Returns an edit that adds a block."""
    return {"op": "add", "topic": topic, "heading": None, "text": text, "cites": list(cites)}


def keeps_each(asked: Asked) -> Act:
    """Answers with one block for each turn, its words as they are."""
    kept = (adds(" ".join(turn["text"].split()), [turn["ref"]]) for turn in asked.turns)
    return says(edits(*kept), asked=asked)
