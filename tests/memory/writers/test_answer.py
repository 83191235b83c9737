"""`writers/answer.py`: what models really send is read; what is not whole is never guessed."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnmark_memory.model import Add, Edits, Merge, Nothing, Retire, Revise, Split, SplitPart
from turnmark_memory.models.answer_object import BadAnswer, answer_object
from turnmark_memory.writers.answer import FOUND_NOTHING, answer_in

REFS = {"t1": "s-000000000001", "t2": "s-000000000002"}
ADD = {"op": "add", "topic": "people/dana", "heading": None, "text": "猫", "cites": ["t1"]}
KEPT = Edits(edits=(Add(topic="people/dana", text="猫", cites=("s-000000000001",)),))
ANSWER = json.dumps({"edits": [ADD], "nothing": None}, ensure_ascii=False)


@pytest.mark.parametrize(
    "said",
    [
        ANSWER,
        f"```json\n{ANSWER}\n```",
        f"```\n{ANSWER}",
        f"~~~\n{ANSWER}\n~~~",
        f"Sure! Here are the edits:\n\n{ANSWER}\n\nLet me know if {{that}} helps.",
        f"好的，结果如下：{ANSWER}。",
        f"I use {{braces}} now: {ANSWER}",
        f"\ufeff{ANSWER}",
        json.dumps({"edits": [ADD]}, indent=2),
        json.dumps({"thoughts": "short", "edits": [ADD], "nothing": ""}),
        ANSWER.replace("猫", "猫").replace('", "cites"', '", \n "cites"'),
    ],
)
def test_reads_what_models_send(said: str) -> None:
    """Fences, prose, indentation and a mark at the beginning don't matter."""
    assert answer_in(said, REFS) == KEPT


def test_reads_a_line_end_inside_a_string() -> None:
    """Models leave it unescaped; it can mean nothing else."""
    found = answer_in(ANSWER.replace("猫", "a\nb"), REFS)
    assert isinstance(found, Edits)
    assert isinstance(found.edits[0], Add)
    assert found.edits[0].text == "a\nb"


def test_an_honest_nothing_has_a_reason() -> None:
    """It is not kept: a reason may quote what was said, and marks and events hold none of that."""
    said = json.dumps({"edits": [], "nothing": " only\ngreetings "})
    assert answer_in(said, REFS) == Nothing(reason=FOUND_NOTHING)
    assert answer_in('{"nothing": "问候"}', REFS) == Nothing(reason=FOUND_NOTHING)


def test_turns_come_back_by_their_labels() -> None:
    """In every edit that cites; what is no short name of a turn is left for judging."""
    said = {
        "edits": [
            {"op": "revise", "block": "b-1", "text": "x", "cites": ["t2", "s-00000000000f"]},
            {"op": "split", "block": "b-2", "parts": [{"text": "y", "cites": [" [^t1]", "t3"]}]},
            {"op": "retire", "block": "b-3", "reason": "gone", "successor": None},
            {"op": "merge", "blocks": ["b-4", "b-5"], "text": "z", "topic": None, "heading": None},
        ]
    }
    assert answer_in(json.dumps(said), REFS) == Edits(
        edits=(
            Revise(block="b-1", text="x", cites=("s-000000000002", "s-00000000000f")),
            Split(block="b-2", parts=(SplitPart(text="y", cites=("s-000000000001", "t3")),)),
            Retire(block="b-3", reason="gone"),
            Merge(blocks=("b-4", "b-5"), text="z"),
        )
    )


@settings(deadline=None)
@given(st.integers(min_value=0))
def test_an_answer_cut_anywhere_is_no_answer(at: int) -> None:
    """Not even where a prefix holds whole edits: the rest may have been what mattered."""
    long = json.dumps({"edits": [ADD, ADD, ADD], "nothing": None})
    with pytest.raises(BadAnswer):
        answer_in(long[: at % len(long)], REFS)


@settings(deadline=None)
@given(st.text())
def test_no_text_is_read_but_an_object(text: str) -> None:
    """Whatever a model says, there is an object or a reason, and no other end."""
    with suppress(BadAnswer):
        assert isinstance(answer_object(text), dict)


@settings(deadline=None)
@given(st.dictionaries(st.text(), st.recursive(st.none() | st.text(), st.lists), max_size=4))
def test_an_object_in_a_fence_is_read_as_it_is(found: dict[str, object]) -> None:
    """Any object, written by any encoder, with words around it."""
    for ascii_only in (True, False):
        said = json.dumps(found, ensure_ascii=ascii_only)
        assert answer_object(f"Here:\n```json\n{said}\n```\nDone.") == found


def test_a_reason_shows_no_more_than_a_line() -> None:
    """A model's own words of any length come into no log."""
    said = json.dumps({"edits": [{**ADD, "x" * 100_000: 1}]})
    with pytest.raises(BadAnswer) as caught:
        answer_in(said, REFS)
    assert len(str(caught.value)) < 400
