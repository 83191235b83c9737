"""What a person's removal means for marks: turns that lose their last block are parked, not owed.

The turns were dealt with, and the person does not want what was made of them: they are in the
state `removed`, and written again only when asked (`flush --removed`). What brings a block back,
such as the undo of an undo, takes its turns out of that state again, so that they are not written
twice. A turn that was never settled (a fact remembered while its conversation goes on) stays owed
as it is: nobody has looked at the rest of what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnmark_memory.block_change import BlockChange
from turnmark_memory.index import Index
from turnmark_memory.topic_format import CITE
from turnmark_session_store.transaction import Transaction

Ref = tuple[str, str]

_REPLACE = "UPDATE mark SET"
_OF_TURN = (
    "WHERE workspace = ? AND turn = (SELECT turn.id FROM turn JOIN namespace"
    " ON namespace.id = turn.namespace WHERE namespace.name = ? AND turn.key = ?)"
)


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """Turns, as (namespace, id), that no block rests on any more, and turns that one does again."""

    gone: tuple[Ref, ...] = ()
    back: tuple[Ref, ...] = ()


def removal_of(index: Index, changes: Sequence[BlockChange]) -> Removal:
    """Returns what changes that a person asked for remove and bring back.

    `index` shows the memory before them. Costs a look at each label that the lines name.
    """
    before = _labels(change.before for change in changes)
    after = _labels(change.after for change in changes)
    changed = {change.block for change in changes}
    gone = [
        label
        for label in before
        if label not in after and changed.issuperset(live_citing(index, label))
    ]
    back = [label for label in after if label not in before]
    return Removal(gone=_refs(index, gone), back=_refs(index, back))


def follow_removal(tx: Transaction, workspace: int, removal: Removal, revision: int) -> None:
    """Replaces the marks of the turns that it names; repeating it changes nothing."""
    for ref in removal.gone:
        tx.execute(
            f"{_REPLACE} outcome = 'parked', reason = 'removed', revision = ?, at_ms = ?"
            f" {_OF_TURN} AND outcome = 'kept'",
            (revision, tx.at_ms, workspace, *ref),
        )
    for ref in removal.back:
        tx.execute(
            f"{_REPLACE} outcome = 'kept', reason = NULL, revision = ?, at_ms = ?"
            f" {_OF_TURN} AND outcome = 'parked' AND reason = 'removed'",
            (revision, tx.at_ms, workspace, *ref),
        )


def live_citing(index: Index, label: str) -> Iterator[str]:
    """Yields the blocks that say now what a turn said; one that is superseded is only history."""
    for name in index.blocks_citing(label):
        block = index.block(name)
        if block is not None and block.superseded_by is None:
            yield name


def _labels(lines: Iterable[bytes | None]) -> dict[str, None]:
    """Returns the labels that lines cite, in order, each once."""
    found: dict[str, None] = {}
    for line in lines:
        text = "" if line is None else line.decode("utf-8", "replace")
        found.update((cite[2], None) for cite in CITE.finditer(text))
    return found


def _refs(index: Index, labels: Iterable[str]) -> tuple[Ref, ...]:
    turns = (index.turn(label) for label in labels)
    return tuple((turn.namespace, turn.id) for turn in turns if turn is not None)
