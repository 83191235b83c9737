"""Tidying with a model: one window of a topic, one question, and what of the answer may be done.

An answer is judged like a writer's: blocks must be as they were shown and no person's, texts one
paragraph, cites those of the blocks. And more strictly: nothing is added, blocks of different
people, of projects apart or of branches beside each other are never joined, and a block is retired
only for one that is newer and stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import apsw
import msgspec
import structlog

from turnmark_memory.grounds import are_alternatives
from turnmark_memory.model import Batch, Edit, Merge, Move, Retire, Split
from turnmark_memory.models.model import Model
from turnmark_memory.night_pass import About, Plan, blocks_of
from turnmark_memory.sameness import Resting
from turnmark_memory.shelf import Shelf
from turnmark_memory.tidy_question import (
    ABOUT_LIMIT_CHARACTERS,
    Answered,
    question_of,
    read_answer,
)
from turnmark_memory.topic_path import CORE
from turnmark_memory.validate import Relations, validate
from turnmark_memory.windows import Window
from turnmark_memory.words import words_problem
from turnmark_session_store import SessionStore

log = structlog.get_logger(__name__)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a question: what may be done, and why the rest may not."""

    plan: Plan
    rejected: tuple[str, ...] = ()


async def tidy(store: SessionStore, shelf: Shelf, model: Model, window: Window) -> Answer:
    """Asks `model` about a window and returns what may be done; nothing is written.

    Takes as long as the model does; no lock is held meanwhile.

    Raises:
        WriterFailed: if it gives no usable answer.
    """
    reply = await model.ask(question_of(window))
    answered = read_answer(reply.text)
    answer = await store.read(lambda db: judged(db, shelf, window, answered))
    if answer.rejected:
        log.info("tidying_rejected", topic=window.topic, edits=len(answer.rejected))
    return answer


def judged(db: apsw.Connection, shelf: Shelf, window: Window, answered: Answered) -> Answer:
    """Returns the plan of those edits of an answer that may be carried out."""
    known = {block.shown.block: block for block in window.blocks}
    rejected = [f"edit {place} has no shape that is asked for" for place in answered.unread]
    possible: list[Edit] = []
    for edit in answered.edits:
        problem = _problem(db, edit, known)
        if problem is None:
            possible.append(_bounded(edit))
        else:
            rejected.append(problem)
    shown = tuple(block.shown for block in window.blocks)
    relations = Relations(
        block=shelf.shown, by_person=shelf.by_person, on_sibling=lambda _cites: False
    )
    batch = Batch(turns=(), blocks=shown, topics=())
    accepted = validate(possible, batch, relations=relations)
    rejected += [one.reason for one in (*accepted.rejections, *accepted.dropped)]
    edits = _with_live_successors(accepted.edits)
    rejected += ["the successor goes itself"] * (len(accepted.edits) - len(edits))
    named = {name for edit in edits for name in blocks_of(edit)}
    plan = Plan(
        edits=edits,
        abouts=_abouts(window, answered),
        shown=tuple(block for block in shown if block.block in named),
        seen=tuple(dict.fromkeys(label for block in shown for label in block.cites)),
    )
    return Answer(plan=plan, rejected=tuple(rejected))


def _problem(db: apsw.Connection, edit: Edit, known: Mapping[str, Resting]) -> str | None:
    """Returns why the night may not do what a writer may."""
    named = [known.get(name.removeprefix("^")) for name in blocks_of(edit)]
    blocks = [block for block in named if block is not None]
    if len(blocks) < len(named):
        return "a block was not shown"
    if isinstance(edit, Retire):
        if edit.successor is None:
            return "a block is retired only for a successor"
        old, new = (block.grounds.latest for block in blocks)
        if old is None or new is None or new < old:
            return "the successor is older than the block"
    if isinstance(edit, Merge | Retire):
        if not all(one.grounds.may_join(other.grounds) for one, other in pairwise(blocks)):
            return "the blocks are of different people or projects"
        if are_alternatives(db, (ref for block in blocks for ref in block.grounds.refs)):
            return "the blocks rest on branches beside each other"
    return None


def _bounded(edit: Edit) -> Edit:
    """Returns the edit within its topic: only a move leaves it."""
    return msgspec.structs.replace(edit, topic=None) if isinstance(edit, Merge) else edit


def _with_live_successors(edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Leaves out what is retired for a block that another edit changes or takes away."""
    changed = {
        name
        for edit in edits
        if isinstance(edit, Merge | Split | Move | Retire)
        for name in (edit.blocks if isinstance(edit, Merge) else (edit.block,))
    }
    return tuple(
        edit for edit in edits if not (isinstance(edit, Retire) and edit.successor in changed)
    )


def _abouts(window: Window, answered: Answered) -> tuple[About, ...]:
    about = (answered.about or "").strip()
    if not about or not window.is_first or window.about is None or window.topic == CORE:
        return ()
    unfit = len(about) > ABOUT_LIMIT_CHARACTERS or words_problem(about) is not None
    if unfit or about == window.about or "\n" in about:
        return ()
    return (About(topic=window.topic, about=about, replaces=window.about),)
