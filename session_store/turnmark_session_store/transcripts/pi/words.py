"""What in a message of pi was said by a person or to one; everything else only carries the chain.

Wrappers are matched at the start of a text and by their exact tags, so that a person who quotes
one in the middle of a sentence keeps the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from turnmark_session_store.model import Kind, Role, Speaker
from turnmark_session_store.transcripts.fields import mapping_at, mappings_in, string_at

# Blocks that the program puts in front of what was typed: files named on its command line, and the
# text of a skill that was called by name. Each is whole, with its closing tag on a line of its own
# or, for a picture's file, with nothing in it.
_WRAPPER = re.compile(
    r'\s*(?:<file name="[^"\n]*">(?:\n.*?\n)?</file>'
    r'|<skill name="[^"\n]*" location="[^"\n]*">\n.*?\n</skill>)(?=\s|\Z)',
    re.DOTALL,
)
# While an answer is in one of these states, another entry will tell what became of it.
_UNSETTLED = ("pending", "deferred")


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry says as a turn: `text` may be empty where a person sent only a picture.

    `model` is the one that answered, None for a person's words.
    """

    role: Role
    kind: Kind
    text: str
    speaker: Speaker | None = None
    model: str | None = None
    cancelled: bool = False


def words_of(record: Mapping[str, Any]) -> Words | None:
    """Returns what an entry of pi says, None if it says nothing."""
    message = mapping_at(record, "message")
    if record.get("type") != "message":
        return None
    role = message.get("role")
    if role == "user":
        return user_words(message)
    return assistant_words(message) if role == "assistant" else None


def user_words(message: Mapping[str, Any]) -> Words | None:
    """Returns what a person typed; a picture without words stays as a turn with empty text."""
    text = without_wrappers(text_in(message))
    if not text.strip() and not has_picture(message):
        return None
    return Words(role="user", kind="turn", text=text)


def assistant_words(message: Mapping[str, Any]) -> Words | None:
    """Returns what the model said to the person; what it thought and called is no speech."""
    text = text_in(message)
    stopped = message.get("stopReason")
    if not text.strip() or stopped in _UNSETTLED:
        return None
    return Words(
        role="assistant",
        kind="error" if stopped == "error" else "runtime" if stopped == "aborted" else "turn",
        text=text,
        model=string_at(message, "model"),
        cancelled=stopped == "aborted",
    )


def text_in(message: Mapping[str, Any]) -> str:
    """Returns the text of a message's content, a string or blocks, parts by a blank line."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in mappings_in(content) if block.get("type") == "text")
    return "\n\n".join(text for text in texts if isinstance(text, str) and text.strip())


def has_picture(message: Mapping[str, Any]) -> bool:
    """Returns whether a message shows a picture."""
    return any(block.get("type") == "image" for block in mappings_in(message.get("content")))


def without_wrappers(text: str) -> str:
    """Cuts whole wrapper blocks in front; one that does not end is left, it may be a quotation."""
    start = 0
    while (found := _WRAPPER.match(text, start)) is not None:
        start = found.end()
    return text[start:].lstrip() if start else text
