"""`writers/parts.py`: a batch too long for one question is asked about in parts, settled whole."""

from __future__ import annotations

import json

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.at_work import at_work, tokens, user
from memory.writers.batches import batch, block, turn
from memory.writers.test_model_writer import Told
from model_server.server import adds, edits
from turnmark_memory.model import Add, Edits, Nothing, Retire
from turnmark_memory.writers.answer import FOUND_NOTHING
from turnmark_memory.writers.model_writer import ModelWriter
from turnmark_memory.writers.parts import parts_of
from turnmark_memory.writers.writer import WriterFailed

LONG = "\n\n".join(f"Robin said in note {n} that all is well. 笔记{n}。" for n in range(200))
NOTHING = '{"edits": [], "nothing": "nothing here"}'


def words(text: str) -> int:
    """Counts words, each Chinese sign one."""
    return tokens(text)


def test_a_batch_that_is_short_enough_is_one() -> None:
    """The very same, and nothing is counted."""
    asked = batch("I live in Porto.", "我养了一只猫。")
    assert parts_of(asked, 1_000, lambda _: 1 // 0) == [asked]


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet="ab 中。\n.", max_size=80), min_size=1, max_size=4),
    st.integers(2, 30),
)
def test_parts_hold_every_word_once_and_in_order(texts: list[str], limit: int) -> None:
    """Put together again they are the batch, and none is longer than the limit."""
    asked = batch(*(turn(text, at, tokens=words(text)) for at, text in enumerate(texts, start=1)))
    parts = parts_of(asked, limit, words)
    for at, text in enumerate(texts, start=1):
        label = f"s-{at:012x}"
        found = [one.text for part in parts for one in part.turns if one.label == label]
        assert "".join(found) == text
    labels = [one.label for part in parts for one in part.turns]
    assert labels == sorted(labels)
    for part in parts:
        assert sum(one.tokens for one in part.turns) <= limit
        assert part.turns


def test_cuts_between_paragraphs() -> None:
    """A note stays whole where notes are short."""
    parts = parts_of(batch(turn(LONG, tokens=words(LONG))), 300, words)
    assert len(parts) > 5
    pieces = [one.text for part in parts for one in part.turns]
    assert all(piece.startswith("Robin said") for piece in pieces)


def test_cuts_what_has_no_seam() -> None:
    """A line of signs without an end is cut in its middle."""
    text = "字" * 1_000
    parts = parts_of(batch(turn(text, tokens=words(text))), 100, words)
    assert all(words(one.text) <= 100 for part in parts for one in part.turns)
    assert "".join(one.text for part in parts for one in part.turns) == text


@pytest.mark.anyio
async def test_a_huge_turn_is_written_in_parts_and_settled_once() -> None:
    """Each part is a question of its own; what they say cites the one turn."""
    model = Told(
        edits(adds("Robin takes notes.", ["t1"])),
        *[NOTHING] * 3,
        edits(adds("罗宾记了很多笔记。", ["t1"])),
        NOTHING,
    )
    with anyio.fail_after(60):
        async with at_work(ModelWriter(model, words, part_tokens=400)) as work:
            await work.append("s", [user(LONG, "huge")])
            assert (await work.flush()).left == 0
            assert await work.marks() == {"huge": ("kept", None)}
            written = work.topic()
    assert "Robin takes notes." in written
    assert "罗宾记了很多笔记。" in written
    asked = [[json.loads(line) for line in one.material.split("\n")] for one in model.asked]
    places = [lines[0]["conversation"]["part"] for lines in asked]
    assert places == [f"{number} of {len(asked)}" for number in range(1, len(asked) + 1)]
    assert len(asked) >= 6
    said = "".join(line["text"] for lines in asked for line in lines if "ref" in line)
    assert said == LONG


@pytest.mark.anyio
@pytest.mark.parametrize("failing", ["no JSON", '{"edits": [', WriterFailed("gone")])
async def test_a_huge_turn_is_not_settled_while_a_part_fails(failing: str | WriterFailed) -> None:
    """The parts that were answered well are not kept without the others."""
    model = Told(edits(adds("Robin takes notes.", ["t1"])), NOTHING, failing)
    with anyio.fail_after(60):
        async with at_work(ModelWriter(model, words, part_tokens=400)) as work:
            await work.append("s", [user(LONG, "huge")])
            done = await work.flush()
            assert (done.left, len(done.failures)) == (1, 1)
            assert await work.marks() == {}
            assert work.topic() == ""


@pytest.mark.anyio
async def test_all_parts_without_anything_are_nothing() -> None:
    """One honest nothing, with the first part's reason."""
    writer = ModelWriter(Told(NOTHING), words, part_tokens=400)
    found = await writer.write(batch(turn(LONG, tokens=words(LONG))))
    assert found == Nothing(reason=FOUND_NOTHING)


@pytest.mark.anyio
async def test_a_block_that_one_part_changed_is_not_shown_with_the_next() -> None:
    """Two changes of one block would be none; a successor is found among all edits."""
    retiring = {"op": "retire", "block": "^b-00000001", "reason": "gone", "successor": "+0"}
    model = Told(
        edits(adds("One.", ["t1"]), retiring),
        edits(adds("Two.", ["t1"]), retiring | {"block": "b-00000002"}),
        NOTHING,
    )
    shown = [block(1, "Robin is here."), block(2, "Robin was here.")]
    writer = ModelWriter(model, words, part_tokens=1_200)
    found = await writer.write(batch(turn(LONG, tokens=words(LONG)), blocks=shown))
    counts = [one.material.count('{"block": ') for one in model.asked[:3]]
    assert counts == [2, 1, 0]
    cites = ("s-000000000001",)
    assert found == Edits(
        edits=(
            Add(topic="subjects/facts", text="One.", cites=cites),
            Retire(block="^b-00000001", reason="gone", successor="+0"),
            Add(topic="subjects/facts", text="Two.", cites=cites),
            Retire(block="b-00000002", reason="gone", successor="+2"),
        )
    )
