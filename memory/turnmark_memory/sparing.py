"""Keeps automatic edits off the blocks that a person wrote or reworded, at the last moment.

`validate` judges an answer when it comes; until its install begins a person may have saved. What
would change a block of theirs is left out then, and a revision that brings new turns becomes an
addition beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.model import Add, Edit, Merge, Move, Pin, Retire, Revise, Split, Unpin
from turnmark_memory.topic import Block

BlockOf = Callable[[str], tuple[str, Block] | None]
"""Gives the topic and the block of an id or alias, None where there is none."""


def spared(edits: Sequence[Edit], block_of: BlockOf) -> tuple[Edit, ...]:
    """Returns the edits that may be carried out; references to earlier edits stay right."""
    kept: list[Edit] = []
    places: dict[int, int] = {}
    for place, edit in enumerate(edits):
        final = _pointed(_spared(edit, block_of), places)
        if final is not None:
            places[place] = len(kept)
            kept.append(final)
    return tuple(kept)


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


def _pointed(edit: Edit | None, places: dict[int, int]) -> Edit | None:
    """Returns the edit with its successor's new place; None if that edit was left out."""
    successor = edit.successor if isinstance(edit, Retire) else None
    if edit is None or successor is None or not successor.startswith(NEW_BLOCK):
        return edit
    number = successor.removeprefix(NEW_BLOCK)
    place = places.get(int(number)) if number.isascii() and number.isdigit() else None
    return None if place is None else msgspec.structs.replace(edit, successor=f"{NEW_BLOCK}{place}")
