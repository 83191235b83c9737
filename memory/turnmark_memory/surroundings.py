"""What a writer is shown beside a batch: the blocks and topics that matter for it.

By recall and within bounds, so that the prompt does not grow with the memory. A writer that is not
on this machine is shown nothing that rests on a local session. Blocks that are about to be written
anew are not shown either: they would be taken for what memory holds already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from turnmark_memory.index_schema import Filters
from turnmark_memory.model import Batch, Evidence, ShownBlock
from turnmark_memory.search_text import query_of
from turnmark_memory.shelf import Shelf

_SHOWN_BLOCKS = 24
"""Blocks that a writer is shown beside a batch: the prompt does not grow with the memory."""

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
        hidden: Collection[str] = frozenset(),
        kept_in: Collection[str] = frozenset(),
    ) -> Batch:
        """Returns the batch of `turns` with the blocks and topics to show.

        `hidden` are blocks to leave out, `kept_in` the sessions of which nothing may be shown.
        """
        return Batch(
            turns=tuple(turns),
            blocks=self._blocks_for(turns, hidden, kept_in),
            topics=tuple(self._topics(kept_in)),
        )

    def _blocks_for(
        self, turns: Sequence[Evidence], hidden: Collection[str], kept_in: Collection[str]
    ) -> tuple[ShownBlock, ...]:
        """Returns the blocks that the turns may concern, best first, a bounded number."""
        found: dict[str, float] = {}
        for turn in turns:
            terms = query_of(turn.text[:_QUERY_CHARACTERS]).terms
            for one in self._shelf.index.search_blocks(terms, _SHOWN_PER_TURN, Filters()):
                found[one.ref] = max(found.get(one.ref, 0.0), one.score)
        best = sorted(found, key=lambda ref: (-found[ref], ref))
        shown = [ref for ref in best if ref not in hidden and not self._rests_on(ref, kept_in)]
        return tuple(self._shelf.all_shown(shown[:_SHOWN_BLOCKS]))

    def _topics(self, kept_in: Collection[str]) -> list[tuple[str, str]]:
        abouts = self._shelf.index.abouts(_SHOWN_TOPICS)
        if not kept_in:
            return abouts
        return [(topic, about) for topic, about in abouts if not self._holds_only(topic, kept_in)]

    def _holds_only(self, topic: str, kept_in: Collection[str]) -> bool:
        """Tells whether all that a topic holds is from `kept_in`: its very name may be theirs."""
        blocks = self._shelf.index.blocks_of(topic)
        cited = [block for block in blocks if block.cites]
        return bool(cited) and all(self._is_from(block.cites, kept_in) for block in cited)

    def _rests_on(self, block: str, sessions: Collection[str]) -> bool:
        return bool(sessions) and self._is_from(self._shelf.index.cites(block), sessions)

    def _is_from(self, labels: Iterable[str], sessions: Collection[str]) -> bool:
        turns = (self._shelf.index.turn(label) for label in labels)
        return any(turn is not None and turn.session in sessions for turn in turns)
