"""Frames what somebody said as a quotation that is one harmless paragraph of Markdown.

Only the frame is ours: every word between the marks was said. Signs that would make a footnote, a
block id, an embed or HTML of it are broken by a backslash, which Markdown does not show.
"""

from __future__ import annotations

import re

from turnmark_memory.model import Evidence
from turnmark_memory.words import visible

# A name longer than this is not a name; the rest of it is not needed to know who spoke.
_LONGEST_NAME = 60

_LIVE_SIGNS = re.compile(r"(?<=\[)(?=[\[^])|(?<=\^b)(?=-)|(?=<[A-Za-z/!?])")
_NAME_SIGNS = re.compile(r"[:：\"“”„`*_#|\\]+")
_MARKS_WITHIN = str.maketrans({'"': "'", "“": "'", "”": "'", "‘": "'", "’": "'"})
_FRAMED = re.compile(r'^(?P<frame>[^"“]{1,240}?)(?:: "|：“)(?P<body>.*)["”]$')


def plain(text: str) -> str:
    """Returns `text` on one line, without what shows nothing, its Markdown made harmless."""
    return _LIVE_SIGNS.sub(lambda _: "\\", " ".join(visible(text).split()))


def speaker_of(turn: Evidence, *, chinese: bool) -> str:
    """Returns how a quotation calls the one who spoke: by name where the agent gave one."""
    if turn.role == "assistant":
        return "助手" if chinese else "The assistant"
    name = _as_name(turn.speaker_name)
    if name:
        return name
    user = "用户" if chinese else "The user"
    number = _as_name(turn.speaker_id)
    if not number:
        return user
    return f"{user}（{number}）" if chinese else f"{user} ({number})"


def agreed_speaker(first: Evidence, second: Evidence, *, chinese: bool) -> str:
    """Returns how a quotation calls whoever made a proposal that somebody else said yes to."""
    proposer, name = speaker_of(first, chinese=chinese), speaker_of(second, chinese=chinese)
    if chinese:
        return f"{proposer}（{name}已同意）"
    return f"{proposer} ({name[0].lower() + name[1:] if name.startswith('The ') else name} agreed)"


def within(words: str) -> str:
    """Returns words that can stand between single quotation marks."""
    return words.translate(_MARKS_WITHIN)


def quoted(speaker: str, words: str, *, chinese: bool) -> str:
    """Returns `Robin: "words"`; no words can close the quotation before its end."""
    if chinese:
        return f"{speaker}：“{words.replace('“', '‘').replace('”', '’')}”"
    inside = words.rstrip("\\").replace('"', '\\"')
    return f'{speaker}: "{inside}"'


def unquoted(text: str) -> tuple[str, str]:
    """Returns speaker and words of a quotation; ("", `text`) of anything else."""
    found = _FRAMED.match(text)
    return (found["frame"], found["body"].replace('\\"', '"')) if found else ("", text)


def _as_name(name: str | None) -> str:
    """Returns `name` fit to begin a paragraph, or "" where nothing is left that names anybody."""
    words = " ".join(_NAME_SIGNS.sub(" ", plain(name or "")).split())[:_LONGEST_NAME].strip()
    return words if words[:1].isalpha() else ""
