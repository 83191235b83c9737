"""Blocks of a topic that say exactly the same: one is enough, with the sources of all.

Only words that are the same to a reader count: white space, case and a full stop at the end apart.
What is alike in meaning is a model's to judge. Blocks in different topics are never the same: "I
moved to Porto" is another fact under another person.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import apsw
import msgspec

from turnmark_events.errors import Refused
from turnmark_memory.grounds import Grounds, are_alternatives
from turnmark_memory.model import Merge, ShownBlock
from turnmark_memory.words import clean_words

_ENDINGS: Final = ".。"


class Resting(msgspec.Struct, frozen=True, kw_only=True):
    """A block of a writer as it is shown, and what it rests on."""

    shown: ShownBlock
    grounds: Grounds


def normal(text: str) -> str:
    """Returns what is equal for texts that read the same."""
    words = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return words.rstrip(_ENDINGS).rstrip()


def same_words(blocks: Iterable[Resting]) -> list[list[Resting]]:
    """Returns the groups of two or more blocks of a topic, in its order, that say the same.

    Only blocks of the same speakers are in one. Of different projects they may be: who may read
    either reads the same words.
    """
    groups: defaultdict[str, list[list[Resting]]] = defaultdict(list)
    for block in blocks:
        if not block.grounds.is_whole or not _stays(block.shown.text):
            continue
        alike = groups[normal(block.shown.text)]
        group = next(
            (one for one in alike if one[0].grounds.speakers == block.grounds.speakers), None
        )
        if group is None:
            alike.append([block])
        else:
            group.append(block)
    return [group for alike in groups.values() for group in alike if len(group) > 1]


def merges(db: apsw.Connection, groups: Sequence[Sequence[Resting]]) -> list[Merge]:
    """Returns a merge for each group, of those of its blocks that are no alternatives.

    The first block's id and words stay. Two that lie on branches beside each other stay two.
    """
    found: list[Merge] = []
    for group in groups:
        joined: list[list[Resting]] = []
        for block in group:
            home = next((one for one in joined if not _beside(db, [*one, block])), None)
            if home is None:
                joined.append([block])
            else:
                home.append(block)
        found += [_merge(one) for one in joined if len(one) > 1]
    return found


def _beside(db: apsw.Connection, blocks: Sequence[Resting]) -> bool:
    return are_alternatives(db, (ref for block in blocks for ref in block.grounds.refs))


def _merge(group: Sequence[Resting]) -> Merge:
    first = group[0].shown
    return Merge(blocks=tuple(block.shown.block for block in group), text=first.text)


def _stays(text: str) -> bool:
    """Tells whether a block's words would stay as they are if they were written anew."""
    try:
        return clean_words(text) == text
    except Refused:
        return False
