"""Taking in what people did to topic files: merged, numbered, protected, recorded as a revision.

A file that differs from what memory saw last was saved by somebody. The save is read against the
recent content that it was made from (`nearest.py`); what installs added since is merged back in,
what the person took out stays out. Blocks keep their ids wherever they went: files that lose and
files that gain are looked at together. Nothing is written here but notes of what was seen: what
comes out is an install for the `Installer`, or nothing to install.

Everything here blocks on disk and runs while no install is under way. Cost: the topics that are
named; where blocks vanished, also a look at the names of all files.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
import structlog

from turnmark_events.errors import Refused, TurnmarkError, Unavailable
from turnmark_memory.apply import BlockChange, change_of, folded
from turnmark_memory.bases import Base
from turnmark_memory.compose import (
    Composed,
    Desk,
    file_change,
    follow_links,
    promote,
    recorded,
    staged,
)
from turnmark_memory.durable import digest_of
from turnmark_memory.exchange import MergeInput, StagedFile
from turnmark_memory.labels import block_id_of
from turnmark_memory.line_delta import delta
from turnmark_memory.nearest import copied_ids, known_ids, nearest
from turnmark_memory.person_view import numbered, with_notes
from turnmark_memory.pins import is_pinned
from turnmark_memory.removal import removal_of
from turnmark_memory.revisions import FileChange, RevisionRecord
from turnmark_memory.shelf import Shelf
from turnmark_memory.slots import TargetHeldOpen, settled_read
from turnmark_memory.topic import Block, Topic, TopicWarning
from turnmark_memory.topic_edit import remove_block
from turnmark_memory.topic_format import block_line, parse, render
from turnmark_memory.topic_merge import merge_topics
from turnmark_memory.topic_path import CORE
from turnmark_memory.workspace import TOPICS, RevisionStamp

log = structlog.get_logger(__name__)

_ABSENCE_SECONDS = 0.15
"""vim moves a file away before it writes it anew: this long its absence may be a save."""

_CLOCK_SLACK_MS = 2_000
"""How much older than a note of ours a file's time may look, on file systems with coarse times."""

_PROBLEMS_PER_TOPIC = 50


class TakenIn(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: an install, or None where no block changed; and the topics concerned."""

    composed: Composed | None
    topics: tuple[str, ...]


class _Save:
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
        self.before_blocks = _by_id(self.before)
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
        self.read_ids = frozenset(_by_id(read))
        self.merged_ids = frozenset(_by_id(merged))

    @property
    def gone(self) -> frozenset[str]:
        """The ids that stood in the topic and do no more."""
        return self.merged_ids.symmetric_difference(self.before_blocks) - self.merged_ids

    @property
    def come(self) -> frozenset[str]:
        """The ids that are new in the topic."""
        return self.merged_ids.difference(self.before_blocks)


class Intake:
    """Reads people's saves of one workspace's topics."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._bases = shelf.bases
        self._held: set[str] = set()

    def take_held(self) -> frozenset[str]:
        """Returns the topics that were being written to when they were looked at, once."""
        held, self._held = frozenset(self._held), set()
        return held

    def unseen(self, topics: Iterable[str]) -> list[str]:
        """Returns those of `topics` whose files aren't as memory saw them; cheap for the others."""
        odd = self._bases.unreadable()
        return [topic for topic in topics if topic in odd or self._is_unseen(topic)]

    def _is_unseen(self, topic: str) -> bool:
        try:
            return not self._bases.is_seen(topic, self._shelf.read(topic))
        except TurnmarkError:
            return True

    def everything(self) -> list[str]:
        """Returns every topic that has a file, and every one that had."""
        found = dict.fromkeys(self._bases.topics())
        found.update((file.topic, None) for file in self._shelf.workspace.topics())
        return sorted(found)

    def below(self, folder: str) -> list[str]:
        """Returns the topics in a folder of `topics/`, those that were there included."""
        found = dict.fromkeys(self._bases.below(folder))
        found.update((file.topic, None) for file in self._shelf.workspace.topics(folder))
        return sorted(found)

    def look(
        self, topics: Iterable[str], *, revision: int, at: datetime, forced: bool = False
    ) -> TakenIn | None:
        """Returns what people changed in `topics`, as an install; None where there is nothing new.

        `forced` reads topics again that are as they were seen. A file that can't be read, or is
        being written, is left for later; its blocks are served as they were seen.

        Raises:
            Unavailable: if the disk fails.
        """
        saves = _Batch(self._shelf, self._held)
        saves.add(topics, forced=forced)
        saves.complete()
        for topic in sorted(saves.readable & self._bases.unreadable()):
            self.inspect(topic)
        if not saves.saves:
            return None
        return self._taken_in(list(saves.saves.values()), revision, at)

    def _taken_in(self, saves: Sequence[_Save], revision: int, at: datetime) -> TakenIn:
        changes = [change for save in saves for change in _changes(save)]
        composed = self._composed(saves, changes, revision, at)
        for save in saves:
            self._bases.set_copied(save.topic, save.copied)
        topics = tuple(save.topic for save in saves)
        if composed is None:
            at_ms = _ms(at)
            self._bases.record([_seen(save, at_ms, None) for save in saves])
            for topic in topics:
                self._shelf.shelve(topic)
                self.inspect(topic)
        return TakenIn(composed=composed, topics=topics)

    def _composed(
        self, saves: Sequence[_Save], changes: list[BlockChange], revision: int, at: datetime
    ) -> Composed | None:
        removal = removal_of(self._shelf.index, changes)
        desk = Desk(self._shelf)
        for save in saves:
            desk.bases[save.topic] = save.content
            desk.topics[save.topic] = save.final
        changes = [*folded([*changes, *follow_links(desk, changes)])]
        promote(desk, changes)
        known = {save.topic: save for save in saves}
        written = [topic for topic in sorted(desk.topics) if _is_to_write(desk, known, topic)]
        if not changes and not written:
            return None
        files = {topic: staged(desk, topic) for topic in written}
        return Composed(
            files=tuple(files.values()),
            topics=tuple(sorted({*written, *(save.topic for save in saves)})),
            record=RevisionRecord(
                revision=revision,
                at=at,
                cause=_cause(saves),
                blocks=tuple(dict.fromkeys(change.block for change in changes)),
                topics=tuple(dict.fromkeys(change.topic for change in changes)),
                changes=tuple(map(recorded, changes)),
                files=tuple(_file_changes(saves, files)),
            ),
            done=(),
            removal=removal,
            seen=tuple(_seen(save, _ms(at), revision) for save in saves),
        )

    def numbered(self, topics: Iterable[str], *, revision: int, at: datetime) -> Composed | None:
        """Returns the install that writes ids and marks into files where they wait to be written.

        Topics that somebody changed meanwhile are left out: `look` is for those.
        """
        desk = Desk(self._shelf)
        waiting: list[str] = []
        for topic in topics:
            newest = self._bases.newest(topic)
            if newest is not None and newest.view is not None and newest.content is not None:
                with contextlib.suppress(Refused):
                    desk.load(topic)
                    waiting.append(topic)
        if not waiting:
            return None
        files = {topic: staged(desk, topic) for topic in waiting}
        record = RevisionRecord(
            revision=revision,
            at=at,
            cause=f"wrote ids into {_listed(waiting)}",
            blocks=(),
            topics=tuple(waiting),
            changes=(),
            files=tuple(file_change(topic, file) for topic, file in files.items()),
        )
        return Composed(files=tuple(files.values()), topics=tuple(waiting), record=record, done=())

    def inspect(self, topic: str) -> None:
        """Notes, and logs once, what a person should look at in a topic's file."""
        self._note(topic, list(self._faults(topic)))

    def _note(self, topic: str, problems: list[TopicWarning]) -> None:
        for new in self._bases.set_problems(topic, problems[:_PROBLEMS_PER_TOPIC]):
            place = f"{TOPICS}/{topic}.md" + (f":{new.line}" if new.line else "")
            log.warning("topic_problem", at_line=place, problem=new.problem)

    def _faults(self, topic: str) -> Iterator[TopicWarning]:
        try:
            content = self._shelf.read(topic)
        except TurnmarkError as error:
            yield _unreadable(error)
            return
        found = parse(content or b"")
        yield from found.warnings
        blocks = [(line, part) for line, part in found.lines() if isinstance(part, Block)]
        for line, block in blocks:
            for label in block.cites:
                if self._shelf.archive.resolve(label) is None:
                    yield TopicWarning(
                        line=line,
                        problem=f"the footnote {label} names no source; take it out, or put the "
                        "missing file back under sources/",
                    )
        copied = self._bases.copied_in(topic)
        for line, block in blocks:
            if block.id in copied:
                yield TopicWarning(
                    line=line,
                    problem=f"the block id {block.id} is another block's; this copy gets its own",
                )


class _Batch:
    """The saves that have to be understood together, because blocks went from one to another."""

    def __init__(self, shelf: Shelf, held: set[str]) -> None:
        self._shelf = shelf
        self._bases = shelf.bases
        self._held = held
        self._looked: set[str] = set()
        self._skipped: set[str] = set()
        self._taken: set[str] = set()
        self._holders: dict[str, list[_Save]] = {}
        self._left: dict[str, list[Block]] = {}
        self.saves: dict[str, _Save] = {}

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
            self.saves[topic] = self._understood(_Save(topic, content, recent))

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
    def _let_go(save: _Save, read: Mapping[str, int]) -> None:
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
            with self._shelf.workspace.tree.parent(path) as (dir_fd, name):
                return settled_read(dir_fd, name, path)
        except FileNotFoundError:
            self._check_removal()
        except TargetHeldOpen:
            self._held.add(topic)
            self._skipped.add(topic)
        except TurnmarkError as error:
            self._skipped.add(topic)
            for new in self._bases.set_problems(topic, [_unreadable(error)]):
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

    def _understood(self, save: _Save) -> _Save:
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
        for name, block in _by_id(merged).items():
            if name not in save.before_blocks and self._is_forgotten(block):
                merged = remove_block(merged, name)
        save.is_understood(read, merged)
        return save

    def _is_forgotten(self, block: Block) -> bool:
        index = self._shelf.index
        return bool(block.cites) and all(index.is_forgotten(label) for label in block.cites)

    def _fresh(self, save: _Save, block: Block) -> str:
        """Returns a free id: the same words in the same topic get the same one again."""
        parts = (str(self._shelf.workspace.id), "person", save.topic, block.text)
        turn = 0
        while True:
            name = block_id_of(*parts, *([str(turn)] if turn else []))
            if name not in self._taken and self._shelf.index.where(name) is None:
                self._taken.add(name)
                return name
            turn += 1

    def _settle_doubles(self, save: _Save) -> None:
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

    def _is_copy(self, save: _Save, place: int, block: Block, own: set[str]) -> bool:
        name = block.id or ""
        if name in own:
            return True
        if name not in save.before_blocks:
            return self._is_anothers(save, name)
        # Of several in one file the one with the old words is the original, else the first.
        if _same(save.before_blocks[name], block):
            return False
        later = list(save.merged.blocks())[place + 1 :]
        return any(_same(one, save.before_blocks[name]) for one in later if one.id == name)

    def _is_anothers(self, save: _Save, name: str) -> bool:
        for other in self._holders.get(name, ()):
            if other is not save and (name in other.before_blocks or other.topic < save.topic):
                return True
        owner = self._shelf.index.where(name)
        return owner is not None and owner != save.topic and owner not in self.saves

    def _is_reworded(self, save: _Save, block: Block) -> bool:
        name = block.id or ""
        if name not in save.read_ids:
            return False  # an install's, merged in
        before = save.before_blocks.get(name)
        if before is None:
            before = next(iter(self._left.get(name, ())), None)
        if before is not None:
            return not _same(before, block)
        known = (base.as_topic().block(name) for base in save.recent)
        return not any(one is not None and _same(one, block) for one in known)


def _seen(save: _Save, at_ms: int, revision: int | None) -> Base:
    read = save.read if save.is_stale else save.final
    view = render(read)
    return Base(
        topic=save.topic,
        kind="edit",
        content=save.content,
        view=None if save.content is None or view == save.content else view,
        at_ms=at_ms,
        revision=revision,
        offered=save.is_stale,
    )


def _changes(save: _Save) -> Iterator[BlockChange]:
    """Yields what became of each block and pin between what memory saw and what it reads now."""
    after = _by_id(save.final)
    for name in dict.fromkeys([*save.before_blocks, *after]):
        old, new = save.before_blocks.get(name), after.get(name)
        if old is None or new is None or not _alike(old, new, headings=save.newest.at_ms > 0):
            change = change_of(save.before, save.final, save.topic, name)
            if change is not None:
                yield change
    if save.topic == CORE:
        for name in dict.fromkeys([*_pins(save.before), *_pins(save.final)]):
            if is_pinned(save.before, name) != is_pinned(save.final, name):
                change = change_of(save.before, save.final, save.topic, name)
                if change is not None:
                    yield change


def _pins(core: Topic) -> Iterator[str]:
    return (embed.block for embed in core.embeds())


def _alike(one: Block, other: Block, *, headings: bool) -> bool:
    """Tells whether nothing changed that a record should tell of: words, cites, marks, heading."""
    return (
        _same(one, other)
        and (one.section == other.section or not headings)
        and (one.superseded_by, one.by_person) == (other.superseded_by, other.by_person)
    )


def _same(one: Block, other: Block) -> bool:
    return (one.text, one.cites) == (other.text, other.cites)


def _by_id(topic: Topic) -> dict[str, Block]:
    """Returns the blocks that have an id, of several the first."""
    found: dict[str, Block] = {}
    for block in topic.blocks():
        if block.id is not None:
            found.setdefault(block.id, block)
    return found


def _is_to_write(desk: Desk, saves: Mapping[str, _Save], topic: str) -> bool:
    save = saves.get(topic)
    if save is None:
        return desk.differs(topic)
    return save.has_news or render(desk.topics[topic]) != render(save.final)


def _file_changes(saves: Sequence[_Save], files: Mapping[str, StagedFile]) -> Iterator[FileChange]:
    """Yields each file's way back: from what stands there in the end to what memory saw before."""
    for save in saves:
        file = files.get(save.topic)
        before, after = save.newest.content, save.content if file is None else file.content
        yield FileChange(
            topic=save.topic,
            before=None if before is None else digest_of(before),
            after=None if after is None else digest_of(after),
            back=delta(after or b"", before or b""),
        )
    known = {save.topic for save in saves}
    yield from (file_change(topic, file) for topic, file in files.items() if topic not in known)


def _cause(saves: Sequence[_Save]) -> str:
    removed = [save.topic for save in saves if save.content is None]
    edited = [save.topic for save in saves if save.content is not None]
    if removed and edited and all(save.newest.content is None for save in saves if save.content):
        return f"a person moved {_listed(removed)} to {_listed(edited)}"
    if not edited:
        return f"a person removed {_listed(removed)}"
    return f"a person edited {_listed(edited)}"


def _listed(topics: Sequence[str]) -> str:
    first, *rest = topics
    return f"{first} and {len(rest)} more" if rest else first


def _unreadable(error: TurnmarkError) -> TopicWarning:
    return TopicWarning(line=0, problem=error.message)


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
