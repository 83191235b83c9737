"""How a model is held to the shape of its answer: as strictly as its server lets it be."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from turnmark_memory.models.place import Place
from turnmark_memory.models.statuses import ErrorAnswer, failure_of

log = structlog.get_logger(__name__)

Form = TypeVar("Form")
Answer = TypeVar("Answer")


class Forms(Generic[Form]):
    """Ways to ask the same question, best first; remembers the first that the server takes.

    `plainer` gives the form to try after an error, None where there is none. A server that doesn't
    know a form says 400 to it, and so it does to other faults: a plainer form is kept only after
    it has been answered.
    """

    def __init__(
        self, place: Place, best: Form, plainer: Callable[[Form, ErrorAnswer], Form | None]
    ) -> None:
        self._place = place
        self._form = best
        self._plainer = plainer

    async def ask(self, ask: Callable[[Form], Awaitable[Answer]]) -> Answer:
        """Returns the answer to the best form that the server takes.

        Raises:
            WriterFailed: if it takes none, or fails otherwise.
        """
        form = self._form
        while True:
            try:
                answer = await ask(form)
            except ErrorAnswer as error:
                plainer = self._plainer(form, error) if error.may_be_the_form else None
                if plainer is None:
                    raise failure_of(error, self._place) from error
                form = plainer
                continue
            if form != self._form:
                self._form = form
                log.info("plainer_form_taken", host=self._place.host, form=str(form))
            return answer
