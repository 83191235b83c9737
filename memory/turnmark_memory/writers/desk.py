"""Puts what was said into edits: new blocks, cites for what is known, ends for what is replaced."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from typing import cast

import msgspec

from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.model import Add, Edit, Retire, Revise, ShownBlock
from turnmark_memory.writers.filing import Place
from turnmark_memory.writers.gists import gist_of
from turnmark_memory.writers.listed import listed
from turnmark_memory.writers.quoting import quoted, unquoted
from turnmark_memory.writers.reading import Said
from turnmark_memory.writers.replacing import Fact, Pile, repeats
from turnmark_memory.writers.sameness import says_the_same
from turnmark_memory.writers.sentences import is_chinese, split_sentences
from turnmark_memory.writers.standing_facts import left_of, parts_of
from turnmark_memory.writers.telling import Told, joined

_REPLACED = "newer turns say otherwise"
_ASKED = re.compile(r"‘(?P<question>.*)’")
# A frame goes on behind the name: "Robin asks", “李雷要求”.
_AFTER_NAME = re.compile(r"[ (（要]")
_NO_NAME = listed("user the 用户 助手 notes") | {""}


class _Draft(msgspec.Struct):
    """A block in the making; `parts` are what it was joined from, with the turns behind each."""

    place: Place
    label: str
    told: Told
    last: int
    cites: list[str]
    parts: list[Said]
    replaced_by: int | None = None

    def add(self) -> Add:
        """Returns the edit that adds it."""
        return Add(
            topic=self.place.topic,
            heading=self.place.heading,
            text=self.told.text(),
            cites=_once(self.cites),
        )


def edits_of(
    said: Sequence[Said], blocks: Sequence[ShownBlock], beside: Container[str] = ()
) -> Iterator[Edit]:
    """Yields an add for what is new, cites for what is said again, ends for what is replaced.

    Nothing pointed at the blocks `beside`: they say nothing of how rare a word is.
    """
    desk = _Desk(blocks, beside)
    for one in said:
        desk.take(one)
    yield from map(_Draft.add, desk.drafts)
    for block in desk.shown.values():
        if edit := desk.change(block) or desk.revision(block):
            yield edit
    for number, draft in enumerate(desk.drafts):
        if draft.replaced_by is not None:
            yield _retired(f"{NEW_BLOCK}{number}", draft.replaced_by)


def _retired(block: str, successor: int, expect: str | None = None) -> Retire:
    """Returns the end of a block; the adds come first, so a draft's number is its edit's."""
    return Retire(block=block, reason=_REPLACED, successor=f"{NEW_BLOCK}{successor}", expect=expect)


class _Desk:
    """The blocks that were shown and those in the making."""

    def __init__(self, blocks: Sequence[ShownBlock], beside: Container[str]) -> None:
        self._beside = beside
        self.shown = {block.block: block for block in blocks}
        self.drafts: list[_Draft] = []
        self._sentences: dict[tuple[str, str], str] = {}
        self._again: dict[str, list[str]] = {}
        self._said: dict[tuple[str, str], _Draft] = {}
        self._pile = Pile()
        self._ended_by: dict[str, int] = {}
        self._parts: dict[str, list[str]] = {}
        for block in blocks:
            speaker, words = unquoted(block.text)
            self._parts[block.block] = parts_of(words)
            for place, part in enumerate(self._parts[block.block]):
                self._add(block, place, part)
            for sentence in (words, *split_sentences(words)):
                self._sentences.setdefault((speaker, _normal(sentence)), block.block)

    def take(self, one: Said) -> None:
        """Finds the place of one thing said: a cite, a part of a paragraph, or a new block."""
        key = (one.told.speaker, _normal(one.told.words))
        if name := self._sentences.get(key):
            self._again.setdefault(name, []).extend(one.cites)
        elif draft := self._said.get(key):
            draft.cites.extend(one.cites)
        elif one.agreed and (draft := self._proposed(one)):
            draft.told, draft.place = one.told, one.place
            draft.cites.extend(one.cites)
        elif not one.changes and self._is_known(one):
            return
        elif draft := self._put(one):
            self._said[key] = draft

    def _proposed(self, one: Said) -> _Draft | None:
        """Returns the draft that holds what was agreed to, and nothing else."""
        words = _normal(one.told.words)
        for draft in self.drafts:
            said = draft.told.said or draft.told
            if draft.label in one.cites and words in _normal(said.words):
                return draft if len(words) * 2 > len(_normal(said.words)) else None
        return None

    def _is_known(self, one: Said) -> bool:
        """Adds a cite where a block of the same topic, or a draft, says the same in other words."""
        words = one.told.words
        for block in self.shown.values():
            same_place = one.restates or block.topic == one.place.topic
            holds = same_place and block.block not in self._ended_by
            if holds and says_the_same(words, block.text, restates=one.restates):
                self._again.setdefault(block.block, []).extend(one.cites)
                return True
        for draft in self.drafts:
            same_speaker = one.restates or draft.told.speaker == one.told.speaker
            if (
                draft.place.topic == one.place.topic
                and same_speaker
                and draft.label != one.turn.label
                and says_the_same(words, draft.told.words, restates=one.restates)
            ):
                draft.cites.extend(one.cites)
                return True
        return False

    def _put(self, one: Said) -> _Draft | None:
        new = _fact_said(one)
        old = None if one.restates else self._pile.replaced_by(new)
        if old is not None and repeats(new.gist, old.gist):
            return self._cite(old, one)
        draft, number = self._draft_of(one)
        if old is not None:
            self._end(old, new, number)
        self._pile.add(new)
        return draft

    def _cite(self, old: Fact, one: Said) -> _Draft | None:
        """Lets a fact, shown or in the making, cite the turn that says it again."""
        if isinstance(old.key, _Part):
            self._again.setdefault(old.key.block, []).extend(one.cites)
            return None
        draft = next(draft for draft in self.drafts if old.key in draft.parts)
        draft.cites.extend(one.cites)
        return draft

    def _draft_of(self, one: Said) -> tuple[_Draft, int]:
        """Returns the draft that holds `one` now: the last one, or a new one; and its number."""
        last = self.drafts[-1] if self.drafts else None
        if last is not None and (both := _together(last, one)):
            last.told, last.last = both, one.number
            last.cites.extend(one.cites)
            last.parts.append(one)
            return last, len(self.drafts) - 1
        draft = _Draft(one.place, one.turn.label, one.told, one.number, list(one.cites), [one])
        self.drafts.append(draft)
        return draft, len(self.drafts) - 1

    def _end(self, old: Fact, new: Fact, successor: int) -> None:
        """Notes that a fact, shown or in the making, is put out of date by a draft."""
        if isinstance(old.key, _Part):
            self._end_shown(old, new, successor)
            return
        number, found = next(
            (n, draft) for n, draft in enumerate(self.drafts) if old.key in draft.parts
        )
        if number == successor:
            return
        self._pile.remove(old)
        rest = [part for part in found.parts if part is not old.key]
        told = _joined(rest)
        if told is None:  # nothing else is in it, or nothing that stands alone
            found.replaced_by = successor
            return
        found.told, found.parts = told, rest
        one = cast("Said", old.key)
        self.drafts.append(
            _Draft(
                one.place, one.turn.label, one.told, one.number, list(one.cites), [one], successor
            )
        )

    def _end_shown(self, old: Fact, new: Fact, successor: int) -> None:
        part = cast("_Part", old.key)
        block, parts = self.shown[part.block], self._parts[part.block]
        self._pile.remove(old)
        self._ended_by[part.block] = successor
        parts[part.place] = left_of(parts[part.place], new.gist)
        if parts[part.place]:
            self._add(block, part.place, parts[part.place])

    def _add(self, block: ShownBlock, place: int, part: str) -> None:
        self._pile.add(_fact_of(block, place, part), counts=block.block not in self._beside)

    def change(self, block: ShownBlock) -> Retire | Revise | None:
        """Returns the end of a block, or its words without the part that holds no longer."""
        successor = self._ended_by.get(block.block)
        if successor is None:
            return None
        left = "".join(self._parts[block.block]).strip()
        if not left:
            return _retired(block.block, successor, block.hash)
        speaker, words = unquoted(block.text)
        if not _may_be_of(self.drafts[successor], block):
            return None
        cites = [*block.cites, *self._again.get(block.block, []), *self.drafts[successor].cites]
        return Revise(
            block=block.block,
            text=quoted(speaker, left, chinese=is_chinese(words)) if speaker else left,
            cites=_once(cites),
            expect=block.hash,
        )

    def revision(self, block: ShownBlock) -> Revise | None:
        """Returns what lets `block` cite what was said again, None where it does already."""
        cites = self._again.get(block.block, [])
        if set(cites) <= set(block.cites):
            return None
        return Revise(
            block=block.block,
            text=block.text,
            cites=_once([*block.cites, *cites]),
            expect=block.hash,
        )


class _Part(msgspec.Struct, frozen=True):
    """A sentence of a block that was shown, by its place."""

    block: str
    place: int


def _may_be_of(draft: _Draft, block: ShownBlock) -> bool:
    """Returns whether a block may rest on words of whoever said a draft.

    What somebody else said is not to be reworded: the rest of it would stand there twice.
    """
    name = (draft.parts[0].turn.speaker_name or "").split(" ")[0].casefold()
    return name in block.text.casefold() or block.topic.startswith("projects/")


def _fact_of(block: ShownBlock, place: int, part: str) -> Fact:
    speaker, words = unquoted(block.text)
    around = "" if part == words else words
    return Fact(
        gist=gist_of(part, f"{around} {_question_in(speaker)}"),
        topic=block.topic,
        who=_names_in(block.topic, speaker),
        key=_Part(block.block, place),
    )


def _fact_said(one: Said) -> Fact:
    return Fact(
        gist=gist_of(one.told.words, f"{one.about} {_question_in(one.told.speaker)}"),
        topic=one.place.topic,
        who=_names_in(one.place.topic, one.turn.speaker_name or ""),
        label=one.turn.label,
        key=one,
    )


def _question_in(speaker: str) -> str:
    """Returns the question that a frame gives, "" where it gives none."""
    found = _ASKED.search(speaker)
    return found["question"] if found else ""


def _names_in(topic: str, speaker: str) -> frozenset[str]:
    """Returns the first names of whom a fact is about and of who said it, as far as known."""
    about = topic.partition("people/")[2].split("-")[0]
    return frozenset({about, _AFTER_NAME.split(speaker)[0].casefold()} - _NO_NAME)


def _joined(parts: Sequence[Said]) -> Told | None:
    """Returns parts of a draft as one paragraph, None if there are none or they don't fit."""
    told = parts[0].told if parts else None
    for part in parts[1:]:
        told = joined(told, part.told) if told is not None else None
    return told


def _together(last: _Draft, one: Said) -> Told | None:
    """Returns the paragraph of the last draft and what leans on it; facts end by themselves."""
    if last.label != one.turn.label or last.place.topic != one.place.topic:
        return None
    is_next = one.number == last.last + 1
    return joined(last.told, one.told) if is_next and one.leans else None


def _normal(words: str) -> str:
    """Returns `words` as letters and digits alone: case, spaces and marks make no new statement."""
    return "".join(sign for sign in words.casefold() if sign.isalnum())


def _once(labels: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(labels))
