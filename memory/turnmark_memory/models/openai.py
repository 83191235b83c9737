"""A model behind a chat-completions endpoint: OpenAI's own, or one of the many that speak like it.

Servers differ in how they hold a model to JSON, how they name the limit of an answer, and where
they put reasoning. What one doesn't know is left out from the next question on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from turnmark_memory.models.deadlines import Deadlines, deadlines_within
from turnmark_memory.models.endpoint import post
from turnmark_memory.models.forms import Forms
from turnmark_memory.models.keys import api_key, key_name
from turnmark_memory.models.loose_json import list_in, object_in
from turnmark_memory.models.model import Question, Reply
from turnmark_memory.models.place import Place
from turnmark_memory.models.settings import ModelSettings
from turnmark_memory.models.spoken import reply
from turnmark_memory.models.statuses import ErrorAnswer
from turnmark_memory.writers.writer import WriterFailed

_ADDRESS: Final = "https://api.openai.com/v1"
_METHOD: Final = "/chat/completions"
KEY_NAME: Final = "OPENAI_API_KEY"

_SHAPES: Final = ("json_schema", "json_object", "text")
# Most servers know the first alone, OpenAI's reasoning models the second alone.
_LIMIT: Final = "max_tokens"
_OTHER_LIMIT: Final = "max_completion_tokens"


class OpenAIModel:
    """Asks one model of a chat-completions endpoint; keeps no connection between questions."""

    def __init__(
        self,
        settings: ModelSettings,
        environ: Mapping[str, str],
        deadlines: Deadlines | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._deadlines = deadlines or deadlines_within(settings.timeout_seconds)
        address = (settings.base_url or _ADDRESS).rstrip("/").removesuffix(_METHOD)
        self._place = Place(
            url=address + _METHOD,
            table=settings.table,
            model=settings.model,
            key_name=key_name(settings, KEY_NAME),
        )
        self._forms = Forms(self._place, (_SHAPES[0], _LIMIT), _plainer)

    @property
    def name(self) -> str:
        """See `Model`."""
        return f"openai/{self._settings.model}"

    @property
    def is_local(self) -> bool:
        """See `Model`."""
        return self._place.is_loopback

    async def ask(self, question: Question) -> Reply:
        """See `Model`; asks again in a plainer form where the server doesn't take the first."""
        key = api_key(self._settings, KEY_NAME, self._environ)
        headers = {"authorization": f"Bearer {key}"} if key else {}

        async def ask(form: tuple[str, str]) -> dict[str, Any]:
            body = self._body(question, *form)
            return await post(self._place, headers, body, self._deadlines)

        return _reply(question, await self._forms.ask(ask))

    def _body(self, question: Question, shape: str, limit: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": [
                {"role": "system", "content": question.instructions},
                {"role": "user", "content": question.material},
            ],
            limit: question.max_answer_tokens,
            "stream": False,
        }
        if shape == "json_schema":
            schema = {"name": question.schema_name, "schema": question.schema, "strict": True}
            body["response_format"] = {"type": shape, "json_schema": schema}
        elif shape == "json_object":
            body["response_format"] = {"type": shape}
        return body


def _plainer(form: tuple[str, str], error: ErrorAnswer) -> tuple[str, str] | None:
    shape, limit = form
    if limit == _LIMIT and _OTHER_LIMIT in error.words:
        return shape, _OTHER_LIMIT
    following = _SHAPES[_SHAPES.index(shape) + 1 :]
    return (following[0], limit) if following else None


def _reply(question: Question, answer: Mapping[str, Any]) -> Reply:
    choice = object_in(next(iter(list_in(answer.get("choices"))), None))
    message = object_in(choice.get("message"))
    if choice.get("error") or choice.get("finish_reason") == "error":
        raise WriterFailed("the provider behind the endpoint failed", transport=True)
    if not message:
        raise WriterFailed("the endpoint answered without a choice")
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        raise WriterFailed("a filter stopped the answer")
    if message.get("refusal"):
        raise WriterFailed("the model refused to answer")
    if reason == "length":
        raise WriterFailed("the answer was cut off at its limit of tokens")
    counts = object_in(answer.get("usage"))
    return reply(
        question, _words(message), counts.get("prompt_tokens"), counts.get("completion_tokens")
    )


def _words(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = [object_in(part).get("text") for part in list_in(content)]
        content = "".join(part for part in parts if isinstance(part, str))
    if content is None and (message.get("tool_calls") or message.get("function_call")):
        raise WriterFailed("the model called a tool that it does not have")
    if not content and (message.get("reasoning_content") or message.get("reasoning")):
        raise WriterFailed("the model reasoned and said nothing")
    if not isinstance(content, str):
        raise WriterFailed("the endpoint answered without words")
    return content
