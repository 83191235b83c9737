"""Edits of one answer that name one another by place, such as `+0`, and what keeps the names right.

An answer may lose edits on its way to an install: what rests on turns that were taken back, what
stands in front of a person's words. Those that stay must go on naming the same edits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.model import Edit, Retire


def kept_edits(edits: Sequence[Edit], keeps: Callable[[Edit], bool]) -> tuple[Edit, ...]:
    """Returns the edits that `keeps` keeps, without those that name one which is left out."""
    return changed_edits(edits, lambda edit: edit if keeps(edit) else None)


def changed_edits(edits: Sequence[Edit], change: Callable[[Edit], Edit | None]) -> tuple[Edit, ...]:
    """Returns what `change` makes of each edit, None leaving it out; names stay right."""
    kept: list[Edit] = []
    places: dict[int, int] = {}
    for place, edit in enumerate(edits):
        changed = change(edit)
        final = None if changed is None else _pointed(changed, places)
        if final is not None:
            places[place] = len(kept)
            kept.append(final)
    return tuple(kept)


def _pointed(edit: Edit, places: dict[int, int]) -> Edit | None:
    """Returns the edit with the new places of those it names; None if one of them is gone."""
    if not isinstance(edit, Retire):
        return edit
    block = _renamed(edit.block, places)
    successor = None if edit.successor is None else _renamed(edit.successor, places)
    if block is None or (successor is None and edit.successor is not None):
        return None
    return msgspec.structs.replace(edit, block=block, successor=successor)


def _renamed(name: str, places: dict[int, int]) -> str | None:
    if not name.startswith(NEW_BLOCK):
        return name
    number = name.removeprefix(NEW_BLOCK)
    place = places.get(int(number)) if number.isascii() and number.isdigit() else None
    return None if place is None else f"{NEW_BLOCK}{place}"
