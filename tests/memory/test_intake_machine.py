"""Random installs and random edits by hand against a simple model of what must be there."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.at_work import AtWork, at_work, keep, numbered
from memory.test_intake import file_of, save, taken_in, with_paragraph, written
from turnmark_memory.compose import Work
from turnmark_memory.model import Add, Edit, Edits, Revise
from turnmark_memory.topic_format import parse

pytestmark = pytest.mark.anyio

TOPICS = ("subjects/facts", "subjects/other", "people/dana")
KINDS = (
    *("install", "install", "install", "revise", "insert", "insert", "reword", "remove"),
    *("move", "rename", "open", "stale", "stale", "tell", "quiet", "restart"),
)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do; `pick` chooses a paragraph, `topic` a file, among those there are."""

    kind: str
    topic: int = 0
    pick: int = 0


def step(kind: str, topic: int = 0, pick: int = 0) -> Step:
    return Step(kind=kind, topic=topic, pick=pick)


STEPS = st.lists(
    st.builds(step, st.sampled_from(KINDS), topic=st.integers(0, 2), pick=st.integers(0, 7)),
    min_size=1,
    max_size=14,
)


class Model:
    """What a person wrote and did not take out, and what batches wrote and nobody took out."""

    def __init__(self, work: AtWork) -> None:
        self.work = work
        self.mine: set[str] = set()
        self.batches: set[str] = set()
        self.dirty: set[str] = set()
        self.opened: dict[str, tuple[str, int]] = {}
        self.installs: Counter[str] = Counter()
        self.number = 0

    def fresh(self, words: str) -> str:
        """Returns new words; numbers are written so that none is the beginning of another."""
        self.number += 1
        return f"{words} {self.number:03}."

    def own(self, words: str) -> str:
        """Returns new words of a person, unlike all others: alike ones are one, reworded."""
        begun = self.fresh(words)
        return f"{begun} {chr(ord('a') + self.number) * 24}"

    @property
    def label(self) -> str:
        """The label of a turn that nothing cites yet: each batch has turns of its own."""
        (turn,) = self.work.memory._shelf.index.turns_of_id(f"t{self.number + 1:03}")
        return turn.label

    def topics(self) -> list[str]:
        """Returns the topics that have a file."""
        below = self.work.root / "topics"
        names = (path.relative_to(below).as_posix() for path in below.rglob("*.md"))
        return sorted(name.removesuffix(".md") for name in names if name != "core.md")

    def text(self, topic: str) -> str:
        """Returns the file as it is."""
        return file_of(self.work, topic).read_bytes().decode()

    def chosen(self, one: Step) -> tuple[str, str] | None:
        """Returns a topic and a paragraph of it, a line without its end."""
        found = [
            (topic, line)
            for topic in self.topics()
            for line in self.text(topic).split("\n")
            if re.match(r"(batch|mine|said) \d", line)
        ]
        return found[one.pick % len(found)] if found else None

    async def take(self, one: Step) -> None:
        """Takes one step."""
        await getattr(self, f"_{one.kind}")(one)

    async def _carry_out(self, edit: Edit, topic: str) -> None:
        work = Work(name=f"batch/{self.number}", edits=(edit,))
        await self.work.memory.installer.install([], cause="a batch", works=[work])
        self.installs[topic] += 1
        self.installs["subjects"] += 1

    async def _install(self, one: Step) -> None:
        topic, words = TOPICS[one.topic], self.fresh("batch")
        self.batches.add(words)
        await self._carry_out(Add(topic=topic, text=words, cites=(self.label,)), topic)

    async def _revise(self, one: Step) -> None:
        """A writer says a batch's block anew, unless a person's words stand there."""
        index = self.work.memory._shelf.index
        docs = [
            doc for topic in TOPICS for doc in index.blocks_of(topic) if doc.text in self.batches
        ]
        if not docs:
            return
        doc = docs[one.pick % len(docs)]
        words = self.fresh("batch")
        edit = Revise(block=doc.block, text=words, cites=(self.label,))
        work = Work(name=f"batch/{self.number}", edits=(edit,))
        done = await self.work.memory.installer.install([], cause="a batch", works=[work])
        self.installs[doc.topic] += 1
        if done.composed.done[0].blocks:
            self.batches.add(words)
            if all(doc.text not in self.text(topic) for topic in self.topics()):
                self.batches.discard(doc.text)

    async def _insert(self, one: Step) -> None:
        topics = self.topics()
        if topics:
            topic, words = topics[one.topic % len(topics)], self.own("mine")
            self._save(topic, with_paragraph(self.text(topic), words))
            self.mine.add(words)

    async def _reword(self, one: Step) -> None:
        found = self.chosen(one)
        if found is not None:
            topic, line = found
            old, new = words_of(line), self.own("said")
            self._save(topic, self.text(topic).replace(old, new))
            self.mine.discard(old)
            self.batches.discard(old)
            self.mine.add(new)

    async def _remove(self, one: Step) -> None:
        found = self.chosen(one)
        if found is not None:
            topic, line = found
            self._save(topic, self.text(topic).replace(f"{line}\n", "", 1))
            self.mine.discard(words_of(line))
            self.batches.discard(words_of(line))

    async def _move(self, one: Step) -> None:
        found, topics = self.chosen(one), self.topics()
        target = topics[one.topic % len(topics)] if topics else None
        if found is not None and target not in (None, found[0]):
            topic, line = found
            self._save(topic, self.text(topic).replace(f"{line}\n", "", 1))
            self._save(str(target), with_paragraph(self.text(str(target)), line))

    async def _rename(self, one: Step) -> None:
        topics = self.topics()
        if topics:
            topic, name = topics[one.topic % len(topics)], self.fresh("subjects/new")
            name = name.replace(" ", "-").rstrip(".")
            file_of(self.work, topic).rename(file_of(self.work, name))
            self.dirty |= {topic, name}
            self.opened.pop(topic, None)

    async def _open(self, one: Step) -> None:
        topics = self.topics()
        if topics:
            topic = topics[one.topic % len(topics)]
            self.opened[topic] = (self.text(topic), self.installs[topic])

    async def _stale(self, one: Step) -> None:
        """An editor that was opened before an install saves what it has, and a paragraph more.

        Without an install in between it is a save like any other, over what others saved.
        """
        topics = [topic for topic in sorted(self.opened) if topic in self.topics()]
        if not topics:
            return
        topic = topics[one.topic % len(topics)]
        text, installs = self.opened.pop(topic)
        if self.installs[topic] == installs:
            text = self.text(topic)
        else:
            await self._tell(one)
        words = self.own("mine")
        self._save(topic, with_paragraph(text, words))
        self.mine.add(words)
        await self._tell(one)

    def _save(self, topic: str, text: str) -> None:
        save(self.work, text, topic)
        self.dirty.add(topic)

    async def _tell(self, _: Step) -> None:
        """The watcher tells of what was saved."""
        await taken_in(self.work, *sorted(self.dirty))
        self.dirty.clear()

    async def _quiet(self, _: Step) -> None:
        pending = self.work.memory._shelf.bases.pending(2**62)
        await self.work.memory.installer.write_ids(datetime.now(UTC) + timedelta(minutes=1))
        self.installs.update(pending)

    async def _restart(self, _: Step) -> None:
        await self.work.restart()
        self.dirty.clear()

    def check(self) -> None:
        """Compares the files with what must be there."""
        texts = {topic: self.text(topic) for topic in self.topics()}
        whole = "\n".join(texts.values())
        there = Counter(re.findall(r"^(?:batch|mine|said) \d+\.", whole, re.MULTILINE))
        mine = {words[: words.index(".") + 1] for words in self.mine}
        batches = {words[: words.index(".") + 1] for words in self.batches}
        assert mine - there.keys() == set(), whole
        assert batches - there.keys() == set(), whole
        assert there.keys() - mine - batches == set(), whole
        assert max(there.values(), default=1) == 1, whole


def words_of(line: str) -> str:
    return re.split(r"[\[ ](?=\[?\^|<)|(?=\[\^)", line)[0].strip()


def blocks(model: Model) -> list[Any]:
    return [
        block for topic in model.topics() for block in parse(model.text(topic).encode()).blocks()
    ]


@pytest.mark.timeout(900)
@settings(max_examples=40, deadline=None)
@given(STEPS)
@example([step("install"), step("insert"), step("open"), step("quiet"), step("stale")])
@example([step("install"), step("open"), step("install"), step("install"), step("stale")])
@example([step("install"), step("install", 1), step("move", 1), step("install", 1)])
@example([step("install"), step("install"), step("insert"), step("remove", 0, 1)])
@example([step("open"), step("insert"), step("install"), step("stale")])
@example([step("install"), step("insert"), step("rename"), step("install"), step("restart")])
async def test_keeps_every_paragraph_that_nobody_took_out(steps: list[Step]) -> None:
    """Word for word, once each; ids are unique, and a look at rest finds nothing more to do."""
    async with at_work() as work:
        work.scribe.answer = lambda batch: Edits(edits=(keep(batch.turns[0]),))
        await written(work, *numbered("t", 30))
        model = Model(work)
        for one in steps:
            await model.take(one)
        await work.memory.rescan()
        model.check()
        await model.take(step("quiet"))
        model.check()
        named = Counter(block.id for block in blocks(model))
        assert None not in named
        assert max(named.values(), default=1) == 1
        index = work.memory._shelf.index
        docs = [doc for topic in model.topics() for doc in index.blocks_of(topic)]
        assert sorted(doc.block for doc in docs) == sorted(named)
        revision = index.revision
        await work.memory.rescan()
        await model.take(step("quiet"))
        assert index.revision == revision
