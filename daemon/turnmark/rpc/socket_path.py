"""What a Unix socket's path may be; on the client's path too, so nothing heavy is imported here."""

from __future__ import annotations

import os
from pathlib import Path

from turnmark_events.errors import Refused

# sun_path has 108 bytes on Linux, one of them for the final NUL.
SOCKET_PATH_LIMIT_BYTES = 107


class SocketPathTooLong(Refused):
    """No socket can have this path; the message says which keys set another."""


def check_socket_path(path: Path) -> None:
    """Checks that a socket can have this path.

    Raises:
        SocketPathTooLong: if it has over 107 bytes.
    """
    size = len(os.fsencode(path))
    if size > SOCKET_PATH_LIMIT_BYTES:
        raise SocketPathTooLong(
            f"the socket's path has {size} bytes and a socket takes {SOCKET_PATH_LIMIT_BYTES}: set "
            f"`socket` in the configuration, TURNMARK_SOCKET or --socket to a shorter one ({path})",
            bytes=size,
        )
