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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
import structlog

from turnmark_events.errors import Refused, TurnmarkError
from turnmark_memory.arrivals import show_arrivals
from turnmark_memory.bases import Base
from turnmark_memory.block_change import BlockChange, change_of, folded
from turnmark_memory.compose import Composed, file_change
from turnmark_memory.draft import Draft
from turnmark_memory.durable import digest_of
from turnmark_memory.file_exchange import StagedFile
from turnmark_memory.line_delta import delta
from turnmark_memory.pins import is_pinned
from turnmark_memory.removal import removal_of
from turnmark_memory.revisions import FileChange, RevisionRecord
from turnmark_memory.saves import Batch, Save, by_id, same_words, unreadable
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic import Block, Topic, TopicWarning
from turnmark_memory.topic_format import parse, render
from turnmark_memory.topic_path import CORE
from turnmark_memory.workspace import TOPICS

log = structlog.get_logger(__name__)

_PROBLEMS_PER_TOPIC = 50


class TakenIn(msgspec.Struct, frozen=True, kw_only=True):
    """What was found: an install, or None where no block changed; and the topics concerned."""

    composed: Composed | None
    topics: tuple[str, ...]


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
            return not self._bases.is_seen(topic, self._shelf.read_own(topic))
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
        saves = Batch(self._shelf, self._held)
        saves.add(topics, forced=forced)
        saves.complete()
        for topic in sorted(saves.readable & self._bases.unreadable()):
            self.inspect(topic)
        if not saves.saves:
            return None
        return self._taken_in(list(saves.saves.values()), revision, at)

    def _taken_in(self, saves: Sequence[Save], revision: int, at: datetime) -> TakenIn:
        for save in saves:
            # Few editors flush. What a power cut left of a save that was seen would be the next.
            self._shelf.workspace.tree.flush(f"{TOPICS}/{save.topic}.md")
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
        self, saves: Sequence[Save], changes: list[BlockChange], revision: int, at: datetime
    ) -> Composed | None:
        removal = removal_of(self._shelf.index, changes)
        draft = Draft(self._shelf)
        for save in saves:
            draft.bases[save.topic] = save.content
            draft.topics[save.topic] = save.final
        changes = [*folded([*changes, *draft.follow_links(changes)])]
        show_arrivals(draft, changes)
        known = {save.topic: save for save in saves}
        written = [topic for topic in sorted(draft.topics) if _is_to_write(draft, known, topic)]
        if not changes and not written:
            return None
        files = {topic: draft.staged(topic) for topic in written}
        return Composed(
            files=tuple(files.values()),
            topics=tuple(sorted({*written, *(save.topic for save in saves)})),
            record=RevisionRecord.of(
                changes,
                revision=revision,
                at=at,
                cause=_cause(saves),
                files=_file_changes(saves, files),
            ),
            done=(),
            removal=removal,
            seen=tuple(_seen(save, _ms(at), revision) for save in saves),
        )

    def numbered(self, topics: Iterable[str], *, revision: int, at: datetime) -> Composed | None:
        """Returns the install that writes ids and marks into files where they wait to be written.

        Topics that somebody changed meanwhile are left out: `look` is for those.
        """
        draft = Draft(self._shelf)
        waiting: list[str] = []
        for topic in topics:
            newest = self._bases.newest(topic)
            if newest is not None and newest.view is not None and newest.content is not None:
                with contextlib.suppress(Refused):
                    draft.load(topic)
                    waiting.append(topic)
        if not waiting:
            return None
        files = {topic: draft.staged(topic) for topic in waiting}
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
            content = self._shelf.read_own(topic)
        except TurnmarkError as error:
            yield unreadable(error)
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


def _seen(save: Save, at_ms: int, revision: int | None) -> Base:
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


def _changes(save: Save) -> Iterator[BlockChange]:
    """Yields what became of each block and pin between what memory saw and what it reads now."""
    after = by_id(save.final)
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
        same_words(one, other)
        and (one.section == other.section or not headings)
        and (one.superseded_by, one.by_person) == (other.superseded_by, other.by_person)
    )


def _is_to_write(draft: Draft, saves: Mapping[str, Save], topic: str) -> bool:
    save = saves.get(topic)
    if save is None:
        return draft.differs(topic)
    return save.has_news or render(draft.topics[topic]) != render(save.final)


def _file_changes(saves: Sequence[Save], files: Mapping[str, StagedFile]) -> Iterator[FileChange]:
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


def _cause(saves: Sequence[Save]) -> str:
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


def _ms(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
