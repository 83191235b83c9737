"""What became of one block: its exact line before and after. An undo needs no more than that."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from turnmark_memory.topic import Block, Topic


class BlockChange(msgspec.Struct, frozen=True, kw_only=True):
    """One block's (or embed's) exact line before and after in one topic; None where it wasn't.

    `heading` is the section it stood under, or stands under now if it is new. A move is two
    changes. `reason` is why a block was retired: the tombstone.
    """

    topic: str
    block: str
    before: bytes | None
    after: bytes | None
    heading: str | None = None
    reason: str | None = None


def change_of(
    before: Topic | None, after: Topic | None, path: str, name: str, reason: str | None = None
) -> BlockChange | None:
    """Returns what became of the block or pin `name` between two states of topic `path`.

    A block that only went under another heading changes from its line to the same line.
    """
    old, heading = line_of(before, name)
    new, new_heading = line_of(after, name)
    if old == new and heading == new_heading:
        return None
    return BlockChange(
        topic=path,
        block=name,
        before=old,
        after=new,
        heading=new_heading if old is None else heading,
        reason=reason,
    )


def line_of(topic: Topic | None, name: str) -> tuple[bytes | None, str | None]:
    """Returns the exact line of the block `name`, or of its pin, and the section of the block.

    Embeds below the automatic line are arranged, not pinned, and so are none.
    """
    part = topic.named(name) if topic is not None else None
    if part is None:
        return None, None
    return _bytes(part.raw), part.section if isinstance(part, Block) else None


def _bytes(raw: str) -> bytes:
    return raw.rstrip("\r\n").encode("utf-8", "surrogateescape")


def folded(changes: Iterable[BlockChange]) -> tuple[BlockChange, ...]:
    """Returns one change for each block of a topic, from its first state to its last."""
    found: dict[tuple[str, str], BlockChange] = {}
    for change in changes:
        place = (change.topic, change.block)
        first = found.get(place)
        found[place] = change if first is None else _after(first, change)
    return tuple(change for change in found.values() if change.after or change.before)


def _after(first: BlockChange, then: BlockChange) -> BlockChange:
    return msgspec.structs.replace(first, after=then.after, reason=then.reason or first.reason)
