"""The headings that the built-in writer gives, in both languages; a topic is headed in one.

Batches of several conversations can begin one topic side by side, each in the language of its own
first words. The topic's `about` decides then: Chinese if there is Chinese in it.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

PEOPLE: Final = {
    "who": ("About", "简介"),
    "preference": ("Preferences", "偏好"),
    "instruction": ("Instructions", "要求"),
    "decision": ("Decisions", "决定"),
    "plan": ("Plans", "计划"),
    "fact": ("Facts", "情况"),
}
PROJECTS: Final = {**PEOPLE, "who": ("Overview", "概况"), "instruction": ("Rules", "规则")}

_PAIRS = {*PEOPLE.values(), *PROJECTS.values()}
_TWINS = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
_HAN = re.compile("[\u3400-\u9fff]")


def is_headed_in_chinese(about: str) -> bool:
    """Tells which of its two languages a topic's headings are in."""
    return _HAN.search(about) is not None


def fitting(heading: str | None, about: str | None, present: Container[str | None]) -> str | None:
    """Returns a heading in the topic's language; one that the topic has already stays."""
    twin = _TWINS.get(heading or "")
    if twin is None or about is None or heading in present:
        return heading
    same = is_headed_in_chinese(heading or "") == is_headed_in_chinese(about)
    return heading if same else twin
