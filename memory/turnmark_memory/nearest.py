"""Which of a topic's recent contents a save is based on, and which of its paragraphs have ids.

An editor writes the whole file, and it may have read it before the last installs. What it read is
not known, so it is told from what it wrote. The strongest sign is what a save *holds*: a line that
came with an install was seen by whoever saves it. Only then what it lacks counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import SequenceMatcher

from turnmark_memory.bases import Base
from turnmark_memory.durable import digest_of
from turnmark_memory.topic import Block, Definition, Raw, Topic
from turnmark_memory.topic_format import parse

_ALIKE = 0.5
"""How like two paragraphs are that are one, reworded, at least; of 1."""

_COMPARED = 30
"""Paragraphs without ids of which every pair is compared; more are matched word for word."""

_COMPARED_CHARACTERS = 500
"""As the time to compare two paragraphs grows with the product of their lengths."""


def nearest(save: bytes, recent: Sequence[Base]) -> int:
    """Returns the place in `recent` (newest first, not empty) of the content that was edited.

    Only an install makes an open editor stale: of the contents since the last one the newest is
    meant, however the save looks. A save without a word of its own only takes away; it is stale if
    footnotes are missing that no person takes out with a paragraph, or if it is an old text to the
    byte, and that only the first time: when it comes again, the person means it.
    """
    stale = _possibly_stale(recent)
    if not stale:
        return 0
    held = _signs(parse(save))
    candidates = {0: _signs(_as_saved(recent[0]))}
    candidates.update((place, _signs(_as_saved(recent[place]))) for place in stale)
    known = frozenset[object]().union(*candidates.values())
    own = held - known
    if not own:
        if _was_offered(save, recent):
            return 0
        meant = {0, *(place for place in stale if _is_old(save, recent[place], recent[0]))}
        candidates = {place: signs for place, signs in candidates.items() if place in meant}

    def unlikely(place: int) -> tuple[int, int, int]:
        signs = candidates[place]
        return len((held & known) - signs), _removed(signs - held, own), place

    return min(candidates, key=unlikely)


def _possibly_stale(recent: Sequence[Base]) -> list[int]:
    """Returns the places of contents that the last install replaced or came after."""
    install = next((place for place, base in enumerate(recent) if base.kind == "install"), None)
    if install is None:
        return []
    older = range(max(1, install + 1), len(recent))
    return [place for place in older if recent[place].content is not None]


def _is_old(save: bytes, base: Base, newest: Base) -> bool:
    """Tells whether a save that adds nothing was made from `base` rather than the newest text."""
    if save == base.content:
        return True
    labels = _labels(parse(save))
    return labels == _labels(_as_saved(base)) != _labels(_as_saved(newest))


def _labels(topic: Topic) -> frozenset[str]:
    return frozenset(part.label for part in topic.segments if isinstance(part, Definition))


def _removed(lost: AbstractSet[object], own: AbstractSet[object]) -> int:
    """Returns how much of `lost` the save took out, and did not merely reword."""
    words = [sign for sign in own if isinstance(sign, str)]
    gone = [sign for sign in lost if isinstance(sign, str)]
    ids = len(lost) - len(gone)
    if max(len(words), len(gone)) > _COMPARED:
        return len(lost)
    return ids + sum(not any(_likeness(one, word) >= _ALIKE for word in words) for one in gone)


def _was_offered(save: bytes, recent: Sequence[Base]) -> bool:
    digest = digest_of(save)
    return any(base.offered and base.digest == digest for base in recent)


def _as_saved(base: Base) -> Topic:
    return parse(base.content or b"")


def _signs(topic: Topic) -> frozenset[object]:
    """Returns what of a document tells where it comes from: its parts, and its ids."""
    found: set[object] = set()
    for part in topic.segments:
        if not (isinstance(part, Raw) and part.kind in ("blank", "mark")):
            found.add(part.raw.strip())
        if isinstance(part, Block) and part.id is not None:
            found.add((part.id,))
    return frozenset(found)


def known_ids(save: Topic, base: Base) -> dict[int, str]:
    """Returns ids for blocks of a save that have none, by their place among its blocks.

    They are those that the base has in its view and the save lacks: the same words, or words much
    like them where the base's file had no id there either.
    """
    present = {block.id for block in save.blocks() if block.id is not None}
    nameless = [(place, block) for place, block in enumerate(save.blocks()) if block.id is None]
    free = [one for one in _named(base) if one[0] not in present] if nameless else []
    found: dict[int, str] = {}
    for place, block in list(nameless):
        same = next((one for one in free if one[1].text == block.text), None)
        if same is not None:
            found[place] = same[0]
            free.remove(same)
            nameless.remove((place, block))
    found.update(_reworded(nameless, [one for one in free if one[2]]))
    return found


def copied_ids(base: Base) -> dict[str, list[str]]:
    """Returns, by the id that copies of a block have in the file, the ids that they got instead."""
    found: dict[str, list[str]] = {}
    if base.view is None:
        return found
    saved, seen = list(_as_saved(base).blocks()), list(base.as_topic().blocks())
    if len(saved) == len(seen):
        for before, block in zip(saved, seen, strict=True):
            if before.id is not None and block.id is not None and block.id != before.id:
                found.setdefault(before.id, []).append(block.id)
    return found


def _named(base: Base) -> Iterator[tuple[str, Block, bool]]:
    """Yields (id, block, whether the file lacks the id) of the base."""
    seen = list(base.as_topic().blocks())
    saved = seen if base.view is None else list(_as_saved(base).blocks())
    if len(saved) != len(seen):
        return
    for before, block in zip(saved, seen, strict=True):
        if block.id is not None:
            yield block.id, block, before.id is None


def _reworded(
    nameless: list[tuple[int, Block]], free: list[tuple[str, Block, bool]]
) -> dict[int, str]:
    if not free or len(free) > _COMPARED or len(nameless) > _COMPARED:
        return {}
    alike = sorted(
        (
            (_likeness(before.text, block.text), place, name)
            for place, block in nameless
            for name, before, _ in free
        ),
        reverse=True,
    )
    found: dict[int, str] = {}
    for ratio, place, name in alike:
        if ratio >= _ALIKE and place not in found and name not in found.values():
            found[place] = name
    return found


def _likeness(one: str, other: str) -> float:
    matcher = SequenceMatcher(None, one[:_COMPARED_CHARACTERS], other[:_COMPARED_CHARACTERS])
    if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE:
        return 0.0
    return matcher.ratio()
