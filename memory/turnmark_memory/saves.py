"""Saves of topic files that have to be understood together, as blocks went from one to another.

A save gets ids for its paragraphs and what installs added since it was made; then each block gets
one place: where it went, not where it came from, and a copy gets an id of its own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import structlog

from turnmark_events.errors import TurnmarkError, Unavailable
from turnmark_memory.bases import Base
from turnmark_memory.file_exchange import MergeInput
from turnmark_memory.labels import block_id_of
from turnmark_memory.nearest import copied_ids, known_ids, nearest
from turnmark_memory.person_view import numbered, with_notes
from turnmark_memory.shelf import Shelf
from turnmark_memory.slots import TargetHeldOpen, settled_read
from turnmark_memory.topic import Block, Topic, TopicWarning
from turnmark_memory.topic_edit import remove_block
from turnmark_memory.topic_format import block_line, parse, render
from turnmark_memory.topic_merge import merge_topics
from turnmark_memory.workspace import TOPICS, RevisionStamp

log = structlog.get_logger(__name__)

_ABSENCE_SECONDS = 0.15
"""vim moves a file away before it writes it anew: this long its absence may be a save."""

_CLOCK_SLACK_MS = 2_000
"""How much older than a note of ours a file's time may look, on file systems with coarse times."""


class Save:
    """One topic that somebody changed, on its way to being understood.

    `read` is the file with ids, `merged` has what later installs added, `final` is what memory
    takes the topic for.
    """

    def __init__(self, topic: str, content: bytes | None, recent: list[Base]) -> None:
        self.topic = topic
        self.content = content
        self.recent = recent
        self.newest = recent[0]
        self.base = recent[0] if content is None else recent[nearest(content, recent)]
        self.before = self.newest.as_topic()
        self.before_blocks = by_id(self.before)
        self.read = self.merged = self.final = parse(content or b"")
        self.read_ids: frozenset[str] = frozenset()
        self.merged_ids: frozenset[str] = frozenset()
        self.copied: tuple[str, ...] = ()

    @property
    def is_stale(self) -> bool:
        """Tells whether it was made from an older text than the newest."""
        return self.base is not self.newest

    @property
    def has_news(self) -> bool:
        """Tells whether installs added what the file lacks, or it holds what was forgotten."""
        return self.merged is not self.read and render(self.merged) != render(self.read)

    def is_understood(self, read: Topic, merged: Topic) -> None:
        """Takes the file with ids, and with what later installs added."""
        self.read, self.merged, self.final = read, merged, merged
        self.read_ids = frozenset(by_id(read))
        self.merged_ids = frozenset(by_id(merged))

    @property
    def gone(self) -> frozenset[str]:
        """The ids that stood in the topic and do no more."""
        return self.merged_ids.symmetric_difference(self.before_blocks) - self.merged_ids

    @property
    def come(self) -> frozenset[str]:
        """The ids that are new in the topic."""
        return self.merged_ids.difference(self.before_blocks)


class Batch:
    """The saves that have to be understood together, because blocks went from one to another."""

    def __init__(self, shelf: Shelf, held: set[str]) -> None:
        self._shelf = shelf
        self._bases = shelf.bases
        self._held = held
        self._looked: set[str] = set()
        self._skipped: set[str] = set()
        self._taken: set[str] = set()
        self._holders: dict[str, list[Save]] = {}
        self._left: dict[str, list[Block]] = {}
        self.saves: dict[str, Save] = {}

    def add(self, topics: Iterable[str], *, forced: bool = False) -> None:
        """Reads those of `topics` that somebody changed since they were seen."""
        fresh = [topic for topic in dict.fromkeys(topics) if forced or topic not in self._looked]
        self._looked.update(fresh)
        contents = self._settled(fresh)
        for topic, content in contents.items():
            if topic in self.saves or (not forced and self._bases.is_seen(topic, content)):
                continue
            recent = self._bases.recent(topic) or self._from_index(topic)
            if content is None and recent[0].content is None:
                continue
            self.saves[topic] = self._understood(Save(topic, content, recent))

    def complete(self) -> None:
        """Adds the topics that blocks went to or came from, then gives each block one place."""
        scanned = False
        while True:
            count = len(self.saves)
            come = {name for save in self.saves.values() for name in save.come}
            gone = {name for save in self.saves.values() for name in save.gone}
            owners = (self._shelf.index.where(name) for name in sorted(come))
            self.add(owner for owner in owners if owner is not None)
            for name in sorted(gone):
                self.add(self._bases.copies_of(name), forced=True)
            lost = gone.difference(*(save.come for save in self.saves.values()))
            if lost and not scanned:
                scanned = True
                self.add(self._lately_saved())
            if len(self.saves) == count:
                break
        read = Counter(name for save in self.saves.values() for name in save.read_ids)
        for save in self.saves.values():
            self._let_go(save, read)
        for topic in sorted(self.saves):
            save = self.saves[topic]
            for name in save.merged_ids:
                self._holders.setdefault(name, []).append(save)
            for name in save.gone:
                self._left.setdefault(name, []).append(save.before_blocks[name])
        for topic in sorted(self.saves):
            self._settle_doubles(self.saves[topic])

    @staticmethod
    def _let_go(save: Save, read: Mapping[str, int]) -> None:
        """Takes out again what was merged into a file though a person put it elsewhere."""
        merged = save.merged
        for name in save.merged_ids - save.read_ids:
            if name in read and name in save.before_blocks:
                merged = remove_block(merged, name)
        if merged is not save.merged:
            save.is_understood(save.read, merged)

    @property
    def readable(self) -> frozenset[str]:
        """The topics that were read and are as they were seen."""
        return frozenset(self._looked - self._skipped - self.saves.keys())

    def _settled(self, topics: Sequence[str]) -> dict[str, bytes | None]:
        """Returns the bytes of files that nobody is writing to; one absence is waited out."""
        found = {topic: self._read(topic) for topic in topics}
        absent = [topic for topic, content in found.items() if content is None]
        if any(self._was_there(topic) for topic in absent):
            time.sleep(_ABSENCE_SECONDS)
            found.update((topic, self._read(topic)) for topic in absent)
        return {topic: content for topic, content in found.items() if topic not in self._skipped}

    def _was_there(self, topic: str) -> bool:
        newest = None if topic in self._skipped else self._bases.newest(topic)
        return newest is not None and newest.content is not None

    def _read(self, topic: str) -> bytes | None:
        try:
            path = self._shelf.workspace.topic_file(topic)
            if path != f"{TOPICS}/{topic}.md":  # a twin's: the name changed its case
                return None
            with self._shelf.workspace.tree.parent(path) as (dir_fd, name):
                return settled_read(dir_fd, name, path)
        except FileNotFoundError:
            self._check_removal()
        except TargetHeldOpen:
            self._held.add(topic)
            self._skipped.add(topic)
        except TurnmarkError as error:
            self._skipped.add(topic)
            for new in self._bases.set_problems(topic, [unreadable(error)]):
                log.warning("topic_unreadable", topic=topic, reason=new.problem)
        return None

    def _check_removal(self) -> None:
        """Believes in a removal only where the rest of the workspace is as it should be.

        Raises:
            Unavailable: if the workspace's own files are gone too: then nobody removed a topic.
        """
        stamp = self._shelf.workspace.revision()
        known = self._shelf.index.revision
        if not isinstance(stamp, RevisionStamp) or (known is not None and stamp.revision < known):
            raise Unavailable(
                "the workspace's files went away or back while turnmark was running; put them in "
                "place and restart it",
            )

    def _from_index(self, topic: str) -> list[Base]:
        """Returns what the index knows of a topic of which nothing was seen yet."""
        docs = self._shelf.index.blocks_of(topic)
        lines = [
            block_line(
                Block(
                    raw="",
                    kind="paragraph",
                    id=doc.block,
                    text=doc.text,
                    cites=doc.cites,
                    aliases=doc.aliases,
                )
            )
            for doc in docs
        ]
        content = "".join(f"{line}\n\n" for line in lines).encode() if lines else None
        return [Base(topic=topic, kind="install", content=content, at_ms=0)]

    def _lately_saved(self) -> Iterator[str]:
        seen = self._bases.seen_ms()
        for file in self._shelf.workspace.topics():
            at_ms = seen.get(file.topic)
            if at_ms is None or file.mtime_ns // 1_000_000 >= at_ms - _CLOCK_SLACK_MS:
                yield file.topic

    def _understood(self, save: Save) -> Save:
        """Gives a save its ids, merges in what it can't know, and drops what was forgotten."""
        known = known_ids(save.read, save.base)
        read = numbered(save.read, known, lambda block: self._fresh(save, block))
        merged = read
        if save.is_stale:
            wanted = MergeInput(
                path=f"{TOPICS}/{save.topic}.md",
                base=save.base.seen,
                theirs=render(read),
                ours=save.newest.seen,
            )
            merged = parse(merge_topics(wanted))
        for name, block in by_id(merged).items():
            if name not in save.before_blocks and self._is_forgotten(block):
                merged = remove_block(merged, name)
        save.is_understood(read, merged)
        return save

    def _is_forgotten(self, block: Block) -> bool:
        index = self._shelf.index
        return bool(block.cites) and all(index.is_forgotten(label) for label in block.cites)

    def _fresh(self, save: Save, block: Block) -> str:
        """Returns a free id: the same words in the same topic get the same one again."""
        parts = (str(self._shelf.workspace.id), "person", save.topic, block.text)
        turn = 0
        while True:
            name = block_id_of(*parts, *([str(turn)] if turn else []))
            if name not in self._taken and self._shelf.index.where(name) is None:
                self._taken.add(name)
                return name
            turn += 1

    def _settle_doubles(self, save: Save) -> None:
        """Gives copies ids of their own and marks what the person changed."""
        earlier = copied_ids(save.base)
        renamed: dict[int, str] = {}
        marked: set[int] = set()
        copied: dict[str, None] = {}
        own: set[str] = set()
        for place, block in enumerate(save.merged.blocks()):
            if block.id is None:
                continue
            if self._is_copy(save, place, block, own):
                known = earlier.get(block.id, [])
                renamed[place] = known.pop(0) if known else self._fresh(save, block)
                copied[block.id] = None
                marked.add(place)
            else:
                own.add(block.id)
                if self._is_reworded(save, block):
                    marked.add(place)
        save.final = with_notes(save.merged, renamed, marked)
        save.copied = tuple(copied)

    def _is_copy(self, save: Save, place: int, block: Block, own: set[str]) -> bool:
        name = block.id or ""
        if name in own:
            return True
        if name not in save.before_blocks:
            return self._is_anothers(save, name)
        # Of several in one file the one with the old words is the original, else the first.
        if same_words(save.before_blocks[name], block):
            return False
        later = list(save.merged.blocks())[place + 1 :]
        return any(same_words(one, save.before_blocks[name]) for one in later if one.id == name)

    def _is_anothers(self, save: Save, name: str) -> bool:
        for other in self._holders.get(name, ()):
            if other is not save and (name in other.before_blocks or other.topic < save.topic):
                return True
        owner = self._shelf.index.where(name)
        return owner is not None and owner != save.topic and owner not in self.saves

    def _is_reworded(self, save: Save, block: Block) -> bool:
        name = block.id or ""
        if name not in save.read_ids:
            return False  # an install's, merged in
        before = save.before_blocks.get(name)
        if before is None:
            before = next(iter(self._left.get(name, ())), None)
        if before is not None:
            return not same_words(before, block)
        known = (base.as_topic().block(name) for base in save.recent)
        return not any(one is not None and same_words(one, block) for one in known)


def same_words(one: Block, other: Block) -> bool:
    """Tells whether two blocks say the same and cite the same."""
    return (one.text, one.cites) == (other.text, other.cites)


def by_id(topic: Topic) -> dict[str, Block]:
    """Returns the blocks that have an id, of several the first."""
    found: dict[str, Block] = {}
    for block in topic.blocks():
        if block.id is not None:
            found.setdefault(block.id, block)
    return found


def unreadable(error: TurnmarkError) -> TopicWarning:
    """Returns what to tell of a file that can't be read."""
    return TopicWarning(line=0, problem=error.message)
