"""Topics that a model picks by what they are about."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from memory.at_work import at_work, keep, user
from memory.indexed import block
from memory.test_recall import Told, ask, refs, words
from turnmark_memory.index import Index
from turnmark_memory.model import Edits
from turnmark_memory.models.model import Question, Reply
from turnmark_memory.recall import Recall
from turnmark_memory.requests import RecallRequest
from turnmark_memory.selecting import Selecting
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store.requests import OpenSession


class Says:
    """A model that answers what it was told, or never, or fails."""

    name = "script/says"
    is_local = True

    def __init__(self, answer: str | Exception | None) -> None:
        self._answer = answer
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Reply:
        """Returns the answer; without one it takes for ever."""
        self.asked.append(question)
        if self._answer is None:
            await anyio.sleep_forever()
        if isinstance(self._answer, Exception):
            raise self._answer
        return Reply(text=str(self._answer), prompt_tokens=1, answer_tokens=1)


def picks(*topics: str) -> str:
    return json.dumps({"topics": topics})


@pytest.fixture
def index(tmp_path: Path) -> Index:
    opened = Index.open(tmp_path / "index.db")
    opened.set_topic("people/dana", "谁是Dana", 1, [block("b-1", "She leads the billing team.")])
    travel = [
        block("b-2", "Porto in 2025.", topic="subjects/travel"),
        block("b-3", "Lisbon in 2024.", topic="subjects/travel", superseded_by="b-2"),
    ]
    opened.set_topic("subjects/travel", "where the user went", 1, travel)
    return opened


def recall_by(index: Index, model: Says, seconds: float = 30) -> Recall:
    return Recall(index, Told(), words, selecting=Selecting(model, deadline_seconds=seconds))


@pytest.mark.anyio
async def test_the_blocks_of_the_chosen_topics_are_the_hits(index: Index) -> None:
    """Though they share no word with the question; what was superseded only with history."""
    recall = recall_by(index, Says(f"Sure: ```{picks('subjects/travel', 'no/such')}```"))
    assert refs(await ask(recall, "我去过哪里？", mode="select")) == ["b-2"]
    both = await ask(recall, "我去过哪里？", mode="select", history=True)
    assert set(refs(both)) == {"b-2", "b-3"}


@pytest.mark.anyio
async def test_the_model_sees_what_topics_are_about(index: Index) -> None:
    """And the question; no block, no turn."""
    model = Says(picks())
    await ask(recall_by(index, model), "谁管账单？", mode="select")
    lines = [json.loads(line) for line in model.asked[0].material.splitlines()]
    assert lines == [
        {"question": "谁管账单？"},
        {"topic": "people/dana", "about": "谁是Dana"},
        {"topic": "subjects/travel", "about": "where the user went"},
    ]


@pytest.mark.anyio
async def test_no_topic_is_an_answer(index: Index) -> None:
    """Nothing is shown, though words would have found something."""
    recall = recall_by(index, Says(picks()))
    assert refs(await ask(recall, "who leads billing", mode="select")) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        ("people/dana, I think", 30),
        ('{"topics": "people/dana"}', 30),
        (WriterFailed("no quota left", transport=True), 30),
        (None, 0),
    ],
)
async def test_without_an_answer_the_ordinary_hits_are_shown(
    index: Index, answer: str | Exception | None, seconds: float
) -> None:
    """One that is late, is no JSON, or can't be had."""
    recall = recall_by(index, Says(answer), seconds)
    assert refs(await ask(recall, "who leads billing", mode="select")) == ["b-1"]


class Far(Says):
    """A model somewhere else."""

    is_local = False


@pytest.mark.anyio
async def test_what_local_sessions_said_goes_to_no_model_elsewhere() -> None:
    """Neither a topic that they alone made, nor their own question; a model here sees both.

    The built-in writer wrote what the local session said.
    """
    for model, seen in (
        (Far(picks()), ["projects/open"]),
        (Says(picks()), ["people/dana", "projects/open"]),
    ):
        async with at_work(selector=model) as work:
            work.scribe.answer = lambda batch: Edits(
                edits=tuple(keep(turn, f"projects/{turn.session}") for turn in batch.turns)
            )
            await work.store.open_session(OpenSession(session="secret", memory="local"))
            for session in ("open", "secret"):
                await work.append(session, [user(f"Dana leads {session} things.")])
            await work.flush()
            asked = RecallRequest(query="who leads?", mode="select")
            assert (await work.memory.recall(asked)).hits == ()
            lines = [json.loads(line) for line in model.asked[0].material.splitlines()]
            shown = [line["topic"] for line in lines if "topic" in line]
            assert [topic for topic in shown if topic != "core"] == seen
            inside = RecallRequest(query="who leads?", mode="select", session="secret")
            await work.memory.recall(inside)
            assert len(model.asked) == (1 if isinstance(model, Far) else 2)
