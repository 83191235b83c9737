"""What kind of thing a turn says and a question asks, told from words alone, in several scripts.

A question that begins with *when* is answered by a turn that speaks of a time, and one with *how
many* by a turn that holds a number. These are signs and no proof: the ranking weighs them.
"""

from __future__ import annotations

import re
from enum import IntFlag
from itertools import islice

import msgspec

from turnmark_memory.at_large import is_at_large


class Trait(IntFlag):
    """What can be seen of a turn's text; the index stores the sum."""

    ASKS = 1
    """It ends with a question."""
    QUESTION = 2
    """It holds a question somewhere."""
    SELF = 4
    """The speaker speaks of themselves."""
    TIME = 8
    """It names a time."""
    NUMBER = 16
    """It names a number."""
    NAME = 32
    """It holds a word written like a name, inside a sentence."""
    NAMES = 64
    """It holds several of those."""


class Wants(msgspec.Struct, frozen=True, kw_only=True):
    """What a question wants to know.

    `self` marks one in which the asker asks about themselves, `at_large` what any book knows.
    """

    time: bool = False
    number: bool = False
    name: bool = False
    self: bool = False
    at_large: bool = False


_SELF = re.compile(
    r"\b(?:i|i'm|i've|i'll|i'd|my|mine|me|we|we're|we've|our|us)\b|[我咱俺]|私|僕|俺"
)
_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|recently|soon|since|week(?:end)?s?"
    r"|months?|years?|days?|morning|evening|night|(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|noon|midnight|o'clock|half past|quarter (?:past|to)|hours?|minutes?|weekdays?|until|daily"
    r"|weekly|monthly|yearly|nightly|spring|summer|autumn|winter|christmas|easter"
    r"|january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\d{4}-\d\d|\d:\d\d|\d ?[ap]m\b|[分秒]钟|小时|小時|[春夏秋冬][天季]|中午|傍晚|凌晨"
    r"|[昨今明后後前]天|[年月日号號周週点點]|星期|礼拜|禮拜|早上|晚上|上午|下午|刚才|剛才"
    r"|昨日|今日|明日|曜|時"
)
_NUMBER = re.compile(
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand"
    r"|once|twice|couple|several)\b|[一二两兩三四五六七八九十百千万萬]"
)
_NAME = re.compile(r"(?<![.!?]\s)(?<![.!?]\s\s)(?<!^)\b[A-Z][a-z]+")

_WANTS_TIME = re.compile(
    r"\b(?:when|how (?:long|soon|late|early)|deadline|due"
    r"|(?:what|which) (?:date|day|weekday|week|month|year|time))\b"
    r"|哪一天|什么时间|什麼時間|什么日子|多长时间|哪个月|截止|几时"
    r"|什么时候|什麼時候|何时|何時|哪天|哪年|哪月|几号|幾號|几点|幾點|几月|幾月|多久|周几|星期几|いつ|何日"
)
_WANTS_NUMBER = re.compile(
    r"\bhow (?:many|much|often|long|old|far|big|large|tall|high|heavy|hot|cold|fast|wide|deep)\b"
    r"|\b(?:what|which) (?:size|price|temperature|version|port|number|age|amount|budget|speed)\b"
    r"|多少|几[个個次天条只位人年岁歲号點点]|幾[個次天條隻位人年歲號]|多[大高远遠长長久重快宽寬深贵貴]|いくつ|いくら|何[人回個]"
)
_WANTS_NAME = re.compile(
    r"\b(?:who|whom|whose|where|which|name|called"
    r"|what (?:book|movie|film|game|song|band|city|country|place|state|company|app|tool))\b"
    r"|谁|誰|哪[里裡儿兒个個家位国國]|叫什么|叫什麼|什么名|什麼名|どこ|だれ"
)


def traits_of(text: str) -> Trait:
    """Returns what can be seen of a turn; costs a few passes over its beginning."""
    seen = text[:_LONGEST_CHARS]
    plain = seen.casefold()
    found = Trait(0)
    if text.rstrip()[-1:] in _QUESTION_MARKS:
        found |= Trait.ASKS
    for trait, pattern, where in (
        (Trait.QUESTION, _QUESTION, plain),
        (Trait.SELF, _SELF, plain),
        (Trait.TIME, _TIME, plain),
        (Trait.NUMBER, _NUMBER, plain),
    ):
        if pattern.search(where):
            found |= trait
    names = sum(1 for _ in islice(_NAME.finditer(seen), _SEVERAL))
    if names:
        found |= Trait.NAME if names < _SEVERAL else Trait.NAME | Trait.NAMES
    return found


def wants_of(question: str) -> Wants:
    """Returns what a question wants to know."""
    plain = question[:_LONGEST_CHARS].casefold()
    return Wants(
        time=bool(_WANTS_TIME.search(plain)),
        number=bool(_WANTS_NUMBER.search(plain)),
        name=bool(_WANTS_NAME.search(plain)),
        self=bool(_SELF.search(plain)),
        at_large=is_at_large(question),
    )


_LONGEST_CHARS = 8_000
"""What follows in a longer text (a pasted file) says nothing of who speaks about what."""

_SEVERAL = 3

_QUESTION_MARKS = frozenset("?？")
_QUESTION = re.compile("[?？]")
