"""What the name of a session, an agent or a turn may be, and that of a family of sessions."""

from __future__ import annotations

import re
from typing import Final

from turnmark_events.errors import Refused

_NAME_LIMIT_BYTES: Final = 512
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")

FAMILY: Final = "family:"
"""How the namespaces begin in which ids are those of one session and its forks."""


def is_family(namespace: str | None) -> bool:
    """Returns whether a namespace is that of a family of sessions."""
    return namespace is not None and namespace.startswith(FAMILY)


def check_name(name: str, what: str) -> str:
    """Returns `name` if it can be an id here.

    Raises:
        Refused: if it is empty, over 512 bytes, or holds control characters.
    """
    if not name or len(name.encode("utf-8", "surrogatepass")) > _NAME_LIMIT_BYTES:
        raise Refused(f"{what} must have 1 to {_NAME_LIMIT_BYTES} bytes")
    if _UNPRINTABLE.search(name):
        raise Refused(f"{what} {name!r} holds control characters; use printable ones")
    return name
