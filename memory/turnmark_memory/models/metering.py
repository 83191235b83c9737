"""A model whose replies are counted against the daily budget, with the interface of any model."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from turnmark_memory.budget import Budget
from turnmark_memory.models.model import Model, Question, Reply
from turnmark_memory.models.registry import Models
from turnmark_memory.writers.writer import WriterFailed


def metered(models: Models, budget: Budget, count: Callable[[str], int]) -> Models:
    """Returns the models with one budget over all of them."""

    def of(model: Model | None) -> Model | None:
        return None if model is None else MeteredModel(model, budget, count)

    return Models(write=of(models.write), tidy=of(models.tidy), select=of(models.select))


class MeteredModel:
    """Asks `model` while the budget lasts. Several models may share one budget.

    `count` estimates the tokens of a text. A question that was answered badly is counted by it:
    it cost tokens, and no reply says how many.
    """

    def __init__(self, model: Model, budget: Budget, count: Callable[[str], int]) -> None:
        self._model = model
        self._budget = budget
        self._count = count

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    @property
    def is_local(self) -> bool:
        """Tells whether what it is asked stays on this machine."""
        return self._model.is_local

    async def ask(self, question: Question) -> Reply:
        """Returns the model's answer and counts what it cost.

        Raises:
            OverBudget: if the day's tokens are used up; the model was not asked.
            WriterFailed: as the model does.
        """
        estimate = self._count(question.instructions) + self._count(question.material)
        await self._budget.begin(estimate)
        cost = 0
        try:
            reply = await self._model.ask(question)
            cost = reply.prompt_tokens + reply.answer_tokens
        except WriterFailed as error:
            cost = 0 if error.transport else estimate
            raise
        finally:
            # Shielded, with a bound by the store's own: what was paid for is counted.
            with anyio.CancelScope(shield=True):
                await self._budget.end(estimate, cost)
        return reply
