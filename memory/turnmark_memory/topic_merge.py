"""Three topics into one: what an install changed goes into what a person saved meanwhile.

The person's text wins wherever both touched the same block; what they removed stays removed. Doing
it twice changes nothing more, which a redo after a crash needs.
"""

from __future__ import annotations

from collections import Counter

from turnmark_memory.bases import Base
from turnmark_memory.core_page import arrange
from turnmark_memory.file_exchange import MergeInput
from turnmark_memory.footnotes import with_definitions
from turnmark_memory.nearest import known_ids
from turnmark_memory.person_view import with_known_ids
from turnmark_memory.topic import Block, Definition, Embed, Topic
from turnmark_memory.topic_edit import put_block, remove_block, restore_block
from turnmark_memory.topic_format import block_line, parse, render

_CORE_PATH = "topics/core.md"


def merge_topics(given: MergeInput) -> bytes:
    """Returns the person's file with the install's new, changed and retired blocks in it."""
    ours = parse(given.ours or b"")
    base, theirs = _named_alike(given, ours)
    if given.path == _CORE_PATH:
        embeds = [(embed.topic, embed.block) for embed in _below(ours)]
        theirs = arrange(theirs, embeds)
    doubled = _doubled(base) | _doubled(ours) | _doubled(theirs)
    for block in ours.blocks():
        if block.id not in doubled:
            theirs = _bring(theirs, block, base)
    for block in base.blocks():
        if block.id not in doubled:
            theirs = _drop(theirs, block, ours)
    return render(with_definitions(theirs, _definitions(ours) | _definitions(theirs)))


def _named_alike(given: MergeInput, ours: Topic) -> tuple[Topic, Topic]:
    """Returns base and theirs with the ids that the install gave to paragraphs without one.

    Else a paragraph of a person's, numbered by the install while they saved, would stand twice.
    """
    base, theirs = parse(given.base or b""), parse(given.theirs or b"")
    known = {block.id for block in base.blocks()}
    fresh = [block for block in ours.blocks() if block.id is not None and block.id not in known]
    names: dict[int, str] = {}
    for place, block in enumerate(base.blocks()):
        same = next((one for one in fresh if block.id is None and one.text == block.text), None)
        if same is not None and same.id is not None:
            names[place] = same.id
            fresh.remove(same)
    if not names:
        return base, theirs
    named = with_known_ids(base, names)
    seen = Base(topic=given.path, kind="edit", content=given.base, view=render(named), at_ms=0)
    return named, with_known_ids(theirs, known_ids(theirs, seen))


def _doubled(topic: Topic) -> set[str | None]:
    """Returns ids that stand twice: somebody copied a block, and only they know which is which."""
    counts = Counter(block.id for block in topic.blocks())
    return {name for name, count in counts.items() if count > 1}


def _below(core: Topic) -> list[Embed]:
    line = core.line_index()
    if line is None:
        return []
    return [part for part in core.segments[line:] if isinstance(part, Embed)]


def _bring(theirs: Topic, block: Block, base: Topic) -> Topic:
    """Puts one block of the install into the person's topic, unless they touched it."""
    if block.id is None:
        return theirs
    before = base.block(block.id)
    there = theirs.block(block.id)
    if before is None:
        return theirs if there is not None else put_block(theirs, block, block.section)
    if there is None or not _same(there, before) or _same(block, before):
        return theirs
    return restore_block(theirs, block.id, block_line(block), block.section)


def _drop(theirs: Topic, block: Block, ours: Topic) -> Topic:
    """Takes out a block that the install took out, unless the person changed it."""
    if block.id is None or ours.block(block.id) is not None:
        return theirs
    there = theirs.block(block.id)
    if there is None or there.id != block.id or not _same(there, block):
        return theirs
    return remove_block(theirs, block.id)


def _same(one: Block, other: Block) -> bool:
    return block_line(one) == block_line(other)


def _definitions(topic: Topic) -> dict[str, str]:
    return {
        part.label: part.raw.rstrip("\r\n")
        for part in topic.segments
        if isinstance(part, Definition) and part.label.startswith("s-")
    }
