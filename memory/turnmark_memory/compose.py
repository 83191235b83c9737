"""Composing an install: edits of several batches become the new bytes of a few topic files.

Nothing is written here. Each batch's edits apply wholly or not at all; one batch that can't be
applied does not take its neighbours down. Cost: the topics that the edits name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime

import msgspec

from turnmark_events.errors import NotFound, Refused, Stale, TurnmarkError
from turnmark_memory.apply import Applied, Sources, apply_edits
from turnmark_memory.arrivals import show_arrivals
from turnmark_memory.bases import Base
from turnmark_memory.block_change import BlockChange, folded
from turnmark_memory.draft import Draft
from turnmark_memory.durable import digest_of
from turnmark_memory.file_exchange import StagedFile
from turnmark_memory.line_delta import delta
from turnmark_memory.model import Add, Edit, Revise
from turnmark_memory.removal import Removal, removal_of
from turnmark_memory.revisions import FileChange, RevisionRecord
from turnmark_memory.shelf import Shelf
from turnmark_memory.sparing import spared
from turnmark_memory.topic import Block
from turnmark_memory.topic_path import topic_path


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One batch's accepted edits; `name` makes the ids of its new blocks, the same on a redo.

    `by_person` says that somebody asked for exactly this: the words are theirs, no history is kept
    beside the revision's record, and turns that lose their last block are parked as removed.
    `carry_out` does something else than edits in their place.
    """

    name: str
    edits: tuple[Edit, ...] = ()
    by_person: bool = False
    carry_out: Callable[[Sources], Applied] | None = None


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one `Work`: the blocks it made or changed, or why it could not be applied.

    `at_fault` tells a problem of the edits from one of the files that they name. `stale` says that
    a block changed since the writer saw it: asked again, it will see what is there now.
    """

    blocks: tuple[str, ...]
    problem: str | None = None
    at_fault: bool = True
    stale: bool = False
    error: TurnmarkError | None = None


class Composed(msgspec.Struct, frozen=True, kw_only=True):
    """An install ready to be journalled: files to exchange, its record, and marks to replace.

    `seen` are contents that people saved and that it takes in; `read` are the topics that were
    looked at on the way: it holds only if memory has seen what is in their files.
    """

    files: tuple[StagedFile, ...]
    topics: tuple[str, ...]
    record: RevisionRecord
    done: tuple[Done, ...]
    removal: Removal = Removal()
    seen: tuple[Base, ...] = ()
    read: tuple[str, ...] = ()


def compose(
    shelf: Shelf,
    works: Sequence[Work],
    *,
    revision: int,
    cause: str,
    at: datetime,
    turns: int | None,
    keep_history: bool = True,
) -> Composed:
    """Returns the install that carries out `works`; blocks on disk, writes nothing.

    Raises:
        Refused: if a topic's file is a link, a directory or unreadable.
        Unavailable: if the disk fails.
    """
    draft = Draft(shelf)
    carried = [
        (work, *_carry_out(draft, work, at.date(), keep_history=keep_history)) for work in works
    ]
    made = [change for _, _, changes in carried for change in changes]
    restored = [
        change for work, _, changes in carried if work.carry_out is not None for change in changes
    ]
    by_person = [change for work, _, changes in carried if work.by_person for change in changes]
    changes = folded([*made, *draft.follow_links(made, restored)])
    show_arrivals(draft, changes)
    topics = tuple(topic for topic in sorted({*draft.topics, *draft.exact}) if draft.differs(topic))
    files = tuple(map(draft.staged, topics))
    _check_paths(topics, files)
    return Composed(
        files=files,
        topics=topics,
        record=RevisionRecord.of(
            changes,
            revision=revision,
            at=at,
            cause=cause,
            files=map(file_change, topics, files),
            turns=turns,
        ),
        done=tuple(done for _, done, _ in carried),
        removal=removal_of(shelf.index, by_person),
        read=tuple(sorted({*draft.bases, *draft.exact})),
    )


def _carry_out(
    draft: Draft, work: Work, today: date, *, keep_history: bool
) -> tuple[Done, tuple[BlockChange, ...]]:
    taken = set(draft.taken)
    sources = Sources(
        load=draft.load,
        where=draft.where,
        resolve=lambda cite: cite,
        ids=lambda number, part: draft.fresh(work.name, str(number), str(part)),
        named=draft.shelf.workspace.topic_name,
    )
    try:
        applied = _applied(draft, work, sources, today, keep_history=keep_history)
    except TurnmarkError as error:
        draft.taken = taken
        stale = isinstance(error, Stale | NotFound)
        at_fault = not stale and error not in draft.unusable
        return Done(
            blocks=(), problem=error.message, at_fault=at_fault, stale=stale, error=error
        ), ()
    draft.put(applied)
    blocks = dict.fromkeys(block for blocks in applied.blocks for block in blocks)
    return Done(blocks=tuple(blocks)), applied.changes


def _applied(
    draft: Draft, work: Work, sources: Sources, today: date, *, keep_history: bool
) -> Applied:
    if work.carry_out is not None:
        return work.carry_out(sources)
    edits: Sequence[Edit] = [_rebased(draft, edit) for edit in work.edits]
    if not work.by_person:
        edits = spared(edits, draft.block)
    return apply_edits(
        edits,
        sources=sources,
        today=today,
        keep_history=keep_history and not work.by_person,
        by_person=work.by_person,
    )


def _rebased(draft: Draft, edit: Edit) -> Edit:
    """Returns the edit as it must be for what stands there now.

    Of batches that say the same words again each adds its cites to those of the others. A block
    that already says these words of these turns is said again by nobody: so it is when turns are
    offered again whose marks were lost.
    """
    if isinstance(edit, Revise):
        _, block = draft.block(edit.block.removeprefix("^")) or ("", None)
        if block is not None and block.text == edit.text and block.superseded_by is None:
            return _said_again(block, edit.cites)
    if isinstance(edit, Add):
        there = draft.load(draft.shelf.workspace.topic_name(topic_path(edit.topic)))
        for block in there.saying(edit.text) if there is not None else ():
            if block.id and set(block.cites) == set(edit.cites):
                return _said_again(block, ())
    return edit


def _said_again(block: Block, cites: Sequence[str]) -> Revise:
    return Revise(
        block=block.id or "",
        text=block.text,
        cites=tuple(dict.fromkeys([*block.cites, *cites])),
    )


def _check_paths(topics: Sequence[str], files: Sequence[StagedFile]) -> None:
    """Refuses what would write one file twice: a file's old and new name can differ by case."""
    owners: dict[str, str] = {}
    for topic, file in zip(topics, files, strict=True):
        other = owners.setdefault(file.path, topic)
        if other != topic:
            raise Refused(f"{other!r} and {topic!r} are one file, {file.path}; rename it by hand")


def file_change(topic: str, file: StagedFile) -> FileChange:
    """Returns a file's change with the way back, for the record."""
    return FileChange(
        topic=topic,
        before=file.base,
        after=None if file.content is None else digest_of(file.content),
        back=delta(file.content or b"", file.base_content or b""),
    )
