"""The pages that a batch's facts are likely to go to, and what of them a new fact may concern.

"I moved to Porto" shares no word with "Robin lives in Bergen": recall doesn't find it, but it
stands on Robin's page. Of each page only the newest blocks are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from turnmark_memory.index import Index
from turnmark_memory.model import Evidence
from turnmark_memory.writers.concepts import concepts_of
from turnmark_memory.writers.slugs import slug_of
from turnmark_memory.writers.values import values_of

_OF_SESSION = 200
"""Turns of a session looked back at: the cost does not grow with the memory."""

_MOST_SPEAKERS = 4
_MOST_USUAL = 2
_MOST_PAGES = 8
"""That hold something; of a large group those who speak most, and where most of theirs went."""

_NEWEST = 60
"""Blocks of a page that are compared with what is said."""

_LOOKED_AT_CHARACTERS = 4_000
"""Of a turn: what it says of its speaker stands in no pasted file. So much takes 9 ms."""

_NAMELESS = "user"
"""Whoever has neither name nor id has this page."""


def own_pages(
    index: Index,
    turns: Sequence[Evidence],
    usual: Sequence[str] = (),
    kept_in: Collection[str] = frozenset(),
) -> list[str]:
    """Returns the pages of who speaks, of their projects, `usual` ones and of their sessions.

    In this order. What was said in `kept_in` counts for nothing. Such a page may not exist.
    """
    pages = [*_of_speakers(turns), *_of_projects(turns), *usual[:_MOST_USUAL]]
    for session in dict.fromkeys(turn.session for turn in turns):
        cites = Counter[str]()
        for row in index.filed(_OF_SESSION, session):
            if row.session not in kept_in:
                cites[row.topic] += row.cites
        pages += sorted(cites, key=lambda topic: (-cites[topic], topic))
    return list(dict.fromkeys(pages))


def _of_speakers(turns: Sequence[Evidence]) -> Iterator[str]:
    """Yields where what people say of themselves goes, by both kinds of writers."""
    said = Counter((turn.speaker_name, turn.speaker_id) for turn in turns if turn.role == "user")
    for (name, id), _ in said.most_common(_MOST_SPEAKERS):  # noqa: A001  the field's name
        if name and id:
            yield f"people/{slug_of(f'{name} {id}')}"
        yield f"people/{slug_of(name or id or '') or _NAMELESS}"


def _of_projects(turns: Sequence[Evidence]) -> Iterator[str]:
    for path in dict.fromkeys(turn.project for turn in turns if turn.project):
        if slug := slug_of(path.replace("\\", "/").rstrip("/").rpartition("/")[2]):
            yield f"projects/{slug}"


def related_on(index: Index, pages: Sequence[str], turns: Sequence[Evidence]) -> list[str]:
    """Returns blocks of `pages` that hold now: those about the same as a turn, then the newest.

    A side of life or a kind of value counts the more, the fewer blocks there have it.
    """
    held = filter(None, (index.newest_of(page, _NEWEST) for page in pages))
    blocks = [block for page in islice(held, _MOST_PAGES) for block in page]
    about = {block.block: _about(block.text) for block in blocks}
    common = Counter(sign for signs in about.values() for sign in signs)
    said = [_about(turn.text) for turn in turns]
    points = {
        name: max(sum(sorted(1 / common[sign] for sign in signs & each)) for each in said)
        for name, signs in about.items()
    }
    return sorted(points, key=lambda name: -points[name])


def _about(text: str) -> frozenset[str]:
    """Returns what a text is about, as far as word lists and the forms of values tell."""
    said = text[:_LOOKED_AT_CHARACTERS]
    return concepts_of(said.casefold()) | {f"={kind}" for kind in values_of(said)}
