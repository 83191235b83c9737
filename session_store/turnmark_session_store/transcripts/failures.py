"""What can't be followed now: why, and when it is tried again, ever more seldom.

Trying costs a look at a disk that may be asleep, or a line in another program's log. A change at
the source asks for a try of its own, at once, and makes the next one no later.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

FIRST_SECONDS = 5.0
"""A disk that was full, or a file that was being replaced, may be well again by then."""

LONGEST_SECONDS = 300.0
"""Whoever gives a file its rights back waits no longer for its turns, or touches it."""


class Failure(NamedTuple):
    """Why something can't be followed; `next_try` is in seconds since 1970."""

    reason: str
    next_try: float
    rest_seconds: float


class Failures:
    """The failures of one tail, by name of what failed."""

    def __init__(self) -> None:
        self._of: dict[str, Failure] = {}

    def __contains__(self, what: str) -> bool:
        """Tells whether something failed when it was tried last."""
        return what in self._of

    @property
    def last(self) -> Failure | None:
        """What failed last, of what still fails."""
        return next(reversed(self._of.values()), None)

    def note(self, what: str, reason: str, now: float) -> bool:
        """Notes that something failed; returns whether that is news: at first, or otherwise.

        The rest before the next try doubles with each that was due.
        """
        known = self._of.pop(what, None)
        rest = FIRST_SECONDS
        is_new = known is None or known.reason != reason
        if known is not None and not is_new:
            was_due = now >= known.next_try
            rest = min(2 * known.rest_seconds, LONGEST_SECONDS) if was_due else known.rest_seconds
        self._of[what] = Failure(reason, now + rest, rest)
        return is_new

    def end(self, what: str) -> None:
        """Notes that something is well, or is gone."""
        self._of.pop(what, None)

    def keep_only(self, among: Collection[str]) -> None:
        """Notes that all others are gone."""
        self._of = {what: one for what, one in self._of.items() if what in among}

    def next_try(self, what: str) -> float:
        """Returns when something that failed is tried again.

        Raises:
            KeyError: if it did not fail.
        """
        return self._of[what].next_try

    def next_tries(self, among: Collection[str]) -> dict[str, float]:
        """Returns when those of `among` that failed are tried again."""
        return {what: one.next_try for what, one in self._of.items() if what in among}
