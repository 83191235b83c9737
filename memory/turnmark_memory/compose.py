"""Composing an install: edits of several batches become the new bytes of a few topic files.

Nothing is written here. Each batch's edits apply wholly or not at all; one batch that can't be
applied does not take its neighbours down. Cost: the topics that the edits name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

import msgspec
import structlog

from turnmark_events.errors import NotFound, Refused, Stale, TurnmarkError
from turnmark_memory.apply import Applied, BlockChange, Sources, apply_edits, folded
from turnmark_memory.backlinks import Place, linked_from, mend_links
from turnmark_memory.bases import Base
from turnmark_memory.core_page import arrange
from turnmark_memory.durable import digest_of
from turnmark_memory.exchange import StagedFile
from turnmark_memory.footnotes import labels_used, with_definitions
from turnmark_memory.labels import block_id_of
from turnmark_memory.line_delta import delta
from turnmark_memory.model import Add, Edit, Revise
from turnmark_memory.removal import Removal, removal_of
from turnmark_memory.revisions import BlockChange as RecordedChange
from turnmark_memory.revisions import FileChange, RevisionRecord
from turnmark_memory.shelf import Shelf
from turnmark_memory.sparing import spared
from turnmark_memory.topic import Block, Embed, Topic
from turnmark_memory.topic_format import render
from turnmark_memory.topic_path import CORE, topic_path

log = structlog.get_logger(__name__)

AUTOMATIC_LIMIT = 100
"""Embeds kept below the line between two nights: several times what a core budget can show."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One batch's accepted edits; `name` makes the ids of its new blocks, the same on a redo.

    `by_person` says that somebody asked for exactly this: the words are theirs, no history is kept
    beside the revision's record, and turns that lose their last block are parked as removed.
    `carry_out` does something else than edits in their place.
    """

    name: str
    edits: tuple[Edit, ...] = ()
    by_person: bool = False
    carry_out: Callable[[Sources], Applied] | None = None


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one `Work`: the blocks it made or changed, or why it could not be applied.

    `at_fault` tells a problem of the edits from one of the files that they name. `stale` says that
    a block changed since the writer saw it: asked again, it will see what is there now.
    """

    blocks: tuple[str, ...]
    problem: str | None = None
    at_fault: bool = True
    stale: bool = False
    error: TurnmarkError | None = None


class Composed(msgspec.Struct, frozen=True, kw_only=True):
    """An install ready to be journalled: files to exchange, its record, and marks to replace.

    `seen` are contents that people saved and that it takes in; `read` are the topics that were
    looked at on the way: it holds only if memory has seen what is in their files.
    """

    files: tuple[StagedFile, ...]
    topics: tuple[str, ...]
    record: RevisionRecord
    done: tuple[Done, ...]
    removal: Removal = Removal()
    seen: tuple[Base, ...] = ()
    read: tuple[str, ...] = ()


@dataclass(slots=True)
class Desk:
    """The topics as they are so far, and as they were when they were first taken.

    A base is what memory has seen of the file: what a person saved since then is merged with, not
    replaced. `exact` are files whose bytes are given, None to take one away.
    """

    shelf: Shelf
    bases: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    originals: dict[str, Topic] = field(default_factory=dict[str, Topic])
    topics: dict[str, Topic] = field(default_factory=dict[str, Topic])
    moved: dict[str, str] = field(default_factory=dict[str, str])
    taken: set[str] = field(default_factory=set[str])
    exact: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])

    def load(self, topic: str) -> Topic | None:
        """Returns a topic as it is so far, None where there is none."""
        self.base(topic)
        return self.topics.get(topic)

    def base(self, topic: str) -> bytes | None:
        """Returns what memory has seen of a topic's file.

        Raises:
            Refused: if what lies there now is no regular file; an install could not replace it.
            Unavailable: if it can't be read.
        """
        if topic not in self.bases:
            self.shelf.read(topic)
            self.bases[topic], found = self.shelf.opened(topic)
            if found is not None:
                self.originals[topic] = self.topics[topic] = found
        return self.bases[topic]

    def differs(self, topic: str) -> bool:
        """Tells whether a topic has changed since it was taken."""
        if topic in self.exact:
            return self.exact[topic] != self.base(topic)
        original = self.originals.get(topic)
        return original is None or render(self.topics[topic]) != render(original)

    def where(self, block: str) -> str | None:
        """Returns the topic that a block stands in now."""
        return self.moved.get(block) or self.shelf.index.where(block)

    def fresh(self, *parts: str) -> str:
        """Returns a free block id; one that is taken gets another round of the hash."""
        turn = 0
        while True:
            name = block_id_of(*parts, *([str(turn)] if turn else []))
            if name not in self.taken and self.shelf.index.where(name) is None:
                self.taken.add(name)
                return name
            turn += 1


def compose(
    shelf: Shelf,
    works: Sequence[Work],
    *,
    revision: int,
    cause: str,
    at: datetime,
    turns: int | None,
    keep_history: bool = True,
) -> Composed:
    """Returns the install that carries out `works`; blocks on disk, writes nothing.

    Raises:
        Refused: if a topic's file is a link, a directory or unreadable.
        Unavailable: if the disk fails.
    """
    desk = Desk(shelf)
    done: list[Done] = []
    changes: list[BlockChange] = []
    by_person: list[BlockChange] = []
    restored: list[BlockChange] = []
    for work in works:
        result, changed = _carry_out(desk, work, at.date(), keep_history=keep_history)
        done.append(result)
        changes += changed
        by_person += changed if work.by_person else ()
        restored += changed if work.carry_out is not None else ()
    changes = [*folded([*changes, *follow_links(desk, changes, restored)])]
    promote(desk, changes)
    topics = tuple(topic for topic in sorted({*desk.topics, *desk.exact}) if desk.differs(topic))
    files = tuple(staged(desk, topic) for topic in topics)
    _check_paths(topics, files)
    return Composed(
        files=files,
        topics=topics,
        record=RevisionRecord(
            revision=revision,
            at=at,
            cause=cause,
            blocks=tuple(dict.fromkeys(change.block for change in changes)),
            topics=tuple(dict.fromkeys(change.topic for change in changes)),
            changes=tuple(map(recorded, changes)),
            turns=turns,
            files=tuple(map(file_change, topics, files)),
        ),
        done=tuple(done),
        removal=removal_of(shelf.index, by_person),
        read=tuple(sorted({*desk.bases, *desk.exact})),
    )


def _carry_out(
    desk: Desk, work: Work, today: date, *, keep_history: bool
) -> tuple[Done, tuple[BlockChange, ...]]:
    taken = set(desk.taken)
    unusable: list[TurnmarkError] = []

    def load(topic: str) -> Topic | None:
        try:
            return desk.load(topic)
        except TurnmarkError as error:
            unusable.append(error)
            raise

    sources = Sources(
        load=load,
        where=desk.where,
        resolve=lambda cite: cite,
        ids=lambda number, part: desk.fresh(work.name, str(number), str(part)),
        named=desk.shelf.workspace.topic_name,
    )
    try:
        edits: Sequence[Edit] = [_rebased(desk, load, edit) for edit in work.edits]
        if not work.by_person:
            edits = spared(edits, lambda name: _block_on(desk, load, name))
        applied = _applied(work, edits, sources, today, keep_history=keep_history)
    except TurnmarkError as error:
        desk.taken = taken
        stale = isinstance(error, Stale | NotFound)
        at_fault = not stale and error not in unusable
        return Done(
            blocks=(), problem=error.message, at_fault=at_fault, stale=stale, error=error
        ), ()
    desk.topics.update(applied.topics)
    desk.exact.update(applied.exact)
    for topic in (name for name, content in applied.exact.items() if content is None):
        desk.topics.pop(topic, None)
    for change in applied.changes:
        if change.after is not None:
            desk.moved[change.block] = change.topic
    blocks = dict.fromkeys(block for blocks in applied.blocks for block in blocks)
    return Done(blocks=tuple(blocks)), applied.changes


def _rebased(desk: Desk, load: Callable[[str], Topic | None], edit: Edit) -> Edit:
    """Returns the edit as it must be for what stands there now.

    Of batches that say the same words again each adds its cites to those of the others. A block
    that already says these words of these turns is said again by nobody: so it is when turns are
    offered again whose marks were lost.
    """
    if isinstance(edit, Revise):
        topic = desk.where(edit.block.removeprefix("^"))
        found = load(topic) if topic is not None else None
        block = found.block(edit.block.removeprefix("^")) if found is not None else None
        if block is not None and block.text == edit.text and block.superseded_by is None:
            return _said_again(block, edit.cites)
    if isinstance(edit, Add):
        there = load(desk.shelf.workspace.topic_name(topic_path(edit.topic)))
        for block in there.saying(edit.text) if there is not None else ():
            if block.id and set(block.cites) == set(edit.cites):
                return _said_again(block, ())
    return edit


def _block_on(
    desk: Desk, load: Callable[[str], Topic | None], name: str
) -> tuple[str, Block] | None:
    topic = desk.where(name)
    found = load(topic) if topic is not None else None
    block = found.block(name) if found is not None else None
    return None if topic is None or block is None else (topic, block)


def _said_again(block: Block, cites: Sequence[str]) -> Revise:
    return Revise(
        block=block.id or "",
        text=block.text,
        cites=tuple(dict.fromkeys([*block.cites, *cites])),
    )


def _applied(
    work: Work, edits: Sequence[Edit], sources: Sources, today: date, *, keep_history: bool
) -> Applied:
    if work.carry_out is not None:
        return work.carry_out(sources)
    return apply_edits(
        edits,
        sources=sources,
        today=today,
        keep_history=keep_history and not work.by_person,
        by_person=work.by_person,
    )


def follow_links(
    desk: Desk, changes: Sequence[BlockChange], restored: Sequence[BlockChange] = ()
) -> tuple[BlockChange, ...]:
    """Lets links to blocks that went elsewhere follow them, in whatever topic they stand.

    Lines of `restored` come from an earlier time: their links are put right as well.
    """

    def load(topic: str) -> Topic | None:
        try:
            return desk.load(topic)
        except TurnmarkError:  # a topic that can't be used now keeps its link; it names its block
            return None

    known: dict[str, Place] = {}
    for name in {name for change in restored for name in linked_from(change.after)}:
        topic = desk.where(name)
        found = load(topic) if topic is not None else None
        block = found.block(name) if found is not None else None
        if topic is not None and block is not None and block.id is not None:
            known[name] = (topic, block.id)
    mended = mend_links(changes, load=load, linking=desk.shelf.index.topics_linking, known=known)
    desk.topics.update(mended.topics)
    for topic in mended.topics:
        desk.exact.pop(topic, None)
    return mended.changes


def promote(desk: Desk, changes: Sequence[BlockChange]) -> None:
    """Puts new blocks at the top of the core's automatic part, people and projects first.

    What was there stays below, up to a limit; what is gone or superseded leaves. The night puts
    the whole part in order. A core topic that can't be used is left as it is.
    """
    if CORE in desk.exact:
        return
    changes = [change for change in changes if change.topic != CORE]
    shown = [change for change in changes if change.after is not None and _is_shown(desk, change)]
    left = {change.block for change in changes}.difference(change.block for change in shown)
    known = {change.block for change in changes if change.before is not None}
    fresh = [(change.topic, change.block) for change in shown if change.block not in known]
    if not fresh and not left:
        return
    try:
        core = desk.load(CORE)
    except Refused as error:
        log.warning("core_topic_unusable", reason=error.message)
        return
    present = [] if core is None else _automatic(core)
    first = sorted(fresh, key=lambda one: not one[0].startswith(("people/", "projects/")))
    wanted = [one for one in [*first, *present] if one[1] not in left]
    desk.topics[CORE] = arrange(core, list(dict.fromkeys(wanted))[:AUTOMATIC_LIMIT])


def _is_shown(desk: Desk, change: BlockChange) -> bool:
    topic = desk.topics.get(change.topic)
    block = topic.block(change.block) if topic is not None else None
    return block is not None and block.superseded_by is None


def _automatic(core: Topic) -> list[tuple[str, str]]:
    line = core.line_index()
    if line is None:
        return []
    return [(part.topic, part.block) for part in core.segments[line:] if isinstance(part, Embed)]


def staged(desk: Desk, topic: str) -> StagedFile:
    """Returns the file of a topic as it is so far, with its footnotes, ready to be exchanged."""
    base = desk.base(topic)
    return StagedFile(
        path=desk.shelf.workspace.topic_file(topic),
        base=None if base is None else digest_of(base),
        base_content=base,
        content=desk.exact[topic] if topic in desk.exact else _rendered(desk, topic),
    )


def _check_paths(topics: Sequence[str], files: Sequence[StagedFile]) -> None:
    """Refuses what would write one file twice: a file's old and new name can differ by case."""
    owners: dict[str, str] = {}
    for topic, file in zip(topics, files, strict=True):
        other = owners.setdefault(file.path, topic)
        if other != topic:
            raise Refused(f"{other!r} and {topic!r} are one file, {file.path}; rename it by hand")


def _rendered(desk: Desk, topic: str) -> bytes:
    found = desk.topics[topic]
    definitions = desk.shelf.definitions(labels_used(found), topic)
    return render(with_definitions(found, definitions))


def file_change(topic: str, file: StagedFile) -> FileChange:
    """Returns a file's change with the way back, for the record."""
    return FileChange(
        topic=topic,
        before=file.base,
        after=None if file.content is None else digest_of(file.content),
        back=delta(file.content or b"", file.base_content or b""),
    )


def recorded(change: BlockChange) -> RecordedChange:
    """Returns a block's change as the record keeps it."""
    return RecordedChange.of(
        topic=change.topic,
        block=change.block,
        before=change.before,
        after=change.after,
        heading=change.heading,
        reason=change.reason,
    )
