"""Chooses where a statement goes: the topic that it is about, and the heading of its kind."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from turnmark_memory.headings import PEOPLE, PROJECTS, is_headed_in_chinese
from turnmark_memory.model import Batch, Evidence
from turnmark_memory.writers.cues import Kind
from turnmark_memory.writers.dates import MONTHS, WEEKDAYS
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.people import People, nouns
from turnmark_memory.writers.sentences import is_chinese

# Long enough for a name, short enough for every file system once it is UTF-8.
_LONGEST_SLUG = 48
# A name that comes up so often in one batch is a subject of its own.
_RECURRING = 2
# A conversation says what it is about in its first turn, or later and comes back to it.
_LEAST_THEME = 3
# One that has a subject already needs more to have another.
_LEAST_NEW_THEME = 5

_NAME = re.compile(
    r"(?<=[a-z0-9,] )[A-Z][A-Za-z0-9]{2,}|(?<=[\u3400-\u9fff])\s*[A-Z][A-Za-z0-9]{2,}"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
# A word that counts something ("一楼") names none.
_HAN_SUBJECT = re.compile(r"(?![一二两三四五六七八九十几每这那])[\u3400-\u9fff]")
# What a conversation is about stands behind an article, perhaps with a word before it.
_NOUN = re.compile(r"\b(?:the|our|this|a|next|about) ([a-z]{3,})s?\b(?: ([a-z]{3,})\b)?")
_NO_NOUN = listed(
    "the and for our this that with from not your his her their its all any some no first"
    " last next same other time times thing things week weeks month months year years day days"
    " morning evening night weekend lot bit way people place point moment while best long"
    " future end start beginning everyone kind whole right idea note list summary decisions"
    " message question account days hours minutes group want need say said take make come goes"
    " give offer keep will would does did has had have was were are can could new old good"
    " may put use see now too yet who how why way per out off ago bot one two three few lot old"
    " great big small that this what them those these more some most much"
)
_NO_HAN_NOUN = listed(
    "助手 大家 地方 时间 时候 地点 事情 问题 东西 知道 没有 可以 觉得"
    " 出来 回来 下午 晚上 早上 上午 记录 不变 开始 已经 今天 明天 昨天 需要 请客 恭喜"
    " 哈哈 收到 谢谢 小时 分工 汇总 刚好 出发 目前 负责 看到 喜欢 应该 还是 就是 不是 还有"
)
# Windows opens a device for these names, so no topic can have one.
_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d")
# Capitalised for other reasons than being a subject.
_NO_SUBJECT = frozenset({*WEEKDAYS, *(month.casefold() for month in MONTHS), "english", "chinese"})


class Place(msgspec.Struct, frozen=True):
    """A topic and a heading of it."""

    topic: str
    heading: str


class Filing:
    """Files the statements of one batch; knows its people and subjects and the topics there are."""

    def __init__(self, batch: Batch, people: People) -> None:
        self._people = people
        self._abouts = {topic.removesuffix(".md"): about for topic, about in batch.topics}
        for block in batch.blocks:
            self._abouts.setdefault(block.topic, block.heading or "")
        self._shown = [block.topic for block in batch.blocks]
        self._speakers = _speakers(batch.turns)
        self._names = _recurring_names(batch.turns, people)
        self._subjects: dict[tuple[str, str], str | None] = {}
        self._groups: dict[tuple[str, str], bool] = {}
        self._turns = batch.turns
        self._chinese: dict[str, bool] = {}

    def topic_of(
        self,
        text: str,
        turn: Evidence,
        *,
        personal: bool,
        private: bool = True,
        person: str | None = None,
    ) -> str:
        """Returns the topic of what `turn`'s speaker said of themselves, of `person`, or of else.

        What is `personal` goes to a project all the same unless it is `private` too.
        """
        project = slug_of(_basename(turn.project or ""))
        if person:
            return self._person(self._people.whole(person))
        if personal and turn.role == "user" and (private or not project):
            return self.speaker(turn)
        if project:
            return f"projects/{project}"
        subject = self._subject(turn)
        if subject and (known := self._known_in(text)):
            return known
        if subject:
            return subject
        named = next((slug for slug in map(slug_of, _names_in(text)) if slug in self._names), None)
        known = next(
            (
                one
                for slug in map(slug_of, _names_in(text))
                if (one := f"subjects/{slug}") in self._abouts
            ),
            None,
        )
        return known or (f"subjects/{named}" if named else None) or self.speaker(turn)

    def _known_in(self, text: str) -> str | None:
        """Returns the longest subject of memory that `text` names."""
        folded = slug_of(text, longest=len(text) * 2 + 1)
        named = [
            topic
            for topic in self._abouts
            if topic.startswith("subjects/") and topic.partition("/")[2] in folded
        ]
        return max(named, key=len, default=None)

    def speaker(self, turn: Evidence) -> str:
        """Returns the topic of whoever spoke: by name, and by id too where two have one name."""
        if turn.role != "user":
            return "subjects/notes"
        name = turn.speaker_name or turn.speaker_id or ""
        path = self._person(name)
        if not turn.speaker_id or not turn.speaker_name:
            return path
        apart = self._person(f"{name} {turn.speaker_id}")
        return apart if apart in self._abouts or self._is_shared(turn) else path

    def _is_shared(self, turn: Evidence) -> bool:
        return len(self._speakers.get(slug_of(turn.speaker_name or ""), ())) > 1

    def _person(self, name: str) -> str:
        slug = slug_of(name)
        path = f"people/{slug or 'user'}"
        if path in self._abouts or not slug:
            return path
        longer = [one for one in self._abouts if one.startswith(f"{path}-")]
        return longer[0] if len(longer) == 1 else path

    def place(self, topic: str, kind: Kind, *, chinese: bool) -> Place:
        """Returns the heading for `kind` in the topic's one language."""
        if topic not in self._chinese:
            about = self._abouts.get(topic)
            self._chinese[topic] = is_headed_in_chinese(about) if about else chinese
        titles = PEOPLE if topic.startswith("people/") else PROJECTS
        return Place(topic, titles[kind][self._chinese[topic]])

    def _subject(self, turn: Evidence) -> str | None:
        """Returns what a group's conversation is about, None if one person speaks in it."""
        key = (turn.namespace, turn.session)
        if key not in self._subjects:
            mine = [one for one in self._turns if (one.namespace, one.session) == key]
            speakers = {one.speaker_id or one.speaker_name for one in mine if one.role == "user"}
            helped = any(one.role == "assistant" for one in mine)
            is_group = len(speakers) > (1 if helped else 2)
            self._subjects[key] = self._subject_of(mine) if is_group else None
            self._groups[key] = len(speakers) > 1
        return self._subjects[key]

    def _subject_of(self, turns: Sequence[Evidence]) -> str | None:
        text = "\n".join(turn.text for turn in turns)
        folded = slug_of(text, longest=len(text) * 2 + 1)
        known = [topic for topic in self._abouts if topic.startswith("subjects/")]
        counts = {topic: folded.count(topic.removeprefix("subjects/")) for topic in known}
        best = max(counts, key=lambda topic: counts[topic], default=None)
        if best is not None and counts[best] >= _RECURRING:
            return best
        if shown := Counter(topic for topic in self._shown if topic.startswith("subjects/")):
            return max(shown, key=lambda topic: (shown[topic], topic))
        word = _theme(turns, least=_LEAST_NEW_THEME if known else _LEAST_THEME)
        if word and slug_of(word):
            return f"subjects/{slug_of(word)}"
        return best if best and (counts[best] or len(known) == 1) else None


def slug_of(name: str, *, longest: int = _LONGEST_SLUG) -> str:
    """Returns `name` as a file name: lower case letters and digits of any script, and dashes.

    "" where `name` has neither letters nor digits.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    signs = (sign if sign.isalnum() else "-" for sign in folded)
    slug = "-".join("".join(signs).replace("-", " ").split())[:longest].strip("-")
    return f"{slug}-" if _DEVICE.fullmatch(slug) else slug


def _speakers(turns: Iterable[Evidence]) -> dict[str, set[str]]:
    """Returns the ids of those who speak, by the slug of their name."""
    found: dict[str, set[str]] = {}
    for turn in turns:
        if turn.role == "user" and turn.speaker_name and turn.speaker_id:
            found.setdefault(slug_of(turn.speaker_name), set()).add(turn.speaker_id)
    return found


def _recurring_names(turns: Iterable[Evidence], people: People) -> frozenset[str]:
    """Returns the slugs of names that several users' turns hold and that are nobody's."""
    counts: Counter[str] = Counter()
    for turn in turns:
        if turn.role == "user":
            counts.update(
                {slug_of(name) for name in _names_in(turn.text) if not people.knows(name)}
            )
    return frozenset(slug for slug, n in counts.items() if n >= _RECURRING)


def _theme(turns: Sequence[Evidence], *, least: int) -> str | None:
    """Returns the noun that most turns hold; the first turns count more."""
    texts = [turn.text for turn in turns]
    chinese = is_chinese("\n".join(texts))
    held = [_han_nouns(text) if chinese else _english_nouns(text) for text in texts]
    known = {noun for mine in held for noun in mine}
    plain = {noun for text in texts for noun in nouns(text, verbal=False)} if chinese else known
    scores: Counter[str] = Counter()
    first = next((number for number, mine in enumerate(held) if mine), 0)
    for number, text in enumerate(texts):
        weight = max(_LEAST_THEME - (number - first), 1)
        words = set(held[number]) if chinese else known.intersection(_singular(text))
        scores.update({word: weight * (2 if word in plain else 1) for word in words})
    order = {noun: -place for place, noun in enumerate(dict.fromkeys(n for m in held for n in m))}
    opening = set(held[first]) if first < _LEAST_THEME else set[str]()
    shared = [noun for noun in scores if noun in opening or _is_shared(noun, turns)]
    best = max(shared, key=lambda noun: (scores[noun], order[noun]), default=None)
    if best is None or scores[best] < 2 * least:
        return None
    return best if chinese else _with_word_before(best, "\n".join(texts).casefold())


def _is_shared(noun: str, turns: Sequence[Evidence]) -> bool:
    """Returns whether turns of more than one person hold a noun."""
    people = {
        turn.speaker_id or turn.speaker_name for turn in turns if noun in turn.text.casefold()
    }
    return len(people) > 1


def _english_nouns(text: str) -> list[str]:
    # "The winter concert" is about a concert.
    found = (word for one in _NOUN.finditer(text.casefold()) for word in one.groups()[::-1] if word)
    return [noun for word in found if (noun := word.removesuffix("s")) not in _NO_NOUN]


def _singular(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", text.casefold())}


def _with_word_before(noun: str, text: str) -> str:
    """Returns a noun with the word that stands before it more than once: "winter concert"."""
    before = Counter(
        word for word in re.findall(rf"\b([a-z]{{3,}}) {noun}s?\b", text) if word not in _NO_NOUN
    )
    word, n = max(before.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return f"{word} {noun}" if n > 1 else noun


def _han_nouns(text: str) -> list[str]:
    found = nouns(text) if _HAN.search(text) else []
    return [word for word in found if _HAN_SUBJECT.match(word) and word not in _NO_HAN_NOUN]


def _basename(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _names_in(text: str) -> list[str]:
    names = (found.strip() for found in _NAME.findall(text))
    return [name for name in names if name.casefold() not in _NO_SUBJECT]
