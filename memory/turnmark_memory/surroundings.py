"""What a writer is shown beside a batch: the blocks and topics that matter for it.

By recall, by what the conversation said just before ("make it Tuesday" finds nothing by its words),
by the pages that the facts are likely to go to (`own_pages.py`), and within bounds, so that the
prompt does not grow with the memory. A writer that is not on this
machine is shown nothing that rests on a local session. Blocks that are about to be written anew are
not shown either: they would be taken for what memory holds already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from turnmark_memory.index_schema import Filters
from turnmark_memory.labels import label_of
from turnmark_memory.locality import open_topics, rests_on
from turnmark_memory.model import Batch, Evidence
from turnmark_memory.own_pages import own_pages, related_on
from turnmark_memory.relations import TurnRef
from turnmark_memory.search_text import query_of
from turnmark_memory.shelf import Shelf
from turnmark_memory.usual_topics import usual_topics

_SHOWN_BLOCKS = 24
"""Blocks that a writer is shown beside a batch: the prompt does not grow with the memory."""

_FROM_BEFORE = 8
"""Of them, at most so many that rest on what the conversation said before the batch."""

_FROM_PAGES = 6
"""Of them, at most so many of the pages that the facts are likely to go to. Of what turns replaced
that an earlier batch had kept, the writer was shown 83 % without and 97 % with them."""

TURNS_BEFORE = 24
_SHOWN_PER_TURN = 4
_SHOWN_TOPICS = 200
_QUERY_CHARACTERS = 1_000


class Surroundings:
    """Finds what a batch may concern; blocks on disk."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def around(
        self,
        turns: Sequence[Evidence],
        *,
        before: Sequence[TurnRef] = (),
        hidden: Collection[str] = frozenset(),
        kept_in: Collection[str] = frozenset(),
    ) -> Batch:
        """Returns the batch of `turns` with the blocks and topics to show.

        `before` are the turns before them, newest first, as (namespace, id); `hidden` are blocks to
        leave out, `kept_in` the sessions of which nothing may be shown.
        """
        usual = usual_topics(self._shelf.index, turns, kept_in)
        recalled = list(self._open(self._recalled(turns), hidden, kept_in))
        resting = self._open(self._resting_on(before), {*hidden, *recalled}, kept_in)
        near = list(islice(resting, _FROM_BEFORE))
        sure = recalled[: _SHOWN_BLOCKS - len(near) - _FROM_PAGES]
        pages = own_pages(self._shelf.index, turns, [topic for topic, _ in usual], kept_in)
        related = related_on(self._shelf.index, pages, turns)
        own = list(islice(self._open(related, {*hidden, *near, *sure}, kept_in), _FROM_PAGES))
        found = list(dict.fromkeys([*sure, *own, *recalled]))
        return Batch(
            turns=tuple(turns),
            blocks=tuple(self._shelf.all_shown([*found[: _SHOWN_BLOCKS - len(near)], *near])),
            topics=tuple(self._topics(kept_in)),
            usual=usual,
            beside=frozenset(own).difference(recalled),
        )

    def _open(
        self, refs: Iterable[str], hidden: Collection[str], kept_in: Collection[str]
    ) -> Iterator[str]:
        """Yields those of the blocks that may be shown; looks at no more than are asked for."""
        return (ref for ref in refs if ref not in hidden and not self._rests_on(ref, kept_in))

    def _recalled(self, turns: Sequence[Evidence]) -> list[str]:
        """Returns the blocks that the turns may concern, best first."""
        found: dict[str, float] = {}
        for turn in turns:
            terms = query_of(turn.text[:_QUERY_CHARACTERS]).terms
            for one in self._shelf.index.search("block", terms, _SHOWN_PER_TURN, Filters()):
                found[one.ref] = max(found.get(one.ref, 0.0), one.score)
        return sorted(found, key=lambda ref: (-found[ref], ref))

    def _resting_on(self, turns: Sequence[TurnRef]) -> list[str]:
        """Returns the live blocks that cite `turns`, in the order of the turns."""
        index = self._shelf.index
        cited = [name for ref in turns for name in index.blocks_citing(label_of(*ref))]
        blocks = ((name, index.block(name)) for name in dict.fromkeys(cited))
        return [name for name, block in blocks if block and block.superseded_by is None]

    def _topics(self, kept_in: Collection[str]) -> list[tuple[str, str]]:
        index = self._shelf.index
        return open_topics(index, index.abouts(_SHOWN_TOPICS), kept_in)

    def _rests_on(self, block: str, sessions: Collection[str]) -> bool:
        index = self._shelf.index
        return bool(sessions) and rests_on(index, index.cites(block), sessions)
