"""What a migration can't take, or not as it was; by itself, for commands to start fast."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can't be taken, or not as it was, and why."""

    name: str
    reason: str
