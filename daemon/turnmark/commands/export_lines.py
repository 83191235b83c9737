"""Export lines as they stand in a file: which line begins a session, and which belong to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

_HEADER = "turnmark-export"


class _Tagged(msgspec.Struct, frozen=True):
    type: str = ""


_tags = msgspec.json.Decoder(_Tagged)


def is_header(line: str) -> bool:
    """Says whether `line` begins an export of turnmark."""
    if _HEADER not in line:
        return False
    try:
        return _tags.decode(line).type == _HEADER
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False


def split_sessions(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yields the lines of each export in a row of them; blank lines are passed over.

    Holds one session at a time. What stands before the first header is a session of its own, for
    the daemon to refuse.
    """
    session: list[str] = []
    for line in lines:
        if is_header(line) and session:
            yield session
            session = []
        if line.strip():
            session.append(line.rstrip("\r\n"))
    if session:
        yield session
