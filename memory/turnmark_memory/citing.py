"""Cites of people and agents: labels as they are, turns by id, archived before they count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio.to_thread
import apsw
import msgspec

from turnmark_events.errors import Forgotten, NotFound, Refused
from turnmark_memory.evidence import load_evidence
from turnmark_memory.labels import is_label
from turnmark_memory.model import Evidence
from turnmark_memory.shelf import Shelf
from turnmark_session_store import SessionStore
from turnmark_session_store.queries import row_of
from turnmark_session_store.sessions import get_turn_anywhere


class Citing:
    """Turns what somebody names as evidence into labels that resolve from `sources/`."""

    def __init__(self, store: SessionStore, shelf: Shelf, *, mask_on_exit: bool) -> None:
        self._store = store
        self._shelf = shelf
        self._mask = mask_on_exit

    async def labels(self, cites: Iterable[str]) -> dict[str, str]:
        """Returns the label of each of `cites`: a label, `SESSION#ID`, or a turn's unique id.

        A turn that is not archived yet is archived first (laws 4 and 17).

        Raises:
            NotFound: if there is no such source or turn.
            Forgotten: if it was forgotten.
            Refused: if an id stands in several namespaces, or the turn can't be evidence: it was
                taken back, or is no user's or assistant's turn with words.
            Unavailable: if the disk fails.
        """
        names = dict.fromkeys(cites)
        found = {name: name for name in names if is_label(name)}
        await anyio.to_thread.run_sync(self._check_labels, list(found))
        turns = [name for name in names if name not in found]
        if turns:
            keys = await self._store.read(lambda db: [evidence_key(db, name) for name in turns])
            archived = {turn.key: turn.label for turn in await self.archived(keys)}
            found.update({name: archived[key] for name, key in zip(turns, keys, strict=True)})
        return found

    async def archived(self, keys: Sequence[int]) -> list[Evidence]:
        """Puts turns into `sources/` and the index; returns them with their final labels.

        Raises:
            Refused: if a session's file can't be used.
            Unavailable: if the disk fails.
        """
        wanted = list(dict.fromkeys(keys))
        turns = await self._store.read(lambda db: load_evidence(db, wanted, mask=self._mask))
        return await anyio.to_thread.run_sync(self._archive, turns)

    def _archive(self, turns: Sequence[Evidence]) -> list[Evidence]:
        lines = self._shelf.archive.append(turns)
        self._shelf.index_turns(list(zip(turns, lines, strict=True)))
        return [
            msgspec.structs.replace(turn, label=line.label)
            for turn, line in zip(turns, lines, strict=True)
        ]

    def _check_labels(self, labels: Sequence[str]) -> None:
        for label in labels:
            if self._shelf.archive.resolve(label) is not None:
                continue
            if self._shelf.index.is_forgotten(label):
                raise Forgotten(f"the source {label} was forgotten", label=label)
            raise NotFound(f"no source {label} in this memory; cite a turn by its id", label=label)


def evidence_key(db: apsw.Connection, ref: str) -> int:
    """Returns the integer key of a turn that can be evidence; errors as for `Citing.labels`."""
    key = get_turn_anywhere(db, ref)
    recordable, retired, forgotten = row_of(
        db,
        "SELECT recordable, EXISTS (SELECT 1 FROM retired_turn WHERE turn = ?1),"
        " EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = ?1) FROM turn WHERE id = ?1",
        (key,),
    )
    if forgotten:
        raise Forgotten(f"the turn {ref!r} was forgotten", turn=ref)
    if retired:
        raise Refused(
            f"the turn {ref!r} was taken back; bring it back with session.checkout and "
            "restore: true before it is cited",
            turn=ref,
        )
    if not recordable:
        raise Refused(
            f"the turn {ref!r} holds no words that memory may rest on; cite what a user or an "
            "assistant said",
            turn=ref,
        )
    return key
