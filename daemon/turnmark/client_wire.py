"""What both clients share: frames out, frames in, and the events that wait to be read."""

from __future__ import annotations

import errno
import socket
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnmark.errors import ConnectionLost, error_of
from turnmark.rpc.framing import LARGE_FRAME_LIMIT_BYTES, LineBuffer, Oversize, limit_of
from turnmark.rpc.socket_path import check_socket_path
from turnmark_events.errors import Refused, TurnmarkError
from turnmark_events.types import Event, Lagged

Policy = Literal["coalesce", "lossless"]

CHUNK_BYTES = 1 << 16
# Events that wait for their reader on this side, some 5 MB; over it the subscription is dropped
# and taken up again, from the daemon's table, once the reader has caught up.
INBOX_EVENTS = 10_000
# A busy daemon's backlog is full for moments: connect gets EAGAIN, and tries again this often.
CONNECT_TRIES = 200
CONNECT_RETRY_SECONDS = 0.01
# The daemon's answers keep to the frame limits; twice that is a broken daemon.
_ANSWER_LIMIT_BYTES = 2 * LARGE_FRAME_LIMIT_BYTES
_NOBODY = frozenset({errno.ENOENT, errno.ECONNREFUSED, errno.ENOTSOCK, errno.ENOTDIR})


class _FailureIn(msgspec.Struct, frozen=True):
    code: int
    message: str
    data: dict[str, Any] | None = None


class Incoming(msgspec.Struct, frozen=True):
    """Any frame of the daemon: an answer has `id`, a notification `method`."""

    id: int | str | UnsetType | None = UNSET
    method: str | None = None
    params: Raw = Raw(b"{}")
    result: Raw = Raw(b"null")
    error: _FailureIn | None = None

    def failure(self) -> TurnmarkError | None:
        """Returns the daemon's error, if this is one."""
        if self.error is None:
            return None
        return error_of(self.error.code, self.error.message, self.error.data)


class _Subscribed(msgspec.Struct, frozen=True):
    subscription: str
    seq: int


class _EventParams(msgspec.Struct, frozen=True):
    subscription: str
    event: Event


class _EndedParams(msgspec.Struct, frozen=True):
    subscription: str
    error: _FailureIn


class ProgressParams(msgspec.Struct, frozen=True):
    """How far a call is."""

    token: int | str = msgspec.field(name="progressToken")
    progress: float = 0.0
    total: float | None = None
    message: str | None = None


class _ClosingParams(msgspec.Struct, frozen=True):
    reason: str


_incoming = msgspec.json.Decoder(Incoming)
_subscribed = msgspec.json.Decoder(_Subscribed)
_events = msgspec.json.Decoder(_EventParams)
_endings = msgspec.json.Decoder(_EndedParams)
_progresses = msgspec.json.Decoder(ProgressParams)
_closings = msgspec.json.Decoder(_ClosingParams)
_encoder = msgspec.json.Encoder()


def request_frame(
    number: int, method: str, params: Mapping[str, Any] | None, *, progress: bool = False
) -> bytes:
    """Returns a request as a frame; its number is the progress token too.

    Raises:
        Refused: if the frame is larger than the daemon takes.
    """
    given = dict(params or {})
    if progress:
        given["_meta"] = {"progressToken": number}
    frame = _encoder.encode({"jsonrpc": "2.0", "id": number, "method": method, "params": given})
    limit = limit_of(method)
    if len(frame) > limit:
        raise Refused(
            f"this {method} has {len(frame)} bytes and a frame takes {limit}: send less at once",
            bytes=len(frame),
            limit=limit,
        )
    return frame + b"\n"


def cancel_frame(number: int) -> bytes:
    """Returns the notification that ends the wait for a request."""
    params = {"requestId": number}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return _encoder.encode(message) + b"\n"


def progress_of(frame: Incoming) -> ProgressParams:
    """Returns what a progress notification says."""
    return _progresses.decode(frame.params)


def reason_of(frame: Incoming) -> str:
    """Returns why the daemon closes."""
    return _closings.decode(frame.params).reason


def lost(reason: str) -> ConnectionLost:
    """Returns the error for a call that the daemon did not answer."""
    return ConnectionLost(
        f"the connection ended before the daemon answered ({reason}); whether it was done is not "
        "known: see that the daemon runs and what is there (`turnmark status`), then repeat it; a "
        "write with the same key is done once"
    )


class FrameReader:
    """Cuts what the daemon sends into frames."""

    def __init__(self) -> None:
        self._buffer = LineBuffer(_ANSWER_LIMIT_BYTES)

    def feed(self, chunk: bytes) -> Iterator[Incoming]:
        """Yields the frames that `chunk` completes.

        Raises:
            ConnectionLost: if what comes is no frame of a turnmark daemon.
        """
        for line in self._buffer.feed(chunk):
            if isinstance(line, Oversize):
                raise lost("an answer is larger than any frame may be")
            try:
                yield _incoming.decode(line)
            except msgspec.DecodeError as error:
                raise lost(f"not a turnmark daemon: {error}") from error


class Inbox:
    """Events of one subscription that wait for their reader, at most `INBOX_EVENTS`.

    `ran_over` says that later ones were dropped here and have to be asked for again; `ended` is
    the daemon's reason, if it ended the subscription.
    """

    def __init__(self, last: int = 0) -> None:
        self.key = ""
        self.last = last
        self.events: deque[Event] = deque()
        self.ran_over = False
        self.ended: TurnmarkError | None = None
        self.abandoned = False

    def begin(self, answer: Incoming) -> None:
        """Takes the subscription's name, and the seq that it starts after."""
        subscribed = _subscribed.decode(answer.result)
        self.key = subscribed.subscription
        self.last = subscribed.seq

    def take(self) -> Event:
        """Returns the oldest event; there must be one."""
        event = self.events.popleft()
        self.last = event.seq
        return event

    def resume(self) -> None:
        """Begins anew after the reader has caught up; the reader is told by a `Lagged`."""
        self.ran_over = False
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.events.append(Lagged(seq=self.last, at=at, last=self.last))


class Inboxes:
    """The open subscriptions of one connection."""

    def __init__(self) -> None:
        self._open: dict[str, Inbox] = {}

    def add(self, inbox: Inbox) -> None:
        """Begins to take events for it."""
        self._open[inbox.key] = inbox

    def drop(self, inbox: Inbox) -> bool:
        """Stops; says whether it was open."""
        return self._open.pop(inbox.key, None) is not None

    def deliver(self, frame: Incoming) -> tuple[Inbox | None, str | None]:
        """Puts an `event` or `events.ended` where it belongs.

        Returns the inbox that changed, and the subscription that the daemon should end, if any:
        nobody reads it any more, or it ran over.
        """
        if frame.method == "events.ended":
            return self._end(frame), None
        try:
            params = _events.decode(frame.params)
        except msgspec.ValidationError:
            return None, None  # a type of event that this version does not know
        inbox = self._open.get(params.subscription)
        if inbox is None:
            return None, None
        if inbox.abandoned or len(inbox.events) >= INBOX_EVENTS:
            inbox.ran_over = True
            self.drop(inbox)
            return inbox, inbox.key
        inbox.events.append(params.event)
        return inbox, None

    def _end(self, frame: Incoming) -> Inbox | None:
        params = _endings.decode(frame.params)
        inbox = self._open.pop(params.subscription, None)
        if inbox is not None:
            error = params.error
            inbox.ended = error_of(error.code, error.message, error.data)
        return inbox


def subscribe_params(
    types: Collection[str] | None, session: str | None, since: int | None, policy: Policy | None
) -> dict[str, Any]:
    """Returns the params of `events.subscribe`, without what was not given."""
    asked = {
        "types": None if types is None else list(types),
        "session": session,
        "since": since,
        "policy": policy,
    }
    return {name: value for name, value in asked.items() if value is not None}


def try_connect(path: Path) -> socket.socket | Literal["nobody", "busy"]:
    """Returns a connected, non-blocking socket, or why there is none.

    Raises:
        Refused: if the path can't be a socket's, or this user may not connect to it.
    """
    check_socket_path(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        sock.connect(str(path))
    except BlockingIOError:
        sock.close()
        return "busy"
    except OSError as error:
        sock.close()
        if error.errno in _NOBODY:
            return "nobody"
        raise Refused(f"can't connect to {path}: {error.strerror}", socket=str(path)) from error
    return sock
