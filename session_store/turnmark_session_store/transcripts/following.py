"""A session that is followed in files, with those it rests on."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from turnmark_session_store.transcripts.checkpoints import Checkpoint
from turnmark_session_store.transcripts.known import Known, Work
from turnmark_session_store.transcripts.live import LiveSet


class Followed:
    """Sessions that are read and resolved together. Times are in seconds since 1970.

    `known` are the turns that are known to be in the store, `due` when to look again although
    nothing changed, `rests_until` before when not to look.
    """

    def __init__(self, session: str, live: LiveSet) -> None:
        self.session = session
        self.sessions: set[str] = set()
        self.live = live
        self.known = Known()
        self.held: frozenset[str] = frozenset()
        self.due: float | None = None
        self.touched_at = 0.0
        self.rests_until = 0.0
        self._saved: dict[Path, Checkpoint] = {}

    def join(self, other: Followed) -> None:
        """Takes over what another knows; that one is then of no use."""
        self.live.take_over(other.live)
        self.sessions |= other.sessions
        self.known.join(other.known)
        self._saved.update(other._saved)

    def stand(self, now: float) -> list[Work]:
        """Resolves the files; returns what is to be placed, each session after what it rests on.

        Costs CPU by the records of all files: meant for a thread.
        """
        standing = self.live.stand(self.known.ids, now)
        self.held, self.due = standing.held, standing.due
        return self.known.works(standing, rewritten=self.live.rewritten)

    def unsaved(self) -> list[Checkpoint]:
        """Returns the checkpoints that moved."""
        found = self.live.checkpoints(self.held)
        return [one for one in found if self._saved.get(one.path) != one]

    def were_saved(self, checkpoints: Collection[Checkpoint]) -> None:
        """Notes that everything up to these checkpoints is in the store."""
        self._saved.update((one.path, one) for one in checkpoints)
        self.live.rewriting_was_seen()
