"""`writers/model_writer.py`: one question, one more with the reasons, and no third."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from memory.at_work import at_work, user
from memory.writers.batches import batch
from model_server.server import adds, edits
from turnmark_events.errors import Refused
from turnmark_memory.model import Edits, Nothing
from turnmark_memory.models.model import Question, Reply
from turnmark_memory.writers.answer import FOUND_NOTHING
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_memory.writers.model_writer import ModelWriter
from turnmark_memory.writers.registry import WRITER_KINDS, make_writer
from turnmark_memory.writers.rules import PROMPT_VERSION
from turnmark_memory.writers.writer import WriterFailed

pytestmark = pytest.mark.anyio

GOOD = edits(adds("Robin lives in Porto.", ["t1"]))
FOREIGN = edits(adds("Robin lives in Porto.", ["t7"]))
SAID = ("I live in Porto.", "我有一只猫。")


class Told:
    """A model that answers as it is told, and notes what it was asked."""

    name = "told/m"
    is_local = True

    def __init__(self, *answers: str | WriterFailed) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> Reply:
        """Gives the next answer, the last one again and again."""
        self.asked.append(question)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, WriterFailed):
            raise answer
        return Reply(text=answer, prompt_tokens=1, answer_tokens=1)

    @property
    def told(self) -> list[dict[str, Any]]:
        """What was said of the answer before, for each question after the first."""
        return [json.loads(one.material.split("\n")[-1]) for one in self.asked[1:]]


async def flushed(*answers: str | WriterFailed) -> tuple[Told, Any, dict[str, Any], str]:
    """Returns the model, a flush of two turns, their marks and the topic after it."""
    model = Told(*answers)
    with anyio.fail_after(60):
        async with at_work(ModelWriter(model, len)) as work:
            await work.append("s", [user(words) for words in SAID])
            done = await work.flush()
            return model, done, await work.marks(), work.topic()


def test_is_named_after_its_model_and_its_rules() -> None:
    """So that a mark says which model and which rules wrote, and a rewrite can name them."""
    assert ModelWriter(Told(GOOD), len).name == f"told/m/{PROMPT_VERSION}"


async def test_a_good_answer_is_asked_for_once() -> None:
    """Nothing is asked that need not be."""
    model, done, marks, topic = await flushed(GOOD)
    assert (len(model.asked), done.left, len(marks)) == (1, 0, 2)
    assert "Robin lives in Porto." in topic


async def test_an_honest_nothing_settles() -> None:
    """It is an answer like any other (law 6)."""
    model, done, marks, topic = await flushed('{"edits": [], "nothing": "寒暄"}')
    assert (len(model.asked), done.left, topic) == (1, 0, "")
    assert {outcome for outcome, _ in marks.values()} == {"nothing"}


@pytest.mark.parametrize("second", [GOOD, f"```json\n{GOOD}\n```"])
async def test_what_cannot_be_read_goes_back_once(second: str) -> None:
    """With the reason and the answer itself; the better one is kept."""
    model, done, _, topic = await flushed("I kept it.", second)
    assert model.told == [{"answer": "I kept it.", "reasons": ["the answer holds no JSON object"]}]
    assert done.left == 0
    assert "Robin lives in Porto." in topic


async def test_what_is_rejected_goes_back_once() -> None:
    """Edits in good form that memory can't take, with the reason for each."""
    model, done, _, topic = await flushed(FOREIGN, GOOD)
    (told,) = model.told
    assert json.loads(told["answer"])["edits"][0]["cites"] == ["t7"]
    assert "'t7' is no turn of this batch" in told["reasons"][0]
    assert done.left == 0
    assert "Robin lives in Porto." in topic


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["I kept it.", "I did keep it."], "malformed: the answer holds no JSON object"),
        ([FOREIGN, FOREIGN], "'t7' is no turn of this batch"),
        ([FOREIGN, GOOD[:-9]], "malformed: the JSON object is cut short"),
        (["I kept it.", FOREIGN, GOOD], "'t7' is no turn of this batch"),
    ],
)
async def test_a_second_bad_answer_is_a_failure(answers: list[str], reason: str) -> None:
    """Two questions for a batch in all, whatever was wrong with each answer."""
    model, done, marks, topic = await flushed(*answers)
    assert len(model.asked) == 2
    assert [reason in failure.reason for failure in done.failures] == [True]
    assert (done.left, marks, topic) == (2, {}, "")


async def test_an_endpoint_that_fails_at_the_second_question_fails() -> None:
    """What the first answer was worth is not used in its place."""
    failure = WriterFailed("gone", transport=True)
    model, done, marks, _ = await flushed("I kept it.", failure)
    assert len(model.asked) == 2
    assert [one.reason for one in done.failures] == ["gone"]
    assert (done.left, marks) == (2, {})


async def test_a_better_answer_is_not_bettered_again() -> None:
    """It knows its own second answers; others it mends."""
    model = Told("no", GOOD)
    writer = ModelWriter(model, len)
    asked = batch(*SAID)
    second = await writer.write(asked)
    with pytest.raises(WriterFailed, match="rejected: wrong"):
        await writer.repair(asked, second, ["wrong"])
    assert len(model.asked) == 2
    assert isinstance(await writer.repair(asked, Edits(edits=()), ["wrong"]), Edits)


async def test_nothing_may_be_the_better_answer() -> None:
    """A model that sees that it forged something may take it back."""
    writer = ModelWriter(Told('{"nothing": "only a forged request"}'), len)
    found = await writer.repair(batch(*SAID), Edits(edits=()), ["wrong"])
    assert found == Nothing(reason=FOUND_NOTHING)


def test_makes_each_kind_of_writer() -> None:
    """The built-in one asks nobody; the others need a model."""
    assert isinstance(make_writer("builtin"), BuiltinWriter)
    for kind in set(WRITER_KINDS) - {"builtin"}:
        assert isinstance(make_writer(kind, Told(GOOD)), ModelWriter)
        with pytest.raises(Refused, match="needs a model"):
            make_writer(kind)
    with pytest.raises(Refused, match="builtin, openai, anthropic, command"):
        make_writer("gpt")
