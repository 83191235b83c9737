"""The blocking client: a plain socket, no event loop and no thread. For one thread at a time."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from socket import socket as Socket  # noqa: N812 - `socket` is a parameter's name in the interface
from typing import Any, Self

import msgspec

from turnmark.client_wire import (
    CHUNK_BYTES,
    CONNECT_RETRY_SECONDS,
    CONNECT_TRIES,
    FrameReader,
    Inbox,
    Inboxes,
    Incoming,
    Policy,
    cancel_frame,
    lost,
    progress_of,
    reason_of,
    request_frame,
    subscribe_params,
    try_connect,
)
from turnmark.errors import DaemonNotRunning
from turnmark.places import asked_state, client_sockets, is_of_state
from turnmark.verbs import Progress, Verbs, chunks, take_page
from turnmark_events.errors import Busy, TurnmarkError
from turnmark_events.types import Event


class SyncClient(Verbs[Any]):
    """A connection to the daemon, made by `connect_sync`; a context manager.

    A call that is interrupted (Ctrl-C) tells the daemon that nobody waits for it any more; if
    that happens in the middle of sending, the connection is closed, for the daemon to see.
    """

    def __init__(self, sock: Socket) -> None:
        self._socket = sock
        self._numbers = itertools.count(1)
        self._reader = FrameReader()
        self._frames: deque[Incoming] = deque()
        self._inboxes = Inboxes()
        self._reason = "the daemon closed it"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; closing twice is harmless."""
        self._socket.close()

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        progress: Progress | None = None,
        shape: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Calls a method and returns its result, plain dictionaries, lists and strings."""
        result = msgspec.json.decode(self._ask(method, params, progress).result)
        return result if shape is None else shape(result)

    def export(self, session: str) -> Iterator[str]:
        """Yields a session's export lines, a page at a time."""
        cursor: str | None = None
        held: list[str] = []
        while True:
            given = {"session": session} | ({} if cursor is None else {"cursor": cursor})
            page = self.call("session.export", given)
            take_page(page, held)
            cursor = page.get("next")
            whole = len(held) if cursor is None else len(held) - 1
            yield from held[:whole]
            if cursor is None:
                return
            del held[:whole]

    def import_lines(self, lines: Iterable[str]) -> Any:
        """Imports the export lines of one session, in as many frames as it takes."""
        answer: dict[str, Any] = {}
        for piece in chunks(lines):
            upload = {"upload": answer["upload"]} if "upload" in answer else {}
            answer = self.call("session.import", {**piece, **upload})
        return answer

    def subscribe(
        self,
        *,
        types: Collection[str] | None = None,
        session: str | None = None,
        since: int | None = None,
        policy: Policy | None = None,
    ) -> SyncEventStream:
        """Subscribes at once and returns the events as an iterator that blocks."""
        return SyncEventStream(self, subscribe_params(types, session, since, policy))

    def subscribe_inbox(self, params: Mapping[str, Any], inbox: Inbox) -> None:
        """Subscribes; the inbox takes events from the moment of the answer on."""
        inbox.begin(self._ask("events.subscribe", params, None))
        self._inboxes.add(inbox)

    def unsubscribe(self, inbox: Inbox) -> None:
        """Ends a subscription."""
        if self._inboxes.drop(inbox):
            self._tell_unsubscribe(inbox.key)

    def read_notification(self) -> None:
        """Blocks for one frame and puts it where it belongs.

        Raises:
            ConnectionLost: if the daemon has gone.
        """
        self._take(self._next_frame(), None)

    def _ask(
        self, method: str, params: Mapping[str, Any] | None, progress: Progress | None
    ) -> Incoming:
        number = next(self._numbers)
        self._send(request_frame(number, method, params, progress=progress is not None))
        try:
            answer = self._wait_answer(number, progress)
        except TurnmarkError:
            raise
        except BaseException:
            with contextlib.suppress(TurnmarkError, OSError):
                self._send(cancel_frame(number))
            raise
        failure = answer.failure()
        if failure is not None:
            raise failure
        return answer

    def _wait_answer(self, number: int, progress: Progress | None) -> Incoming:
        while True:
            frame = self._next_frame()
            if frame.method is not None:
                self._take(frame, progress)
            elif frame.id == number:
                return frame
            elif frame.id is None:
                raise frame.failure() or lost("an answer to nobody")

    def _take(self, frame: Incoming, progress: Progress | None) -> None:
        if frame.method in {"event", "events.ended"}:
            _, unsubscribe = self._inboxes.deliver(frame)
            if unsubscribe is not None:
                self._tell_unsubscribe(unsubscribe)
        elif frame.method == "notifications/progress" and progress is not None:
            told = progress_of(frame)
            progress(told.progress, told.total, told.message)
        elif frame.method == "closing":
            self._reason = reason_of(frame)

    def _next_frame(self) -> Incoming:
        while not self._frames:
            try:
                chunk = self._socket.recv(CHUNK_BYTES)
            except OSError as error:
                raise lost(error.strerror or str(error)) from error
            if not chunk:
                raise lost(self._reason)
            self._frames.extend(self._reader.feed(chunk))
        return self._frames.popleft()

    def _tell_unsubscribe(self, key: str) -> None:
        # Its answer has a number that nobody waits for and is passed over.
        number = next(self._numbers)
        self._send(request_frame(number, "events.unsubscribe", {"subscription": key}))

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise lost(error.strerror or str(error)) from error
        except BaseException:
            # How much was sent is not known, so nothing may follow it.
            self.close()
            raise


class SyncEventStream(Iterator[Event]):
    """Events of one subscription; each `next` blocks until there is one.

    Calls may be made in between. Falling behind, and errors, are as in `client.EventStream`.
    """

    def __init__(self, client: SyncClient, params: dict[str, Any]) -> None:
        self._client = client
        self._params = params
        self._inbox = Inbox()
        self._closed = False
        client.subscribe_inbox(params, self._inbox)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __next__(self) -> Event:
        inbox = self._inbox
        while not self._closed:
            if inbox.events:
                return inbox.take()
            if inbox.ended is not None:
                raise inbox.ended
            if inbox.ran_over:
                inbox.resume()
                self._params["since"] = inbox.last
                self._client.subscribe_inbox(self._params, inbox)
                continue
            self._client.read_notification()
        raise StopIteration

    @property
    def seq(self) -> int:
        """The seq of the last event that was read, at first the one the stream starts after."""
        return self._inbox.last

    def close(self) -> None:
        """Ends the subscription; closing twice is harmless."""
        self._closed = True
        self._client.unsubscribe(self._inbox)

    def __del__(self) -> None:
        inbox: Inbox | None = getattr(self, "_inbox", None)
        if inbox is not None:
            inbox.abandoned = True


def connect_sync(
    socket: str | os.PathLike[str] | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    client: str = "python",
) -> SyncClient:
    """Connects to the daemon; places and errors are those of `connect`.

    Raises:
        DaemonNotRunning: if no daemon answers; the message says how to start one.
        Refused: if this user may not connect.
        Busy: if the daemon takes no more connections for two seconds.
    """
    paths, asked = client_sockets(socket, state=state), asked_state(socket, state=state)
    others: dict[Path, str] = {}
    for path in paths:
        sock = _connected(path)
        if sock is None:
            continue
        memory = SyncClient(sock)
        try:
            hello = memory.call("hello", {"client": client, "protocol": 1})
        except BaseException:
            memory.close()
            raise
        if is_of_state(hello, asked):
            return memory
        memory.close()
        others[path] = hello["state"]
    raise DaemonNotRunning(paths, others)


def _connected(path: Path) -> Socket | None:
    """Returns a connection, None where nobody listens."""
    for _ in range(CONNECT_TRIES):
        found = try_connect(path)
        if isinstance(found, Socket):
            found.setblocking(True)
            return found
        if found == "nobody":
            return None
        time.sleep(CONNECT_RETRY_SECONDS)
    raise Busy(f"the daemon at {path} takes no more connections now: try again later")
