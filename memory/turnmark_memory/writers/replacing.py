"""Finds the fact that a new one puts out of date: another value, another choice, an end of it.

Every fact that memory holds gets points for what links it with the new one and for what says that
both can't hold. The points were learnt from labelled conversations by
`benchmarks/writer_learn.py`; the best fact is replaced if it has enough of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from turnmark_memory.writers import value_kinds, values
from turnmark_memory.writers.changes import NO, leaves
from turnmark_memory.writers.gists import Gist
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.sameness import new_signs

# A fact of more words is likely to be several: one of them does not end the others.
_MANY_WORDS = 8
_MOST_WORDS = 20
# Words that say that something is said again, and nothing else.
_AGAIN = listed(
    "reminder remind remember still again repeat mention know"
    " 记 记着 记住 记得 千万 千万别 提醒 再说 一遍 强调 重申 还是 再次"
)
_AGAIN_HAN = frozenset("".join(word for word in _AGAIN if word >= "\u3400"))
# Who likes one thing, or keeps one animal, may another, too.
_LIKES = re.compile(r"\b(?:likes?|loves?|enjoys?|hates?|dislikes?)\b|喜欢|爱[吃喝看听玩]|讨厌|养")
# Who has moved lives there no longer: of one person, not of "Robin's sister"; no plan to move, no
# move "to the finance team".
_LIVES = re.compile(
    r"^[^\s'’]+(?: (?:now|currently|still))? (?:lives?|is based) (?:in|at|near)\b"
    r"|^[^的，,]{1,8}?(?:现在)?住[在着]?(?!院)"
)
_HAS_MOVED = re.compile(
    r"^[^\s'’]+(?: (?:has|have|just|now))* moved to (?!(?:the|an?|another|tears)\b)"
    r"|^[^\s'’]+(?: now)? lives? (?:in|at|near)(?: \S+){1,3} now\b"
    r"|^[^的，,]{1,8}?(?:已经)?(?:搬[到去进]了|搬[到去进][^，,。]{1,12}了)"
)
# "Instead of Tuesday" and "from Oslo to Bergen" leave nothing open.
_PLAINLY_LEFT = 7.0

POINTS: Final[Mapping[str, float]] = {
    "any": -3.11,
    "rarest word": 0.52,
    "second word": 0.85,
    "concept": 0.79,
    "new begins with it": 0.48,
    "old begins with it": 0.30,
    "left": 0.26,
    "same value": 0.70,
    "changed": 0.54,
    "said in this batch": -1.42,
    "same topic": 0.25,
    "same person": 0.62,
    "other person": -0.71,
    "word and changed": 0.43,
    "many words": -0.44,
    "words of the old": -0.66,
    "no word": -0.10,
    "only words": -0.53,
    "nothing says so": -0.46,
    "other value": 0.18,
    "other day": 0.04,
    "rare kind of value": 0.63,
    "rarest words of all": 0.59,
    "rarest word around": 0.97,
    "most words": 0.37,
    "rarest and changed": 0.50,
}
"""What each trait of a pair of facts counts."""

ENOUGH: Final = 0.4
"""So many points replace a fact: a wrong end hides what is true, so more than speak for it just so.
From 0 to 0.4 the half `learn` loses a tenth of what it finds, and the examples all wrong ones."""

ENOUGH_BESIDE: Final = 1.2
"""For a fact that nothing in the turns pointed at, and that does not count: its words look rarer
than they are. With 0.4 as for others, the examples had wrong ends again."""

_NO_DAYS = frozenset({value_kinds.MONTH})
_DAYS = frozenset({value_kinds.DAY, value_kinds.WEEKDAY, value_kinds.MONTH})


class Fact(msgspec.Struct, kw_only=True, eq=False):
    """A fact that memory holds; `key` is for whoever put it there.

    `who` are the names of whoever it is about or spoke. `label` is the turn that said it, "" of
    what memory held before.
    """

    gist: Gist
    topic: str
    who: frozenset[str]
    label: str = ""
    key: object = None


class _Link(msgspec.Struct, frozen=True):
    """The words that two facts share, and how rare the rarest are: 1 if no other fact has them."""

    shared: frozenset[str]
    first: float
    second: float
    around: float


class Pile:
    """The facts that a new one may replace. Not shared between threads."""

    def __init__(self) -> None:
        self._facts: dict[int, Fact] = {}
        self._counted: dict[int, Fact] = {}
        self._words: Counter[str] = Counter()
        self._concepts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()

    def add(self, fact: Fact, *, counts: bool = True) -> None:
        """Takes a fact in; one that doesn't count says nothing of how rare words are.

        How much a rare word says was learnt among facts that the turns themselves pointed at.
        """
        self._facts[id(fact)] = fact
        if not counts:
            return
        self._counted[id(fact)] = fact
        self._words.update(fact.gist.words)
        self._concepts.update(fact.gist.concepts)
        self._kinds.update(fact.gist.values.keys())

    def remove(self, fact: Fact) -> None:
        """Takes a fact out that holds no longer; it goes on counting for how rare words are."""
        self._facts.pop(id(fact), None)
        self._counted.pop(id(fact), None)

    def replaced_by(self, new: Fact) -> Fact | None:
        """Returns the fact that `new` puts out of date, None if none is plain enough.

        Compares with each fact: some 20 microseconds for one.
        """
        if (left := self._home_left(new)) is not None:
            return left
        best, most = None, 0.0
        for fact, traits in self.rated(new):
            points = sum(POINTS[name] * trait for name, trait in traits.items())
            enough = ENOUGH if id(fact) in self._counted else ENOUGH_BESIDE
            if points >= max(most, enough):
                best, most = fact, points
        return best

    def _home_left(self, new: Fact) -> Fact | None:
        """Returns the home of the same person's that they have moved from."""
        if not (_is_of_self(new) and _HAS_MOVED.search(new.gist.text)):
            return None
        homes = (
            old
            for old in self._facts.values()
            if old.topic == new.topic
            and (not new.label or old.label != new.label)
            and _is_of_self(old)
            and _LIVES.search(old.gist.text)
        )
        return next(homes, None)

    def rated(self, new: Fact) -> Iterator[tuple[Fact, dict[str, float]]]:
        """Yields the facts of other turns that have anything to do with `new`, with the traits."""
        olds = [old for old in self._facts.values() if not new.label or old.label != new.label]
        links = [self._link(new, old) for old in olds]
        best = max((link.first + link.second for link in links), default=0.0)
        around = max((link.around for link in links), default=0.0)
        most = max((len(link.shared) for link in links), default=0)
        for old, link in zip(olds, links, strict=True):
            if traits := self._traits(new, old, link):
                traits["rarest words of all"] = float(0 < link.first + link.second >= best)
                traits["rarest word around"] = float(0 < link.around >= around)
                traits["most words"] = float(0 < len(link.shared) >= most)
                traits["rarest and changed"] = traits["rarest words of all"] * new.gist.change
                yield old, traits

    def _link(self, new: Fact, old: Fact) -> _Link:
        shared = _shared(new.gist, old.gist) - new.who
        around = _shared_around(new.gist, old.gist) - new.who - shared
        rare = sorted((self._rarity(word) for word in shared), reverse=True)
        first, second = (*rare, 0.0, 0.0)[:2]
        return _Link(shared, first, second, max(map(self._rarity, around), default=0.0))

    def _rarity(self, word: str) -> float:
        """Returns 1 for a word that one fact has, 1/n for one that n have."""
        n = self._words[word]
        if word >= "\u3400":  # a Chinese word may be a part of another
            n = max(n, sum(word in fact.gist.text for fact in self._counted.values()))
        return 1 / max(1, n)

    def _traits(self, new: Fact, old: Fact, link: _Link) -> dict[str, float]:
        """Returns the traits of a pair, none if the two have nothing in common."""
        fresh, known = new.gist, old.gist
        if not fresh.change and _LIKES.search(fresh.text) and _LIKES.search(known.text):
            return {}
        concepts = fresh.concepts & known.concepts
        other = values.others(fresh.values, known.values)
        if not (link.shared or concepts or other or link.around):
            return {}
        same = values.agreeing(fresh.values, known.values) - _NO_DAYS
        n_words = max(1, len(set(known.words) - old.who))
        change = fresh.change
        mine = not new.who.isdisjoint(old.who) or any(name in known.text for name in new.who)
        named = any(name in fresh.text for name in old.who)
        return {
            "any": 1.0,
            "rarest word": link.first,
            "second word": link.second,
            "concept": max((1 / max(1, self._concepts[one]) for one in concepts), default=0.0),
            "new begins with it": float(_first(fresh, new.who) in link.shared),
            "old begins with it": float(_first(known, new.who) in link.shared),
            "left": _left(fresh, known, link.shared),
            "same value": float(bool(same)),
            "changed": float(change > NO),
            "said in this batch": float(bool(old.label)),
            "same topic": float(new.topic == old.topic),
            "same person": float(mine),
            "other person": float(bool(old.who) and not mine and not named),
            "word and changed": link.first * change,
            "many words": float(n_words > _MANY_WORDS),
            "words of the old": min(n_words, _MOST_WORDS) / 10,
            "no word": float(not link.shared),
            "only words": float(bool(link.shared) and not concepts and not other),
            "nothing says so": float(not other and not change),
            "other value": float(bool(other) and not same),
            "other day": float(_gives_other_day(fresh, known, same)),
            "rare kind of value": 0.0
            if same
            else max((1 / max(1, self._kinds[one]) for one in other), default=0.0),
        }


def repeats(new: Gist, old: Gist) -> bool:
    """Returns whether a fact that is about the same as an older one says nothing else of it."""
    if new.left or new.negated != old.negated or values.others(new.values, old.values):
        return False
    if new.values.keys() - old.values.keys():
        return False
    is_left = any(leaves(new.text, word) for word in _shared(new, old))
    fresh = [word for word in new.words if word not in old.text and word not in _AGAIN]
    return not (fresh or new_signs(new.text, old.text) - _AGAIN_HAN or is_left)


def _is_of_self(fact: Fact) -> bool:
    """Returns whether a fact begins with the person whose page it is on."""
    selves = (*fact.who, "i ", "i've ", "我")
    return fact.topic.startswith("people/") and fact.gist.text.startswith(selves)


def _shared(new: Gist, old: Gist) -> frozenset[str]:
    shared = frozenset(new.words).intersection(old.words)
    if new.chinese and old.chinese:
        shared |= {word for word in new.words if word in old.text}
        shared |= {word for word in old.words if word in new.text}
    return shared


def _shared_around(new: Gist, old: Gist) -> frozenset[str]:
    if not new.around and not old.around:
        return frozenset()
    shared = (
        new.around.intersection(old.words)
        | old.around.intersection(new.words)
        | (new.around & old.around)
    )
    if new.chinese and old.chinese:
        shared |= {word for word in new.around if word in old.text}
        shared |= {word for word in old.words if word in new.around_text}
    return shared


def _left(new: Gist, old: Gist, shared: Iterable[str]) -> float:
    """Returns how much says that something of the old fact is done with: naming it is plainest."""
    if new.left and values.agreeing(new.left, old.values):
        return _PLAINLY_LEFT
    if not new.left_words.isdisjoint(old.words):
        return _PLAINLY_LEFT
    return float(any(leaves(new.text, word) for word in shared))


def _first(gist: Gist, names: Iterable[str]) -> str:
    """Returns the first word that says something, and is no name of whoever it is about."""
    return next((word for word in gist.words if word not in names), "")


def _gives_other_day(new: Gist, old: Gist, same: frozenset[str]) -> bool:
    """Returns whether both give days, as dates or as weekdays, and no day is the same."""
    both = not _DAYS.isdisjoint(new.values) and not _DAYS.isdisjoint(old.values)
    return both and _DAYS.isdisjoint(same)
