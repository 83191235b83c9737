"""Finds what a group's conversation is about: what it begins with, what its people come back to.

What groups come together for (`matters.py`) is known by its name and by what goes with it. Any
other noun has to be nearly everybody's. Where nothing stands out there is no theme: a wrong page is
worse than that of whoever spoke. A theme that fills a conversation takes in all that is said there;
one that is a part of it only what touches it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from turnmark_memory.model import Evidence
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.matters import Held, held_in, singular, words_of
from turnmark_memory.writers.people import People, things
from turnmark_memory.writers.sentences import is_chinese

# The first turns of a conversation say what it is about, if any do.
_OPENING = 3
# What a matter gains by each turn that names it, each person after the first who does, each place
# that it is nearer to the beginning, and each turn that holds only what goes with it.
_NAMED, _SHARED, _OPENS, _TOUCHED = 2, 3, 2, 1
# Named once it needs so many turns that hold what goes with it: fewer if the opening names it.
_LEAST_TOUCHED, _LEAST_TOUCHED_AFTER_OPENING = 3, 2
# A noun that is no such matter needs so many turns and people.
_LEAST_TURNS, _LEAST_PEOPLE = 4, 3
# A matter that nobody names needs so many different words that go with it, of so many people, and
# so many times more than any other has.
_LEAST_SIGNS, _LEAST_SIGN_PEOPLE, _AHEAD = 4, 2, 1.5
# A theme fills a conversation where so many of its turns hold it: at least, and of all.
_FILLS_TURNS, _FILLS_SHARE = 3, 0.15
# English words that begin alike are of one stem.
_STEM = 5

_PHRASE = re.compile(r"\b(?:[Tt]he|[Oo]ur|[Tt]his|[Nn]ext) ((?:[a-zà-ÿ-]{3,} )?[a-zà-ÿ-]{3,})\b")
_SMALL = re.compile(r"\b[a-zà-ÿ][a-zà-ÿ-]+\b")
_NO_NOUN = listed(
    "the and for our this that with from not your his her their its all any some no first last"
    " next same other time times thing things week weeks month months year years day days"
    " morning evening afternoon night weekend lot bit way people place point moment while"
    " best long future end start beginning everyone kind whole right idea note list summary"
    " decision message account hour minute group want need say said take make come goe give"
    " offer keep will would does did has had have was were are can could new old good may"
    " put use see now too yet who how why per out off ago bot one two three few great big"
    " small what them those these more most much rest guy folk person thank today tomorrow"
    " yesterday been being just very really only also anyone someone else back over until"
    " till before after again still already maybe here there where when which than then"
    " because though lol date second half side part top bottom front inside number amount"
    " price cost total problem issue reason update question chance luck sake mood fun laugh"
    " usual actual exact annual little local nice lovely early late later earlier soon free"
    " full busy ready sure happy sorry sad door phone email mail photo picture link water"
    " room table chair car bus train road key money food coffee tea lunch breakfast weather"
    " rain sun monday tuesday wednesday thursday friday saturday sunday january february"
    " march april june july august september october november december"
)
_NO_HAN_NOUN = listed(
    "助手 大家 地方 时间 时候 地点 事情 问题 东西 有人 别人 朋友 同学 老师 老板 孩子 家里 家人"
    " 爸妈 下午 晚上 早上 上午 中午 记录 今天 明天 昨天 通知 消息 群里 办法 结果 意见 小时"
    " 汇总 目前 没事 辛苦 欢迎 感谢 电话 微信 价格 价钱 费用 预算 名单 人数 方案 情况 原因"
    " 机会 心情 身体 天气 周末 号线 地铁 照片 视频 报名 安排 准备 负责人 自己 咱们 一楼 二楼"
    " 楼下 楼上 门口 票 钱 公司 医生 手机 车子 开车 吃饭 上班 下班 名字 位置 人均"
)


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation is about; `words` name it or go with it.

    It `opens` the conversation, or `fills` it, or is only a part of it.
    """

    name: str
    words: frozenset[str]
    fills: bool
    opens: bool = False


class _Found(msgspec.Struct):
    """A matter or a noun, and the turns that name it or hold what goes with it."""

    named: list[int]
    touched: list[int]
    words: Counter[str]
    with_it: set[str]

    def people(self, turns: Sequence[Evidence]) -> int:
        return len({turns[one].speaker_id or turns[one].speaker_name for one in self.named})

    def points(self, turns: Sequence[Evidence]) -> int:
        """Returns what speaks for a matter, 0 where that is not enough."""
        if not self.named:
            return 0
        people, opens = self.people(turns), max(0, _OPENING - self.named[0])
        again = people > 1 or len(self.named) > 1
        enough = _LEAST_TOUCHED_AFTER_OPENING if opens else _LEAST_TOUCHED
        if not again and len(self.touched) < enough:
            return 0
        points = _NAMED * len(self.named) + _SHARED * (people - 1) + _OPENS * opens
        return points + _TOUCHED * min(len(self.touched), _LEAST_TOUCHED)

    def fills(self, turns: Sequence[Evidence]) -> bool:
        return _is_filled(len({*self.named, *self.touched}), len(turns))


def theme_of(turns: Sequence[Evidence], people: People) -> Theme | None:
    """Returns what a conversation is about, None where nothing stands out.

    What an assistant says counts for nothing: it only says again.
    """
    said = [turn for turn in turns if turn.role == "user"]
    texts = [turn.text for turn in said]
    chinese = is_chinese("\n".join(texts))
    found = _matters(texts, chinese=chinese)
    points = {name: one.points(said) for name, one in found.items()}
    best = max(
        points, key=lambda name: (points[name], -min(found[name].named, default=0)), default=""
    )
    if not points.get(best):
        unnamed = _unnamed(found, said, chinese=chinese)
        return unnamed or _noun(said, texts, people, chinese=chinese)
    one = found[best]
    word = max(one.words, key=lambda word: one.words[word])  # of equals the first
    # Of "climber" and “骑” the matter is climbing and 骑行.
    plain = best if best[:_STEM] == word[:_STEM] or len(word) == 1 else word
    name = (best if len(word) == 1 else word) if chinese else _with_word_before(plain, texts)
    return Theme(
        name=name,
        words=frozenset({*one.words, *one.with_it}),
        fills=one.fills(said),
        opens=one.named[0] < _OPENING,
    )


def theme_called(name: str, turns: Sequence[Evidence]) -> Theme:
    """Returns the theme of that name, which `turns` may be about."""
    texts = [turn.text for turn in turns if turn.role == "user"]
    words = words_of(name, chinese=is_chinese(name))
    one = Theme(name=name, words=words, fills=False)
    held = sum(touches(one, text) for text in texts)
    return msgspec.structs.replace(one, fills=_is_filled(held, len(texts)))


def _is_filled(held: int, turns: int) -> bool:
    return held >= max(min(_FILLS_TURNS, turns / 2), _FILLS_SHARE * turns)


def touches(theme: Theme, text: str) -> bool:
    """Returns whether a text holds a word of a theme."""
    if is_chinese(text):
        return any(word in text for word in theme.words)
    return not theme.words.isdisjoint(map(singular, _SMALL.findall(text.casefold())))


def names_another(text: str) -> bool:
    """Returns whether a text that touches no theme names a matter of its own."""
    chinese = is_chinese(text)
    return any(one.names and len(one.word) > 1 for one in held_in(text, chinese=chinese, own=True))


def _matters(texts: Sequence[str], *, chinese: bool) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for number, text in enumerate(texts):
        helds = held_in(text, chinese=chinese)
        naming = {one.matter for one in helds if one.names}
        for one in helds:
            mine = found.setdefault(one.matter, _Found([], [], Counter(), set()))
            _count(mine, one, number, named=one.matter in naming)
    return found


def _count(mine: _Found, one: Held, number: int, *, named: bool) -> None:
    if one.names:
        mine.words[one.word] += 1
    else:
        mine.with_it.add(one.word)
    turns = mine.named if named else mine.touched
    if number not in turns[-1:]:
        turns.append(number)


def _unnamed(
    found: Mapping[str, _Found], said: Sequence[Evidence], *, chinese: bool
) -> Theme | None:
    """Returns a matter that nobody names, where what goes with it leaves no other.

    A wedding has vows, a caterer and RSVPs.
    """
    known = sorted(found, key=lambda name: (-len(found[name].with_it), name))
    if not known:
        return None
    best, one = known[0], found[known[0]]
    next_to = len(found[known[1]].with_it) if len(known) > 1 else 0
    people = {said[turn].speaker_id or said[turn].speaker_name for turn in one.touched}
    plain = len(one.with_it) >= max(_LEAST_SIGNS, _AHEAD * next_to)
    if not plain or len(people) < _LEAST_SIGN_PEOPLE:
        return None
    words = words_of(best, chinese=chinese)
    return Theme(name=best.replace("-", " "), words=words, fills=one.fills(said))


def _noun(
    said: Sequence[Evidence], texts: Sequence[str], people: People, *, chinese: bool
) -> Theme | None:
    """Returns a noun that nearly everybody comes back to."""
    found: dict[str, _Found] = {}
    for number, noun in _han_nouns(texts) if chinese else _nouns(texts):
        if not people.knows(noun) and not people.knows(noun.capitalize()):
            mine = found.setdefault(noun, _Found([], [], Counter(), set()))
            mine.named.append(number)
    kept = {
        noun: len(one.named)
        for noun, one in found.items()
        if len(one.named) >= _LEAST_TURNS and one.people(said) >= _LEAST_PEOPLE
    }
    best = max(kept, key=lambda noun: (kept[noun], -found[noun].named[0], noun), default=None)
    if best is None:
        return None
    name = best if chinese else _with_word_before(best, texts)
    return Theme(name=name, words=frozenset({best}), fills=found[best].fills(said))


def _nouns(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yields the turns that hold each noun: a word that stands behind an article somewhere."""
    nouns = {
        noun
        for text in texts
        for phrase in _PHRASE.findall(text)
        if (noun := singular(phrase.split()[-1])) not in _NO_NOUN
    }
    for number, text in enumerate(texts):
        for noun in dict.fromkeys(map(singular, _SMALL.findall(text))):
            if noun in nouns:
                yield number, noun


def _han_nouns(texts: Sequence[str]) -> Iterator[tuple[int, str]]:
    nouns = {noun for text in texts for noun in things(text) if noun not in _NO_HAN_NOUN}
    for number, text in enumerate(texts):
        for noun in sorted(nouns):
            if noun in text:
                yield number, noun


def _with_word_before(noun: str, texts: Iterable[str]) -> str:
    """Returns a noun with the word that says what kind it is: "winter concert"."""
    text = "\n".join(texts).casefold()
    plural = rf"\b([a-zà-ÿ]{{3,}}) {re.escape(noun)}(?:e?s)?\b"
    before = Counter(
        word for word in re.findall(plural, text) if word not in _NO_NOUN and word[-2:] != "ly"
    )
    article = rf"\b(?:the|our|this|next) ([a-zà-ÿ]{{3,}}) {re.escape(noun)}\b"
    before.update(word for word in re.findall(article, text) if word in before)
    word, n = max(before.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return f"{word} {noun}" if n > 1 else noun
