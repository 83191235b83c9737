"""The one JSON object in what a model said; never a guess at one that is not whole."""

from __future__ import annotations

import json
import re
from typing import Any, Final, cast

# An object, and not a brace in prose: a name or the end follows.
_OPENING: Final = re.compile(r'\{\s*["}]')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_DECODER: Final = json.JSONDecoder(strict=False)
"""Takes line ends inside strings, which models leave unescaped; they can mean nothing else."""


class BadAnswer(Exception):
    """What a model said can't be used; the message says why, for the model and for a person."""


def answer_object(text: str) -> dict[str, Any]:
    """Returns the one JSON object in `text`; prose and code fences around it don't matter.

    Raises:
        BadAnswer: if there is none, if it is cut short or broken, or if there are several.
    """
    opening = _OPENING.search(text)
    if opening is None:
        raise BadAnswer(_without_object(text))
    if text[: opening.start()].rstrip().endswith("["):
        raise BadAnswer("the answer is a JSON array; give one object")
    try:
        found, end = _DECODER.raw_decode(text, opening.start())
    except json.JSONDecodeError as error:
        raise BadAnswer(_broken(text, error)) from error
    except RecursionError as error:
        raise BadAnswer("the JSON object is nested too deeply") from error
    except ValueError as error:
        raise BadAnswer("the JSON object holds a number that is too long") from error
    if _OPENING.search(text, end):
        raise BadAnswer("the answer holds several JSON objects; give one")
    if _SURROGATE.search(json.dumps(found, ensure_ascii=False)):
        raise BadAnswer("a string of the answer holds half a surrogate pair")
    return cast("dict[str, Any]", found)


def _without_object(text: str) -> str:
    if not text.strip():
        return "the answer is empty"
    if "{" in text:
        return "the answer holds a brace but no JSON object with names in double quotes"
    return "the answer holds no JSON object"


def _broken(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos :].strip().strip("`").strip()
    if not rest or error.msg.startswith("Unterminated string"):
        return "the JSON object is cut short"
    return f"the JSON object breaks at character {error.pos}"
