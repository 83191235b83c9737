"""What in a Claude Code record was said by a person, and what the harness put there.

Wrappers are matched at the start of a text and by their exact tags, so that a person who quotes
one in the middle of a sentence keeps the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from turnmark_session_store.transcripts.fields import mapping_at, mappings_in

# Texts of role `user` that the program wrote.
_HARNESS_STARTS = (
    "<command-name>",
    "<command-message>",
    "<command-args>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<session-start-hook>",
    "<user-prompt-submit-hook>",
    "<teammate-message",
    "<tick>",
    "<goal>",
    "[Request interrupted by user",
    "Stop hook feedback:",
    "Caveat: The messages below",
)
_COMMAND_STARTS = ("<command-name>", "<command-message>")
# A command that was sent as text, with nothing behind it; probes for usage are sessions of these.
_BARE_COMMAND = re.compile(r"\s*/[a-z][\w:-]*\s*")
_COMMAND_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
# Blocks that share a message with real words, in front of them.
_LEADING_TAGS = ("system-reminder", "ide_opened_file", "ide_selection", "ide_diagnostics")
# `origin.kind` and `promptSource` are open sets; these words in them name another author.
_OTHER_AUTHOR = re.compile(
    r"task|agent|team|notif|hook|schedul|cron|loop|system|coordinator|peer|channel", re.IGNORECASE
)
# What the program writes where a response had no words.
_NO_WORDS = ("(no content)",)
# Arguments of a command count as prose from here on; shorter ones are names, paths and switches.
_PROSE_WORDS = 3
_PROSE_IDEOGRAPHS = 4
_IDEOGRAPH = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_NOT_PROSE_STARTS = ("-", "/", "{", "[")


def words_of(content: Any) -> str:
    """Returns the text of a message's content, without leading wrappers, parts by a blank line."""
    if isinstance(content, str):
        return _without_leading_wrappers(content)
    texts = [_text_of_block(block) for block in mappings_in(content)]
    return "\n\n".join(text for text in texts if text.strip())


def has_block(content: Any, block_type: str) -> bool:
    """Returns whether the content has a block of this type."""
    return any(block.get("type") == block_type for block in mappings_in(content))


def is_harness_text(text: str) -> bool:
    """Returns whether a text of role `user` is the program's, or a mere command to it."""
    return text.lstrip().startswith(_HARNESS_STARTS) or _BARE_COMMAND.fullmatch(text) is not None


def is_no_words(text: str) -> bool:
    """Returns whether an answer's text is blank, or stands for a blank one."""
    return not text.strip() or text.strip() in _NO_WORDS


def command_prose(text: str) -> str | None:
    """Returns the words that a person put behind a slash command, or None if there are none."""
    if not text.lstrip().startswith(_COMMAND_STARTS):
        return None
    found = _COMMAND_ARGUMENTS.search(text)
    prose = found[1].strip() if found else ""
    if prose.startswith(_NOT_PROSE_STARTS):
        return None
    long_enough = (
        len(prose.split()) >= _PROSE_WORDS
        or len(_IDEOGRAPH.findall(prose[:200])) >= _PROSE_IDEOGRAPHS
    )
    return prose if long_enough else None


def is_other_author(record: Mapping[str, Any]) -> bool:
    """Returns whether a record of role `user` names an author who is not the person."""
    origin = mapping_at(record, "origin")
    kind = str(origin.get("kind") or "")
    source = str(record.get("promptSource") or "")
    return bool(
        origin.get("from")
        or record.get("teamName")
        or _OTHER_AUTHOR.search(kind)
        or _OTHER_AUTHOR.search(source)
    )


def _text_of_block(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    if block.get("type") != "text" or not isinstance(text, str):
        return ""
    return _without_leading_wrappers(text)


def _without_leading_wrappers(text: str) -> str:
    """Cuts whole wrapper blocks in front; one that does not end is left, it may be a quotation."""
    start = 0
    while (end := _leading_wrapper_end(text, start)) is not None:
        start = end
    return text[start:].lstrip() if start else text


def _leading_wrapper_end(text: str, start: int) -> int | None:
    while start < len(text) and text[start].isspace():
        start += 1
    for tag in _LEADING_TAGS:
        if text.startswith(f"<{tag}>", start):
            end = text.find(f"</{tag}>", start)
            return None if end < 0 else end + len(tag) + 3
    return None
