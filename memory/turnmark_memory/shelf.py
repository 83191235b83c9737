"""The topics of a workspace, with the index beside them: read from files, found by the index.

Files are the truth. The index answers where a block stands and what a batch's turns may concern;
after an install the files' own bytes go back into it. Every function blocks on disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.abouts import Abouts
from turnmark_memory.archive import Archive, ArchivedTurn, SourceLine
from turnmark_memory.backlinks import links_of
from turnmark_memory.bases import Bases
from turnmark_memory.embedding.vector_file import FILE_NAME, VectorFile
from turnmark_memory.footnotes import definition
from turnmark_memory.holding import Holding
from turnmark_memory.index import Index
from turnmark_memory.index_schema import BlockDoc, LearntRow, TopicDoc, TurnDoc
from turnmark_memory.model import Evidence, ShownBlock
from turnmark_memory.topic import Block, Topic, block_hash
from turnmark_memory.topic_format import parse
from turnmark_memory.topic_path import CORE
from turnmark_memory.workspace import BASES_FILE, INDEX_FILE, PRIVATE, Workspace

log = structlog.get_logger(__name__)

DAY_US: Final = 86_400_000_000


class Shelf:
    """Reads topics and blocks; keeps the index in step with them."""

    def __init__(
        self,
        workspace: Workspace,
        archive: Archive,
        index: Index,
        count: Callable[[str], int],
        bases: Bases | None = None,
    ) -> None:
        self.workspace = workspace
        self.archive = archive
        self.index = index
        self.bases = bases or Bases.open(workspace.root / BASES_FILE)
        self.holding = Holding(workspace.tree)
        self.abouts = Abouts(workspace.tree)
        self.vectors = VectorFile(workspace.root / PRIVATE / FILE_NAME)
        self._count = count
        self._stale_days: set[int] = set()

    @classmethod
    def open(cls, root: Path, count: Callable[[str], int]) -> Shelf:
        """Returns the shelf of the workspace at `root`, which is locked until `close`.

        Raises:
            PlaceTaken: if another daemon has the workspace.
            Refused: if the workspace can't be used; the message says what to do.
            Unavailable: if the disk fails.
        """
        workspace = Workspace.open(root)
        try:
            archive = Archive(workspace)
            index = Index.open(workspace.root / INDEX_FILE)
            return cls(workspace, archive, index, count)
        except BaseException:
            workspace.close()
            raise

    def close(self) -> None:
        """Closes all of it, the workspace last; nothing may be running any more."""
        self.bases.close()
        self.vectors.close()
        self.index.close()
        self.archive.close()
        self.workspace.close()

    def read(self, topic: str) -> bytes | None:
        """Returns a topic's bytes, None where there is no file.

        Raises:
            Refused: if what lies there is no regular file.
            Unavailable: if the disk fails.
        """
        return self.workspace.tree.read(self.workspace.topic_file(topic))

    def read_own(self, topic: str) -> bytes | None:
        """Returns the bytes of the file of just that name, None if only a twin is there.

        A file whose name changed its case is gone under the old one. Raises as `read`.
        """
        return self.read(topic) if self.workspace.topic_name(topic) == topic else None

    def opened(self, topic: str) -> tuple[bytes | None, Topic | None]:
        """Returns what memory has seen of a topic's file, and how it reads it.

        Where nothing was seen yet it is the file as it is; errors then as for `read`.
        """
        newest = self.bases.newest(topic)
        if newest is not None:
            return newest.content, None if newest.content is None else newest.as_topic()
        content = self.read(topic)
        return content, None if content is None else parse(content)

    def load(self, topic: str) -> Topic | None:
        """Returns a topic as it stands in its file, with the ids that wait to be written there.

        A file that can't be read is given as it was seen last, if it ever was.
        """
        try:
            content = self.read(topic)
        except (Refused, Unavailable):
            newest = self.bases.newest(topic)
            if newest is None or newest.content is None:
                raise
            return newest.as_topic()
        return self._as_seen(topic, content)

    def _as_seen(self, topic: str, content: bytes | None) -> Topic | None:
        newest = self.bases.newest(topic)
        if newest is not None and newest.content == content:
            return None if content is None else newest.as_topic()
        return None if content is None else parse(content)

    def block(self, topic: str, block: str) -> Block | None:
        """Returns one block of a topic by id or alias."""
        found = self.load(topic)
        return None if found is None else found.block(block)

    def shown(self, name: str) -> ShownBlock | None:
        """Returns a block as a writer is shown it, None if it is gone or superseded.

        One whose file can't be read now is not shown: no edit of it could be carried out.
        """
        return next(iter(self.all_shown([name])), None)

    def all_shown(self, names: Iterable[str]) -> list[ShownBlock]:
        """Returns those of the blocks that can be shown, as `shown`; reads each topic once.

        The core topic's own blocks are not: what stands there is for people to arrange.
        """
        topics: dict[str, Topic | None] = {}
        found: list[ShownBlock] = []
        for name in names:
            place = self.index.where(name)
            if place == CORE:
                continue
            if place is not None and place not in topics:
                topics[place] = self._usable(place)
            topic = topics[place] if place is not None else None
            block = topic.block(name) if topic is not None else None
            if place is not None and block is not None:
                found += _as_shown(place, block)
        return found

    def _usable(self, topic: str) -> Topic | None:
        try:
            content = self.read(topic)
        except (Refused, Unavailable) as error:
            log.info("topic_unusable", topic=topic, reason=error.message)
            return None
        return self._as_seen(topic, content)

    def by_person(self, name: str) -> bool:
        """Tells whether a person wrote or reworded the block of that name."""
        topic = self.index.where(name)
        block = self.block(topic, name) if topic is not None else None
        return block is not None and block.origin == "person"

    def definitions(self, labels: Iterable[str], topic: str) -> dict[str, str]:
        """Returns the footnote definitions of labels for a topic, of those that resolve."""
        return {
            label: definition(
                label=label,
                time=turn.time,
                speaker_name=turn.speaker.name if turn.speaker else None,
                speaker_id=turn.speaker.id if turn.speaker else None,
                role=turn.role,
                agent=turn.agent,
                session=turn.session,
                topic_path=topic,
                source_path=place.path,
                line=place.line,
            )
            for label, (place, turn) in self.archive.read_many(labels).items()
        }

    def shelve(self, topic: str) -> None:
        """Brings the index in step with what memory has seen of a topic's file.

        Notes the days on whose timeline something changed: see `take_stale_days`.
        """
        before = self._learnt_by_day(topic)
        _, opened = self.opened(topic)
        if opened is None:
            self.index.remove_topic(topic)
        else:
            found = self._topic_doc(topic, opened, datetime.now(UTC))
            self.index.set_topic(
                topic,
                found.about,
                found.tokens,
                found.blocks,
                updated_at=found.updated_at,
                links=found.links,
            )
        after = self._learnt_by_day(topic)
        self._stale_days.update(
            day for day in before.keys() | after.keys() if before.get(day) != after.get(day)
        )

    def _learnt_by_day(self, topic: str) -> dict[int, list[LearntRow]]:
        """Returns what a page says of a topic, in its order there, by days since 1970."""
        found: defaultdict[int, list[LearntRow]] = defaultdict(list)
        for row in self.index.learnt_in(topic):
            found[row.learnt_us // DAY_US].append(row)
        return found

    def forget(self, labels: Iterable[str], blocks: Iterable[str] = ()) -> None:
        """Erases turns from the index and keeps them out; see `Index.forget`.

        Their vectors go, and those of `blocks`, which rested on them.
        """
        names = list(labels)
        self._note_days(names)
        self.index.forget(names)
        # After the index: what is embedded at this moment is looked up there before it stays.
        self.vectors.erase([*(("turn", name) for name in names), *(("block", b) for b in blocks)])
        self._note_days(names)

    def _note_days(self, labels: Iterable[str]) -> None:
        learnt = (at_us for label in labels for at_us in self.index.learnt_from(label))
        self._stale_days.update(at_us // DAY_US for at_us in learnt)

    def take_stale_days(self) -> frozenset[int]:
        """Returns the days since 1970 whose timeline is behind, and takes them as dealt with."""
        days, self._stale_days = frozenset(self._stale_days), set()
        return days

    def index_turns(self, turns: list[tuple[Evidence, SourceLine]]) -> None:
        """Makes archived turns searchable."""
        self.index.add_turns(
            TurnDoc(
                label=place.label,
                namespace=turn.namespace,
                id=turn.id,
                session=turn.session,
                agent=turn.agent,
                project=turn.project,
                role=turn.role,
                speaker_id=turn.speaker_id,
                speaker_name=turn.speaker_name,
                time=turn.time,
                text=turn.text,
                path=place.path,
                line=place.line,
                position=place.line,
                after=turn.after,
            )
            for turn, place in turns
        )

    def rebuild(self, revision: int) -> None:
        """Builds the index anew from `sources/` and `topics/` alone."""
        self.index.rebuild(self._all_turns(), self._all_topics(), revision)

    def _all_turns(self) -> Iterator[TurnDoc]:
        return (_turn_doc(place, turn) for place, turn in self.archive.scan())

    def _all_topics(self) -> Iterator[TopicDoc]:
        """Yields every topic as it was seen last, and those that nobody has looked at yet."""
        saved = {file.topic: file.mtime_ns for file in self.workspace.topics()}
        for topic in sorted({*saved, *self.bases.topics()}):
            try:
                _, opened = self.opened(topic)
            except (Refused, Unavailable) as error:
                log.warning("topic_unreadable", topic=topic, reason=error.message)
                continue
            if opened is not None:
                at = datetime.fromtimestamp(saved.get(topic, 0) / 1e9, UTC)
                yield self._topic_doc(topic, opened, at)

    def _topic_doc(self, topic: str, found: Topic, updated_at: datetime) -> TopicDoc:
        text = "".join(part.raw for part in found.segments)
        return TopicDoc(
            topic=topic,
            about=found.about or "",
            tokens=self._count(text.encode("utf-8", "replace").decode()),
            blocks=tuple(
                _block_doc(topic, block) for block in found.blocks() if block.id is not None
            ),
            updated_at=updated_at,
            links=links_of(found),
        )


def _as_shown(topic: str, block: Block) -> Iterator[ShownBlock]:
    if block.id is not None and block.superseded_by is None:
        yield ShownBlock(
            block=block.id,
            topic=topic,
            heading=block.section,
            text=block.text,
            cites=block.cites,
            hash=block_hash(block),
        )


def _block_doc(topic: str, block: Block) -> BlockDoc:
    return BlockDoc(
        block=block.id or "",
        topic=topic,
        text=block.text,
        aliases=block.aliases,
        heading=block.section,
        cites=block.cites,
        superseded_by=block.superseded_by,
        superseded_on=block.superseded_on.isoformat() if block.superseded_on else None,
    )


def _turn_doc(place: SourceLine, turn: ArchivedTurn) -> TurnDoc:
    return TurnDoc(
        label=turn.label,
        namespace=turn.namespace,
        id=turn.id,
        session=turn.session,
        agent=turn.agent,
        project=turn.project,
        role=turn.role,
        speaker_id=turn.speaker.id if turn.speaker else None,
        speaker_name=turn.speaker.name if turn.speaker else None,
        time=turn.time,
        text=turn.text,
        path=place.path,
        line=place.line,
        position=place.line,
        after=turn.after,
    )
