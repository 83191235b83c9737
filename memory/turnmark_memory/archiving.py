"""Evidence first: turns go into `sources/` and become searchable before a writer sees them."""

from __future__ import annotations

from collections.abc import Sequence

import anyio.to_thread
import msgspec

from turnmark_events.errors import Refused, TurnmarkError
from turnmark_memory.evidence import load_evidence
from turnmark_memory.model import Evidence
from turnmark_memory.shelf import Shelf
from turnmark_session_store import SessionStore
from turnmark_session_store.failpoints import failpoint


class Archiving:
    """Reads turns from the store and archives them; `mask` masks secrets that the store keeps."""

    def __init__(self, store: SessionStore, shelf: Shelf, *, mask: bool) -> None:
        self._store = store
        self._shelf = shelf
        self._mask = mask

    async def archive(
        self, batches: Sequence[Sequence[int]]
    ) -> list[tuple[Evidence, ...] | TurnmarkError]:
        """Puts the turns of each batch into `sources/`; returns them with their final labels.

        Turns that are there already stay as they are. Where a session's file can't be used, its
        batches get the reason instead.

        Raises:
            Unavailable: if the disk fails.
        """
        loaded = await self._store.read(
            lambda db: [load_evidence(db, turns, mask=self._mask) for turns in batches]
        )
        failpoint("batch.claimed")
        try:
            return [*await anyio.to_thread.run_sync(self._archive, loaded)]
        except Refused:
            return await anyio.to_thread.run_sync(self._archive_each, loaded)

    def _archive_each(
        self, loaded: Sequence[Sequence[Evidence]]
    ) -> list[tuple[Evidence, ...] | TurnmarkError]:
        found: list[tuple[Evidence, ...] | TurnmarkError] = []
        for batch in loaded:
            try:
                found += self._archive([batch])
            except Refused as error:
                found.append(error)
        return found

    def _archive(self, loaded: Sequence[Sequence[Evidence]]) -> list[tuple[Evidence, ...]]:
        turns = [turn for batch in loaded for turn in batch]
        lines = self._shelf.archive.append(turns)
        self._shelf.index_turns(list(zip(turns, lines, strict=True)))
        failpoint("batch.archived")
        labels = {
            (turn.namespace, turn.id): line.label for turn, line in zip(turns, lines, strict=True)
        }
        return [
            tuple(
                msgspec.structs.replace(turn, label=labels[turn.namespace, turn.id])
                for turn in batch
            )
            for batch in loaded
        ]
