"""Reads files of one JSON object a line, so that no line can cost more than itself.

Lines end at the byte 0x0A alone (U+2028 and its kin stand raw inside strings), each is decoded by
itself with replacement, and what is no object is counted and passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from turnmark_events.errors import Unavailable
from turnmark_session_store.recordable import replace_surrogates
from turnmark_session_store.transcripts.reader import ReadWarning

# Images stand inline in lines of tens of megabytes; what is longer than this is no transcript.
LINE_LIMIT_BYTES = 64 * 1024 * 1024
# How much of an overlong line is held at once while it is passed over.
_SKIP_BYTES = 1024 * 1024
# Only a line with such an escape can hold a lone surrogate: raw ones do not survive decoding.
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

Warn = Callable[[ReadWarning], None]
NumberedRecord = tuple[int, dict[str, Any]]


def read_json_lines(
    path: Path, *, warn: Warn, finished: bool = True, limit_bytes: int = LINE_LIMIT_BYTES
) -> Iterator[NumberedRecord]:
    """Yields the number (from 1) and the object of each line of `path` that is one.

    Blank lines are passed over in silence, everything else that is no object is told to `warn`. A
    last line without its newline counts only if `finished` says that nobody writes any more; before
    that it is neither yielded nor warned of. Holds one line at a time.

    Raises:
        Unavailable: if the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            for number, line in _lines(file, finished=finished, limit_bytes=limit_bytes):
                parsed = (
                    parse_line(line) if line is not None else f"longer than {limit_bytes} bytes"
                )
                if isinstance(parsed, dict):
                    yield number, parsed
                elif parsed is not None:
                    warn(ReadWarning(file=str(path), line=number, reason=parsed))
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, cause: OSError | str) -> Unavailable:
    """Returns what to raise for a transcript that can't be read."""
    reason = cause if isinstance(cause, str) else cause.strerror or cause
    message = f"The transcript {path} can't be read ({reason}); check its permissions."
    return Unavailable(message, file=str(path))


def _lines(
    file: BinaryIO, *, finished: bool, limit_bytes: int
) -> Iterator[tuple[int, bytes | None]]:
    """Yields each line with its number; None stands for one beyond the limit."""
    number = 0
    while line := file.readline(limit_bytes + 1):
        number += 1
        if line.endswith(b"\n"):
            yield number, line
        elif len(line) > limit_bytes:
            _skip_line(file)
            yield number, None
        elif finished:
            yield number, line


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(_SKIP_BYTES)) and not rest.endswith(b"\n"):
        pass


def begins_with(
    head: bytes,
    is_own: Callable[[Mapping[str, Any]], bool],
    *,
    lines: int,
    cut_marks: Sequence[bytes] = (),
) -> bool:
    """Returns whether one of the first `lines` in a file's `head` holds a record that `is_own`.

    The head may end inside a long line: one that can't be parsed counts if it has all `cut_marks`.
    """
    first = head.split(b"\n")[:lines]
    return any(map(is_own, objects_in(first))) or any(_has_all(line, cut_marks) for line in first)


def objects_in(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Yields the objects of the lines that are one."""
    parsed = map(parse_line, lines)
    return (one for one in parsed if isinstance(one, dict))


def _has_all(line: bytes, marks: Sequence[bytes]) -> bool:
    """Returns whether marks stand in what is the beginning of an object."""
    is_cut = bool(marks) and line.strip(b"\0\r ").startswith(b"{")
    return is_cut and all(mark in line for mark in marks) and isinstance(parse_line(line), str)


def parse_line(line: bytes) -> dict[str, Any] | str | None:
    """Returns the object of a line, None for a blank one, or what is wrong with it."""
    body = line.removesuffix(b"\n").removesuffix(b"\r")
    # A power cut leaves blocks of NUL behind, and before, a record that is whole.
    stripped = body.strip(b"\0")
    if not stripped.strip():
        return "nothing but NUL" if body.strip() else None
    try:
        record = json.loads(stripped.decode(errors="replace"))
        if _SURROGATE_ESCAPE.search(stripped):
            record = _without_surrogates(record)
    except ValueError:  # also a number of more digits than Python converts
        return "no complete JSON" if not line.endswith(b"\n") else "not JSON"
    except RecursionError:
        return "nested too deeply"
    if not isinstance(record, dict):
        return "JSON, but no object"
    return cast("dict[str, Any]", record)


def _without_surrogates(value: Any) -> Any:
    """Returns `value` with lone surrogates replaced in every string; as deep as the parser went."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        return {
            replace_surrogates(key): _without_surrogates(item)
            for key, item in cast("dict[str, Any]", value).items()
        }
    return value
