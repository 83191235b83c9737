"""The draft of an install: topics as they are so far, beside what memory saw of their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from turnmark_events.errors import TurnmarkError
from turnmark_memory.apply import Applied
from turnmark_memory.backlinks import Place, linked_from, mend_links
from turnmark_memory.block_change import BlockChange
from turnmark_memory.durable import digest_of
from turnmark_memory.file_exchange import StagedFile
from turnmark_memory.footnotes import labels_used, with_definitions
from turnmark_memory.labels import free_block_id
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_format import render


@dataclass(slots=True)
class Draft:
    """The topics of one install in the making; it touches no file.

    A base is what memory has seen of a file: what a person saved since then is merged with, not
    replaced. `exact` are files whose bytes are given, None to take one away. `unusable` are the
    errors of topics that could not be taken.
    """

    shelf: Shelf
    bases: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    originals: dict[str, Topic] = field(default_factory=dict[str, Topic])
    topics: dict[str, Topic] = field(default_factory=dict[str, Topic])
    moved: dict[str, str] = field(default_factory=dict[str, str])
    taken: set[str] = field(default_factory=set[str])
    exact: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    unusable: list[TurnmarkError] = field(default_factory=list[TurnmarkError])

    def load(self, topic: str) -> Topic | None:
        """Returns a topic as it is so far, None where there is none. Raises as `base`."""
        try:
            self.base(topic)
        except TurnmarkError as error:
            self.unusable.append(error)
            raise
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

    def where(self, block: str) -> str | None:
        """Returns the topic that a block stands in now."""
        return self.moved.get(block) or self.shelf.index.where(block)

    def block(self, name: str) -> tuple[str, Block] | None:
        """Returns a block, by id or alias, as it is so far, and its topic. Raises as `base`."""
        topic = self.where(name)
        found = self.load(topic) if topic is not None else None
        block = found.block(name) if found is not None else None
        return None if topic is None or block is None else (topic, block)

    def fresh(self, *parts: str) -> str:
        """Returns a free block id; one that is taken gets another round of the hash."""
        name = free_block_id(self._is_taken, *parts)
        self.taken.add(name)
        return name

    def _is_taken(self, name: str) -> bool:
        return name in self.taken or self.shelf.index.where(name) is not None

    def put(self, applied: Applied) -> None:
        """Takes over what edits made of the topics."""
        self.topics.update(applied.topics)
        self.exact.update(applied.exact)
        for topic in (name for name, content in applied.exact.items() if content is None):
            self.topics.pop(topic, None)
        for change in applied.changes:
            if change.after is not None:
                self.moved[change.block] = change.topic

    def follow_links(
        self, changes: Sequence[BlockChange], restored: Sequence[BlockChange] = ()
    ) -> tuple[BlockChange, ...]:
        """Lets links to blocks that went elsewhere follow them, in whatever topic they stand.

        Lines of `restored` come from an earlier time: their links are put right as well.
        """
        known: dict[str, Place] = {}
        for name in {name for change in restored for name in linked_from(change.after)}:
            found = self.block(name)
            if found is not None and found[1].id is not None:
                known[name] = (found[0], found[1].id)
        mended = mend_links(
            changes, load=self._linking, linking=self.shelf.index.topics_linking, known=known
        )
        self.topics.update(mended.topics)
        for topic in mended.topics:
            self.exact.pop(topic, None)
        return mended.changes

    def _linking(self, topic: str) -> Topic | None:
        try:
            return self.load(topic)
        except TurnmarkError:  # a topic that can't be used now keeps its link; it names its block
            return None

    def differs(self, topic: str) -> bool:
        """Tells whether a topic has changed since it was taken."""
        if topic in self.exact:
            return self.exact[topic] != self.base(topic)
        original = self.originals.get(topic)
        return original is None or render(self.topics[topic]) != render(original)

    def staged(self, topic: str) -> StagedFile:
        """Returns the file of a topic as it is so far, footnotes and all, ready to be exchanged."""
        base = self.base(topic)
        return StagedFile(
            path=self.shelf.workspace.topic_file(topic),
            base=None if base is None else digest_of(base),
            base_content=base,
            content=self.exact[topic] if topic in self.exact else self._rendered(topic),
        )

    def _rendered(self, topic: str) -> bytes:
        found = self.topics[topic]
        return render(with_definitions(found, self.shelf.definitions(labels_used(found), topic)))
