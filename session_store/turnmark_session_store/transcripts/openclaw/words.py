"""What in a message of OpenClaw was said by a person or to one, and what the harness put there.

The file era wraps what a person typed: a time in front, blocks of facts about the chat before and
behind. Wrappers are matched at the start or end of a text and by their exact form, so that a person
who quotes one in the middle of a sentence keeps the sentence. Who spoke stands in a field of the
message; what a wrapper says of it is dropped with the wrapper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from turnmark_session_store.model import Kind, Role, Speaker
from turnmark_session_store.transcripts.fields import list_at, mapping_at, mappings_in, string_at

_OWN_FIELD = "__openclaw"
# `provenance.kind` of what no person typed: another session, and the program itself.
_OTHER_AUTHORS = ("inter_session", "internal_system")
# Texts of role `user` that the program wrote.
_HARNESS_STARTS = (
    "[OpenClaw ",
    "[Subagent Context]",
    "[Subagent Task]",
    "[Inter-session message]",
    "[cron:",
    "SECURITY NOTICE: The following content is from an EXTERNAL",
    "Read HEARTBEAT.md if it exists",
    "A new session was started via /new or /reset",
    "An async command you ran earlier has completed",
    "Continue where you left off. The previous model attempt failed",
    "Pre-compaction memory flush",
)
# A command with nothing behind it: typed by a person, and nothing to remember of one.
_BARE_COMMAND = re.compile(r"\s*/[a-z][\w:-]*\s*", re.IGNORECASE)

# With the day of the week, which no line of a log has that a person pastes.
_TIME = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?"
_FENCED = r"```(?:json)?\n.*?\n```[ \t]*(?=\n|\Z)"
_CONTEXT_BEGINS = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
_CONTEXT_ENDS = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
_LEADING = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rf"\s*\[[^\]\n]{{0,200}}?{_TIME}[^\]\n]{{0,40}}\] ?",
        r"\s*\[Bootstrap pending\].*?(?:\n\s*\n|\Z)",
        rf"\s*[^\n]{{1,120}}\(untrusted(?: metadata|, for context)\):\s*\n{_FENCED}\s*",
        r"\s*System(?: \(untrusted\))?: \[[^\n]*(?:\n|\Z)",
        r"\s*\[media attached[^\]\n]*\][^\n]*(?:\n|\Z)",
        rf"\s*{_CONTEXT_BEGINS}.*?{_CONTEXT_ENDS}\s*",
        r"\s*<(relevant-memories|active_memory_plugin)(?:\s[^>]*)?>.*?</\1>\s*",
    )
)
_MESSAGE_ID = "[message_id: "
# Each with how its last one begins: what stands at the end is found from the end.
_TRAILING = tuple(
    (begins, re.compile(pattern, re.DOTALL))
    for begins, pattern in (
        (_MESSAGE_ID, r"\[message_id: [^\]\n]*\]\s*\Z"),
        (_CONTEXT_BEGINS, rf"{_CONTEXT_BEGINS}(?:(?!{_CONTEXT_ENDS}).)*{_CONTEXT_ENDS}\s*\Z"),
    )
)
# What stands before it: only a context may be all of a text.
_BEFORE = {_MESSAGE_ID: ("\n",), _CONTEXT_BEGINS: ("", "\n")}
_UNTRUSTED = re.compile(r"(?:\A|\n)Untrusted context \(metadata[^\n]*\):\n.*\Z", re.DOTALL)
# How the agent tells the program to deliver nothing; the second one answers a heartbeat.
_SILENT = re.compile(
    r"\W*(?:NO_REPLY|HEARTBEAT_OK)\W*|\s*\{\s*\"action\"\s*:\s*\"NO_REPLY\"\s*\}\s*"
)
# Where an answer goes in the chat.
_DELIVERY_TAG = re.compile(r"\[\[\s{0,9}(?:reply_to[^\[\]\n]{0,200}|audio_as_voice)\s{0,9}\]\]")
# The program's own name as a provider, and the two models that it puts there: a copy of what was
# sent to the chat, and a notice of its own.
_PROGRAM = "openclaw"
_MIRROR = "delivery-mirror"
_FAILED, _CANCELLED = "error", "aborted"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What an entry says as a turn; `text` may be empty where a person sent only a picture.

    `mirrored` says that it is a copy of what was sent to the chat, which may stand there already,
    `by_person` that the record says that a person wrote it.
    """

    role: Role
    kind: Kind
    text: str
    model: str | None = None
    cancelled: bool = False
    mirrored: bool = False
    speaker: Speaker | None = None
    by_person: bool = False


def words_of(message: Mapping[str, Any]) -> Words | None:
    """Returns what a message says to or by a person, None for tools, thoughts and silence."""
    role = message.get("role")
    if role == "user":
        return _user_words(message)
    return _assistant_words(message) if role == "assistant" else None


def _user_words(message: Mapping[str, Any]) -> Words | None:
    parts = _parts_of(message.get("content"))
    raw = "\n\n".join(part for part in parts if part.strip())
    typed = "\n\n".join(words for part in parts if (words := typed_words(part)).strip())
    own = mapping_at(message, _OWN_FIELD)
    provenance = mapping_at(message, "provenance").get("kind")
    pictured = _has_picture(message.get("content")) or bool(list_at(own, "media"))
    if provenance in _OTHER_AUTHORS or is_harness_text(typed) or not (typed or pictured):
        return Words(role="user", kind="runtime", text=typed or raw) if raw else None
    return Words(
        role="user",
        kind="runtime" if _BARE_COMMAND.fullmatch(typed) else "turn",
        text=typed,
        speaker=_speaker(own),
        by_person=provenance == "external_user",
    )


def _speaker(own: Mapping[str, Any]) -> Speaker | None:
    sender = string_at(own, "senderId")
    name = string_at(own, "senderName") or string_at(own, "senderUsername")
    return Speaker(id=sender, name=name) if sender or name else None


def _assistant_words(message: Mapping[str, Any]) -> Words | None:
    parts = map(_without_delivery, _parts_of(message.get("content")))
    text = "\n\n".join(part for part in parts if part.strip())
    if not text or _SILENT.fullmatch(text):
        return None
    kind: Kind = "turn"
    model, stop = string_at(message, "model"), message.get("stopReason")
    by_program = message.get("provider") == _PROGRAM
    mirrored = by_program and model == _MIRROR
    if stop == _FAILED:
        kind = "error"
    elif stop == _CANCELLED or (by_program and not mirrored):
        # Not `partial`: a partial can be nobody's predecessor, and the chain goes on behind it.
        kind = "runtime"
    return Words(
        role="assistant",
        kind=kind,
        text=text,
        model=None if by_program else model,
        cancelled=stop == _CANCELLED,
        mirrored=mirrored,
    )


def typed_words(text: str) -> str:
    """Returns what a person typed, without the wrappers around it; empty if there was nothing."""
    start, end = 0, len(text)
    while (after := _leading_end(text, start)) > start:
        start = after
    rest = text[start:end]
    while (shorter := _without_trailing(rest)) != rest:
        rest = shorter
    return rest.strip() if rest != text else text


def is_harness_text(text: str) -> bool:
    """Returns whether the program wrote a text of role `user`."""
    return text.lstrip().startswith(_HARNESS_STARTS)


def _leading_end(text: str, start: int) -> int:
    matches = (pattern.match(text, start) for pattern in _LEADING)
    return max((match.end() for match in matches if match), default=start)


def _without_trailing(text: str) -> str:
    for begins, pattern in _TRAILING:
        at = text.rfind(begins)
        if at >= 0 and text[at - 1 : at] in _BEFORE[begins] and pattern.match(text, at):
            return text[: max(0, at - 1)]
    found = _UNTRUSTED.search(text)
    return text if found is None else text[: found.start()]


def _without_delivery(text: str) -> str:
    """Returns an answer without where it goes and the white space around that."""
    found = _DELIVERY_TAG.search(text)
    return text if found is None else text[: found.start()].rstrip() + text[found.end() :].lstrip()


def _parts_of(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    texts = (block.get("text") for block in mappings_in(content) if block.get("type") == "text")
    return [text for text in texts if isinstance(text, str)]


def _has_picture(content: Any) -> bool:
    return any(block.get("type") == "image" for block in mappings_in(content))
