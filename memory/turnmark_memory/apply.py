"""Carries edits out on topics in memory: all of them or none, touching only the topics they name.

What an edit may do is judged by `validate`; here it is done, with ids from the caller, and each
block's line before and after is reported, which is what an undo needs. Cost: the topics that the
edits name are loaded and read once per change, however large the rest of the memory is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Final

import msgspec

from turnmark_events.errors import NotFound, Refused, Stale
from turnmark_memory.block_change import BlockChange, change_of
from turnmark_memory.headings import fitting
from turnmark_memory.labels import block_id_of
from turnmark_memory.model import Add, Edit, Merge, Move, Pin, Retire, Revise, Split, Unpin
from turnmark_memory.pins import is_pinned, pin, retarget, unpin
from turnmark_memory.topic import Block, Topic, block_hash
from turnmark_memory.topic_edit import (
    add_block,
    insert_after,
    mark_person,
    new_topic,
    put_block,
    remove_block,
    replace_block,
    supersede_block,
)
from turnmark_memory.topic_path import CORE, topic_path
from turnmark_memory.words import is_chinese

# A successor that doesn't exist yet is named by the place of its edit in the same answer: `+0`.
NEW_BLOCK: Final = "+"


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The changed topics, the ids of the blocks that each edit made or changed, and the changes.

    `exact` are files to be put down byte for byte, None to take one away; no edit asks for that.
    """

    topics: dict[str, Topic]
    blocks: tuple[tuple[str, ...], ...]
    changes: tuple[BlockChange, ...]
    exact: dict[str, bytes | None] = {}


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """Where the edits find things.

    `load` reads a topic (None: it doesn't exist); `where` names the topic that holds a block, by
    id or alias; `resolve` turns a cite into a label and raises if it can't; `ids` derives the id
    for a part of an edit from their numbers, and must give the same one again on a redo; `abouts`
    are for topics that come into being; `named` gives a topic's path the form that its file has.
    """

    load: Callable[[str], Topic | None]
    where: Callable[[str], str | None]
    resolve: Callable[[str], str]
    ids: Callable[[int, int], str]
    abouts: Mapping[str, str] = {}
    named: Callable[[str], str] = str


def apply_edits(
    edits: Sequence[Edit],
    *,
    sources: Sources,
    today: date,
    keep_history: bool = False,
    by_person: bool = False,
) -> Applied:
    """Returns what the edits make of the topics; nothing is written anywhere.

    With `keep_history` a block revised on new evidence leaves its old words behind as a block of
    its own, superseded by the revised one, which keeps its id. With `by_person` the blocks that
    get words from these edits are marked as a person's.

    Raises:
        NotFound: if a block isn't there.
        Stale: if a block is not the one that `expect` names.
        Refused: if a text, path or combination can't be used.
    """
    work = _Work(sources, today, keep_history=keep_history)
    for number, edit in enumerate(edits):
        names = tuple(dict.fromkeys(work.apply(number, edit)))
        if by_person and isinstance(edit, Add | Revise | Merge | Split):
            work.mark(names)
        work.done.append(names)
    work.mend_embeds()
    return work.result()


class _Work:
    """The topics as they are so far. One use each; not shared."""

    def __init__(self, sources: Sources, today: date, *, keep_history: bool) -> None:
        self._sources = sources
        self._today = today
        self._keep_history = keep_history
        self._before: dict[str, Topic | None] = {}
        self._topics: dict[str, Topic] = {}
        self._places: dict[str, str] = {}
        self._moved: dict[str, str] = {}
        self._touched: dict[tuple[str, str], str | None] = {}
        self.done: list[tuple[str, ...]] = []

    def apply(self, number: int, edit: Edit) -> tuple[str, ...]:
        """Applies one edit and returns the ids it made or changed."""
        match edit:
            case Add():
                path = self._path(edit.topic)
                return (self._add(path, edit.heading, edit.text, edit.cites, number),)
            case Revise():
                return self._revise(number, edit)
            case Retire():
                return self._retire(edit)
            case Move():
                path, block = self._find(edit.block)
                self._put(self._take(path, block), self._path(edit.topic), edit.heading)
                return (_id(block),)
            case Merge():
                return self._merge(edit)
            case Split():
                return self._split(number, edit)
            case Pin() | Unpin():
                return self._pin(edit)

    def _add(
        self, path: str, heading: str | None, text: str, cites: Sequence[str], number: int
    ) -> str:
        name = self._fresh(number, 0)
        labels = self._labels(cites)
        topic = self._topic(path) or self._new(path, text)
        heading = fitting(heading, topic.about, {block.section for block in topic.blocks()})
        self._set(path, add_block(topic, heading=heading, text=text, cites=labels, id=name), name)
        return name

    def _revise(self, number: int, edit: Revise) -> tuple[str, ...]:
        path, block = self._find(edit.block, edit.expect)
        name, labels = _id(block), self._labels(edit.cites)
        topic = replace_block(self._loaded(path), name, text=edit.text, cites=labels)
        self._set(path, topic, name)
        said_again = edit.text == block.text
        if not self._keep_history or said_again or set(labels) <= set(block.cites):
            return (name,)
        old = msgspec.structs.replace(
            block,
            id=self._fresh(number, 0),
            aliases=(),
            anchor=None,
            superseded_by=name,
            superseded_on=self._today,
        )
        self._set(path, insert_after(self._loaded(path), name, old), _id(old))
        return name, _id(old)

    def _retire(self, edit: Retire) -> tuple[str, ...]:
        path, block = self._find(self._named(edit.block), edit.expect)
        name = _id(block)
        self._touch(path, name, reason=edit.reason)
        if edit.successor is None:
            self._set(path, remove_block(self._loaded(path), name), name)
            self._places[name] = ""
            return (name,)
        successor = self._successor(edit.successor)
        if successor == name:
            raise Refused(f"the block {name} can't be its own successor", block=name)
        topic = supersede_block(self._loaded(path), name, by=successor, on=self._today)
        self._set(path, topic, name)
        return (name,)

    def _successor(self, name: str) -> str:
        return self._named(name) if name.startswith(NEW_BLOCK) else _id(self._find(name)[1])

    def _named(self, name: str) -> str:
        """Returns the block that `name` stands for: itself, or what an earlier edit made."""
        if not name.startswith(NEW_BLOCK):
            return name
        place = name.removeprefix(NEW_BLOCK)
        if not (place.isascii() and place.isdigit()) or int(place) >= len(self.done):
            raise Refused(f"the block or successor {name!r} names no earlier edit of this answer")
        return self.done[int(place)][0]

    def _merge(self, edit: Merge) -> tuple[str, ...]:
        places = {_id(block): (path, block) for path, block in map(self._find, edit.blocks)}
        names = list(places)
        if len(names) < 2:  # noqa: PLR2004 -- a merge is of two or more
            raise Refused("a merge needs at least two different blocks")
        path, first = places[names[0]]
        blocks = [block for _, block in places.values()]
        aliases = _united((_id(block), *block.aliases) for block in blocks)
        merged = msgspec.structs.replace(
            first,
            text=edit.text,
            cites=_united(block.cites for block in blocks),
            aliases=aliases[1:],
        )
        for name in names[1:]:
            self._take(*places[name])
        return self._place_merged(edit, path, merged)

    def _place_merged(self, edit: Merge, path: str, merged: Block) -> tuple[str, ...]:
        name = _id(merged)
        target = path if edit.topic is None else self._path(edit.topic)
        if target != path or edit.heading is not None:
            self._take(path, merged)
            self._put(merged, target, edit.heading)
        else:
            topic = replace_block(
                self._loaded(path),
                name,
                text=merged.text,
                cites=merged.cites,
                aliases=merged.aliases,
            )
            self._set(path, topic, name)
        self._moved.update(dict.fromkeys(merged.aliases, target))
        self._places.update(dict.fromkeys(merged.aliases, target))
        return (name,)

    def _split(self, number: int, edit: Split) -> tuple[str, ...]:
        path, block = self._find(edit.block)
        if len(edit.parts) < 2:  # noqa: PLR2004 -- a split leaves two or more
            raise Refused("a split needs at least two parts")
        first, *rest = edit.parts
        names = [_id(block)]
        topic = replace_block(
            self._loaded(path), names[0], text=first.text, cites=self._labels(first.cites)
        )
        self._set(path, topic, names[0])
        for place, part in enumerate(rest, 1):
            name = self._fresh(number, place)
            new = Block(
                raw="",
                kind="paragraph",
                id=name,
                text=part.text,
                cites=self._labels(part.cites),
            )
            self._set(path, insert_after(self._loaded(path), names[-1], new), name)
            names.append(name)
        return tuple(names)

    def mark(self, names: Iterable[str]) -> None:
        """Marks blocks as a person's; old words that were left behind are not."""
        for name in names:
            path, block = self._find(name)
            if block.superseded_by is None:
                self._set(path, mark_person(self._loaded(path), name), name)

    def _pin(self, edit: Pin | Unpin) -> tuple[str, ...]:
        path, block = self._find(self._named(edit.block))
        name = _id(block)
        core = self._topic(CORE)
        if path == CORE:
            return (name,)  # it stands on the page already, in its own words
        if isinstance(edit, Pin):
            if core is None or not is_pinned(core, name):
                self._set_core(pin(core or self._new(CORE), path, name), name)
        elif core is not None:
            for known in (name, *block.aliases):
                self._set_core(unpin(core, known), known)
                core = self._loaded(CORE)
        return (name,)

    def mend_embeds(self) -> None:
        """Points the core page's embeds of blocks that went to another topic to where they are."""
        core = self._topic(CORE) if self._moved else None
        for embed in core.embeds() if core is not None else ():
            path = self._moved.get(embed.block, embed.topic)
            if path != embed.topic:
                self._set_core(retarget(self._loaded(CORE), embed.block, path), embed.block)

    def result(self) -> Applied:
        """Returns what changed on the whole; what was changed back is no change."""
        changes = [
            change
            for (path, name), reason in self._touched.items()
            if (change := change_of(self._before[path], self._topics.get(path), path, name, reason))
            is not None
        ]
        changed = {
            path: topic
            for path, topic in self._topics.items()
            if topic is not self._before[path] and topic != self._before[path]
        }
        return Applied(topics=changed, blocks=tuple(self.done), changes=tuple(changes))

    def _take(self, path: str, block: Block) -> Block:
        name = _id(block)
        self._set(path, remove_block(self._loaded(path), name), name)
        return block

    def _put(self, block: Block, path: str, heading: str | None) -> None:
        topic = self._topic(path) or self._new(path)
        self._set(path, put_block(topic, block, heading), _id(block))
        names = (_id(block), *block.aliases)
        self._moved.update(dict.fromkeys(names, path))
        self._places.update(dict.fromkeys(names, path))

    def _find(self, name: str, expect: str | None = None) -> tuple[str, Block]:
        name = name.removeprefix("^")
        path = self._places[name] if name in self._places else self._sources.where(name)
        block = self._loaded(path).block(name) if path else None
        if not path or block is None or block.id is None:
            raise NotFound(f"there is no block {name}; look its topic up again", block=name)
        found = block_hash(block)
        if expect is not None and expect != found:
            raise Stale(
                f"the block {name} has changed since it was shown; read it again and decide anew",
                block=name,
                hash=found,
            )
        return path, block

    def _labels(self, cites: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._sources.resolve(cite) for cite in cites))

    def _fresh(self, number: int, part: int) -> str:
        name = self._sources.ids(number, part)
        while name in self._places or self._sources.where(name) is not None:
            name = block_id_of(name)
        return name

    def _path(self, topic: str) -> str:
        return self._sources.named(topic_path(topic))

    def _topic(self, path: str) -> Topic | None:
        if path not in self._before:
            topic = self._before[path] = self._sources.load(path)
            if topic is not None:
                self._topics[path] = topic
        return self._topics.get(path)

    def _loaded(self, path: str) -> Topic:
        topic = self._topic(path)
        if topic is None:
            raise NotFound(
                f"there is no topic {path}; `turnmark topics` lists those there are", topic=path
            )
        return topic

    def _new(self, path: str, words: str = "") -> Topic:
        about = self._sources.abouts.get(path)
        return new_topic(path, about, chinese=is_chinese(words))

    def _set(self, path: str, topic: Topic, name: str) -> None:
        self._topics[path] = topic
        self._places[name] = path
        self._touch(path, name)

    def _set_core(self, core: Topic, embedded: str) -> None:
        self._topics[CORE] = core
        self._touch(CORE, embedded)

    def _touch(self, path: str, name: str, reason: str | None = None) -> None:
        self._touched[path, name] = reason or self._touched.get((path, name))


def _id(block: Block) -> str:
    """Returns the id of a block that was found by it."""
    if block.id is None:
        raise NotFound("the block has no id yet; it gets one with the next install")
    return block.id


def _united(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))
