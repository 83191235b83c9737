"""From a request to its answer: params decoded strictly, the method run, every error caught."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec
import structlog
from msgspec import UNSET, Raw, UnsetType

from turnmark.rpc.framing import limit_of
from turnmark.rpc.messages import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Answer,
    BadFrame,
    Failure,
    FailureAnswer,
    Request,
    RequestId,
    encode,
    failure_of,
    parse_failure,
)
from turnmark_events.errors import TurnmarkError

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_META = "_meta"
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `([^`]*)`")
_P = TypeVar("_P", bound=msgspec.Struct)
Token = int | str
Send = Callable[[str, Any], Awaitable[None]]


class Wire(Protocol):
    """What a running call may do to its connection."""

    name: str

    def notify_nowait(self, method: str, params: Any) -> bool:
        """Sends a notification unless the client is behind on reading; says whether it did."""
        ...

    def open_stream(
        self, key: str, run: Callable[[Send], Awaitable[None]], close: Callable[[], None]
    ) -> None:
        """Registers a stream of notifications; `start_stream` starts it."""
        ...

    def start_stream(self, key: str) -> None:
        """Starts a registered stream."""
        ...

    def close_stream(self, key: str) -> bool:
        """Ends a stream; says whether there was one."""
        ...


class Call:
    """What a method may know and do about the request that it serves.

    `connection` names the client's connection in the log and in subscriptions.
    """

    def __init__(self, wire: Wire, *, token: Token | None = None) -> None:
        self._wire = wire
        self._token = token
        self._told = False
        self._streams: list[str] = []
        self._leave_lane: Callable[[], None] | None = None
        self.connection = wire.name

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tells the client how far the call is, if it asked to be told. Never waits.

        A client that is behind on reading misses some; `progress` should increase.
        """
        if self._token is None:
            return
        self._told = True
        told = {"progressToken": self._token, "progress": progress}
        told |= {} if total is None else {"total": total}
        told |= {} if message is None else {"message": message}
        self._wire.notify_nowait("notifications/progress", told)

    def done(self) -> None:
        """Tells a client that asked to be told, and heard nothing, that the call is done."""
        if not self._told:
            self.progress(1, 1)

    def queued(self) -> None:
        """Says that this write has its place in the store's queue.

        The next write to the same session may start now, before this one is answered. Only from
        the task that runs the method; optional, without it the next one waits for the answer.
        """
        if self._leave_lane is not None:
            self._leave_lane()

    def open_stream(
        self, key: str, run: Callable[[Send], Awaitable[None]], close: Callable[[], None]
    ) -> None:
        """Starts `run(send)` on the connection once this call is answered.

        `close` is called once, however the stream ends. `send(method, params)` waits while the
        client is behind on reading.
        """
        self._wire.open_stream(key, run, close)
        self._streams.append(key)

    def close_stream(self, key: str) -> bool:
        """Ends a stream of this connection; returns whether there was one."""
        return self._wire.close_stream(key)

    def enter_lane(self, leave: Callable[[], None]) -> None:
        """Tells the call how to let the next write go. Called by the connection."""
        self._leave_lane = leave

    def finish(self, *, answered: bool) -> None:
        """Starts the streams that were opened, or drops them. Called by the connection."""
        for key in self._streams:
            if answered:
                self._wire.start_stream(key)
            else:
                self._wire.close_stream(key)
        self._streams.clear()


@dataclass(frozen=True, kw_only=True)
class Method(Generic[_P]):
    """One method of the socket: how its params look and what runs.

    `ordered` methods of one session run one after the other per connection, in the order sent;
    `session_of` names the session where the params have no field `session`. `params` must forbid
    unknown fields. `answer_limit_bytes` None is the limit of a request's frame. Of a key that a
    client gives twice in one object the last one counts.
    """

    params: type[_P]
    call: Callable[[_P, Call], Awaitable[Any]]
    ordered: bool = False
    answer_limit_bytes: int | None = None
    session_of: Callable[[_P], str | None] | None = None
    decoder: msgspec.json.Decoder[_P] = field(init=False)

    def __post_init__(self) -> None:
        """Makes the decoder once."""
        if not self.params.__struct_config__.forbid_unknown_fields:
            message = f"{self.params.__name__} must be declared with forbid_unknown_fields=True"
            raise TypeError(message)
        object.__setattr__(self, "decoder", msgspec.json.Decoder(self.params))

    def session_in(self, params: _P) -> str | None:
        """Returns the session that `params` name, if any."""
        if self.session_of is not None:
            return self.session_of(params)
        return getattr(params, "session", None)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A request whose method is known and whose params are decoded; `session` is what they name."""

    name: str
    method: Method[Any]
    params: Any
    token: Token | None
    session: str | None


class _Meta(msgspec.Struct, frozen=True):
    progress_token: Token | UnsetType = msgspec.field(name="progressToken", default=UNSET)


class _Told(msgspec.Struct, frozen=True):
    meta: _Meta = msgspec.field(name=_META, default=_Meta())


_fields = msgspec.json.Decoder(dict[str, Raw])
_told = msgspec.json.Decoder(_Told)


class Dispatcher:
    """Runs the methods of one table."""

    def __init__(self, methods: Mapping[str, Method[Any]]) -> None:
        self._methods = dict(methods)

    def prepare(self, request: Request, frame: bytes) -> Prepared:
        """Returns the call that `request` asks for; `frame` is what positions are counted in.

        Raises:
            BadFrame: if there is no such method, or the params are not the method's.
        """
        request_id = None if request.id is UNSET else request.id
        method = self._methods.get(request.method)
        if method is None:
            raise BadFrame(_unknown_method(request.method), request_id)
        raw = bytes(request.params)
        try:
            token, raw = _split_meta(raw)
            params = method.decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise BadFrame(_bad_params(method.params, raw, error), request_id) from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadFrame(parse_failure(frame, error), request_id) from error
        return Prepared(
            name=request.method,
            method=method,
            params=params,
            token=token,
            session=method.session_in(params),
        )

    async def run(self, prepared: Prepared, call: Call, request_id: RequestId) -> bytes:
        """Runs the method and returns the frame of its answer; only cancellation is raised."""
        try:
            result = await prepared.method.call(prepared.params, call)
            frame = encode(Answer(id=request_id, result=result))
        except Exception as error:  # noqa: BLE001 - one bad call must not end the connection
            return encode(FailureAnswer(id=request_id, error=_failure_for(prepared.name, error)))
        limit = prepared.method.answer_limit_bytes or limit_of(prepared.name)
        if len(frame) <= limit + 1:
            call.done()
            return frame
        return encode(FailureAnswer(id=request_id, error=_too_long(len(frame) - 1, limit)))


def _split_meta(raw: bytes) -> tuple[Token | None, bytes]:
    if b'"_meta"' not in raw or not raw.startswith(b"{"):
        return None, raw
    token = _told.decode(raw).meta.progress_token
    fields = _fields.decode(raw)
    if fields.pop(_META, None) is None:
        return None, raw
    return None if token is UNSET else token, msgspec.json.encode(fields)


def _unknown_method(name: str) -> Failure:
    return Failure(
        code=METHOD_NOT_FOUND,
        message=f"there is no method {name[:100]!r}",
        data={"kind": "method_not_found", "method": name[:100]},
    )


def _bad_params(params: type[msgspec.Struct], raw: bytes, error: Exception) -> Failure:
    data: dict[str, Any] = {"kind": "invalid_params"}
    unknown = _unknown_names(params, raw)
    if unknown:
        known = ", ".join(params.__struct_encode_fields__) or "none"
        message = f"unknown parameter {', '.join(unknown)}; known are: {known}"
    else:
        # msgspec writes paths as `$.turns[0].role`: the root is the params.
        message = str(error).replace("`$", "`params")
        unknown = _UNKNOWN_FIELD.findall(message)
    if unknown:
        data["unknown"] = unknown
    return Failure(code=INVALID_PARAMS, message=message, data=data)


def _unknown_names(params: type[msgspec.Struct], raw: bytes) -> list[str]:
    try:
        given = _fields.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return []
    return [name for name in given if name not in {_META, *params.__struct_encode_fields__}]


def _too_long(size: int, limit: int) -> Failure:
    return Failure(
        code=-32005,
        message=(
            f"the answer has {size} bytes and a frame takes {limit}: ask for less at once, with "
            "`limit` and `cursor`, or by `session.export`, which gives a long turn in parts"
        ),
        data={"kind": "refused", "bytes": size, "limit": limit},
    )


def _failure_for(method: str, error: Exception) -> Failure:
    error = _only(error)
    if isinstance(error, TurnmarkError):
        return failure_of(error)
    error_id = secrets.token_hex(4)
    log.error("call_failed", method=method, error_id=error_id, exc_info=error)
    return Failure(
        code=INTERNAL_ERROR,
        message=f"turnmark failed at this request; its log has the cause under {error_id}",
        data={"kind": "internal", "error_id": error_id},
    )


def _only(error: Exception) -> Exception:
    """Returns the one error inside nested groups, or the group if it holds several."""
    if not isinstance(error, ExceptionGroup):
        return error
    group = cast("ExceptionGroup[Exception]", error)
    return _only(group.exceptions[0]) if len(group.exceptions) == 1 else group
