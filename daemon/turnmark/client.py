"""The asynchronous client: one connection, any number of calls and subscriptions at once."""

from __future__ import annotations

import itertools
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
)
from contextlib import asynccontextmanager
from pathlib import Path
from socket import socket as Socket  # noqa: N812 - `socket` is a parameter's name in the interface
from typing import Any, Self

import anyio
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
from turnmark.errors import ConnectionLost, DaemonNotRunning
from turnmark.places import asked_state, client_sockets, is_of_state
from turnmark.rpc.outgoing import Outgoing
from turnmark.verbs import Progress, Verbs, chunks, take_page
from turnmark_events.errors import Busy, TurnmarkError
from turnmark_events.types import Event

_UNASKED = "events.unsubscribe"


class _Pending:
    """A call that waits for its answer; `inbox` is for the events that follow it."""

    def __init__(self, progress: Progress | None, inbox: Inbox | None) -> None:
        self.progress = progress
        self.inbox = inbox
        self.answered = anyio.Event()
        self.answer: Incoming | None = None


class Memory(Verbs[Awaitable[Any]]):
    """A connection to the daemon, made by `connect`. Calls may run side by side.

    Cancelling a call tells the daemon that nobody waits for it any more.
    """

    def __init__(self, sock: Socket) -> None:
        self._socket = sock
        # A pipe that breaks while sending says nothing: the reading half may still hear why.
        self._outgoing = Outgoing(sock, on_broken=lambda: None)
        self._numbers = itertools.count(1)
        self._pending: dict[int | str, _Pending] = {}
        self._inboxes = Inboxes()
        self._changed = anyio.Event()
        self._ended: TurnmarkError | None = None
        self._reason = "the daemon closed it"

    async def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        progress: Progress | None = None,
        shape: Callable[[Any], Any] | None = None,
    ) -> Any:
        """Calls a method and returns its result, plain dictionaries, lists and strings."""
        answer = await self._ask(method, params, _Pending(progress, None))
        result = msgspec.json.decode(answer.result)
        return result if shape is None else shape(result)

    async def export(self, session: str) -> AsyncIterator[str]:
        """Yields a session's export lines, a page at a time."""
        cursor: str | None = None
        held: list[str] = []
        while True:
            given = {"session": session} | ({} if cursor is None else {"cursor": cursor})
            page = await self.call("session.export", given)
            take_page(page, held)
            cursor = page.get("next")
            whole = len(held) if cursor is None else len(held) - 1
            for line in held[:whole]:
                yield line
            if cursor is None:
                return
            del held[:whole]

    async def import_lines(self, lines: Iterable[str]) -> Any:
        """Imports the export lines of one session, in as many frames as it takes."""
        answer: dict[str, Any] = {}
        for piece in chunks(lines):
            upload = {"upload": answer["upload"]} if "upload" in answer else {}
            answer = await self.call("session.import", {**piece, **upload})
        return answer

    def subscribe(
        self,
        *,
        types: Collection[str] | None = None,
        session: str | None = None,
        since: int | None = None,
        policy: Policy | None = None,
    ) -> EventStream:
        """Returns the events to come as an async iterator.

        It subscribes when it is entered with `async with`, else at its first event. `since` is
        exclusive: 0 begins with the oldest kept.
        """
        return EventStream(self, subscribe_params(types, session, since, policy))

    async def subscribe_inbox(self, params: Mapping[str, Any], inbox: Inbox) -> None:
        """Subscribes; the inbox takes events from the moment of the answer on."""
        await self._ask("events.subscribe", params, _Pending(None, inbox))

    async def wait_changed(self) -> None:
        """Waits until an inbox has changed.

        Raises:
            ConnectionLost: if the daemon has gone.
        """
        if self._ended is not None:
            raise self._ended
        await self._changed.wait()

    def unsubscribe_nowait(self, inbox: Inbox) -> None:
        """Ends a subscription without waiting for the answer."""
        if self._inboxes.drop(inbox):
            self._tell_unsubscribe(inbox.key)

    async def run(self) -> None:
        """Reads until the daemon has gone. Run by `connect`."""
        reader = FrameReader()
        try:
            while True:
                await anyio.wait_readable(self._socket)
                try:
                    chunk = self._socket.recv(CHUNK_BYTES)
                except (BlockingIOError, InterruptedError):
                    continue
                if not chunk:
                    break
                for frame in reader.feed(chunk):
                    self._take(frame)
        except ConnectionLost as error:
            self._ended = error
        except OSError as error:
            self._reason = error.strerror or str(error)
        finally:
            self._end()

    async def run_sending(self) -> None:
        """Sends what the socket did not take at once. Run by `connect`."""
        await self._outgoing.run()

    async def _ask(
        self, method: str, params: Mapping[str, Any] | None, pending: _Pending
    ) -> Incoming:
        number = next(self._numbers)
        frame = request_frame(number, method, params, progress=pending.progress is not None)
        if self._ended is not None:
            raise self._ended
        self._pending[number] = pending
        try:
            await self._outgoing.wait_room()
            self._outgoing.write(frame)
            await pending.answered.wait()
        finally:
            del self._pending[number]
            if not pending.answered.is_set():
                self._outgoing.write(cancel_frame(number))
        if pending.answer is None:
            raise self._ended or lost(self._reason)
        failure = pending.answer.failure()
        if failure is not None:
            raise failure
        return pending.answer

    def _take(self, frame: Incoming) -> None:
        if frame.method is None:
            self._take_answer(frame)
        elif frame.method in {"event", "events.ended"}:
            inbox, unsubscribe = self._inboxes.deliver(frame)
            if unsubscribe is not None:
                self._tell_unsubscribe(unsubscribe)
            if inbox is not None:
                self._announce()
        elif frame.method == "notifications/progress":
            told = progress_of(frame)
            pending = self._pending.get(told.token)
            if pending is not None and pending.progress is not None:
                pending.progress(told.progress, told.total, told.message)
        elif frame.method == "closing":
            self._reason = reason_of(frame)

    def _take_answer(self, frame: Incoming) -> None:
        if not isinstance(frame.id, int | str):
            # The daemon could not tell which request it answers: then none can go on waiting.
            self._ended = frame.failure()
            self._end()
            return
        pending = self._pending.get(frame.id)
        if pending is None:
            return
        pending.answer = frame
        if pending.inbox is not None and frame.error is None:
            pending.inbox.begin(frame)
            self._inboxes.add(pending.inbox)
        pending.answered.set()

    def _tell_unsubscribe(self, key: str) -> None:
        # Its answer finds nobody waiting and is dropped.
        self._outgoing.write(request_frame(next(self._numbers), _UNASKED, {"subscription": key}))

    def _announce(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _end(self) -> None:
        self._ended = self._ended or lost(self._reason)
        for pending in self._pending.values():
            pending.answered.set()
        self._announce()


class EventStream(AsyncIterator[Event]):
    """Events of one subscription, for one reader.

    Nothing is lost while the daemon keeps it: a reader that falls behind gets a `Lagged` and then
    the rest. `aclose`, leaving `async with`, or dropping the stream ends the subscription.

    Raises:
        Gone: if the daemon no longer keeps what comes next; `oldest` says what it keeps.
        ConnectionLost: if the daemon goes away; subscribe again with the last `seq` as `since`.
    """

    def __init__(self, memory: Memory, params: dict[str, Any]) -> None:
        self._memory = memory
        self._params = params
        self._inbox: Inbox | None = None
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def __anext__(self) -> Event:
        inbox = self._inbox or await self._open()
        while not self._closed:
            if inbox.events:
                return inbox.take()
            if inbox.ended is not None:
                raise inbox.ended
            if inbox.ran_over:
                inbox.resume()
                self._params["since"] = inbox.last
                await self._memory.subscribe_inbox(self._params, inbox)
                continue
            await self._memory.wait_changed()
        raise StopAsyncIteration

    @property
    def seq(self) -> int:
        """The seq of the last event that was read, at first the one the stream starts after."""
        return 0 if self._inbox is None else self._inbox.last

    async def aclose(self) -> None:
        """Ends the subscription; closing twice is harmless."""
        self._closed = True
        if self._inbox is not None:
            self._memory.unsubscribe_nowait(self._inbox)

    def __del__(self) -> None:
        # Only a mark: finalisers may run on any thread. The next event finds it and unsubscribes.
        inbox: Inbox | None = getattr(self, "_inbox", None)
        if inbox is not None:
            inbox.abandoned = True

    async def _open(self) -> Inbox:
        inbox = Inbox()
        await self._memory.subscribe_inbox(self._params, inbox)
        self._inbox = inbox
        return inbox


@asynccontextmanager
async def connect(
    socket: str | os.PathLike[str] | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
    client: str = "python",
) -> AsyncGenerator[Memory, None]:
    """Connects to the daemon for the length of the block.

    `socket` else TURNMARK_SOCKET names the socket; else the runtime directory's is tried, then the
    one that the daemon of `state` wrote down; a daemon that serves another state than `state` or
    TURNMARK_STATE is passed over. An error inside the block comes out as it is.

    Raises:
        DaemonNotRunning: if no daemon answers there; the message says how to start one.
        Refused: if this user may not connect.
        Busy: if the daemon takes no more connections for two seconds.
    """
    paths, asked = client_sockets(socket, state=state), asked_state(socket, state=state)
    others: dict[Path, str] = {}
    for path in paths:
        sock = await _connected(path)
        if sock is None:
            continue
        failure: BaseException | None = None
        with sock:
            async with anyio.create_task_group() as group:
                memory = Memory(sock)
                group.start_soon(memory.run)
                group.start_soon(memory.run_sending)
                try:
                    hello = await memory.call("hello", {"client": client, "protocol": 1})
                    if is_of_state(hello, asked):
                        yield memory
                    else:
                        others[path] = hello["state"]
                except Exception as error:  # noqa: BLE001 - raised again below, outside the group
                    failure = error
                finally:
                    group.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if path not in others:
            return
    raise DaemonNotRunning(paths, others)


async def _connected(path: Path) -> Socket | None:
    """Returns a connection, None where nobody listens."""
    for _ in range(CONNECT_TRIES):
        found = try_connect(path)
        if isinstance(found, Socket):
            return found
        if found == "nobody":
            return None
        await anyio.sleep(CONNECT_RETRY_SECONDS)
    raise Busy(f"the daemon at {path} takes no more connections now: try again later")
