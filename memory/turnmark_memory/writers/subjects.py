"""Finds the page of a group's conversation, so that its statements stand on one that grows.

What it is called comes first, then the page where its words stand already, then what memory knows
and several turns name, then the noun that it is about (`themes.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnmark_memory.model import Batch, Evidence
from turnmark_memory.writers.people import People
from turnmark_memory.writers.sentences import is_chinese
from turnmark_memory.writers.slugs import slug_of
from turnmark_memory.writers.themes import Theme, names_another, theme_called, theme_of, touches
from turnmark_memory.writers.titles import matter_of, name_given

_SUBJECTS = "subjects/"
# A page that several turns name is what they talk about.
_RECURRING = 2
# A page that took so much of what they said goes on taking what has no other page.
_FILLING_SHARE = 0.5
# So many turns may open a group.
_OPENING = 3
# So many pages of its own a group goes on with, the largest first.
_MOST_PAGES = 3
_HAN = re.compile(r"[\u3400-\u9fff]")


# A page of others is meant only where its name is hardly an everyday word.
_SPECIFIC_WORDS, _SPECIFIC_HAN = 2, 3


class _Page(msgspec.Struct, frozen=True):
    """A page of a conversation; without a theme all that is said there stands on it."""

    topic: str
    theme: Theme | None

    def is_about(self, text: str) -> bool:
        return self.theme is None or touches(self.theme, text)


class Subjects:
    """The subjects of the conversations of one batch; each is looked for once."""

    def __init__(self, batch: Batch, people: People) -> None:
        self._batch = batch
        self._people = people
        shown = (block.topic for block in batch.blocks)
        self._known = [
            topic.removesuffix(".md")
            for topic in dict.fromkeys((*(topic for topic, _ in batch.topics), *shown))
            if topic.startswith(_SUBJECTS)
        ]
        self._usual = [topic for topic, _ in batch.usual]
        self._talks: dict[tuple[str, str], list[Evidence]] = {}
        for turn in batch.turns:
            self._talks.setdefault((turn.namespace, turn.session), []).append(turn)
        self._speakers = {key: _speakers(turns) for key, turns in self._talks.items()}
        self._found: dict[tuple[str, str], tuple[_Page, ...]] = {}

    def of(self, turn: Evidence, text: str) -> str | None:
        """Returns the topic of what `turn` says with `text` in a group, None where there is none.

        A page that `text` names comes first, then what its words or those of the turn touch, then
        the page that fills the conversation.
        """
        key = (turn.namespace, turn.session)
        if key not in self._found:
            self._found[key] = tuple(self._pages(self._talks[key], self._speakers[key]))
        pages = self._found[key]
        if not pages:
            return None
        if named := self._named_in(text, pages):
            return named
        about = (page for words in (text, turn.text) for page in pages if page.is_about(words))
        if page := next(about, None):
            return page.topic
        filling = (page.topic for page in pages if page.theme and page.theme.fills)
        return None if names_another(text) else next(filling, None)

    def is_group(self, turn: Evidence) -> bool:
        """Returns whether several people speak in the conversation of `turn`."""
        return len(self._speakers[turn.namespace, turn.session]) > 1

    def _named_in(self, text: str, pages: Sequence[_Page]) -> str | None:
        """Returns the longest subject of memory that `text` names, of theirs or unmistakable."""
        words = f"-{slug_of(text, longest=len(text) * 2 + 1)}-"
        ours = {page.topic for page in pages}.union(self._usual)
        named = [
            topic
            for topic in self._known
            if (topic in ours or _is_specific(topic)) and _is_named(topic, words)
        ]
        return max(named, key=len, default=None)

    def _pages(self, turns: Sequence[Evidence], speakers: frozenset[str | None]) -> Iterator[_Page]:
        if len(speakers - {None}) > 1 and (called := self._called(turns)):
            yield _Page(called, None)
            return
        helped = any(one.role == "assistant" for one in turns)
        if len(speakers) <= (1 if helped else 2):
            return
        shares = self._batch.usual[:_MOST_PAGES]
        usual = [_of_memory(topic, turns, share) for topic, share in shares]
        yield from usual
        filled = any(page.theme and page.theme.fills for page in usual)
        if filled or any(page.is_about(turn.text) for page in usual for turn in turns):
            return
        if not usual and (known := self._talked_of(turns)):
            yield _of_memory(known, turns)
            return
        theme = theme_of(turns, self._people)
        # A part of a conversation begins no page: it would have one paragraph.
        if theme and (theme.opens or theme.fills) and (slug := slug_of(theme.name)):
            yield _Page(self._known_as(slug), theme)

    def _talked_of(self, turns: Sequence[Evidence]) -> str | None:
        """Returns the subject of memory that the turns name most, and more than once."""
        text = "\n".join(turn.text for turn in turns)
        words = f"-{slug_of(text, longest=len(text) * 2 + 1)}-"
        counts = {topic: words.count(topic.removeprefix(_SUBJECTS)) for topic in self._known}
        best = max(counts, key=lambda topic: counts[topic], default="")
        is_theirs = counts.get(best, 0) >= _RECURRING and _is_named(best, words)
        return best if is_theirs else None

    def _called(self, turns: Sequence[Evidence]) -> str | None:
        """Returns the topic that the title names, or a message that opens the group."""
        names = [one.speaker_name or "" for one in turns]
        chinese = is_chinese("\n".join(turn.text for turn in turns))
        said = [turn.text for turn in turns[:_OPENING]]
        opening = ""
        if not (self._usual or turns[0].after):
            opening = next((given for text in said if (given := name_given(text))), "")
        for title, first in ((turns[0].title, said[0]), (opening, "")):
            if slug := slug_of(matter_of(title, speakers=names, first=first, chinese=chinese)):
                return self._known_as(slug)
        return None

    def _known_as(self, slug: str) -> str:
        """Returns the topic of that name, or one of theirs that shares its words."""
        topic = f"{_SUBJECTS}{slug}"
        if topic in self._known:
            return topic
        return next(
            (one for one in self._usual if _is_same(one.removeprefix(_SUBJECTS), slug)), topic
        )


def _speakers(turns: Iterable[Evidence]) -> frozenset[str | None]:
    return frozenset(one.speaker_id or one.speaker_name for one in turns if one.role == "user")


def _of_memory(topic: str, turns: Sequence[Evidence], share: float = 0.0) -> _Page:
    theme = theme_called(topic.removeprefix(_SUBJECTS).replace("-", " "), turns)
    fills = theme.fills or share >= _FILLING_SHARE
    return _Page(topic, msgspec.structs.replace(theme, fills=fills))


def _is_specific(topic: str) -> bool:
    slug = topic.removeprefix(_SUBJECTS)
    return len(slug.split("-")) >= _SPECIFIC_WORDS or len(_HAN.findall(slug)) >= _SPECIFIC_HAN


def _is_same(one: str, other: str) -> bool:
    """Returns whether two slugs name one thing: all words of one are of the other."""
    mine, others = set(one.split("-")), set(other.split("-"))
    if mine <= others or others <= mine:
        return True
    return bool(_HAN.search(one)) and (one in other or other in one)


def _is_named(topic: str, words: str) -> bool:
    slug = topic.removeprefix(_SUBJECTS)
    if _HAN.search(slug):
        return slug in words
    return f"-{slug}-" in words or f"-{slug}s-" in words
