"""JSON-RPC 2.0 on the wire: decoding what clients send and encoding what they get."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from turnmark.errors import CODES
from turnmark.rpc.framing import limit_of, why_not_json
from turnmark_events.errors import TurnmarkError

RequestId = int | str | None

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
_EMPTY_OBJECT = Raw(b"{}")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request, or a notification where `id` is UNSET; `params` are still undecoded JSON."""

    jsonrpc: Literal["2.0"]
    method: str
    id: int | str | UnsetType | None = UNSET
    params: Raw = _EMPTY_OBJECT


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one request."""

    id: RequestId
    result: Any
    jsonrpc: Literal["2.0"] = "2.0"


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong: `code` is stable, `message` is for people, `data` has `kind` and facts."""

    code: int
    message: str
    data: dict[str, Any] | None = None


class FailureAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The error of one request; `id` is None where the request had none that can be read."""

    id: RequestId
    error: Failure
    jsonrpc: Literal["2.0"] = "2.0"


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """A message that wants no answer."""

    method: str
    params: Any
    jsonrpc: Literal["2.0"] = "2.0"


class BadFrame(Exception):
    """A frame that is no request; carries the failure that answers it."""

    def __init__(self, failure: Failure, request_id: RequestId = None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.request_id: RequestId = request_id


def _printable(value: object) -> Any:
    return str(value)


_encoder = msgspec.json.Encoder(enc_hook=_printable)
_requests = msgspec.json.Decoder(Request)
_fields = msgspec.json.Decoder(dict[str, Raw])
_ids = msgspec.json.Decoder(RequestId)


def encode(message: Answer | FailureAnswer | Notification) -> bytes:
    """Returns the message as one frame, newline included."""
    return _encoder.encode(message) + b"\n"


def decode_request(frame: bytes) -> Request:
    """Returns the request in `frame`, its params unread.

    Raises:
        BadFrame: if the frame is not UTF-8, not JSON, no request, or too large for its method.
    """
    try:
        if not frame.isascii():
            frame.decode()
        request = _requests.decode(frame)
    except msgspec.ValidationError as error:
        raise _no_request(frame, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadFrame(parse_failure(frame, error)) from error
    limit = limit_of(request.method)
    if len(frame) > limit:
        request_id = None if request.id is UNSET else request.id
        raise BadFrame(oversize_failure(limit), request_id)
    return request


def parse_failure(frame: bytes, error: Exception) -> Failure:
    """Returns the failure for bytes that are not JSON, with the position."""
    message, byte = why_not_json(frame, error)
    data: dict[str, Any] = {"kind": "parse_error"}
    if byte is not None:
        data["position"] = byte
    return Failure(code=PARSE_ERROR, message=message, data=data)


def oversize_failure(limit: int) -> Failure:
    """Returns the failure for a frame that passed `limit` bytes."""
    return Failure(
        code=INVALID_REQUEST,
        message=(
            f"the frame is too large: over {limit} bytes at byte {limit}; send less in one "
            "request (turn.* and session.import take 16 MiB, all others 1 MiB)"
        ),
        data={"kind": "too_large", "limit": limit, "position": limit},
    )


def failure_of(error: TurnmarkError) -> Failure:
    """Returns the failure that carries one of our errors, its kind and its facts."""
    code = CODES.get(error.kind, INTERNAL_ERROR)
    return Failure(code=code, message=error.message, data={**error.facts, "kind": error.kind})


def _no_request(frame: bytes, error: msgspec.ValidationError) -> BadFrame:
    if frame[:1] == b"[":
        message = "batches (JSON arrays) are not taken: send one request a line"
        return BadFrame(Failure(code=INVALID_REQUEST, message=message, data=_INVALID))
    message = f"not a JSON-RPC 2.0 request: {error}"
    return BadFrame(Failure(code=INVALID_REQUEST, message=message, data=_INVALID), _id_in(frame))


_INVALID: dict[str, Any] = {"kind": "invalid_request"}


def _id_in(frame: bytes) -> RequestId:
    try:
        return _ids.decode(_fields.decode(frame).get("id", b"null"))
    except (msgspec.DecodeError, RecursionError):
        return None
