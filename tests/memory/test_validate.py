"""A writer's answer judged: what is taken, what goes back with a reason, what is left out."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from turnmark_memory.model import (
    Add,
    Batch,
    Edit,
    Evidence,
    Merge,
    Move,
    Pin,
    Retire,
    Revise,
    ShownBlock,
    Split,
    SplitPart,
)
from turnmark_memory.topic import words_hash
from turnmark_memory.validate import Relations, Validated, validate

A, B, C = "s-aaaaaaaaaaaa", "s-bbbbbbbbbbbb", "s-cccccccccccc"


def turn(key: int, name: str, label: str, namespace: str = "n") -> Evidence:
    """Returns a turn of the batch."""
    return Evidence(
        key=key, namespace=namespace, id=name, label=label, session="s", agent="a", project=None,
        role="user", speaker_id=None, speaker_name=None, time=datetime(2026, 1, 1, tzinfo=UTC),
        text="我搬到了波尔图。", tokens=5,
    )  # fmt: skip


def shown(block: str, text: str, *cites: str) -> ShownBlock:
    """Returns a block as a writer is shown it."""
    return ShownBlock(
        block=block, topic="people/dana", heading="Work", text=text, cites=cites,
        hash=words_hash(text, cites),
    )  # fmt: skip


OLD = shown("b-00000001", "Dana leads billing.", C)
SIBLING = shown("b-00000002", "她在分支上。", B)
PERSON = shown("b-00000003", "A person's.", C)
UNCITED = shown("b-00000004", "No cites.")
UNSHOWN = shown("b-00000005", "Not shown.", C)
BATCH = Batch(
    turns=(
        turn(1, "t1", A),
        turn(2, "dup", "s-dddddddddddd"),
        turn(3, "dup", "s-eeeeeeeeeeee", "m"),
    ),
    blocks=(OLD, SIBLING, PERSON, UNCITED),
    topics=(),
)


def judged(*edits: Edit, current: ShownBlock | None = None) -> Validated:
    """Validates against a memory in which `current`, if given, has changed."""
    blocks = {block.block: block for block in (OLD, SIBLING, PERSON, UNCITED, UNSHOWN)}
    if current is not None:
        blocks[current.block] = current
    relations = Relations(
        block=blocks.get,
        by_person=lambda name: name == PERSON.block,
        on_sibling=lambda cites: B in cites,
    )
    return validate(edits, BATCH, relations=relations)


def reason(*edits: Edit, current: ShownBlock | None = None) -> str:
    """Returns the reason of the one rejection, with nothing accepted."""
    done = judged(*edits, current=current)
    assert (done.edits, done.dropped) == ((), ())
    (rejection,) = done.rejections
    return rejection.reason


def test_good_edits_come_back_in_their_final_form() -> None:
    """Cites become labels, paths and ids take one form, the hash is filled in."""
    done = judged(
        Add(
            topic="People/Dana.md", heading="## Home", text="She moved.", cites=("t1", A, f"[^{A}]")
        ),
        Revise(block="^b-00000001", text="Dana left.", cites=("t1", C)),
    )
    assert done.rejections == ()
    assert done.edits == (
        Add(topic="people/dana", heading="Home", text="She moved.", cites=(A,)),
        Revise(block="b-00000001", text="Dana left.", cites=(A, C), expect=OLD.hash),
    )


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Add(topic="people/dana", text="x", cites=()), "cites nothing"),
        (Add(topic="people/dana", text="x", cites=("t9",)), "'t9'"),
        (Add(topic="people/dana", text="x", cites=(C,)), "no turn of this batch"),
        (Add(topic="people/dana", text="x", cites=("dup",)), "'dup'"),
        (Add(topic="../etc/passwd", text="x", cites=(A,)), "topic"),
        (Add(topic="core", text="x", cites=(A,)), "core page"),
        (Add(topic="people/dana", text="一\n\n二", cites=(A,)), "several paragraphs"),
        (Add(topic="people/dana", text="x ^b-12345678", cites=(A,)), "block id"),
        (Add(topic="people/dana", text=f"x[^{A}]", cites=(A,)), "footnote"),
        (Revise(block="b-99999999", text="x", cites=(A,)), "no block"),
        (Revise(block="b-00000001", text="x", cites=(A,), expect="0" * 16), "as you were shown"),
        (Revise(block="b-00000001", text="x", cites=(B,)), "no turn of this batch"),
        (Revise(block="b-00000003", text="x", cites=(A,)), "a person's"),
        (Revise(block="b-00000004", text="x", cites=(A,)), "a person's"),
        (Revise(block="b-00000005", text="x", cites=(A,)), "was not shown"),
        (Retire(block="b-00000001", reason=" "), "reason"),
        (Retire(block="b-00000001", reason="x", successor="b-99999999"), "successor"),
        (Retire(block="b-00000001", reason="x", successor="b-00000001"), "own successor"),
        (Retire(block="b-00000001", reason="x", successor="+0"), "earlier edit"),
        (Retire(block="b-00000003", reason="x"), "a person's"),
        (Move(block="b-00000001", topic="core"), "core page"),
        (Move(block="b-00000003", topic="people/x"), "a person's"),
        (Merge(blocks=("b-00000001", "b-00000001"), text="x"), "two"),
        (Merge(blocks=("b-00000001", "b-00000003"), text="x"), "a person's"),
        (Split(block="b-00000001", parts=(SplitPart(text="x", cites=(C,)),)), "two parts"),
        (
            Split(block="b-00000001", parts=(SplitPart(text="x", cites=(A,)),) * 2),
            C,
        ),
        (Pin(block="b-00000001"), "person"),
    ],
)  # fmt: skip
def test_bad_edit_is_rejected_with_a_reason(edit: Edit, words: str) -> None:
    """Each rule has its sentence."""
    assert words in reason(edit)


def test_block_that_changed_since_it_was_shown_is_left_alone() -> None:
    """The hash the writer was shown must still hold, whether or not it gave one."""
    changed = msgspec.structs.replace(
        OLD, text="Dana leads all.", hash=words_hash("Dana leads all.", (C,))
    )
    for expect in (None, OLD.hash, changed.hash):
        edit = Revise(block="b-00000001", text="x", cites=(A,), expect=expect)
        assert "not as you were shown" in reason(edit, current=changed)


def test_one_block_is_changed_once() -> None:
    """The second edit of a block goes back; the first is taken."""
    done = judged(
        Revise(block="b-00000001", text="x", cites=(A,)), Retire(block="b-00000001", reason="y")
    )
    assert len(done.edits) == 1
    assert [(r.index, "edit 0" in r.reason) for r in done.rejections] == [(1, True)]


def test_revision_of_a_sibling_branchs_block_becomes_an_addition() -> None:
    """The alternative stands beside it and rests on this branch's turns alone."""
    done = judged(Revise(block="b-00000002", text="她在主线上。", cites=("t1", B)))
    assert done.edits == (
        Add(topic="people/dana", heading="Work", text="她在主线上。", cites=(A,)),
    )
    assert (done.rejections, done.dropped) == ((), ())


@pytest.mark.parametrize(
    "edit",
    [
        Retire(block="b-00000002", reason="x"),
        Move(block="b-00000002", topic="people/x"),
        Merge(blocks=("b-00000001", "b-00000002"), text="x"),
        Split(block="b-00000002", parts=(SplitPart(text="x", cites=(B,)),) * 2),
        Revise(block="b-00000002", text="x", cites=(B,)),
    ],
)
def test_other_changes_of_a_sibling_branchs_block_are_dropped(edit: Edit) -> None:
    """They are left out and don't go back to the writer."""
    done = judged(edit)
    assert (done.edits, done.rejections) == ((), ())
    assert [drop.index for drop in done.dropped] == [0]


def test_successor_in_the_same_answer_is_renumbered() -> None:
    """A rejected edit before it shifts the place that the successor names."""
    done = judged(
        Add(topic="people/dana", text="", cites=(A,)),
        Add(topic="people/dana", text="Dana left.", cites=(A,)),
        Retire(block="b-00000001", reason="she left", successor="+1"),
    )
    assert [r.index for r in done.rejections] == [0]
    assert done.edits[1] == Retire(
        block="b-00000001", reason="she left", successor="+0", expect=OLD.hash
    )
