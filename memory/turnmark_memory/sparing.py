"""Keeps automatic edits off the blocks that a person wrote or reworded, at the last moment.

`validate` judges an answer when it comes; until its install begins a person may have saved. What
would change a block of theirs is left out then, and a revision that brings new turns becomes an
addition beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnmark_memory.model import Add, Edit, Merge, Move, Pin, Retire, Revise, Split, Unpin
from turnmark_memory.pointing import changed_edits
from turnmark_memory.topic import Block

BlockOf = Callable[[str], tuple[str, Block] | None]
"""Gives the topic and the block of an id or alias, None where there is none."""


def spared(edits: Sequence[Edit], block_of: BlockOf) -> tuple[Edit, ...]:
    """Returns the edits that may be carried out; references to earlier edits stay right."""
    return changed_edits(edits, lambda edit: _spared(edit, block_of))


def _spared(edit: Edit, block_of: BlockOf) -> Edit | None:
    theirs = [found for name in _blocks(edit) if (found := _persons(name, block_of)) is not None]
    if not theirs:
        return edit
    if not isinstance(edit, Revise):
        return None
    topic, block = theirs[0]
    fresh = tuple(cite for cite in edit.cites if cite not in block.cites)
    if not fresh or edit.text == block.text:
        return None
    return Add(topic=topic, heading=block.section, text=edit.text, cites=fresh)


def _persons(name: str, block_of: BlockOf) -> tuple[str, Block] | None:
    found = block_of(name.removeprefix("^"))
    return found if found is not None and found[1].origin == "person" else None


def _blocks(edit: Edit) -> tuple[str, ...]:
    match edit:
        case Revise() | Retire() | Move() | Split():
            return (edit.block,)
        case Merge():
            return edit.blocks
        case Add() | Pin() | Unpin():
            return ()
