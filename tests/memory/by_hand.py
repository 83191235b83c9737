"""Edits drawn at random, and what a workspace looks like to a person who reads it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import msgspec
from hypothesis import strategies as st

from memory.at_work import AtWork
from turnmark_events.errors import Refused
from turnmark_memory.editing import Edited
from turnmark_memory.model import (
    Add,
    Edit,
    Merge,
    Move,
    Pin,
    Retire,
    Revise,
    Split,
    SplitPart,
    Unpin,
)
from turnmark_memory.requests import EditRequest, HistoryRequest, RememberRequest, UndoRequest
from turnmark_memory.topic import Topic
from turnmark_memory.topic_format import parse
from turnmark_memory.undoing import Undone

TOPICS = ("people/dana", "projects/税务", "subjects/a/deep")
HEADINGS = (None, "Work", "计划")
WORDS = ("Dana leads billing.", "她负责税务。", "The report is due in May.", "部署在周五。")
KINDS = (
    *("add", "add", "add", "link", "revise", "retire", "supersede", "move", "merge", "split"),
    *("pin", "unpin", "remember", "write", "undo"),
)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do; `picks` choose blocks, topics and words among those there are."""

    kind: str
    picks: tuple[int, int, int]


def steps(*, most: int) -> st.SearchStrategy[list[Step]]:
    """Returns sequences of steps."""
    pick = st.integers(0, 11)
    step = st.builds(Step, kind=st.sampled_from(KINDS), picks=st.tuples(pick, pick, pick))
    return st.lists(step, min_size=1, max_size=most)


class ByHand:
    """A person at a memory."""

    def __init__(self, work: AtWork) -> None:
        self.work = work
        self.said = 0

    async def begin(self) -> Self:
        """Says something that can be cited."""
        await self.work.say("talk", "t1", "t2", "t3")
        return self

    async def edit(self, *edits: Edit, expect: int | None = None) -> Edited:
        """Edits."""
        return await self.work.memory.edit(EditRequest(edits=edits, expect=expect))

    async def undo(self, revision: int, *, force: bool = False) -> Undone:
        """Takes a revision back."""
        return await self.work.memory.undo(UndoRequest(revision=revision, force=force))

    async def revision(self) -> int:
        """The newest revision."""
        found = (await self.work.memory.history(HistoryRequest(limit=1))).revisions
        return found[0].revision if found else 0

    async def take(self, step: Step) -> bool:
        """Takes a step; returns whether there was anything to do it with."""
        match step.kind:
            case "remember":
                await self.work.memory.remember(
                    RememberRequest(text=self.words(step), pin=step.picks[0] % 2 == 0)
                )
            case "write":
                self.said += 1
                await self.work.say("talk", f"w{self.said}")
                await self.work.flush()
            case "undo":
                return await self._undo_some(step)
            case _:
                edit = self._edit(step)
                if edit is None:
                    return False
                await self.edit(edit)
        return True

    async def _undo_some(self, step: Step) -> bool:
        newest = await self.revision()
        if newest == 0:
            return False
        try:
            await self.undo(newest - step.picks[0] % newest, force=step.picks[1] % 2 == 0)
        except Refused:
            return False
        return True

    def words(self, step: Step) -> str:
        """Words that no other step says."""
        self.said += 1
        return f"{WORDS[step.picks[2] % len(WORDS)]} {self.said}"

    def _edit(self, step: Step) -> Edit | None:
        one, two, three = step.picks
        topic, heading = TOPICS[one % 3], HEADINGS[two % 3]
        cites = (f"talk#t{1 + three % 3}",) if three % 4 else ()
        if step.kind == "add":
            return Add(topic=topic, heading=heading, text=self.words(step), cites=cites)
        names = live_blocks(self.work.root)
        if not names:
            return None
        block, other = names[one % len(names)], names[two % len(names)]
        if step.kind in ("merge", "supersede") and block == other:
            return None
        home = block_topic(self.work.root, other)
        made: dict[str, Edit] = {
            "link": Add(topic=topic, text=f"See [[{home}#^{other}]] {self.said}.", cites=cites),
            "revise": Revise(block=block, text=self.words(step), cites=cites),
            "retire": Retire(block=block, reason="wrong"),
            "supersede": Retire(block=block, reason="newer", successor=other),
            "move": Move(block=block, topic=TOPICS[three % 3], heading=heading),
            "merge": Merge(blocks=(block, other), text=self.words(step)),
            "split": Split(
                block=block,
                parts=(
                    SplitPart(text=self.words(step), cites=cites),
                    SplitPart(text=self.words(step), cites=()),
                ),
            ),
            "pin": Pin(block=block),
            "unpin": Unpin(block=block),
        }
        return made[step.kind]


def topics_of(root: Path) -> dict[str, Topic]:
    """Returns the topics as they stand in their files, the core topic left out."""
    folder = root / "topics"
    files = sorted(folder.rglob("*.md"))
    found = {str(file.relative_to(folder).with_suffix("")): file for file in files}
    return {name: parse(file.read_bytes()) for name, file in found.items() if name != "core"}


def live_blocks(root: Path) -> list[str]:
    """Returns the ids of the blocks that hold now, by topic and place."""
    blocks = [block for topic in topics_of(root).values() for block in topic.blocks()]
    return [block.id for block in blocks if block.id and block.superseded_by is None]


def block_topic(root: Path, name: str) -> str:
    """Returns the topic that a block stands in."""
    found = (path for path, topic in topics_of(root).items() if topic.block(name) is not None)
    return next(found)


def lines(root: Path) -> dict[str, tuple[str, str]]:
    """Returns (topic, line) of each block."""
    return {
        block.id: (name, block.raw.rstrip("\r\n"))
        for name, topic in topics_of(root).items()
        for block in topic.blocks()
        if block.id
    }


def seen(root: Path, *, folders: Sequence[str] = ("topics", "timeline")) -> dict[str, Any]:
    """Returns the bytes of every Markdown file that a person may look at."""
    files = [file for folder in folders for file in (root / folder).rglob("*.md")]
    core = root / "core.md"
    found = [*files, *([core] if core.exists() else [])]
    return {str(file.relative_to(root)): file.read_bytes() for file in found}
