"""The interface of every writer, and the one error that it may raise."""

from __future__ import annotations

from typing import Protocol

from turnmark_events.errors import Unavailable
from turnmark_memory.model import Answer, Batch


class WriterFailed(Unavailable):
    """A writer gave no usable answer; the batch stays owed.

    `reason` is one short word or phrase (`timeout`, `malformed`, ...) that goes into logs, marks
    and the answer of a flush. It is never the text of a turn. `transport` says that no answer came
    at all (nobody listens, no quota is left), so that the batch can't be at fault: it is offered
    again as it is, not halved. `retry_after_seconds` is what an endpoint asked to be left alone
    for, None where it said nothing of it.
    """

    def __init__(
        self, reason: str, *, transport: bool = False, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(
            f"The writer gave no usable answer ({reason}); its turns stay owed.",
            reason=reason,
        )
        self.reason = reason
        self.transport = transport
        self.retry_after_seconds = retry_after_seconds


class Writer(Protocol):
    """Distils a batch into edits.

    `name` is the kind and the version of its rules, as a mark records it: `builtin/1`.
    """

    @property
    def name(self) -> str:
        """The name that a mark records."""
        ...

    async def write(self, batch: Batch) -> Answer:
        """Returns what to change for `batch`, or that it holds nothing worth keeping.

        May take as long as its model; cancelling it leaves nothing behind.

        Raises:
            WriterFailed: if there is no usable answer. An empty answer is not raised: it is
                `Nothing`.
        """
        ...
