"""The prompt does not grow with the memory: the same batch beside a small one and a large one."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import pytest

from memory.at_work import at_work, scratch, user
from turnmark_memory.model import Answer, Batch, Nothing
from turnmark_memory.tokens import load_counter
from turnmark_memory.writers.prompt import question_about

pytestmark = pytest.mark.anyio

SMALL = 100
SMALL_PER_TOPIC = 2
ALLOWED = 0.05
"""How much larger the larger memory's prompt may be, of the smaller one's."""

THINGS = (
    "coffee",
    "tea",
    "the cat",
    "billing",
    "the harbour",
    "tests",
    "咖啡",
    "猫",
    "港口",
    "测试",
)
TURNS = [
    f"{who} told me about {thing}: {deed} {number} times, and then went on for a while about what "
    f"had been planned, who had asked for it, and why nothing of it had happened in that year. "
    f"关于{thing}，{who}说了{number}次，后来又谈到当时的计划、是谁提出的，以及为什么那一年什么都没有发生。"
    for number, (who, thing, deed) in enumerate(
        (who, thing, deed)
        for who in ("Dana", "Robin", "王芳")
        for thing in THINGS
        for deed in ("we tried it", "they changed their mind", "it broke")
    )
]


class Listener:
    """A writer that keeps nothing and remembers what it was asked."""

    name = "listener/1"

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    async def write(self, batch: Batch) -> Answer:
        """Says that there is nothing."""
        self.batches.append(batch)
        return Nothing(reason="only listening")


def fill(topics: Path, blocks: int, per_topic: int) -> None:
    """Writes so many blocks, so many to a topic, from a seed."""
    draw = Random(blocks)
    for number in range(blocks // per_topic):
        name = f"thing-{number}-{draw.choice(THINGS).replace(' ', '-')}"
        file = topics / "subjects" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = ["---", f"about: what is known about {name}, and since when", "---", f"# {name}"]
        for at in range(per_topic):
            thing, who = draw.choice(THINGS), draw.choice(("Dana", "Robin", "王芳"))
            words = " ".join(
                draw.choices(("always", "never", "often", "since May", "自从五月"), k=12)
            )
            block = f"b-{number * per_topic + at:08x}"
            lines += ["", f"{who} likes {thing} {words} in place {number}. ^{block}"]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


async def prompt_tokens(blocks: int, per_topic: int) -> tuple[int, int]:
    """Returns the tokens of the prompt beside a memory of so many blocks, and how many it shows."""
    listener = Listener()
    counter = load_counter()
    with scratch() as place:
        fill(place / "memory" / "topics", blocks, per_topic)
        with anyio.fail_after(600):
            async with at_work(listener, place=place) as work:
                assert work.memory._shelf.index.size("block") == blocks
                await work.append("s", [user(words) for words in TURNS])
                await work.flush()
    (asked,) = listener.batches
    question = question_about(asked, counter.count).question
    shown = question.material.count('{"block": ')
    return counter.count(question.instructions) + counter.count(question.material), shown


async def compare(large: int, per_topic: int) -> None:
    """Compares the prompts beside a small memory and a large one."""
    small, shown = await prompt_tokens(SMALL, SMALL_PER_TOPIC)
    grown, shown_then = await prompt_tokens(large, per_topic)
    assert shown == shown_then > 10
    assert abs(grown - small) <= ALLOWED * small, (small, grown)


async def test_the_prompt_is_as_large_beside_ten_times_the_memory() -> None:
    """Blocks and topics have budgets; the rest is the turns."""
    await compare(1_000, SMALL_PER_TOPIC)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
async def test_the_prompt_is_as_large_beside_a_thousand_times_the_memory() -> None:
    """Measured: 14,286 tokens beside a hundred blocks, 14,138 beside a hundred thousand."""
    await compare(100_000, 20)
