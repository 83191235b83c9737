"""Chooses where a statement goes: the topic that it is about, and the heading of its kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

from turnmark_memory.headings import PEOPLE, PROJECTS, is_headed_in_chinese
from turnmark_memory.model import Batch, Evidence
from turnmark_memory.writers.cues import Kind
from turnmark_memory.writers.dates import MONTHS, WEEKDAYS
from turnmark_memory.writers.people import People, kin_called
from turnmark_memory.writers.slugs import slug_of
from turnmark_memory.writers.subjects import Subjects

# A name that comes up so often in one batch is a subject of its own.
_RECURRING = 2
_NAME = re.compile(
    r"(?<=[a-z0-9,] )[A-Z][A-Za-z0-9]{2,}|(?<=[\u3400-\u9fff])\s*[A-Z][A-Za-z0-9]{2,}"
)
# What somebody says of their own life where they leave themselves out, as in chats.
_OWN_LIFE = re.compile(
    r"退休|石膏|骨折|骨裂|怀孕|预产期|手术|住院|感冒|发烧|过敏|辞职|离职|跳槽|入职|转岗|换岗|下岗|升职|出差|毕业|分手"
    r"|离婚|高反|近视|膝盖|腰疼|牙疼|大夫|医生"
    r"|\b(?:allergic|pregnant|vegetarian|vegan|sprained|surgery)\b",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(r"[他她您你]|我们|咱|大家|谁|\b(?:he|she|they|we|you|who)\b", re.IGNORECASE)
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
        self._speakers = _speakers(batch.turns)
        self._names = _recurring_names(batch.turns, people)
        self._subjects = Subjects(batch, people)
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
        own = private or not project or _OWN_LIFE.search(text) is not None
        if personal and turn.role == "user" and own:
            return self.speaker(turn)
        if project:
            return f"projects/{project}"
        if self._subjects.is_group(turn):
            return self._in_group(text, turn)
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

    def _in_group(self, text: str, turn: Evidence) -> str:
        """Returns the group's page for what is its matter, else that of whoever it is about."""
        if kin := kin_called(text):
            return self._person(kin)
        if turn.role == "user" and _OWN_LIFE.search(text) and not _OF_OTHERS.search(text):
            return self.speaker(turn)
        return self._subjects.of(turn, text) or self.speaker(turn)

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


def _basename(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _names_in(text: str) -> list[str]:
    names = (found.strip() for found in _NAME.findall(text))
    return [name for name in names if name.casefold() not in _NO_SUBJECT]
