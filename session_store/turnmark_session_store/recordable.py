"""Which turns memory may hold: the predicate that is decided once, at append, and kept.

The store freezes the answer together with `RECORDABLE_VERSION`, so that a later, stricter rule
never changes what an older turn was.
"""

from __future__ import annotations

import re

from turnmark_session_store.model import ContentPart, Kind, Role

# Stored beside each answer. Raise it with every change of `is_recordable`.
RECORDABLE_VERSION = 1

_SPEAKING_ROLES = ("user", "assistant")
# JSON may hold one half of a surrogate pair (tools cut strings in the middle of one); Python reads
# it and then fails to encode it.
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Where one part of a message ends and the next begins.
_PART_BREAK = "\n\n"


def is_recordable(*, role: Role, kind: Kind, text: str, spawned: bool) -> bool:
    """Returns whether memory may hold this turn: a user's or assistant's words, and only those.

    `text` is what is left after `cut_fences`; blank text is nothing to remember. `spawned` says
    that the turn has a caller and no predecessor: a user's turn of that kind is the task that one
    agent wrote for another. Tool and system rows, runtime notices, scheduler prompts, compaction
    summaries, error bodies and partial answers carry a role or a kind of their own.
    """
    if role not in _SPEAKING_ROLES or kind != "turn" or not text.strip():
        return False
    return not (spawned and role == "user")


def text_of(text: str | list[ContentPart]) -> str:
    """Returns the words of a turn: the text itself, or its text parts joined by a blank line.

    Parts of another type and empty ones are left out. The result can always be encoded as UTF-8.
    """
    if isinstance(text, str):
        return replace_surrogates(text)
    parts = [part.text for part in text if part.type == "text" and part.text]
    return replace_surrogates(_PART_BREAK.join(parts))


def replace_surrogates(text: str) -> str:
    """Returns `text` with every lone surrogate replaced by U+FFFD; NUL and all else is kept."""
    try:
        text.encode()  # much faster than looking for what is almost never there
    except UnicodeEncodeError:
        return _LONE_SURROGATE.sub("\ufffd", text)
    return text
