"""What a tail remembers of conversations that are changed in place, and of what holds them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from turnmark_session_store.transcripts.conversation_checkpoints import FileIdentity
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.known import Known


class Key(NamedTuple):
    """Tells a conversation from all others: its source, and its name there."""

    path: Path
    name: str

    @property
    def label(self) -> str:
        """How it is named where it can't be read."""
        return f"{self.name} in {self.path}"


class Source:
    """What holds conversations, a database say, as it was at the last look.

    `seen` are the fingerprints of what was read. Times are in seconds since 1970: `looks_from` is
    before when not to look, `retry_at` when to look although nothing changed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity: FileIdentity | None = None
        self.found: dict[str, Conversation] = {}
        self.seen: dict[str, bytes] = {}
        self.wants_look = True
        self.is_backlog = True
        self.looks_from = 0.0
        self.retry_at = math.inf

    @property
    def due(self) -> float:
        """When to look, infinite where nothing asks for it."""
        return max(0.0 if self.wants_look else self.retry_at, self.looks_from)


class Talk:
    """One conversation that was read lately. Times are in seconds since 1970."""

    def __init__(self) -> None:
        self.known = Known()
        self.held = 0
        self.due: float | None = None
        self.touched_at = 0.0
        self.rests_until = 0.0
