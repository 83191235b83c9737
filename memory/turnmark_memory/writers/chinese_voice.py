"""Tells in the third person what somebody said in the first, in Chinese, where that is safe.

“我上个月搬到了杭州” of 李雷 becomes “李雷上个月搬到了杭州”. A sentence without a subject, or one
that addresses somebody, has no answer here, and the caller quotes it.
"""

from __future__ import annotations

import re

from turnmark_memory.writers.chinese import ROLES
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.people import first_tags

_UNSAFE = re.compile(r"[你您“”‘’\"俺]|咱(?!们)|本人|自我|敌我|我方|我说|我觉得|我想|我看|@")
_POINTING = re.compile(
    r"^(?:[他她它这那其每]|因为|所以|但|而|然后|还|也|都|就|才|又|不|没|先|再|要|被|把)"
)
_ROLE = re.compile(rf"我(?=(?:{ROLES}))")
_SUBJECT_TAGS = listed("n nr nrt ns nt nz eng vn j l i an")


def is_first_person(text: str) -> bool:
    """Returns whether `text` speaks of “我” or “我们”."""
    return "我" in text or "咱" in text


def retold(text: str, name: str, *, in_project: bool, is_known: bool = False) -> str | None:
    """Returns `text` without first person, None where that is not safe.

    `is_known` says that the caller knows what it begins with for its subject.
    """
    if _UNSAFE.search(text) or _POINTING.search(text):
        return None
    if not is_first_person(text):
        return text if is_known or has_subject(text) else None
    if not (is_known or text.startswith(("我", "咱")) or has_subject(text)):
        return None
    group = "团队" if in_project else f"{name}等人"
    told = re.sub(r"我们|咱们", group, text)
    told = _ROLE.sub(f"{name}的", told)
    first, *rest = told.split("我")
    if not rest:
        return told
    return f"{first}{name}" + name.join(rest)


def has_subject(text: str) -> bool:
    """Returns whether a sentence begins with what it is about, perhaps after a time."""
    tags = [tag for tag in first_tags(text) if tag not in {"t", "m", "q", "x"}]
    return bool(tags) and tags[0] in _SUBJECT_TAGS


def third_person(name: str, text: str, start: int, end: int) -> str:
    """Returns `text` with `name` in place of the “他” or “她” between two places."""
    return f"{text[:start]}{name}{text[end:]}"
