"""Races between an editor's save and an install: no edit is lost, and no batch."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from memory.at_work import AtWork, at_work
from memory.editor import WAYS, Editor, editor
from memory.test_intake import FACTS, file_of, taken_in, written
from turnmark_memory import slots
from turnmark_memory.compose import Work
from turnmark_memory.model import Add, Edit, Revise
from turnmark_memory.topic_format import parse
from turnmark_session_store import failpoints

pytestmark = pytest.mark.anyio

# Where in an install the editor is told to save.
STEPS = (
    "install.before_journal",
    "install.recorded",
    "install.manifest",
    "install.staged",
    "install.exchanged",
    "install.flushed",
    "install.in_place",
    "install.cleared",
    "core.rendered",
)


class Race:
    """A person and a writer at the same topic, again and again."""

    def __init__(self, work: AtWork, hand: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
        self.work = work
        self.hand = hand
        self.monkeypatch = monkeypatch
        (self.label,) = work.memory._shelf.index.cites(self._blocks()[0])
        self.reworded: list[str] = []

    def _blocks(self) -> list[str]:
        return [doc.block for doc in self.work.memory._shelf.index.blocks_of(FACTS)]

    async def run(self, number: int) -> None:
        """Lets both change the topic: other blocks, and every third time the same one."""
        before = f"batch {number - 1} words"
        change = (before, f"{before} as I say") if number % 3 == 0 else ("", "")
        stale = number % 2 == 1
        if stale:
            self.hand.open()
        left = [STEPS[number % len(STEPS)], str(number // len(STEPS) % 4)]

        def hook(name: str) -> None:
            if name == left[0]:
                left[0] = ""
                self.hand.save(f"mine {number}.", change, fresh=not stale)
                for _ in range(int(left[1]) * 20_000):  # lets the save meet a later instruction
                    pass

        self.monkeypatch.setattr(failpoints, "hook", hook)
        edits = [*self._revision(before, number), self._add(number)]
        await self.work.memory.installer.install(
            [], cause=f"batch {number}", works=[Work(name=f"batch/{number}", edits=tuple(edits))]
        )
        self.monkeypatch.setattr(failpoints, "hook", None)
        if left[0]:
            self.hand.save(f"mine {number}.", change, fresh=not stale)
        if self.hand.heard() == "changed":
            self.reworded.append(change[1])
        await taken_in(self.work)

    def _add(self, number: int) -> Edit:
        return Add(topic=FACTS, text=f"batch {number} words", cites=(self.label,))

    def _revision(self, words: str, number: int) -> list[Edit]:
        if number % 3 or number == 0:
            return []
        docs = self.work.memory._shelf.index.blocks_of(FACTS)
        return [
            Revise(block=doc.block, text=f"{words} revised", cites=(self.label,))
            for doc in docs
            if doc.text == words
        ]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("races", [100, pytest.param(400, marks=pytest.mark.soak)])
@pytest.mark.parametrize("way", WAYS)
async def test_loses_no_edit_and_no_batch(
    monkeypatch: pytest.MonkeyPatch, way: str, races: int
) -> None:
    """The person's paragraphs stand word for word, every batch's block is there, ids are unique."""
    # On a loaded machine the editor may be stopped in the middle of a save for long.
    monkeypatch.setattr(slots, "_SAVE_SECONDS", 30.0)
    async with at_work() as work:
        await written(work, "m1")
        with editor(way, file_of(work)) as hand:
            race = Race(work, hand, monkeypatch)
            for number in range(races):
                await race.run(number)
                check(work, race, number + 1)
        assert race.reworded
        await work.memory.rescan()
        await work.memory.installer.write_ids(datetime.now(UTC) + timedelta(minutes=1))
        check(work, race, races)
        assert list((work.root / ".turnmark" / "staging").iterdir()) == []
        assert not [block for block in parse(file_of(work).read_bytes()).blocks() if not block.id]
        found = [doc.text for doc in work.memory._shelf.index.blocks_of(FACTS)]
        assert found == [block.text for block in parse(file_of(work).read_bytes()).blocks()]


def check(work: AtWork, race: Race, races: int) -> None:
    text = work.topic()
    mine = Counter(re.findall(r"^mine (\d+)\.", text, re.MULTILINE))
    assert mine == Counter(str(number) for number in range(races)), text
    batches = set(re.findall(r"^batch (\d+) words", text, re.MULTILINE))
    assert batches == {str(number) for number in range(races)}, text
    for words in race.reworded:
        assert len(re.findall(rf"^{re.escape(words)}[\[ ]", text, re.MULTILINE)) == 1, text
    ids = Counter(re.findall(r"\^(b-[0-9a-f]+)$", text, re.MULTILINE))
    assert max(ids.values()) == 1, text
