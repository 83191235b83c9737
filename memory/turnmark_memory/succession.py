"""Which evidence may replace which: newer replaces older, and nobody's words replace another's.

A writer says what it thinks holds now; whether its evidence can carry that is decided here, from
the turns alone. Imported old talk does not displace what was said since. What one person said about
themselves or the world stands until that person says otherwise; what another says is kept beside
it. An assistant may bring news of a project, but not correct a person's word about people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, Protocol

from turnmark_memory.model import Evidence

_PEOPLE: Final = "people/"
_OWN_USER: Final = "user"
"""Who speaks where the agent names nobody: the one user that it has."""


class Said(Protocol):
    """What is read of a turn, of a batch or of the index."""

    @property
    def role(self) -> str:
        """Whether a user or an assistant spoke."""
        ...

    @property
    def speaker_id(self) -> str | None:
        """The speaker's id, from the agent's structured field."""
        ...

    @property
    def speaker_name(self) -> str | None:
        """The speaker's name, from the same."""
        ...

    @property
    def time(self) -> datetime:
        """When it was said."""
        ...


class Witnesses:
    """The turns that blocks and edits cite, by label: those of the batch, then any archived one."""

    def __init__(self, batch: Sequence[Evidence], find: Callable[[str], Said | None]) -> None:
        self._batch = {turn.label: turn for turn in batch}
        self._find = find

    def newest(self, labels: Iterable[str]) -> datetime | None:
        """Returns when the newest of the turns was said; None if none of them is known."""
        return max((turn.time for turn in self._known(labels)), default=None)

    def is_older(self, labels: Iterable[str], than: Iterable[str]) -> bool:
        """Tells whether all of `labels` were said before the newest of `than`."""
        newest, other = self.newest(labels), self.newest(than)
        return newest is not None and other is not None and newest < other

    def is_foreign(self, labels: Iterable[str], block: Iterable[str], topic: str) -> bool:
        """Tells whether `labels` may say nothing about what the block's cites said.

        A block that no user's turn stands behind is nobody's own.
        """
        theirs = self._speakers(block)
        if not theirs:
            return False
        ours = self._speakers(labels)
        return ours.isdisjoint(theirs) if ours else topic.startswith(_PEOPLE)

    def _speakers(self, labels: Iterable[str]) -> frozenset[str]:
        return frozenset(
            turn.speaker_id or turn.speaker_name or _OWN_USER
            for turn in self._known(labels)
            if turn.role == "user"
        )

    def _known(self, labels: Iterable[str]) -> Iterable[Said]:
        found = (self._batch.get(label) or self._find(label) for label in labels)
        return (turn for turn in found if turn is not None)


def nobody(_label: str) -> Said | None:
    """Knows no turn: then nothing is older than anything, and nothing is anybody's."""
    return None


UNKNOWN: Final = Witnesses((), nobody)
