"""What an API's error answers mean for a person, and whether the question may be at fault.

A server's own message is read for known words and never passed on: it may quote what it was asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from turnmark_memory.models.loose_json import object_in
from turnmark_memory.models.place import Place
from turnmark_memory.writers.writer import WriterFailed

# A server may say anything; a day is the longest that is believed.
RETRY_AFTER_LIMIT_SECONDS: Final = 86_400.0

_WORDS_LIMIT_CHARACTERS: Final = 4_000
_SECONDS: Final = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_CODE: Final = re.compile(r"[A-Za-z][\w.-]{2,59}")
_TOO_LONG: Final = re.compile(
    r"context.{0,20}(?:length|size|window|limit)|prompt is too long|too many tokens"
    r"|maximum.{0,30}tokens|exceed_context|input.{0,30}too long",
    re.IGNORECASE,
)
_NO_MODEL: Final = re.compile(
    r"model.{0,120}not (?:be )?found|model.{0,120}(?:does not|doesn't|not) exist|try pulling"
    r"|(?:no such|unknown|invalid) model|model.?not.?(?:found|exist)|not a valid model",
    re.IGNORECASE | re.DOTALL,
)
_NO_QUOTA: Final = re.compile(
    r"insufficient.{0,10}(?:quota|balance|credit|funds)|credit balance|exceeded.{0,12}quota",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(
    r"content.{0,20}(?:filter|policy|risk)|data_inspection_failed", re.IGNORECASE
)

_BAD_REQUEST: Final = 400
_UNAUTHORIZED: Final = 401
_PAYMENT_REQUIRED: Final = 402
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_TOO_LARGE: Final = 413
_UNPROCESSABLE: Final = 422
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
_OVERLOADED: Final = 529
_FIRST_CLIENT_ERROR: Final = 400
_FIRST_SERVER_ERROR: Final = 500


class ErrorAnswer(Exception):
    """An answer that is an error: its status, the short code in it, and words to judge it by.

    `words` are the server's and may quote the question; they are never shown. `retry_after` is
    the header as it came.
    """

    def __init__(
        self, status: int, *, code: str = "", words: str = "", retry_after: str = ""
    ) -> None:
        super().__init__(status, code)
        self.status = status
        self.code = code
        self.words = words
        self.retry_after = retry_after

    @property
    def may_be_the_form(self) -> bool:
        """Tells whether the question might be taken in another form, its content being the same."""
        return self.status in (_BAD_REQUEST, _UNPROCESSABLE) and not any(
            pattern.search(self.words) for pattern in (_TOO_LONG, _NO_MODEL, _NO_QUOTA, _FILTERED)
        )


def error_answer(
    status: int, answer: Mapping[str, Any], body: bytes, retry_after: str = ""
) -> ErrorAnswer:
    """Returns what is known of an error answer, whoever's shape it has."""
    said = answer.get("error", answer)
    error = object_in(said)
    if not error:
        words = said if isinstance(said, str) else body.decode("utf-8", "replace")
        return ErrorAnswer(status, words=words[:_WORDS_LIMIT_CHARACTERS], retry_after=retry_after)
    codes = [error.get(name) for name in ("code", "type", "status")]
    named = [code for code in codes if isinstance(code, str) and _CODE.fullmatch(code)]
    texts = [str(error.get(name) or "") for name in ("message", "param", "detail")]
    return ErrorAnswer(
        status,
        code=named[0] if named else "",
        words=" ".join(named + texts)[:_WORDS_LIMIT_CHARACTERS],
        retry_after=retry_after,
    )


def failure_of(error: ErrorAnswer, place: Place) -> WriterFailed:
    """Returns the failure that an error answer is, with a sentence that says what to do."""
    status, host, table = error.status, place.host, place.table
    said = f"{status} {error.code}".rstrip()
    if _NO_QUOTA.search(error.words) or status == _PAYMENT_REQUIRED:
        return _later(error, f"{host} says that no credit is left ({said}); top it up")
    if status == _UNAUTHORIZED:
        return _later(error, f"{host} does not take the API key ({said}); check {_key(place)}")
    if status == _FORBIDDEN:
        return _later(
            error,
            f"{host} forbids this key the model {place.model!r} ({said}); check {_key(place)} and "
            f"{table}.model",
        )
    if _NO_MODEL.search(error.words) and _FIRST_CLIENT_ERROR <= status < _FIRST_SERVER_ERROR:
        return _later(
            error, f"{host} has no model {place.model!r} ({said}); load it or set {table}.model"
        )
    if status == _NOT_FOUND:
        return _later(
            error,
            f"nothing answers under {place.path} at {host} ({said}); {table}.base_url often ends "
            "in /v1",
        )
    if status == _TOO_MANY:
        return _later(error, f"{host} has had enough for now ({said})")
    if status in (_UNAVAILABLE, _OVERLOADED):
        return _later(error, f"{host} is overloaded ({said})")
    if status >= _FIRST_SERVER_ERROR:
        return _later(error, f"{host} has a fault of its own ({said})")
    if status < _FIRST_CLIENT_ERROR:
        return _later(error, f"{host} answers {said} in place of an answer; check {table}.base_url")
    return _of_question(error, place, said)


def _of_question(error: ErrorAnswer, place: Place, said: str) -> WriterFailed:
    """Returns the failure of a question that the server read and did not take."""
    host = place.host
    if error.status == _TOO_LARGE or _TOO_LONG.search(error.words):
        return WriterFailed(
            f"the question is too long for {place.model!r} at {host} ({said}); give it more "
            "context or lower memory.trigger_tokens"
        )
    if _FILTERED.search(error.words):
        return WriterFailed(f"a filter at {host} stopped the question ({said})")
    return WriterFailed(f"{host} does not take the question ({said})")


def _later(error: ErrorAnswer, reason: str) -> WriterFailed:
    seconds = retry_after_seconds(error.retry_after, datetime.now(UTC))
    return WriterFailed(reason, transport=True, retry_after_seconds=seconds)


def _key(place: Place) -> str:
    return f"the key in {place.key_name}" if place.key_name else f"{place.table}.api_key_env"


def retry_after_seconds(header: str, now: datetime) -> float | None:
    """Returns the seconds that `Retry-After` asks for, None where it says nothing usable.

    Both forms count, seconds and a date; a date that is past is 0, and nothing is more than a day.
    """
    text = header.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), RETRY_AFTER_LIMIT_SECONDS)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), RETRY_AFTER_LIMIT_SECONDS)
