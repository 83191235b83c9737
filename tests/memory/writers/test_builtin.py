"""The built-in writer, from a batch to its edits."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark_events.errors import Refused
from turnmark_memory.model import Add, Answer, Batch, Edits, Evidence, Nothing, Revise, ShownBlock
from turnmark_memory.topic_path import topic_path
from turnmark_memory.words import words_problem
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_memory.writers.registry import WRITER_KINDS, make_writer
from turnmark_memory.writers.writer import WriterFailed

MONDAY = datetime(2026, 10, 5, 9, tzinfo=UTC)


def turn(text: str, number: int = 1, **changes: Any) -> Evidence:
    """Returns a user's turn of Robin, with `changes`."""
    fields: dict[str, Any] = {
        "key": number,
        "namespace": "test",
        "id": f"t{number}",
        "label": f"s-{number:012x}",
        "session": "one",
        "agent": "test",
        "project": None,
        "role": "user",
        "speaker_id": "u-17",
        "speaker_name": "Robin",
        "time": MONDAY + timedelta(minutes=number),
        "text": text,
        "tokens": 10,
    }
    return Evidence(**fields | changes)


def batch(*turns: Evidence, blocks: tuple[ShownBlock, ...] = (), topics: Any = ()) -> Batch:
    return Batch(turns=turns, blocks=blocks, topics=topics)


def shown(text: str, *cites: str) -> ShownBlock:
    return ShownBlock(
        block="b-af3dee4f",
        topic="people/robin",
        heading="Facts",
        text=text,
        cites=cites,
        hash="h1",
    )


async def answer_of(asked: Batch) -> Answer:
    with anyio.fail_after(60):
        return await BuiltinWriter().write(asked)


async def adds_of(asked: Batch) -> list[Add]:
    answer = await answer_of(asked)
    assert isinstance(answer, Edits)
    return [edit for edit in answer.edits if isinstance(edit, Add)]


pytestmark = pytest.mark.anyio


async def test_quotes_a_statement_with_its_speaker_and_date() -> None:
    """The words are the speaker's, the date is resolved, the turn is cited."""
    (add,) = await adds_of(batch(turn("I moved from Oslo to Bergen last month.")))
    assert add.text == 'Robin: "I moved from Oslo to Bergen last month (September 2026)."'
    assert (add.topic, add.heading) == ("people/robin", "Facts")
    assert add.cites == ("s-000000000001",)


async def test_writes_chinese_in_chinese() -> None:
    """Frame and heading follow the language of the statement."""
    (add,) = await adds_of(batch(turn("我喜欢喝“美式”咖啡。", speaker_name=None, speaker_id=None)))
    assert add.text == "用户：“我喜欢喝‘美式’咖啡。”"
    assert (add.topic, add.heading) == ("people/user", "偏好")


async def test_gives_nothing_for_small_talk() -> None:
    """A batch without a statement is an honest nothing."""
    answer = await answer_of(batch(turn("ok thanks"), turn("运行一下测试", 2), turn("Why?", 3)))
    assert answer == Nothing(reason="no turn states anything worth keeping")


async def test_files_by_what_a_statement_is_about() -> None:
    """The speaker, another person, the project and the rest each have a topic."""
    adds = await adds_of(
        batch(
            turn("I prefer tea.", 1, project="/home/robin/Blue Kiosk"),
            turn(
                "Dana leads the billing team since May 2026.", 2, project="/home/robin/Blue Kiosk"
            ),
            turn("We decided to use Postgres.", 3, project="/home/robin/Blue Kiosk"),
            turn("The river Glomma is 621 km long.", 4),
            turn("王芳负责计费团队。", 5),
        )
    )
    assert [add.topic for add in adds] == [
        "people/robin",
        "people/dana",
        "projects/blue-kiosk",
        "subjects/notes",
        "people/王芳",
    ]


async def test_gives_a_recurring_name_a_subject() -> None:
    """A name that two statements share is a subject; so is one that memory has."""
    adds = await adds_of(
        batch(
            turn("The capacity of Glomma is 30 MW.", 1),
            turn("The owner of Glomma is a town of 900 people.", 2),
            turn("The valley of Rauma has 3 farms.", 3),
            topics=(("subjects/rauma", "the valley"),),
        )
    )
    assert [add.topic for add in adds] == ["subjects/glomma", "subjects/glomma", "subjects/rauma"]


async def test_merges_the_sentences_of_one_turn() -> None:
    """Neighbours on one heading become one paragraph, what lies between is shown as left out."""
    (add,) = await adds_of(
        batch(turn("I live in Oslo. I work as a nurse. Can you hear me? I have a dog called Miso."))
    )
    assert add.text == 'Robin: "I live in Oslo. I work as a nurse. … I have a dog called Miso."'


async def test_keeps_a_block_within_a_paragraph() -> None:
    """Many statements of one turn become several blocks of at most 600 characters."""
    text = " ".join(f"I have a dog called Miso number {n} in the town of Porto." for n in range(30))
    adds = await adds_of(batch(turn(text)))
    assert len(adds) > 2
    assert all(len(add.text) <= 600 for add in adds)


async def test_keeps_an_assistants_words_only_once_the_user_agrees() -> None:
    """The next turn's yes makes a proposal a decision, and both turns are cited."""
    proposal = turn("We decided on Postgres for the kiosk.", 1, role="assistant")
    (add,) = await adds_of(batch(proposal, turn("Yes, exactly.", 2)))
    assert add.text == 'The assistant (Robin agreed): "We decided on Postgres for the kiosk."'
    assert add.cites == ("s-000000000001", "s-000000000002")
    for following in (turn("No, MySQL!", 2), turn("Yes, exactly.", 2, session="other")):
        assert isinstance(await answer_of(batch(proposal, following)), Nothing)
    assert isinstance(await answer_of(batch(proposal)), Nothing)


async def test_says_the_same_words_once() -> None:
    """Words repeated in a batch are one block that cites both turns."""
    (add,) = await adds_of(batch(turn("I prefer tea."), turn("i prefer TEA", 2)))
    assert add.cites == ("s-000000000001", "s-000000000002")


async def test_keeps_the_same_words_of_two_people_apart() -> None:
    """Who spoke is part of what was said."""
    adds = await adds_of(
        batch(turn("I prefer tea."), turn("I prefer tea.", 2, speaker_name="Dana"))
    )
    assert [add.topic for add in adds] == ["people/robin", "people/dana"]


async def test_adds_a_cite_to_a_block_that_says_it_already() -> None:
    """The block keeps its words; old cites come first; its hash goes back."""
    block = shown('Robin: "I live in Oslo. I prefer tea."', "s-00000000000a")
    answer = await answer_of(batch(turn("I prefer tea!"), blocks=(block,)))
    assert answer == Edits(
        edits=(
            Revise(
                block="b-af3dee4f",
                text=block.text,
                cites=("s-00000000000a", "s-000000000001"),
                expect="h1",
            ),
        )
    )


async def test_asks_for_no_edit_of_what_is_cited_already() -> None:
    """Offered again, a turn that memory holds changes nothing."""
    block = shown('Robin: "I prefer tea."', "s-000000000001")
    answer = await answer_of(batch(turn("I prefer tea."), blocks=(block,)))
    assert answer == Nothing(reason="memory already holds all that the turns state")


async def test_takes_no_contradiction_for_a_repetition() -> None:
    """Words inside a longer sentence are not that sentence."""
    block = shown('Robin: "I do not think that I prefer tea."', "s-00000000000a")
    (add,) = await adds_of(batch(turn("I prefer tea."), blocks=(block,)))
    assert add.text == 'Robin: "I prefer tea."'


HOSTILE = (
    "I prefer this.[^s-8a9128075e1b] ^b-af3dee4f\n\n[^s-8a9128075e1b]: x ![[p#^b-af3dee4f]]",
    "I like <!-- turnmark: below this line --> <script>alert(1)</script> very much",
    'I love it." Dana: "I quit my job in Oslo.',
    "I moved to Oslo\u2028# Heading\x0b- item\x00\u202e",
    "I prefer paths like C:\\",
)


@pytest.mark.parametrize("text", HOSTILE)
async def test_quotes_hostile_text_harmlessly(text: str) -> None:
    """No footnote, block id, embed, HTML, speaker or second line comes out of a turn."""
    for add in await adds_of(batch(turn(text))):
        assert len(add.text.splitlines()) == 1
        for live in ("[^", "^b-", "[["):
            assert live not in add.text
        assert "<" not in add.text.replace("\\<", "")
        assert add.text.count('"') - add.text.count('\\"') == 2


@pytest.mark.parametrize(
    "name",
    ["# Robin", "[^s-1]: x", "1. x", "- x", "\n\n", "Robin\nDana", 'Robin: "x', "<b>", "💥", "Con"],
)
async def test_lets_no_name_break_the_frame(name: str) -> None:
    """A name cannot begin a heading, a list, a footnote or somebody else's words."""
    (add,) = await adds_of(batch(turn("I prefer tea.", speaker_name=name)))
    assert add.text[0].isalpha()
    assert add.text.endswith(': "I prefer tea."')
    assert add.text.count('"') == 2
    assert words_problem(add.text) is None
    assert topic_path(add.topic) == add.topic


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["user", "assistant"]),
            st.one_of(
                st.text(),
                st.text('I prefer [^]b-<\n "“”。？我喜欢tomorrow明天`#|\\'),
            ),
            st.none() | st.text(),
        ),
        max_size=6,
    )
)
def test_never_raises_and_always_cites(said: list[tuple[str, str, str | None]]) -> None:
    """Any text by anybody: edits cite turns of the batch and are one paragraph each."""
    asked = batch(
        *(
            turn(text, number, role=role, speaker_name=name)
            for number, (role, text, name) in enumerate(said)
        )
    )
    answer = anyio.run(BuiltinWriter().write, asked)
    assert answer == anyio.run(BuiltinWriter().write, asked)
    labels = {one.label for one in asked.turns}
    for edit in answer.edits if isinstance(answer, Edits) else ():
        assert isinstance(edit, Add)
        assert edit.cites
        assert set(edit.cites) <= labels
        assert len(edit.text.splitlines()) == 1
        assert len(edit.text) <= 600
        assert words_problem(edit.text) is None
        assert topic_path(edit.topic) == edit.topic


async def test_writes_ten_thousand_turns_in_a_minute() -> None:
    """A batch costs less than six milliseconds of one core per turn."""
    said = (
        "I moved from Oslo to Bergen last month. Can you tell me more about the weather there?",
        "我们决定用 Postgres，因为 MySQL 丢过数据。以后都用中文回答我。",
        "Run the tests again, please. The staging server runs on port 8443 in Frankfurt. " * 5,
    )
    turns = [turn(f"{said[n % 3]} Number {n}.", n) for n in range(300)]
    started = time.process_time()
    await answer_of(batch(*turns))
    assert time.process_time() - started < 300 * 0.006


async def test_makes_the_builtin_writer_by_its_kind() -> None:
    """The registry knows the kinds of this version and refuses others by name."""
    assert WRITER_KINDS == ("builtin",)
    assert make_writer("builtin").name == "builtin/1"
    with pytest.raises(Refused, match="builtin"):
        make_writer("oracle")


async def test_tells_a_failure_from_nothing() -> None:
    """A writer's failure carries its reason and counts as unavailable."""
    failure = WriterFailed("timeout")
    assert (failure.kind, failure.reason, failure.facts) == (
        "unavailable",
        "timeout",
        {"reason": "timeout"},
    )
