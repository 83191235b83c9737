"""Pages of a list: how long one may be, and the cursor that asks for the next."""

from __future__ import annotations

import base64

from turnmark_events.errors import Refused

_LIST_LIMIT = 1_000
_NO_POSITION = 1 << 48
"""More rows than a database holds, and well inside what SQLite takes for a number."""


def check_limit(limit: int) -> int:
    """Returns `limit` if a list may have that length.

    Raises:
        Refused: if it is below 1 or above 1,000.
    """
    if not 1 <= limit <= _LIST_LIMIT:
        raise Refused(f"limit must be 1 to {_LIST_LIMIT}; page with cursor")
    return limit


def cursor_of(position: int, offset: int = 0) -> str:
    """Returns an opaque cursor for the row after `position`, or for what follows in that row."""
    place = f"{position}:{offset}" if offset else f"{position}"
    return base64.urlsafe_b64encode(place.encode()).decode()


def position_of(cursor: str | None) -> int:
    """Returns the position that a cursor stands for, 0 without one.

    Raises:
        Refused: if it is no cursor of ours.
    """
    position, offset = place_of(cursor)
    if offset:
        raise no_cursor()
    return position


def place_of(cursor: str | None) -> tuple[int, int]:
    """Returns the position that a cursor stands for, and how much of its row was given.

    Raises:
        Refused: if it is no cursor of ours.
    """
    if cursor is None:
        return 0, 0
    try:
        first, _, rest = base64.urlsafe_b64decode(cursor.encode()).partition(b":")
        position, offset = int(first), int(rest or b"0")
    except ValueError:
        raise no_cursor() from None
    if not (0 <= position < _NO_POSITION and 0 <= offset < _NO_POSITION):
        raise no_cursor()
    return position, offset


def no_cursor() -> Refused:
    """Returns the refusal of a cursor that stands for nothing."""
    return Refused("cursor is not one that this daemon gave; begin again without it")
