"""Named places where a test may end or hold up the process: the only way to crash *between* steps.

Off unless the environment variable `TURNMARK_FAILPOINT` is set, as `name=kill` (SIGKILL at the
first visit), `name=kill@N` (at the Nth), or `name=error` (an OSError, once). Read once, when the
first failpoint is reached.
"""

from __future__ import annotations

import errno
import os
import signal
from functools import cache

_VARIABLE = "TURNMARK_FAILPOINT"
_visits: dict[str, int] = {}


@cache
def _wanted() -> tuple[str, str, int] | None:
    setting = os.environ.get(_VARIABLE, "")
    if not setting:
        return None
    name, _, term = setting.partition("=")
    action, _, visit = term.partition("@")
    return name, action, int(visit or 1)


def failpoint(name: str) -> None:
    """Does nothing, unless a test asked for this very place."""
    wanted = _wanted()
    if wanted is None or wanted[0] != name:
        return
    _visits[name] = _visits.get(name, 0) + 1
    if _visits[name] != wanted[2]:
        return
    if wanted[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(errno.EIO, f"failpoint {name}")
