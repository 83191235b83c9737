"""Frames: one line of UTF-8 JSON each, cut out of a stream of bytes within a bound."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import msgspec

FRAME_LIMIT_BYTES = 1 << 20
LARGE_FRAME_LIMIT_BYTES = 16 << 20
# A line that is still not over after four times the largest frame has no end worth waiting for.
DISCARD_LIMIT_BYTES = 4 * LARGE_FRAME_LIMIT_BYTES

_LARGE_PREFIX = "turn."
_LARGE_METHODS = frozenset({"session.import"})
_HTTP = re.compile(rb"[A-Z]{3,10} \S{1,2000} HTTP/\d")
_NOT_HTTP = (
    "this socket speaks JSON-RPC 2.0, one request a line, not HTTP: try "
    '{"jsonrpc":"2.0","id":1,"method":"hello","params":{}}'
)
_TLS_HANDSHAKE = b"\x16\x03"
_BLANK = b" \t\r"
_LONE_SURROGATE = re.compile(
    r"\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|[dD][c-fC-F][0-9a-fA-F]{2})"
)
_PAIR_OR_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\[^u]")


class FramingLost(Exception):
    """The end of the current frame can't be found; the message says why, for the client."""


class Oversize(msgspec.Struct, frozen=True, kw_only=True):
    """A frame that passed `limit` bytes and is being discarded up to its newline."""

    limit: int


def limit_of(method: str) -> int:
    """Returns how large a frame of `method` may be, in bytes without the newline."""
    large = method.startswith(_LARGE_PREFIX) or method in _LARGE_METHODS
    return LARGE_FRAME_LIMIT_BYTES if large else FRAME_LIMIT_BYTES


class LineBuffer:
    """Collects bytes and gives out whole lines; holds at most `limit` bytes and one chunk.

    Blank lines are skipped and a trailing CR is dropped. A line over `limit` is reported once, as
    soon as it is known, and skipped; the lines after it are read as usual.
    """

    def __init__(self, limit: int = LARGE_FRAME_LIMIT_BYTES) -> None:
        self._limit = limit
        self._partial = bytearray()
        self._discarded = 0

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversize]:
        """Yields the frames that `chunk` completes, in order.

        Raises:
            FramingLost: if the stream has no lines at all (TLS), or a line never ends.
        """
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if self._discarded:
                self._discarded = 0
                continue
            line = bytes(self._partial) + end if self._partial else end
            self._partial.clear()
            frame = line.strip(_BLANK)
            if len(frame) > self._limit:
                yield Oversize(limit=self._limit)
            elif frame:
                yield frame
        yield from self._keep(rest)

    def finish(self) -> bytes:
        """Returns what is left of an unfinished line when the stream ends; empty if nothing."""
        return bytes(self._partial).strip(_BLANK)

    def _keep(self, rest: bytes) -> Iterator[Oversize]:
        if self._discarded:
            self._discarded += len(rest)
            if self._discarded > DISCARD_LIMIT_BYTES:
                raise FramingLost(f"no newline within {DISCARD_LIMIT_BYTES} bytes: closing")
            return
        self._partial += rest
        if self._partial.startswith(_TLS_HANDSHAKE):
            raise FramingLost("this socket speaks JSON lines, not TLS: closing")
        if len(self._partial) > self._limit + len(_BLANK):
            self._discarded = len(self._partial)
            self._partial.clear()
            yield Oversize(limit=self._limit)


def why_not_json(frame: bytes, found: Exception) -> tuple[str, int | None]:
    """Returns what is wrong with a frame that did not decode, and at which byte.

    Slow (it decodes again with the standard library where msgspec gives no position), and only
    used once a frame is known to be bad.
    """
    if _HTTP.match(frame):
        return _NOT_HTTP, 0
    try:
        text = frame.decode()
    except UnicodeDecodeError as error:
        return f"the frame is not UTF-8: {error.reason} at byte {error.start}", error.start
    if isinstance(found, RecursionError):
        return "the JSON is nested too deeply", None
    surrogate = _lone_surrogate(text)
    if surrogate is not None:
        at = len(text[:surrogate].encode())
        return f"the escape at byte {at} is half of a surrogate pair, no character", at
    byte = _bad_byte(text, found)
    where = "" if byte is None else f" at byte {byte}"
    return f"the frame is not JSON: {_reason(found)}{where}", byte


def _lone_surrogate(text: str) -> int | None:
    # Pairs and other escapes (a doubled backslash before a `u`) are blanked out at equal length.
    blanked = _PAIR_OR_ESCAPE.sub(lambda match: " " * len(match[0]), text)
    match = _LONE_SURROGATE.search(blanked)
    return match.start() if match else None


def _bad_byte(text: str, found: Exception) -> int | None:
    position = re.search(r"\(byte (\d+)\)", str(found))
    if position:
        # msgspec counts trailing characters from one past the first of them.
        return int(position[1]) - ("trailing" in str(found))
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return len(text[: error.pos].encode())
    except (RecursionError, ValueError):
        return None
    return None


def _reason(found: Exception) -> str:
    text = str(found).removeprefix("JSON is malformed: ")
    return re.sub(r" \(byte \d+\)", "", text)
