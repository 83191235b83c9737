"""A model behind Anthropic's Messages API, or a server that speaks like it."""

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

_ADDRESS: Final = "https://api.anthropic.com"
_METHOD: Final = "/v1/messages"
KEY_NAME: Final = "ANTHROPIC_API_KEY"
_VERSION: Final = "2023-06-01"

_STRICT: Final = "json_schema"
_PLAIN: Final = "text"

_STOPPED: Final = {
    "max_tokens": "the answer was cut off at its limit of tokens",
    "model_context_window_exceeded": "the answer was cut off where the model's context ends",
    "refusal": "the model refused to answer",
    "tool_use": "the model called a tool that it does not have",
    "pause_turn": "the model paused in the middle of an answer",
}


class AnthropicModel:
    """Asks one model of the Messages API; keeps no connection between questions."""

    def __init__(
        self,
        settings: ModelSettings,
        environ: Mapping[str, str],
        deadlines: Deadlines | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._deadlines = deadlines or deadlines_within(settings.timeout_seconds)
        address = (settings.base_url or _ADDRESS).rstrip("/")
        address = address.removesuffix("/messages").removesuffix("/v1")
        self._place = Place(
            url=address + _METHOD,
            table=settings.table,
            model=settings.model,
            key_name=key_name(settings, KEY_NAME),
        )
        self._forms = Forms(self._place, _STRICT, _plainer)

    @property
    def name(self) -> str:
        """See `Model`."""
        return f"anthropic/{self._settings.model}"

    @property
    def is_local(self) -> bool:
        """See `Model`."""
        return self._place.is_loopback

    async def ask(self, question: Question) -> Reply:
        """See `Model`; asks again in a plainer form where the server doesn't take the first."""
        key = api_key(self._settings, KEY_NAME, self._environ)
        headers = {"anthropic-version": _VERSION} | ({"x-api-key": key} if key else {})

        async def ask(shape: str) -> dict[str, Any]:
            return await post(self._place, headers, self._body(question, shape), self._deadlines)

        return _reply(question, await self._forms.ask(ask))

    def _body(self, question: Question, shape: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._settings.model,
            "max_tokens": question.max_answer_tokens,
            "system": question.instructions,
            "messages": [{"role": "user", "content": question.material}],
        }
        if shape == _STRICT:
            body["output_config"] = {"format": {"type": shape, "schema": question.schema}}
        return body


def _plainer(form: str, _error: ErrorAnswer) -> str | None:
    return _PLAIN if form == _STRICT else None


def _reply(question: Question, answer: Mapping[str, Any]) -> Reply:
    reason = answer.get("stop_reason")
    if isinstance(reason, str) and reason in _STOPPED:
        raise WriterFailed(_STOPPED[reason])
    if not isinstance(answer.get("content"), list):
        raise WriterFailed("the endpoint answered without content")
    blocks = [object_in(block) for block in list_in(answer["content"])]
    if not any(blocks):
        raise WriterFailed("the endpoint answered with empty content")
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    words = "".join(text for text in texts if isinstance(text, str))
    if not words and any("thinking" in str(block.get("type")) for block in blocks):
        raise WriterFailed("the model reasoned and said nothing")
    counts = object_in(answer.get("usage"))
    return reply(question, words, _prompt_tokens(counts), counts.get("output_tokens"))


def _prompt_tokens(counts: Mapping[str, Any]) -> int | None:
    """Returns the tokens of the prompt, those that a cache held included."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    found = [count for name in names if isinstance(count := counts.get(name), int)]
    return sum(found) if found else None
