"""Compares what is said with what memory holds: the same thing again, or a thing that has changed.

Two texts are about the same thing as far as they share words that few blocks have. English words
are compared by their stem, Chinese by pairs of characters; numbers and names as they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.people import cut

# Of so many words one may be new to the block, of fewer none: a new word can be the news.
_MANY_WORDS = 6
# "Like I said" lets less be enough: who says so means one of the blocks.
_RESTATED_SHARE = 0.3
# A word alone makes no subject, unless it is a name; two pairs of characters are one word or two.
_LEAST_SHARED = 1.5
# ... but one word is enough of a text that hardly has others: "Robin is vegetarian".
_LEAST_OF_SHORT = 0.4

# So much of the older text must be about it: replacing one fact must not end five others.
_LEAST_ABOUT = 0.17
_LEAST_ABOUT_HAN = 0.08

_WORD = re.compile(r"[A-Za-z][A-Za-z'’]*|\d+(?:[.,:]\d+)*|[\u3400-\u9fff]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_DATED = re.compile(r"\s*[(（][^()（）]*\d{4}[^()（）]*[)）]")
_ENDING = re.compile(r"(?:['’]s|ing|ed|es|s|ly|d)$")
_STOP = listed(
    "a an the i me my we us our you your he she it its they them their his her is am are was"
    " were be been has have had do does did will would can could should must may might to of"
    " in on at for from by with about as that this these those there here and or but so if"
    " then than not no user assistant agreed answered found asks decided said what who when"
    " where which how now also just really very still always never only all any some one more"
    " most up out off over back get january february march april may june july august"
    " september october november december monday tuesday wednesday thursday friday saturday"
    " sunday got go going went want like need use make made take dont doesn im ive ill ll ve"
    " re"
)
_STOP_HAN = listed(
    "我们 你们 他们 她们 大家 现在 时间 问题 这个 那个 一个 没有 可以"
    " 就是 不是 还是 已经 以后 之前 之后 开始 需要 时候 自己 今天 明天 昨天 用户 助手"
    " 同意 要求 因为 所以 但是 如果 一下 里面 系统 项目 东西 地方 事情"
    " 这边 那边 早上 上午 下午 晚上 觉得 知道 全部 一样 比较 直接 还有 那就 这样 改成"
    " 改到 换成 推迟 取消 不再 主要"
)
_NOT = re.compile(
    r"\b(?:not|no|never|without|neither|nor|cannot|no longer)\b|n['’]t\b|不|没|别|无|未|非",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_MONTH = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*"
# What kind of value a text gives: what gives another of the same kind may replace it.
_VALUES = {
    "day": re.compile(
        rf"\b\d{{1,2}}(?:st|nd|rd|th)\b|\b\d{{1,2}} {_MONTH}\b|\b{_MONTH} \d|\b\d{{4}}-\d\d"
        r"|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\d\s?[号日月]"
        r"|[周期拜][一二三四五六日天末]",
        re.IGNORECASE,
    ),
    "hour": re.compile(
        r"\b\d{1,2}(?::\d\d|\s?[ap]m\b)|(?:\bat|\bfrom|\btill) \d{1,2}\b"
        r"|[\d一二三四五六七八九十两]\s?点",
        re.IGNORECASE,
    ),
    "money": re.compile(
        r"[£$€¥]\s?\d|\d\s?(?:euros?|pounds?|dollars?|bucks|[元块万])", re.IGNORECASE
    ),
    "number": re.compile(
        r"(?<![\d:./-])\d+(?![\d:./-])|[二两三四五六七八九十百千万]+[个人顶条台家件]"
    ),
}
_VALUE_WEIGHT = {"day": 1.0, "hour": 1.0, "money": 1.0, "number": 0.5}
# With another value, a name that all texts of a topic share says a little after all.
_IGNORED_WEIGHT = 0.5
# "A session is 35 euros" and "a session is 42 euros" share so much that the newer one holds.
_SAME_BUT_VALUE = 0.7


class Terms(msgspec.Struct, frozen=True):
    """The words of a text that say what it is about; `names` are those written as names are."""

    words: frozenset[str]
    names: frozenset[str]


def terms_of(text: str) -> Terms:
    """Returns the terms of a text, without what frames and dates it."""
    words: set[str] = set()
    names: set[str] = set()
    is_mixed = _HAN.search(text) is not None
    for found in _WORD.finditer(_DATED.sub("", text)):
        word = found.group()
        if word[0] >= "\u3400":
            words.update(one for one in cut(word) if one not in _STOP_HAN and len(one) > 1)
            continue
        folded = word.casefold().replace("’", "'")
        if folded.replace("'", "") in _STOP or (len(folded) == 1 and not folded.isdigit()):
            continue
        stem = folded if folded.isdigit() or len(folded) < 5 else _ENDING.sub("", folded)  # noqa: PLR2004 -- short words have no ending
        words.add(stem)
        if (word[0].isupper() and found.start() > 0) or is_mixed:
            names.add(stem)
    return Terms(frozenset(words), frozenset(names))


def says_the_same(new: str, old: str, *, restates: bool) -> bool:
    """Returns whether `new` adds nothing to `old`: words, numbers, and yes or no alike."""
    fresh, known = terms_of(new), terms_of(old)
    if not fresh.words:
        return False
    share = len(fresh.words & known.words) / len(fresh.words)
    if restates:
        return share >= _RESTATED_SHARE
    spare = 1 if len(fresh.words) >= _MANY_WORDS else 0
    alike = len(fresh.words) > 1 and len(fresh.words - known.words) <= spare
    return (
        alike
        and bool(_NOT.search(new)) == bool(_NOT.search(old))
        and _numbers(_DATED.sub("", new)) <= _numbers(old)
    )


def _numbers(text: str) -> Counter[str]:
    """Returns the numbers of a text, as often as they stand there: "1 of 1" is not "1 of 15"."""
    return Counter(_NUMBER.findall(text))


def nearest(text: str, others: Sequence[str], ignored: Iterable[str] = ()) -> int | None:
    """Returns the number of the text that is most about the same thing, None if none is.

    Words in `ignored` (names that all of the texts share) count for nothing.
    """
    terms = terms_of(text)
    theirs = [terms_of(other) for other in others]
    spread = Counter(word for one in theirs for word in one.words)
    skipped = {stem for name in ignored for stem in terms_of(f"x {name}").words}
    best, best_score = None, 0.0
    for number, other in enumerate(theirs):
        shared = (terms.words & other.words) - skipped
        score = sum(_weight(word, terms.names | other.names) / spread[word] for word in shared)
        full = sum(_weight(word, terms.names | other.names) for word in shared)
        if value := _other_value(text, others[number]):
            named = terms.words & other.words & skipped
            more = value + (_IGNORED_WEIGHT if named else 0)
            full, score = full + more, score + more
        whole = sum(_weight(word, other.names) for word in other.words)
        least = _LEAST_ABOUT_HAN if any(word >= "\u3400" for word in shared) else _LEAST_ABOUT
        is_about = full >= max(_LEAST_SHARED, least * whole) or full >= _LEAST_OF_SHORT * whole > 0
        if is_about and score > best_score:
            best, best_score = number, score
    return best


def _other_value(new: str, old: str) -> float:
    """Returns how much it says that two texts give another value of one kind; 0 if they do not."""
    new, old = _DATED.sub("", new), _DATED.sub("", old)
    return max(
        (
            _VALUE_WEIGHT[kind]
            for kind, pattern in _VALUES.items()
            if (fresh := set(pattern.findall(new))) and (known := set(pattern.findall(old)))
            if fresh.isdisjoint(known)
        ),
        default=0.0,
    )


def gives_another_value(new: str, old: str) -> bool:
    """Returns whether two texts say the same, but for a number or a date."""
    fresh, known = (
        {word for word in terms_of(text).words if not word.isdigit()} for text in (new, old)
    )
    shared = len(fresh & known)
    alike = shared > 1 and shared >= _SAME_BUT_VALUE * max(len(fresh), len(known))
    return alike and _other_value(new, old) > 0 and bool(_NOT.search(new)) == bool(_NOT.search(old))


def _weight(word: str, names: frozenset[str]) -> float:
    if word >= "\u3400" or word in names:
        return 1.5
    return 0.5 if word.isdigit() else 1.0
