"""Asking a writer: once, and once more with the reasons where its answer can't be used.

Two writers at most: the configured one, and the built-in one for what may not leave this machine
where the configured one sends it away. Whether the endpoint answers is told to the breaker; what a
writer breaks of its own is its failure, never the daemon's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.breaker import Breaker
from turnmark_memory.locality import is_local
from turnmark_memory.model import Answer, Batch
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_memory.writers.writer import Writer, WriterFailed

log = structlog.get_logger(__name__)

FIRST_WAIT_SECONDS = 1.0
"""The least that an endpoint which asks to be left alone is left alone for."""


@runtime_checkable
class RepairingWriter(Protocol):
    """A writer that can be told why its answer was not acceptable, and answer once more."""

    async def repair(self, batch: Batch, answer: Answer, reasons: Sequence[str]) -> Answer:
        """Returns a better answer.

        Raises:
            WriterFailed: if there is no usable answer.
        """
        ...


class Asking:
    """The writers, and the breaker of the one that may be far away."""

    def __init__(self, writer: Writer, breaker: Breaker) -> None:
        self._writer = writer
        self._local = writer if is_local(writer) else BuiltinWriter()
        self.breaker = breaker

    @property
    def keeps_apart(self) -> bool:
        """Tells whether turns of local sessions have a writer of their own."""
        return self._local is not self._writer

    def writer_of(self, *, local: bool) -> Writer:
        """Returns the writer for turns that are local, or for all others."""
        return self._local if local else self._writer

    async def write(self, asked: Batch, *, local: bool) -> Answer:
        """Returns the answer to a batch.

        Raises:
            WriterFailed: if there is no usable one.
        """
        writer = self.writer_of(local=local)
        return await self._noting(writer, lambda: writer.write(asked))

    async def repair(
        self, asked: Batch, answer: Answer, reasons: Sequence[str], *, local: bool
    ) -> Answer | None:
        """Returns the answer to the reasons, None if the writer answers only once.

        Raises:
            WriterFailed: if there is no usable one.
        """
        writer = self.writer_of(local=local)
        if not isinstance(writer, RepairingWriter):
            return None
        return await self._noting(writer, lambda: writer.repair(asked, answer, reasons))

    async def _noting(self, writer: Writer, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        try:
            answer = await _asked(writer, ask)
        except WriterFailed as error:
            if writer is self._writer:
                self._note(error)
            raise
        if writer is self._writer:
            self.breaker.answered()
        return answer

    def _note(self, error: WriterFailed) -> None:
        if error.retry_after_seconds is not None:
            self.breaker.put_off(error.reason, max(FIRST_WAIT_SECONDS, error.retry_after_seconds))
        elif error.transport:
            self.breaker.failed(error.reason)
        else:
            self.breaker.answered()


async def _asked(writer: Writer, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await ask()
    except TurnmarkError:
        raise
    except Exception as error:  # a writer's own bug must not end the daemon
        log.exception("writer_broke", writer=writer.name)
        raise WriterFailed(f"{type(error).__name__} in the writer") from error
