"""Branches to look at, as events and batches noted them. Hints: what is owed, the marks say."""

from __future__ import annotations

from collections.abc import Collection

from turnmark_events.types import Event, TipIdle, TipMoved
from turnmark_session_store.owed import LiveTip


class Noted:
    """Names of branches: those to be written `whole`, and those that `moved`, in full batches."""

    def __init__(self) -> None:
        self.moved: set[str] = set()
        self.whole: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.moved or self.whole)

    def hear(self, event: Event) -> None:
        """Notes the branch of an event: one that fell silent is to be written whole."""
        if isinstance(event, TipIdle):
            self.whole.add(event.branch)
        elif isinstance(event, TipMoved):
            self.moved.add(event.branch)

    def add(self, live: LiveTip) -> None:
        """Notes a branch as it stands: whole if it fell silent and has not moved since."""
        (self.moved if live.idle_ms is not None else self.whole).add(live.branch_name)

    def take(self) -> Noted:
        """Returns what is noted, and notes none of it any more."""
        taken = Noted()
        taken.moved, taken.whole, self.moved, self.whole = self.moved, self.whole, set(), set()
        return taken

    def put_back(self, other: Noted, *, only: Collection[str] | None = None) -> None:
        """Notes again what `other` holds, or those of it that are in `only`."""
        self.moved |= other.moved if only is None else other.moved.intersection(only)
        self.whole |= other.whole if only is None else other.whole.intersection(only)
