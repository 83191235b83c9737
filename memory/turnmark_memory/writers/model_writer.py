"""A writer that asks a model: one question for a batch, and one more with what was wrong."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import structlog

from turnmark_memory.model import Answer, Batch, Edits
from turnmark_memory.models.answer_object import BadAnswer
from turnmark_memory.models.model import Model
from turnmark_memory.writers.answer import answer_in
from turnmark_memory.writers.prompt import Asked, Count, asked_again, question_about
from turnmark_memory.writers.rules import PROMPT_VERSION
from turnmark_memory.writers.writer import WriterFailed

log = structlog.get_logger(__name__)


class _Repaired(Edits, frozen=True, kw_only=True, tag="edits"):
    """Edits that are an answer to reasons already: there is no third question about a batch."""


class ModelWriter:
    """Distils batches by a model; `count` gives the tokens of a text, for the prompt's budgets."""

    def __init__(self, model: Model, count: Count) -> None:
        self._model = model
        self._count = count

    @property
    def name(self) -> str:
        """The model's kind and name, and the version of the rules."""
        return f"{self._model.name}/{PROMPT_VERSION}"

    @property
    def is_local(self) -> bool:
        """Tells whether what it is asked stays on this machine."""
        return self._model.is_local

    async def write(self, batch: Batch) -> Answer:
        """Returns the model's edits or its honest nothing; see `Writer`.

        An answer that can't be read goes back once with the reason.

        Raises:
            WriterFailed: if there is no usable answer.
        """
        asked = question_about(batch, self._count)
        reply = await self._model.ask(asked.question)
        try:
            return answer_in(reply.text, asked.refs)
        except BadAnswer as bad:
            log.info("answer_unreadable", writer=self.name, characters=len(reply.text))
            return await self._ask_again(asked, reply.text, [str(bad)])

    async def repair(self, batch: Batch, answer: Answer, reasons: Sequence[str]) -> Answer:
        """Returns a better answer than one that was rejected for `reasons`.

        Raises:
            WriterFailed: if there is none, or the rejected one was a better answer already.
        """
        if isinstance(answer, _Repaired):
            raise WriterFailed(f"rejected: {reasons[0]}" if reasons else "rejected")
        rejected = msgspec.json.encode(answer).decode()
        return await self._ask_again(question_about(batch, self._count), rejected, reasons)

    async def _ask_again(self, asked: Asked, answer: str, reasons: Sequence[str]) -> Answer:
        reply = await self._model.ask(asked_again(asked, answer, reasons).question)
        try:
            found = answer_in(reply.text, asked.refs)
        except BadAnswer as bad:
            raise WriterFailed(f"malformed: {bad}") from bad
        return _Repaired(edits=found.edits) if isinstance(found, Edits) else found
