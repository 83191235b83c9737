"""A model for the night that does as told, and files of a workspace before and after."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memory.at_work import AtWork, keep
from turnmark_memory.model import Batch, Edits
from turnmark_memory.models.model import Question, Reply
from turnmark_memory.topic import Block
from turnmark_memory.topic_format import parse

Shown = list[dict[str, Any]]


class Tidier:
    """Answers with what `answer` makes of the blocks that are shown; an exception is raised."""

    name = "scripted/tidier"

    def __init__(
        self, answer: Callable[[Shown], object] = lambda _blocks: [], *, is_local: bool = True
    ) -> None:
        self.answer = answer
        self.is_local = is_local
        self.questions: list[Question] = []

    async def ask(self, question: Question) -> Reply:
        """Answers with edits, with an object as it is, or with words as they are."""
        self.questions.append(question)
        answer = self.answer(blocks_of(question))
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, list):
            answer = {"edits": answer}
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        return Reply(text=text, prompt_tokens=1, answer_tokens=1)

    @property
    def topics(self) -> list[str]:
        """The topics that it was asked about, in order."""
        return [json.loads(one.material.splitlines()[0])["topic"] for one in self.questions]

    @property
    def shown(self) -> Shown:
        """The blocks of all questions, in order."""
        return [block for question in self.questions for block in blocks_of(question)]


def blocks_of(question: Question) -> Shown:
    """Returns the blocks that a question shows."""
    return [json.loads(line) for line in question.material.splitlines()[1:]]


def into(topic_of: Callable[[str], str]) -> Callable[[Batch], Edits]:
    """Returns a scribe's answer that keeps each turn's words in the topic for its id."""
    return lambda batch: Edits(edits=tuple(keep(turn, topic_of(turn.id)) for turn in batch.turns))


def topic_files(work: AtWork) -> dict[str, bytes]:
    """Returns the bytes of every topic's file."""
    root = work.root / "topics"
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*.md"))}


def pages(work: AtWork) -> dict[str, bytes]:
    """Returns the bytes of what a reader sees: topics and the core page."""
    core: Path = work.root / "core.md"
    return {**topic_files(work), "/core.md": core.read_bytes() if core.exists() else b""}


def blocks(work: AtWork, topic: str = "subjects/facts") -> Sequence[Block]:
    """Returns the blocks of a topic."""
    return list(parse(work.topic(topic).encode()).blocks())


def cited(work: AtWork) -> set[str]:
    """Returns the labels that a block that holds now cites."""
    return {
        label
        for content in topic_files(work).values()
        for block in parse(content).blocks()
        if block.superseded_by is None
        for label in block.cites
    }
