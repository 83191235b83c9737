"""Who said what a topic is about: turnmark, which may say it better, or a person, whose words stay.

A line that a model made of a topic's blocks may repeat them. So it goes when one of them is taken
back or forgotten, and the one that follows from the topic's name stands again until the next night.
Only digests are kept here, no words.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.rooted import Rooted
from turnmark_memory.topic_path import first_about, title_of
from turnmark_memory.words import clean_title
from turnmark_memory.workspace import PRIVATE, STAGING

log = structlog.get_logger(__name__)

ABOUTS_FILE: Final = f"{PRIVATE}/abouts.json"

_KEPT: Final = 8
"""Lines remembered of a topic: one that was undone, or is still held, is turnmark's as well."""


def plain_about(topic: str) -> str:
    """Returns what a topic is about as far as its name says it."""
    return clean_title(first_about(topic))


class Abouts:
    """The lines that models made, by digest. Losing the file makes them a person's."""

    def __init__(self, tree: Rooted) -> None:
        self._tree = tree

    def is_made(self, topic: str, about: str) -> bool:
        """Tells whether a model said this of the topic; reads a small file."""
        return _digest(about) in self._read().get(topic, [])

    def is_ours(self, topic: str, about: str) -> bool:
        """Tells whether turnmark said this of the topic, with a model or without."""
        first = (first_about(topic), first_about(topic, chinese=True))
        plain = (*first, plain_about(topic), title_of(topic))
        return about in plain or self.is_made(topic, about)

    def note(self, made: Iterable[tuple[str, str]]) -> None:
        """Notes (topic, about) that a model made, before they are written anywhere.

        Raises:
            Unavailable: if the disk fails.
        """
        known = self._read()
        before = msgspec.json.encode(known)
        for topic, about in made:
            digest = _digest(about)
            others = [one for one in known.get(topic, []) if one != digest]
            known[topic] = [*others, digest][-_KEPT:]
        if msgspec.json.encode(known) != before:
            self._write(known)

    def drop(self, topics: Iterable[str]) -> None:
        """Forgets `topics`, their names included.

        Raises:
            Unavailable: if the disk fails.
        """
        known, gone = self._read(), set(topics)
        kept = {topic: digests for topic, digests in known.items() if topic not in gone}
        if kept != known:
            self._write(kept)

    def _write(self, known: dict[str, list[str]]) -> None:
        content = msgspec.json.encode(known) + b"\n"
        self._tree.replace(ABOUTS_FILE, content, staging=STAGING)

    def _read(self) -> dict[str, list[str]]:
        try:
            content = self._tree.read(ABOUTS_FILE) or b"{}"
            return msgspec.json.decode(content, type=dict[str, list[str]])
        except (Refused, Unavailable, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("abouts_unreadable", reason=str(error))
            return {}


def _digest(about: str) -> str:
    return blake2b(about.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
