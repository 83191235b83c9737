"""Judges a writer's edits before they touch anything: what is wrong with which edit, and why.

A rejection goes back to the writer once. A drop does not: the edit was fine in itself, but aimed
at what the batch's branch may not change. The answer may be rewritten: cites become labels, paths
and ids take their one form, and a revision of what it may not replace becomes an addition: of a
sibling branch's block, of what another person said, and, as history, of what newer turns say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from turnmark_events.errors import Refused
from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.model import (
    Add,
    Batch,
    Edit,
    Merge,
    Move,
    Pin,
    Retire,
    Revise,
    ShownBlock,
    Split,
    SplitPart,
    Unpin,
)
from turnmark_memory.succession import UNKNOWN, Witnesses
from turnmark_memory.topic_path import CORE, topic_path
from turnmark_memory.words import clean_title, words_problem

_REASON_LIMIT_CHARACTERS: Final = 500
_OUTDATED: Final = "newer turns say otherwise"


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """The edit at `index` of the answer can't be used, for `reason`, a sentence for the writer."""

    index: int
    reason: str


class Relations(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller knows of the memory as it is now.

    `block` gives a block by id or alias as it stands (None: gone or superseded). `by_person`
    tells whether a person wrote or reworded it. `on_sibling` tells, for a block's cites, whether
    one of them is neither an ancestor of the batch's tip nor of an unrelated conversation.
    `witnesses` know who said what they cite, and when.
    """

    block: Callable[[str], ShownBlock | None]
    by_person: Callable[[str], bool]
    on_sibling: Callable[[Sequence[str]], bool]
    witnesses: Witnesses = UNKNOWN


class Validated(msgspec.Struct, frozen=True, kw_only=True):
    """The edits to apply, in order, and what became of the others."""

    edits: tuple[Edit, ...]
    rejections: tuple[Rejection, ...] = ()
    dropped: tuple[Rejection, ...] = ()


class _Reject(Exception):
    """The edit can't be used; the message is the reason."""


class _Drop(_Reject):
    """The edit is left out without asking again."""


def validate(edits: Sequence[Edit], batch: Batch, *, relations: Relations) -> Validated:
    """Returns the edits that may be applied, with a reason for each of the others.

    Pure; asks `relations` once or twice per block that an edit names.
    """
    judge = _Judge(batch, relations)
    rejections: list[Rejection] = []
    dropped: list[Rejection] = []
    for index, edit in enumerate(edits):
        try:
            judge.accept(index, edit)
        except _Drop as drop:
            dropped.append(Rejection(index=index, reason=str(drop)))
        except (_Reject, Refused) as problem:
            rejections.append(Rejection(index=index, reason=str(problem)))
    return Validated(
        edits=tuple(judge.accepted), rejections=tuple(rejections), dropped=tuple(dropped)
    )


class _Judge:
    """Goes through one answer; knows what earlier edits of it took."""

    def __init__(self, batch: Batch, relations: Relations) -> None:
        self._relations = relations
        self._shown = {block.block: block for block in batch.blocks}
        self._labels = {turn.label: turn.label for turn in batch.turns}
        by_id: dict[str, set[str]] = {}
        for turn in batch.turns:
            by_id.setdefault(turn.id, set()).add(turn.label)
        for name, labels in by_id.items():
            if len(labels) == 1:
                self._labels.setdefault(name, next(iter(labels)))
        self._changed: dict[str, int] = {}
        self._places: dict[int, int] = {}
        self.accepted: list[Edit] = []

    def accept(self, index: int, edit: Edit) -> None:
        """Takes the edit in its final form, or raises."""
        final, blocks = self._final(edit)
        for name in blocks:
            if name in self._changed:
                raise _Reject(
                    f"the block {name} is changed by edit {self._changed[name]} already; "
                    "make it one edit"
                )
        self._changed.update(dict.fromkeys(blocks, index))
        if not isinstance(final, tuple):
            final = (final,)
        if not isinstance(edit, Retire):
            self._places[index] = len(self.accepted)
        self.accepted += final

    def _final(self, edit: Edit) -> tuple[Edit | tuple[Edit, ...], tuple[str, ...]]:
        """Returns the edit as it will be applied and the blocks that it changes."""
        match edit:
            case Add():
                return self._add(edit), ()
            case Revise():
                return self._revise(edit)
            case Retire():
                return self._retire(edit)
            case Move():
                block = self._own(edit.block)
                final = Move(
                    block=block.block, topic=_path(edit.topic), heading=_heading(edit.heading)
                )
                return final, (block.block,)
            case Merge():
                return self._merge(edit)
            case Split():
                return self._split(edit)
            case Pin() | Unpin():
                raise _Reject("pinning is for a person; leave `pin` and `unpin` out")

    def _add(self, edit: Add) -> Add:
        _check_words(edit.text)
        return Add(
            topic=_path(edit.topic),
            heading=_heading(edit.heading),
            text=edit.text,
            cites=self._cited(edit.cites, ()),
        )

    def _revise(self, edit: Revise) -> tuple[Edit | tuple[Edit, ...], tuple[str, ...]]:
        block = self._seen(edit.block, edit.expect)
        _check_words(edit.text)
        cites = self._cited(edit.cites, block.cites)
        own = tuple(label for label in cites if label in self._labels)
        if self._relations.on_sibling(block.cites):
            if not own:
                problem = f"the block {block.block} rests on another branch, and so does the change"
                raise _Drop(problem)
            # An alternative: it rests on this branch alone, and the other branch's block stays.
            return self._beside(block, edit.text, own), ()
        said_again = edit.text == block.text
        if own and not said_again and self._is_foreign(own, block):
            return self._beside(block, edit.text, own), ()
        if not said_again and self._relations.witnesses.is_older(cites, block.cites):
            if not own:
                raise _Reject(f"the block {block.block} rests on newer turns; go on citing them")
            return self._as_history(block, edit.text, own), ()
        final = Revise(block=block.block, text=edit.text, cites=cites, expect=block.hash)
        return final, (block.block,)

    def _beside(self, block: ShownBlock, text: str, cites: tuple[str, ...]) -> Add:
        return Add(topic=block.topic, heading=block.heading, text=text, cites=cites)

    def _as_history(self, block: ShownBlock, text: str, cites: tuple[str, ...]) -> tuple[Edit, ...]:
        """Returns an addition that is superseded from the first: what held before the block."""
        added = self._beside(block, text, cites)
        new = f"{NEW_BLOCK}{len(self.accepted)}"
        return added, Retire(block=new, reason=_OUTDATED, successor=block.block)

    def _is_foreign(self, labels: Sequence[str], block: ShownBlock) -> bool:
        return self._relations.witnesses.is_foreign(labels, block.cites, block.topic)

    def _retire(self, edit: Retire) -> tuple[Edit | tuple[Edit, ...], tuple[str, ...]]:
        reason = " ".join(edit.reason.split())[:_REASON_LIMIT_CHARACTERS]
        if not reason:
            raise _Reject("`retire` needs a reason")
        successor = None if edit.successor is None else self._successor(edit.successor)
        if edit.block.startswith(NEW_BLOCK):
            return self._retire_own(edit.block, reason, successor), ()
        block = self._own(edit.block, edit.expect)
        if successor == block.block:
            raise _Reject(f"the block {block.block} can't be its own successor")
        evidence = self._evidence(successor)
        if successor is not None and self._relations.on_sibling(evidence):
            raise _Drop(f"what is to succeed {block.block} rests on another branch")
        if self._is_foreign(evidence, block):
            raise _Drop(f"the block {block.block} is what somebody else said; it stays")
        if self._relations.witnesses.is_older(evidence, block.cites):
            return self._outdated(block, successor), ()
        final = Retire(block=block.block, reason=reason, successor=successor, expect=block.hash)
        return final, (block.block,)

    def _retire_own(self, name: str, reason: str, successor: str | None) -> Retire:
        """Returns the end of a block that this answer adds: it held until later in the batch."""
        block = self._successor(name)
        if successor in (None, block) or not self._is_addition(block):
            raise _Reject(f"{name!r} can only be an earlier `add` that another block succeeds")
        return Retire(block=block, reason=reason, successor=successor)

    def _outdated(self, block: ShownBlock, successor: str | None) -> Retire:
        """Returns the reverse of a retirement by older evidence: what is new is history at once."""
        if successor is None or not self._is_addition(successor):
            raise _Drop(f"the block {block.block} rests on newer turns; it stays")
        return Retire(block=successor, reason=_OUTDATED, successor=block.block)

    def _is_addition(self, name: str) -> bool:
        return name.startswith(NEW_BLOCK) and isinstance(self._named(name), Add)

    def _named(self, name: str) -> Edit:
        return self.accepted[int(name.removeprefix(NEW_BLOCK))]

    def _evidence(self, successor: str | None) -> tuple[str, ...]:
        """Returns the turns that a retirement rests on: its successor's, else the whole batch."""
        if successor is None:
            return tuple(dict.fromkeys(self._labels.values()))
        if successor.startswith(NEW_BLOCK):
            return _cites_of(self._named(successor), self._relations.block)
        block = self._relations.block(successor)
        return () if block is None else block.cites

    def _successor(self, name: str) -> str:
        if name.startswith(NEW_BLOCK):
            place = name.removeprefix(NEW_BLOCK)
            number = int(place) if place.isascii() and place.isdigit() else -1
            if number not in self._places:
                raise _Reject(f"the successor {name!r} names no usable earlier edit")
            return f"{NEW_BLOCK}{self._places[number]}"
        block = self._relations.block(name.removeprefix("^"))
        if block is None:
            raise _Reject(f"there is no block {name[:40]!r} that could be the successor")
        return block.block

    def _merge(self, edit: Merge) -> tuple[Edit, tuple[str, ...]]:
        _check_words(edit.text)
        blocks = {block.block: block for block in map(self._own, edit.blocks)}
        if len(blocks) < 2:  # noqa: PLR2004 -- a merge is of two or more
            raise _Reject("`merge` needs at least two different blocks")
        final = Merge(
            blocks=tuple(blocks),
            text=edit.text,
            topic=None if edit.topic is None else _path(edit.topic),
            heading=_heading(edit.heading),
        )
        return final, tuple(blocks)

    def _split(self, edit: Split) -> tuple[Edit, tuple[str, ...]]:
        block = self._own(edit.block)
        if len(edit.parts) < 2:  # noqa: PLR2004 -- a split leaves two or more
            raise _Reject("`split` needs at least two parts")
        parts: list[SplitPart] = []
        for part in edit.parts:
            _check_words(part.text)
            parts.append(SplitPart(text=part.text, cites=self._cited(part.cites, block.cites)))
        lost = set(block.cites).difference(*(part.cites for part in parts))
        if lost:
            raise _Reject(
                f"the parts must cite together what the block cites; {_list(lost)} is lost"
            )
        return Split(block=block.block, parts=tuple(parts)), (block.block,)

    def _own(self, name: str, expect: str | None = None) -> ShownBlock:
        """Returns a block that this batch may take away or rearrange."""
        block = self._seen(name, expect)
        if self._relations.on_sibling(block.cites):
            raise _Drop(f"the block {block.block} rests on another branch of the conversation")
        return block

    def _seen(self, name: str, expect: str | None) -> ShownBlock:
        """Returns the block as it is now, if it is the one that the writer was shown."""
        block = self._relations.block(name.removeprefix("^"))
        if block is None:
            raise _Reject(f"there is no block {name[:40]!r}; use an id that you were shown")
        if self._relations.by_person(block.block) or not block.cites:
            raise _Reject(f"the block {block.block} is a person's; leave it as it is")
        shown = self._shown.get(block.block)
        if shown is None:
            raise _Reject(f"the block {block.block} was not shown to you; leave it as it is")
        if block.hash != shown.hash or expect not in (None, shown.hash):
            raise _Reject(f"the block {block.block} is not as you were shown it; leave it for now")
        return block

    def _cited(self, cites: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
        """Returns the labels of `cites`, each of the batch or among `known`."""
        names = [cite.removeprefix("[^").removesuffix("]") for cite in cites]
        labels = {name: self._labels.get(name, name if name in known else None) for name in names}
        unknown = [name for name, label in labels.items() if label is None]
        if unknown:
            raise _Reject(f"{_list(unknown)} is no turn of this batch; cite turns you were given")
        if not labels:
            raise _Reject("the edit cites nothing; name the turns that it rests on")
        return tuple(dict.fromkeys(label for label in labels.values() if label is not None))


def _cites_of(edit: Edit, block_of: Callable[[str], ShownBlock | None]) -> tuple[str, ...]:
    """Returns the turns that stand behind what an edit makes."""
    match edit:
        case Add() | Revise():
            return edit.cites
        case Split():
            return tuple(cite for part in edit.parts for cite in part.cites)
        case Merge():
            blocks = map(block_of, edit.blocks)
            return tuple(cite for block in blocks if block is not None for cite in block.cites)
        case _:
            block = block_of(edit.block)
            return () if block is None else block.cites


def _path(topic: str) -> str:
    path = topic_path(topic)
    if path == CORE:
        raise _Reject("the core page is a person's; choose people/…, projects/… or subjects/…")
    return path


def _heading(heading: str | None) -> str | None:
    return None if heading is None or not heading.strip() else clean_title(heading)


def _check_words(text: str) -> None:
    problem = words_problem(text)
    if problem is not None:
        raise _Reject(f"the text {problem}")


def _list(names: Sequence[str] | set[str]) -> str:
    return ", ".join(repr(name[:40]) for name in sorted(names)[:5])
