"""Finds the page of a group's conversation, so that its statements stand on one that grows.

What it is called comes first, then the page where its words stand already, then what memory knows
and several turns name, then the noun that it is about (`themes.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from turnmark_memory.model import Batch, Evidence
from turnmark_memory.writers.people import People
from turnmark_memory.writers.sentences import is_chinese
from turnmark_memory.writers.slugs import slug_of
from turnmark_memory.writers.themes import Theme, names_another, theme_called, theme_of, touches
from turnmark_memory.writers.titles import matter_of

_SUBJECTS = "subjects/"
# A page that several turns name is what they talk about.
_RECURRING = 2

_HAN = re.compile(r"[\u3400-\u9fff]")


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
        self._found: dict[tuple[str, str], _Subject | None] = {}

    def of(self, turn: Evidence, text: str) -> str | None:
        """Returns the topic of what `turn` says with `text` in a group, None where there is none.

        A page of memory that `text` names comes before the conversation's own.
        """
        key = (turn.namespace, turn.session)
        if key not in self._found:
            mine = [one for one in self._batch.turns if (one.namespace, one.session) == key]
            self._found[key] = self._subject(mine)
        subject = self._found[key]
        if subject is None:
            return None
        if known := self._named_in(text):
            return known
        theme = subject.theme
        if theme is None or touches(theme, text) or touches(theme, turn.text):
            return subject.topic
        return subject.topic if theme.fills and not names_another(text) else None

    def is_group(self, turn: Evidence) -> bool:
        """Returns whether several people speak in the conversation of `turn`."""
        return len(self._speakers(turn)) > 1

    def _speakers(self, turn: Evidence) -> set[str | None]:
        return {
            one.speaker_id or one.speaker_name
            for one in self._batch.turns
            if one.role == "user" and (one.namespace, one.session) == (turn.namespace, turn.session)
        }

    def _named_in(self, text: str) -> str | None:
        """Returns the longest subject of memory that `text` names."""
        words = f"-{slug_of(text, longest=len(text) * 2 + 1)}-"
        named = [topic for topic in self._known if _is_named(topic, words)]
        return max(named, key=len, default=None)

    def _subject(self, turns: Sequence[Evidence]) -> _Subject | None:
        speakers = self._speakers(turns[0])
        helped = any(one.role == "assistant" for one in turns)
        if len(speakers - {None}) > 1 and (called := self._called(turns)):
            return _Subject(called, None)
        if len(speakers) <= (1 if helped else 2):
            return None
        if self._batch.usual:
            return _of_memory(self._batch.usual[0], turns)
        text = "\n".join(turn.text for turn in turns)
        words = f"-{slug_of(text, longest=len(text) * 2 + 1)}-"
        counts = {topic: words.count(topic.removeprefix(_SUBJECTS)) for topic in self._known}
        best = max(counts, key=lambda topic: counts[topic], default=None)
        if best is not None and counts[best] >= _RECURRING and _is_named(best, words):
            return _of_memory(best, turns)
        theme = theme_of(turns, self._people)
        if theme is None or not slug_of(theme.name):
            return None
        return _Subject(f"{_SUBJECTS}{slug_of(theme.name)}", theme)

    def _called(self, turns: Sequence[Evidence]) -> str | None:
        """Returns the topic that the title names; one of memory, where they share their words."""
        slug = slug_of(
            matter_of(
                turns[0].title,
                speakers=[one.speaker_name or "" for one in turns],
                first=turns[0].text,
                chinese=is_chinese("\n".join(turn.text for turn in turns)),
            )
        )
        if not slug:
            return None
        topic = f"{_SUBJECTS}{slug}"
        known = (*self._batch.usual, *self._known)
        if topic in known:
            return topic
        return next((one for one in known if _is_same(one.removeprefix(_SUBJECTS), slug)), topic)


class _Subject(msgspec.Struct, frozen=True):
    """The page of a conversation; without a theme all that it says stands there."""

    topic: str
    theme: Theme | None


def _of_memory(topic: str, turns: Sequence[Evidence]) -> _Subject:
    name = topic.removeprefix(_SUBJECTS).replace("-", " ")
    return _Subject(topic, theme_called(name, turns))


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
