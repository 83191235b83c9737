"""`benchmarks/recall` asks a real memory."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from recall.asking import ask, foreign
from recall.built import View, memory_of
from recall.corpus import Corpus, Question, Turn

SAID = [
    ("a/1", "Dana", "I moved to Porto in May, and I like the harbour there."),
    ("a/2", None, "Noted."),
    ("b/1", "陈默", "备份每天凌晨两点四十开始。"),
]
CORPUS = Corpus(
    name="small",
    turns=tuple(
        Turn(
            id=name,
            session=name[0],
            project=None,
            time=datetime(2026, 8, 9, tzinfo=UTC),
            role="user" if speaker else "assistant",
            speaker=speaker,
            text=text,
        )
        for name, speaker, text in SAID
    ),
    questions=(
        Question(id="q1", text="When did Dana move to Porto?", group="en", half="learn",
                 evidence=("a/1",)),
        Question(id="q2", text="备份几点开始？", group="zh", half="report", evidence=("b/1",)),
        Question(id="q3", text="Who painted the Mona Lisa?", group="en absent", half="report"),
    ),
)  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("view", ["turns", "blocks"])
async def test_finds_in_a_real_memory_what_was_said(view: View, tmp_path: Path) -> None:
    """Both languages are found in either view, what never came up is answered with nothing."""
    with anyio.fail_after(60):
        async with memory_of(CORPUS, view, tmp_path / view) as (memory, _):
            answered = await ask(memory, CORPUS, view, "lexical", CORPUS.questions)
    first, second, third = answered
    assert (first.retrieved[0], second.retrieved[0]) == ("a/1", "b/1")
    assert (third.hits, third.metrics, third.unfloored) == (0, None, None)


@pytest.mark.anyio
async def test_asks_again_what_was_kept(tmp_path: Path) -> None:
    """A place that has the memory already is asked as it is: nothing is written twice."""
    with anyio.fail_after(60):
        for _ in range(2):
            async with memory_of(CORPUS, "turns", tmp_path) as (memory, _):
                answered = await ask(memory, CORPUS, "turns", "lexical", CORPUS.questions[:1])
    assert answered[0].retrieved[0] == "a/1"
    lines = [file.read_text("utf-8") for file in (tmp_path / "memory/sources").rglob("*.jsonl")]
    assert "".join(lines).count("\n") == len(SAID)


def test_asks_a_memory_about_others() -> None:
    """Foreign questions come from the other corpora and have no evidence here."""
    other = Corpus(name="other", turns=(), questions=CORPUS.questions)
    asked = foreign([CORPUS, other], 0, 2)
    assert [(one.id, one.group, one.evidence) for one in asked] == [
        ("small<q1", "foreign", ()),
        ("small<q2", "foreign", ()),
    ]
