"""A flush under way: where it looks, what it has done, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import msgspec

from turnmark_events.errors import TurnmarkError
from turnmark_memory.planning import Look, Planned
from turnmark_memory.writing import Outcome


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that could not be written, and why."""

    session: str
    branch: str
    reason: str


class Flushed(msgspec.Struct, frozen=True, kw_only=True):
    """What a flush came to."""

    batches: int
    turns: int
    tokens: int
    blocks: int
    failures: list[Failure]


class Demand:
    """A flush as the worker sees it; it lives on the event loop and is served by one task.

    `failed_roots` are conversations whose batch failed in it: one attempt a batch. `joined` are
    the batches of others that ran in its scope when it began, None until it is served first.
    """

    def __init__(self, look: Look, told: Callable[[int], None] = lambda _: None) -> None:
        self.look = look
        self.failed_roots: set[int] = set()
        self.parked_tried: set[int] = set()
        self.joined: frozenset[int] | None = None
        self.running = 0
        self.error: TurnmarkError | None = None
        self.finished = anyio.Event()
        self._told = told
        self._batches: list[tuple[Planned, Outcome]] = []
        self._turns = 0

    def began(self, planned: Planned) -> None:
        """Notes that a batch of it is under way."""
        self.running += 1
        if planned.parked:
            self.parked_tried.update(planned.turns)

    def ended(self, planned: Planned, outcome: Outcome, *, parked: bool) -> None:
        """Notes what a batch of it came to; `parked` means that its turn won't be in the way."""
        self.running -= 1
        if outcome.problem:
            if parked:
                self.parked_tried.update(planned.turns)
            else:
                self.failed_roots |= planned.roots
        self._batches.append((planned, outcome))
        self._turns += len(planned.turns)
        self._told(self._turns)

    def passes_over(self, planned: Planned, reason: str) -> None:
        """Notes that a batch can't be begun in this flush."""
        self.running += 1
        self.ended(planned, Outcome(problem=True, reason=reason), parked=False)

    def ends_with(self, error: TurnmarkError) -> None:
        """Ends the flush without its having been served."""
        self.error = error
        self.finished.set()

    def result(self) -> Flushed:
        """Returns what it came to.

        Raises:
            TurnmarkError: the error that ended it before any batch was tried.
        """
        if self.error is not None and not self._batches:
            raise self.error
        good = [(one, outcome) for one, outcome in self._batches if not outcome.problem]
        return Flushed(
            batches=len(self._batches),
            turns=sum(len(one.turns) for one, _ in good),
            tokens=sum(one.tokens for one, _ in good),
            blocks=len({block for _, outcome in good for block in outcome.blocks}),
            failures=[
                Failure(
                    session=one.live.session_name,
                    branch=one.live.branch_name,
                    reason=outcome.reason or "the writer failed",
                )
                for one, outcome in self._batches
                if outcome.problem
            ],
        )
