"""What in Hermes' rows a person said or was told, and what the program put there.

Its notices have the role of the user, and are known by how they begin; what a person typed stands
behind some of them and is kept.
"""

from __future__ import annotations

import re

import msgspec

from turnmark_session_store.model import Kind, Role
from turnmark_session_store.transcripts.hermes.records import HermesRow

_DASH = "[-\u2012-\u2015]"
# What older turns were boiled down to. The end mark is there where a live message follows.
_SUMMARY = re.compile(r"\s*\[(?:CONTEXT (?:COMPACTION|SUMMARY)|PRIOR CONTEXT)\b")
_SUMMARY_END = re.compile(
    rf"{_DASH}{{3}} ?END OF CONTEXT SUMMARY\b[^\n]*?{_DASH}{{3}}[ \t]*(?:\n|\Z)"
)
# Put in again at each compaction.
_TASK_LIST = "[Your active task list was preserved across context compression]"
# The text of a skill; what was typed with its command stands at the end.
_SKILL = re.compile(r'\s*\[(?:IMPORTANT|SYSTEM): The user has invoked the "')
_INSTRUCTION = re.compile(
    r".*(?:The user has provided the following instruction alongside the skill invocation:"
    r"|^User instruction:)\s*(.*?)\s*(?:\n\n\[Runtime note:.*)?\Z",
    re.DOTALL | re.MULTILINE,
)
# A message that came while the model was at work.
_MEANWHILE = re.compile(
    r"\s*\[OUT-OF-BAND USER MESSAGE\b[^\]]*\]\s*(.*?)\s*(?:\[/OUT-OF-BAND[^\]]*\]\s*)?\Z", re.DOTALL
)
_NOTICE = re.compile(
    r"\s*(?:\[(?:SYSTEM|System)(?: note)?:|\[ASYNC DELEGATION\b|\[IMPORTANT: Background process"
    r"|\[IMPORTANT: You are running as a scheduled cron job|Gateway message origin\b)"
)
# The program asks the model to look back, for its own memory; the answer is to itself.
_REVIEW = re.compile(
    r"\s*Review the conversation above and (?:consider (?:saving|two things)|update the skill)"
)
# How the model says that it says nothing.
_SILENCE = "[SILENT]"


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What was said in a row. `is_review` says that the answer is the program's own, too."""

    role: Role
    kind: Kind
    text: str
    is_review: bool = False


def is_summary(row: HermesRow) -> bool:
    """Returns whether a row begins with what a compaction left of older ones."""
    return row.is_summary or _SUMMARY.match(row.text) is not None


def words_of(row: HermesRow) -> Words | None:
    """Returns what was said in a row, None where nothing was."""
    if row.role == "assistant":
        return _told(row)
    if row.role != "user":
        return None
    if is_summary(row):
        end = _SUMMARY_END.search(row.text)
        rest = row.text[end.end() :].strip() if end is not None else ""
        return _typed(row, rest) if rest else None
    return _typed(row, row.text)


def _told(row: HermesRow) -> Words | None:
    if not row.text.strip() or is_summary(row):
        return None
    if row.is_failed:
        return Words(role="assistant", kind="error", text=row.text)
    own = row.is_hidden or row.text.strip() == _SILENCE
    return Words(role="assistant", kind="runtime" if own else "turn", text=row.text)


def _typed(row: HermesRow, text: str) -> Words | None:
    if text.lstrip().startswith(_TASK_LIST) or not (text.strip() or row.has_picture):
        return None
    if _REVIEW.match(text):
        return Words(role="user", kind="runtime", text=text, is_review=True)
    meanwhile = _MEANWHILE.match(text)
    if meanwhile is not None and meanwhile[1]:
        text = meanwhile[1]
    elif _SKILL.match(text):
        found = _INSTRUCTION.match(text)
        if found is None or not found[1]:
            return Words(role="user", kind="runtime", text=text)
        text = found[1]
    own = row.is_hidden or _NOTICE.match(text) is not None
    return Words(role="user", kind="runtime" if own else "turn", text=text)
