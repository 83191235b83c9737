"""The breaker: lets a writer's endpoint rest when it doesn't answer, for all conversations at once.

A few failures in a row without any answer open it. Then everything that would ask the endpoint
waits behind one deadline; when that has passed one batch goes first, and its answer lets all others
go on. Without an answer the next pause is longer. An endpoint that names a time itself (429 with
Retry-After, a budget that is used up) is left alone until then, and no failure is counted.

It lives on the event loop, knows no batch and sleeps for nothing: its owner asks it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from turnmark_session_store.times import now_ms

FAILURES_LIMIT: Final = 3
"""Failures in a row that open it: one or two happen on any network."""

FIRST_PAUSE_MS: Final = 30_000
_LONGEST_PAUSE_MS: Final = 1_800_000
"""An endpoint that was down all night is noticed half an hour after it came back, at the latest."""

_JITTER: Final = 0.2
"""Daemons that lost one endpoint together don't come back to it together."""

_DOUBLINGS_LIMIT: Final = 16


class Breaker:
    """Whether an endpoint may be asked; `first_pause_ms` and `clock` are for tests.

    `until_ms` and `reason` say how long and why it rests, `is_asked_for` that the time is the
    endpoint's own. `answers` counts all answers so far.
    """

    def __init__(
        self, *, first_pause_ms: int = FIRST_PAUSE_MS, clock: Callable[[], int] = now_ms
    ) -> None:
        self._first_pause_ms = first_pause_ms
        self._clock = clock
        self._failures = 0
        self._pauses = 0
        self._is_open = False
        self._since_ms = 0
        self.until_ms = 0
        self.reason: str | None = None
        self.is_asked_for = False
        self.answers = 0

    @property
    def is_open(self) -> bool:
        """Tells whether the endpoint rests, or has rested and has not answered since."""
        return self._is_open

    def room(self, at_ms: int, *, asking: int) -> int | None:
        """Returns how many batches may be sent beside the `asking`; None for any number.

        While it is open none may, and one as soon as the pause is over.
        """
        if not self._is_open:
            return None
        return 1 if not self._rests(at_ms) and asking == 0 else 0

    def _rests(self, at_ms: int) -> bool:
        """Tells whether the pause goes on; at a time before it the clock was set back since."""
        return self._since_ms <= at_ms < self.until_ms

    def answered(self) -> None:
        """Notes an answer, good or bad; it ends a rest."""
        self.answers += 1
        self._failures = self._pauses = 0
        self._is_open = False
        self.until_ms = 0
        self.reason = None

    def failed(self, reason: str) -> None:
        """Notes that no answer came; the last of a few in a row opens it, each later one longer.

        What fails while the pause goes on was sent before it, or by a flush, and lengthens nothing.
        """
        self._failures += 1
        if self._failures < FAILURES_LIMIT and not self._is_open:
            return
        if self._is_open and self._rests(self._clock()):
            return
        pause_ms = min(
            self._first_pause_ms * 2 ** min(self._pauses, _DOUBLINGS_LIMIT), _LONGEST_PAUSE_MS
        )
        jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311  no secret
        self._pauses += 1
        self._open(self._clock() + round(pause_ms * jitter), reason)

    def put_off(self, reason: str, seconds: float) -> None:
        """Leaves the endpoint alone for `seconds`: it said so itself, which is no failure."""
        until_ms = self._clock() + max(0, round(seconds * 1_000))
        if until_ms > self.until_ms or not (self._is_open and self._rests(self._clock())):
            self._open(until_ms, reason)
            self.is_asked_for = True

    def _open(self, until_ms: int, reason: str) -> None:
        self._is_open = True
        self.is_asked_for = False
        self._since_ms = self._clock()
        self.until_ms = until_ms
        self.reason = reason


class Suspects:
    """Conversations whose batch gets no answer while others do: then the batch may be at fault.

    An endpoint that closes the connection on one batch, always, looks like one that is down; but
    others are answered in between. Such a batch is halved like any that fails by its content.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}

    def failed(self, roots: frozenset[int], answers: int) -> bool:
        """Notes that a batch got no answer; tells whether it failed so before, others answered.

        `answers` counts the endpoint's answers so far.
        """
        times, last = max((self._seen.get(root, (0, -1)) for root in roots), default=(0, -1))
        times = times + 1 if answers > last else times
        self._seen.update(dict.fromkeys(roots, (times, answers)))
        return times > FAILURES_LIMIT

    def cleared(self, roots: frozenset[int]) -> None:
        """Notes that the conversation was answered, or that its batch is another one now."""
        for root in roots:
            self._seen.pop(root, None)

    @property
    def roots(self) -> frozenset[int]:
        """The conversations that got no answer when they were tried last."""
        return frozenset(self._seen)
