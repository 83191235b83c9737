"""Compares what is said with what memory holds: is it the same thing again?

English words are compared by their stem, Chinese ones as they are cut; numbers and names as they
are. What has changed is found in `replacing.py`.
"""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.people import cut

# "Like I said" lets less be enough: who says so means one of the blocks.
_RESTATED_SHARE = 0.3

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
_SIGNS_OF_NO_WEIGHT = frozenset(
    "的了吧呢啊哦呀吗嘛哈是在都也还就又再要会能我你您他她它们这那个些着过把被给跟和与说记"
)
NOT = re.compile(
    r"\b(?:not|no|never|without|neither|nor|cannot|no longer)\b|n['’]t\b|不|没|别|无|未|非",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")


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
    # A single new word can be the news, and in Chinese a single sign: a cat is no dog.
    return (
        len(fresh.words) > 1
        and fresh.words <= known.words
        and not new_signs(new, old)
        and bool(NOT.search(new)) == bool(NOT.search(old))
        and _numbers(_DATED.sub("", new)) <= _numbers(old)
    )


def new_signs(new: str, old: str) -> frozenset[str]:
    """Returns the Chinese signs of `new` that say something and that `old` has not."""
    return frozenset(_HAN.findall(new)) - _SIGNS_OF_NO_WEIGHT - frozenset(old)


def _numbers(text: str) -> Counter[str]:
    """Returns the numbers of a text, as often as they stand there: "1 of 1" is not "1 of 15"."""
    return Counter(_NUMBER.findall(text))
