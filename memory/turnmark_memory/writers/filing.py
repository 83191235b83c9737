"""Chooses where a statement goes: the topic that it is about, and the heading of its kind."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from turnmark_memory.model import Batch, Evidence
from turnmark_memory.writers.dates import MONTHS, WEEKDAYS
from turnmark_memory.writers.statements import Statement

# Long enough for a name, short enough for every file system once it is UTF-8.
_LONGEST_SLUG = 48
# A name that comes up so often in one batch is a subject of its own.
_RECURRING = 2

_ENGLISH_HEADINGS = {
    "preference": "Preferences",
    "decision": "Decisions",
    "plan": "Plans",
    "fact": "Facts",
}
_CHINESE_HEADINGS = {"preference": "偏好", "decision": "决定", "plan": "计划", "fact": "事实"}

_NAME = re.compile(
    r"(?<=[a-z0-9,] )[A-Z][A-Za-z0-9]{2,}|(?<=[\u3400-\u9fff])\s*[A-Z][A-Za-z0-9]{2,}"
)
# Windows opens a device for these names, so no topic can have one.
_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d")
# Capitalised for other reasons than being a subject.
_NO_SUBJECT = frozenset({*WEEKDAYS, *(month.casefold() for month in MONTHS), "english", "chinese"})


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """What filing must know of a batch: subjects that recur in it, and the topics there are.

    `subjects` and `people` map a slug to its topic.
    """

    subjects: Mapping[str, str]
    people: Mapping[str, str]


def shelf_of(batch: Batch, statements: Iterable[Statement]) -> Shelf:
    """Returns the shelf of `batch`, in which `statements` were made."""
    topics = [topic.removesuffix(".md") for topic, _ in batch.topics]
    topics += [block.topic for block in batch.blocks]
    counts = Counter(
        slug_of(name) for statement in statements for name in set(_names_in(statement.text))
    )
    subjects = {slug: f"subjects/{slug}" for slug, n in counts.items() if n >= _RECURRING}
    return Shelf(
        subjects=subjects | _under("subjects", topics) | _under("projects", topics),
        people=_under("people", topics),
    )


def topic_of(statement: Statement, turn: Evidence, shelf: Shelf) -> str:
    """Returns the topic of what `turn`'s speaker stated."""
    if statement.person:
        return _person(statement.person)
    if statement.personal and turn.role == "user":
        return _person(turn.speaker_name or turn.speaker_id or "")
    slugs = [slug_of(name) for name in _names_in(statement.text)]
    known = next((shelf.people[slug] for slug in slugs if slug in shelf.people), None)
    if known:
        return known
    project = slug_of(_basename(turn.project or ""))
    if project:
        return f"projects/{project}"
    return next(
        (shelf.subjects[slug] for slug in slugs if slug in shelf.subjects), "subjects/notes"
    )


def heading_of(statement: Statement) -> str:
    """Returns the heading of the statement's kind, in its language."""
    return (_CHINESE_HEADINGS if statement.chinese else _ENGLISH_HEADINGS)[statement.kind]


def slug_of(name: str) -> str:
    """Returns `name` as a file name: lower case letters and digits of any script, and dashes.

    "" where `name` has neither letters nor digits.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    signs = (sign if sign.isalnum() else "-" for sign in folded)
    slug = "-".join("".join(signs).replace("-", " ").split())[:_LONGEST_SLUG].strip("-")
    return f"{slug}-" if _DEVICE.fullmatch(slug) else slug


def _person(name: str) -> str:
    return f"people/{slug_of(name) or 'user'}"


def _basename(path: str) -> str:
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def _under(kind: str, topics: Iterable[str]) -> dict[str, str]:
    prefix = f"{kind}/"
    return {topic[len(prefix) :]: topic for topic in topics if topic.startswith(prefix)}


def _names_in(text: str) -> list[str]:
    names = (found.strip() for found in _NAME.findall(text))
    return [name for name in names if name.casefold() not in _NO_SUBJECT]
