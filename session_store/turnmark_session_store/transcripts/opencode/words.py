"""What in a message of opencode was said by a person or to one, and what the program put there.

A message is a list of parts. Only parts of text are words, and of those neither what the program
added for the model (`synthetic`: files that were read, reminders, "continue") nor what it keeps
from it (`ignored`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from turnmark_session_store.transcripts.fields import mapping_at, string_at

PART_BREAK = "\n\n"
# `opencode run "a b"` puts the quotes that the shell took away around each argument again.
_RUN_ARGUMENT = re.compile(r'"((?:[^"\\]|\\.)*\s(?:[^"\\]|\\.)*)"', re.DOTALL)


def spoken_parts(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the texts of those parts that somebody said, blank ones left out."""
    texts = (
        string_at(part, "text")
        for part in parts
        if part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    )
    return [text for text in texts if text is not None and text.strip()]


def typed_words(parts: Sequence[Mapping[str, Any]], summary: Any) -> str:
    """Returns what a person typed, parts by a blank line.

    `summary` is the message's own: very old versions kept the words nowhere else.
    """
    words = PART_BREAK.join(spoken_parts(parts))
    if not words and not parts and isinstance(summary, dict):
        noted = cast("Mapping[str, Any]", summary)
        words = string_at(noted, "body") or string_at(noted, "title") or ""
    return unquoted(words)


def unquoted(words: str) -> str:
    """Returns the words of a person without the quotes that the command line gave them."""
    argument = _RUN_ARGUMENT.fullmatch(words.strip())
    return argument[1].replace('\\"', '"') if argument is not None else words


def shows_picture(parts: Iterable[Mapping[str, Any]]) -> bool:
    """Returns whether a picture, or another file that is no text, goes with a message."""
    files = (part for part in parts if part.get("type") == "file")
    return any(not (string_at(one, "mime") or "text/").startswith("text/") for one in files)


def spawned_session(part: Mapping[str, Any]) -> str | None:
    """Returns the session of the sub-agent that a call of a tool began, None for any other part."""
    if part.get("type") != "tool":
        return None
    state = mapping_at(part, "state")
    for place in (state, part):
        for name in ("metadata", "structured"):
            found = mapping_at(place, name)
            session = string_at(found, "sessionId") or string_at(found, "sessionID")
            if session is not None:
                return session
    return None


def task_of(part: Mapping[str, Any]) -> str | None:
    """Returns what a call of a tool tells another agent to do, None if it tells nothing."""
    if part.get("type") != "tool":
        return None
    return string_at(mapping_at(mapping_at(part, "state"), "input"), "prompt")
