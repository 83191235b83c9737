"""Finds the values that a text gives: days, hours, amounts, numbers, versions, choices.

Two statements about one thing that give another value of one kind cannot both hold. A kind is as
narrow as the words allow: nine songs are no other number than forty watts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from turnmark_memory.writers.chinese_values import chinese_values
from turnmark_memory.writers.choices import choices_in
from turnmark_memory.writers.english_values import english_values
from turnmark_memory.writers.value_kinds import DAY

Values = Mapping[str, frozenset[str]]

_HAN = re.compile(r"[\u3400-\u9fff]")


def values_of(text: str) -> Values:
    """Returns the values that a text gives, by kind."""
    found: dict[str, set[str]] = {}
    numbers = chinese_values(text) if _HAN.search(text) else english_values(text)
    for kind, value in (*numbers, *choices_in(text)):
        found.setdefault(kind, set()).add(value)
    return {kind: frozenset(given) for kind, given in found.items()}


def others(new: Values, old: Values) -> frozenset[str]:
    """Returns the kinds of which both give values, and none in common."""
    return frozenset(
        kind for kind in new.keys() & old.keys() if not _agree(kind, new[kind], old[kind])
    )


def agreeing(new: Values, old: Values) -> frozenset[str]:
    """Returns the kinds of which both give a value that is the same."""
    return frozenset(kind for kind in new.keys() & old.keys() if _agree(kind, new[kind], old[kind]))


def _agree(kind: str, new: frozenset[str], old: frozenset[str]) -> bool:
    if kind != DAY:
        return not new.isdisjoint(old)
    return any(_is_same_day(one, other) for one in new for other in old)


def _is_same_day(one: str, other: str) -> bool:
    """Returns whether two days, as month/day, may be one: where a month is missing, any will do."""
    month, _, day = one.partition("/")
    other_month, _, other_day = other.partition("/")
    return day == other_day and (month == other_month or not month or not other_month)
