"""A writer that asks a model: one question for a batch, and one more with what was wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio.to_thread
import msgspec
import structlog

from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.model import Add, Answer, Batch, Edit, Edits, Merge, Retire
from turnmark_memory.models.answer_object import BadAnswer
from turnmark_memory.models.model import Model
from turnmark_memory.writers.answer import answer_in
from turnmark_memory.writers.parts import parts_of
from turnmark_memory.writers.prompt import Asked, Count, asked_again, question_about
from turnmark_memory.writers.rules import PROMPT_VERSION
from turnmark_memory.writers.writer import WriterFailed

PART_TOKENS: Final = 20_000
"""Of conversation in one question: a full batch and then some."""

log = structlog.get_logger(__name__)


class _Repaired(Edits, frozen=True, kw_only=True, tag="edits"):
    """Edits that are an answer to reasons already: there is no third question about a batch."""


class ModelWriter:
    """Distils batches by a model; `count` gives the tokens of a text.

    A batch with more than `part_tokens` is asked about in parts, one after the other.
    """

    def __init__(self, model: Model, count: Count, *, part_tokens: int = PART_TOKENS) -> None:
        self._model = model
        self._count = count
        self._part_tokens = part_tokens

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
            WriterFailed: if there is no usable answer, for any part.
        """
        return await self._for_each_part(batch, self._ask)

    async def repair(self, batch: Batch, answer: Answer, reasons: Sequence[str]) -> Answer:
        """Returns a better answer than one that was rejected for `reasons`.

        Raises:
            WriterFailed: if there is none, or the rejected one was a better answer already.
        """
        if isinstance(answer, _Repaired):
            raise WriterFailed(f"rejected: {reasons[0]}" if reasons else "rejected")
        rejected = msgspec.json.encode(answer).decode()
        return await self._for_each_part(
            batch, lambda asked: self._ask_again(asked, rejected, reasons)
        )

    async def _for_each_part(
        self, batch: Batch, ask: Callable[[Asked], Awaitable[Answer]]
    ) -> Answer:
        """Returns the answers to all parts of a batch as one.

        A block that an earlier part changed is not shown with a later one: it is another by then.
        """
        found: list[Answer] = []
        parts = await anyio.to_thread.run_sync(
            lambda: parts_of(batch, self._part_tokens, self._count)
        )
        for number, part in enumerate(parts, start=1):
            changed = {block for answer in found for block in _changed(answer)}
            blocks = tuple(block for block in part.blocks if block.block not in changed)
            shown = msgspec.structs.replace(part, blocks=blocks)
            place = (number, len(parts))
            asked = await anyio.to_thread.run_sync(question_about, shown, self._count, place)
            found.append(await ask(asked))
        return _together(found)

    async def _ask(self, asked: Asked) -> Answer:
        reply = await self._model.ask(asked.question)
        try:
            return answer_in(reply.text, asked.refs)
        except BadAnswer as bad:
            log.info("answer_unreadable", writer=self.name, characters=len(reply.text))
            return await self._ask_again(asked, reply.text, [str(bad)])

    async def _ask_again(self, asked: Asked, answer: str, reasons: Sequence[str]) -> Answer:
        reply = await self._model.ask(asked_again(asked, answer, reasons).question)
        try:
            found = answer_in(reply.text, asked.refs)
        except BadAnswer as bad:
            raise WriterFailed(f"malformed: {bad}") from bad
        return _Repaired(edits=found.edits) if isinstance(found, Edits) else found


def _together(answers: Sequence[Answer]) -> Answer:
    """Returns several answers as one; where all say that there is nothing, so does it."""
    given = [answer for answer in answers if isinstance(answer, Edits)]
    if not given:
        return answers[0]
    kind = _Repaired if any(isinstance(answer, _Repaired) for answer in given) else Edits
    edits: list[Edit] = []
    for answer in given:
        before = len(edits)
        edits += (_moved(edit, before) for edit in answer.edits)
    return kind(edits=tuple(edits))


def _moved(edit: Edit, before: int) -> Edit:
    """Returns an edit whose successor, if it names one by its place, is counted with those before.

    Raises nothing for a place that is none: what an answer names is judged later.
    """
    if not isinstance(edit, Retire) or edit.successor is None:
        return edit
    place = edit.successor.removeprefix(NEW_BLOCK)
    if place == edit.successor or not (place.isascii() and place.isdigit()):
        return edit
    return msgspec.structs.replace(edit, successor=f"{NEW_BLOCK}{int(place) + before}")


def _changed(answer: Answer) -> set[str]:
    """Returns the blocks that an answer changes."""
    if not isinstance(answer, Edits):
        return set()
    named: set[str] = set()
    for edit in answer.edits:
        if isinstance(edit, Merge):
            named.update(edit.blocks)
        elif not isinstance(edit, Add):
            named.add(edit.block)
    return {block.removeprefix("^") for block in named}
