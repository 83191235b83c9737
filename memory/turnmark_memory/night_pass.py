"""A pass of the night: plans for topics, each carried out wholly or not at all, in one revision.

A plan is made beside everything else and carried out later, maybe days later if it was held. So it
remembers the blocks as it saw them, and an edit of one that is no longer so falls away, as does one
of a person's block. What is done is judged against the files that memory has seen, while no other
install is under way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from hashlib import blake2b
from typing import Final, Literal

import msgspec

from turnmark_memory.apply import Applied, Sources, apply_edits
from turnmark_memory.backlinks import Place, relinked
from turnmark_memory.block_change import BlockChange, change_of
from turnmark_memory.labels import block_id_of
from turnmark_memory.model import Edit, Merge, Move, Retire, ShownBlock, Split
from turnmark_memory.topic import Block, Definition, Heading, Raw, Topic, block_hash
from turnmark_memory.topic_edit import cut_segment, set_about

PassKind = Literal["same", "tidy"]
"""`same` joins what says exactly the same, without a model; `tidy` is what a model asked for."""

LEAST_HELD: Final = 10
HELD_SHARE: Final = 10
"""A pass that would remove more than ten blocks and more than one in ten is held (law 14)."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a topic is to be about, in place of exactly `replaces`; a person's words stay."""

    topic: str
    about: str
    replaces: str | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done with a topic; `shown` are the blocks as they were when it was made.

    `seen` are the labels of all that its maker saw. `links` are topics whose links are to be put
    right.
    """

    edits: tuple[Edit, ...] = ()
    abouts: tuple[About, ...] = ()
    shown: tuple[ShownBlock, ...] = ()
    seen: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def removes(self) -> int:
        """The number of blocks that are none of their own any more afterwards."""
        merged = sum(len(edit.blocks) - 1 for edit in self.edits if isinstance(edit, Merge))
        return merged + sum(isinstance(edit, Retire) for edit in self.edits)


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """Plans that are carried out together."""

    kind: PassKind
    plans: tuple[Plan, ...]

    @property
    def name(self) -> str:
        """Its name: the same for the same edits, so that a pass is held once."""
        edits = msgspec.json.encode([plan.edits for plan in self.plans]).decode()
        return f"{self.kind}-{block_id_of(self.kind, edits).removeprefix('b-')}"

    @property
    def removes(self) -> int:
        """The number of blocks that all its plans remove."""
        return sum(plan.removes for plan in self.plans)


def digest_of(edit: Edit) -> str:
    """Returns the digest of an edit, in 32 hex digits."""
    return blake2b(msgspec.json.encode(edit), digest_size=16).hexdigest()


def is_too_much(removes: int, blocks: int) -> bool:
    """Tells whether a pass that removes so many of all `blocks` has to be held."""
    return removes > max(LEAST_HELD, blocks / HELD_SHARE)


def blocks_of(edit: Edit) -> tuple[str, ...]:
    """Returns the blocks that an edit changes or leans on."""
    match edit:
        case Merge():
            return edit.blocks
        case Retire():
            return (edit.block, *([edit.successor] if edit.successor else []))
        case Move() | Split():
            return (edit.block,)
        case _:
            return ()


def standing(plan: Plan, sources: Sources) -> tuple[Edit, ...]:
    """Returns the edits of a plan whose blocks are as they were when it was made."""
    shown = {block.block: block for block in plan.shown}
    return tuple(
        edit
        for edit in plan.edits
        if all(_is_as_shown(shown.get(name), sources) for name in blocks_of(edit))
    )


def carried_out(
    plan: Plan, edits: Sequence[Edit], sources: Sources, today: date, saved: frozenset[str]
) -> Applied:
    """Returns what the standing `edits` of a plan, and the rest of it, make of the topics.

    `saved` are topics that a person has saved lately: headings that lose their last block stay.

    Raises:
        Refused: if a topic's file, or an edit, can't be used.
        NotFound: as `Refused`.
    """
    applied = apply_edits(edits, sources=sources, today=today)
    topics = dict(applied.topics)
    for name, topic in applied.topics.items():
        before = sources.load(name)
        if before is not None and name not in saved:
            topics[name] = _without_emptied(before, topic)
    for about in plan.abouts:
        found = topics.get(about.topic) or sources.load(about.topic)
        if found is not None and (found.about or None) == about.replaces:
            topics[about.topic] = set_about(found, about.about)
    changes = [*applied.changes]
    for name in plan.links:
        changes += _relink(name, topics, sources)
    return Applied(topics=topics, blocks=applied.blocks, changes=tuple(changes))


def _is_as_shown(shown: ShownBlock | None, sources: Sources) -> bool:
    block = None if shown is None else _block(shown.block, sources)
    return (
        shown is not None
        and block is not None
        and block.id == shown.block
        and block.origin == "writer"
        and block.superseded_by is None
        and block_hash(block) == shown.hash
    )


def _block(name: str, sources: Sources) -> Block | None:
    topic = sources.where(name)
    found = sources.load(topic) if topic is not None else None
    return None if found is None else found.block(name)


def _relink(name: str, topics: dict[str, Topic], sources: Sources) -> Iterable[BlockChange]:
    """Puts the links of a topic right in `topics`; yields the blocks and pins that change by it."""
    before = topics.get(name) or sources.load(name)
    if before is None:
        return
    after = relinked(before, name, lambda block: _place(block, sources))
    if after is None:
        return
    topics[name] = after
    names = [part.id for part in before.blocks() if part.id is not None]
    for block in [*names, *(part.block for part in before.embeds())]:
        change = change_of(before, after, name, block)
        if change is not None:
            yield change


def _place(name: str, sources: Sources) -> Place | None:
    topic, block = sources.where(name), _block(name, sources)
    return None if topic is None or block is None or block.id is None else (topic, block.id)


def _without_emptied(before: Topic, after: Topic) -> Topic:
    """Returns `after` without the headings that had something under them in `before` only."""
    held = set(_titles(before, empty=False)) - set(_titles(before, empty=True))
    for index in range(len(after.segments) - 1, -1, -1):
        part = after.segments[index]
        if isinstance(part, Heading) and part.title in held and _is_empty(after, index):
            after = cut_segment(after, index)
    return after


def _titles(topic: Topic, *, empty: bool) -> Iterable[str]:
    for index, part in enumerate(topic.segments):
        if isinstance(part, Heading) and part.level > 1 and _is_empty(topic, index) == empty:
            yield part.title


def _is_empty(topic: Topic, index: int) -> bool:
    """Tells whether nothing stands between a heading and the next one, or the end."""
    heading = topic.segments[index]
    level = heading.level if isinstance(heading, Heading) else 0
    for part in topic.segments[index + 1 :]:
        if isinstance(part, Heading):
            return part.level <= level
        if not (isinstance(part, Raw) and part.kind == "blank"):
            return isinstance(part, Definition) or (isinstance(part, Raw) and part.kind == "line")
    return True


def counted(edits: Iterable[Edit]) -> dict[str, int]:
    """Returns how many edits of each kind there are, by the kind's name."""
    return dict(Counter(type(edit).__name__.lower() for edit in edits))
