"""What a model said, without what it thought aloud; and what it must cost where nobody counts."""

from __future__ import annotations

import re
from typing import Any, Final

from turnmark_memory.models.model import Question, Reply
from turnmark_memory.writers.writer import WriterFailed

# A token is four bytes of English and about as many of Chinese, give or take half.
_BYTES_PER_TOKEN: Final = 4

# No vocabulary packs prose and JSON as tightly as this.
_MOST_BYTES_PER_TOKEN: Final = 8

# Servers that cut what they are asked to their context keep a few thousand tokens. A count below
# is a server's that counts something else.
_LEAST_CUT_TOKENS: Final = 1_000

_OPENED: Final = re.compile(r"\s*<(think|thinking|thought|reasoning)>", re.IGNORECASE)
_CLOSED: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_RUN: Final = re.compile(r"(\s|[^\w\s])\1{3,}")


def without_thoughts(text: str) -> str:
    """Returns a model's words without the reasoning before them.

    Some servers leave the opening tag to their template, so that a text may only close it. A tag
    inside the answer itself, where it is quoted, stays.

    Raises:
        WriterFailed: if the thinking never ends.
    """
    while opened := _OPENED.match(text):
        closed = re.compile(f"</{opened[1]}>", re.IGNORECASE).search(text, opened.end())
        if closed is None:
            raise WriterFailed("the model thought to the end and answered nothing")
        text = text[closed.end() :]
    closed = _CLOSED.search(text)
    if closed is not None and not {"{", "["}.intersection(text[: closed.start()]):
        return text[closed.end() :]
    return text


def reply(question: Question, text: str, prompt_tokens: Any, answer_tokens: Any) -> Reply:
    """Returns a reply with its cost as the server counts it, else as an estimate.

    Raises:
        WriterFailed: if there are no words, or the server's count says that it read only a part of
            the question.
    """
    said = without_thoughts(text)
    if not said.strip():
        raise WriterFailed("the model answered with no words")
    asked = question.instructions + question.material
    if isinstance(prompt_tokens, int) and prompt_tokens >= _LEAST_CUT_TOKENS:
        plain = len(_RUN.sub(r"\1", asked).encode("utf-8", "replace"))
        if prompt_tokens < plain // _MOST_BYTES_PER_TOKEN:
            raise WriterFailed(
                f"the server read only {prompt_tokens} tokens of the question; give the model more "
                "context or lower memory.trigger_tokens"
            )
    return Reply(
        text=said,
        prompt_tokens=_counted(prompt_tokens, asked),
        answer_tokens=_counted(answer_tokens, text),
    )


def _counted(tokens: Any, text: str) -> int:
    if isinstance(tokens, int) and tokens > 0:
        return tokens
    return len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN + 1
