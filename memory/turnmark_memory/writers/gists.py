"""Takes from a fact what it is about, once: its words, values and concepts, and what it changes."""

from __future__ import annotations

import re

import msgspec

from turnmark_memory.writers.changes import change_in, named_as_left
from turnmark_memory.writers.concepts import concepts_of
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.sameness import NOT, terms_of
from turnmark_memory.writers.values import Values, values_of

_HAN = re.compile(r"[\u3400-\u9fff]")
# "Don't forget" denies nothing.
_FORGET = re.compile(r"don['’]t forget|(?:别|不要|没)忘", re.IGNORECASE)
# A date that was added in brackets is a value, and says nothing of what a fact is about.
_DATED = re.compile(r"\s*[(（][^()（）]*\d{4}[^()（）]*[)）]")

# Words of values link nothing: two things on Fridays are two things.
_OF_VALUES = listed(
    "second minute min hour day week month year every each euro pound dollar percent"
    " 每周 每天 每月 每年 每晚 每次 每人 小时 分钟 星期 礼拜 公里"
)


class Gist(msgspec.Struct, frozen=True, kw_only=True):
    """What a fact is about.

    `words` are in the order of the text; `around` are words of the same turn or of the question
    that it answers; `change` is how surely it tells of a change; `left` are
    values that it names to say that they hold no longer, `left_words` words that it names so.
    """

    text: str
    words: tuple[str, ...]
    around: frozenset[str]
    around_text: str
    values: Values
    left: Values
    left_words: frozenset[str]
    concepts: frozenset[str]
    chinese: bool
    change: float
    negated: bool


def gist_of(text: str, around: str = "") -> Gist:
    """Returns the gist of a fact that was said with the words `around` it."""
    plain = _DATED.sub("", text)
    folded = plain.casefold()
    left, held = named_as_left(text)
    words = _words(text)
    chinese = _HAN.search(text) is not None
    return Gist(
        text=folded,
        words=tuple(sorted(words, key=lambda word: (folded.find(word), word))),
        around=_words(around) - words if around else frozenset(),
        around_text=around.casefold(),
        values=values_of(held),
        left=values_of(left) if left else {},
        left_words=_words(left) if left else frozenset(),
        concepts=concepts_of(folded),
        chinese=chinese,
        negated=NOT.search(_FORGET.sub("", plain)) is not None,
        change=change_in(plain, chinese=chinese),
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in terms_of(text).words - _OF_VALUES if not word[0].isdigit())
