"""What in a message of Codex was said by a person or to one, and what the harness put there.

Wrappers are matched at the start of a part and by their exact tags, so that a person who quotes
one in the middle of a sentence keeps the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from turnmark_session_store.transcripts.fields import mappings_in

_TEXT_TYPES = ("text", "Text", "input_text", "output_text")
_PICTURE_TYPES = ("image", "local_image", "input_image")
# Blocks that the program writes with the role of the user, each whole, with its closing tag.
_WRAPPER = re.compile(
    r"\s*<(environment_context|user_instructions|skill|user_shell_command|user_action|turn_aborted"
    r"|subagent_notification|codex_internal_context|goal_context|recommended_plugins|hook_prompt"
    r"|external_[a-z_]+)(?:\s[^>]*)?>.*?</\1>",
    re.DOTALL,
)
_AGENTS_FILE = re.compile(r"\s*# AGENTS\.md instructions\b.*?</INSTRUCTIONS>", re.DOTALL)
# An editor's context shares a message with the words that were typed below it.
_EDITOR = re.compile(r"\s*# Context from my IDE setup:.*?\n## My request for Codex:", re.DOTALL)
_LEADING = (_WRAPPER, _AGENTS_FILE, _EDITOR)
_WARNING_STARTS = ("Warning: apply_patch was requested", "Warning: The maximum number of")
# What stands around a picture's data.
_PICTURE_TAG = re.compile(r"\s*</?image\b[^>]*>\s*")
# Encrypted text, as the service hands it out: a token of Fernet, without a space.
_CIPHERTEXT = re.compile(r"gAAAAA[\w=-]{24,}")


def parts_of(content: Any) -> list[str]:
    """Returns the texts in a message's content, which is a string or a list of blocks."""
    if isinstance(content, str):
        return [content]
    blocks = mappings_in(content)
    texts = (block.get("text") for block in blocks if block.get("type") in _TEXT_TYPES)
    return [text for text in texts if isinstance(text, str)]


def has_picture(content: Any) -> bool:
    """Returns whether a message's content shows a picture."""
    return any(block.get("type") in _PICTURE_TYPES for block in mappings_in(content))


def typed_words(parts: Sequence[str]) -> str:
    """Returns what a person typed, parts by a blank line; empty if all is the harness's."""
    return "\n\n".join(words for part in parts if (words := _typed(part)).strip())


def spoken_words(parts: Sequence[str]) -> str:
    """Returns what the model said, parts by a blank line; empty where it can't be read."""
    return "\n\n".join(part for part in parts if part.strip() and not is_ciphertext(part))


def is_ciphertext(text: str) -> bool:
    """Returns whether a text is an encrypted one."""
    return _CIPHERTEXT.fullmatch(text.strip()) is not None


def _typed(part: str) -> str:
    start = 0
    while (end := _leading_end(part, start)) is not None:
        start = end
    rest = part[start:].lstrip() if start else part
    noise = rest.lstrip().startswith(_WARNING_STARTS) or _PICTURE_TAG.fullmatch(rest)
    return "" if noise or is_ciphertext(rest) else rest


def _leading_end(part: str, start: int) -> int | None:
    matches = (pattern.match(part, start) for pattern in _LEADING)
    return next((match.end() for match in matches if match), None)
