"""Puts what was said into edits: new blocks, cites for what is known, ends for what is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from turnmark_memory.apply import NEW_BLOCK
from turnmark_memory.model import Add, Edit, Retire, Revise, ShownBlock
from turnmark_memory.writers.filing import Place
from turnmark_memory.writers.quoting import unquoted
from turnmark_memory.writers.reading import Said
from turnmark_memory.writers.sameness import gives_another_value, nearest, says_the_same
from turnmark_memory.writers.sentences import split_sentences
from turnmark_memory.writers.telling import Told, joined

_REPLACED = "newer turns say otherwise"


class _Draft(msgspec.Struct):
    """A block in the making."""

    place: Place
    label: str
    told: Told
    last: int
    cites: list[str]
    replaces: list[str] = []
    replaced_by: int | None = None

    def add(self) -> Add:
        """Returns the edit that adds it."""
        return Add(
            topic=self.place.topic,
            heading=self.place.heading,
            text=self.told.text(),
            cites=_once(self.cites),
        )


def edits_of(said: Sequence[Said], blocks: Sequence[ShownBlock]) -> Iterator[Edit]:
    """Yields an add for what is new, cites for what is said again, ends for what is replaced."""
    desk = _Desk(blocks)
    for one in said:
        desk.take(one)
    yield from map(_Draft.add, desk.drafts)
    for number, draft in enumerate(desk.drafts):
        for name in draft.replaces:
            yield _retired(name, number, desk.shown[name].hash)
    for number, draft in enumerate(desk.drafts):
        if draft.replaced_by is not None:
            yield _retired(f"{NEW_BLOCK}{number}", draft.replaced_by)
    replaced = desk.replaced()
    for block in blocks:
        if block.block not in replaced and (revision := desk.revision(block)):
            yield revision


def _retired(block: str, successor: int, expect: str | None = None) -> Retire:
    """Returns the end of a block; the adds come first, so a draft's number is its edit's."""
    return Retire(block=block, reason=_REPLACED, successor=f"{NEW_BLOCK}{successor}", expect=expect)


class _Desk:
    """The blocks that were shown and those in the making."""

    def __init__(self, blocks: Sequence[ShownBlock]) -> None:
        self.shown = {block.block: block for block in blocks}
        self.drafts: list[_Draft] = []
        self._sentences: dict[tuple[str, str], str] = {}
        self._again: dict[str, list[str]] = {}
        self._said: dict[tuple[str, str], _Draft] = {}
        for block in blocks:
            speaker, words = unquoted(block.text)
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
        else:
            self._said[key] = self._put(one)

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
            if same_place and says_the_same(words, block.text, restates=one.restates):
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

    def _put(self, one: Said) -> _Draft:
        last = self.drafts[-1] if self.drafts else None
        if last is not None and (both := _together(last, one)):
            last.told, last.last = both, one.number
            last.cites.extend(one.cites)
            if one.changes:
                self._replace(one, last, len(self.drafts) - 1)
            return last
        draft = _Draft(one.place, one.turn.label, one.told, one.number, list(one.cites), [])
        if one.changes:
            self._replace(one, draft, len(self.drafts))
        else:
            self._update(one, draft, len(self.drafts))
        self.drafts.append(draft)
        return draft

    def _update(self, one: Said, draft: _Draft, number: int) -> None:
        """Notes what says the same as `one`, but for a value that has another now."""
        words = one.told.words
        for block in self.shown.values():
            is_here = block.topic == one.place.topic and block.block not in self.replaced()
            if is_here and gives_another_value(words, block.text):
                draft.replaces.append(block.block)
                return
        for old in self.drafts:
            is_older = old.place.topic == one.place.topic and old.label != one.turn.label
            if is_older and old.replaced_by is None and gives_another_value(words, old.told.words):
                old.replaced_by = number
                return

    def _replace(self, one: Said, draft: _Draft, number: int) -> None:
        """Notes the block, shown or in the making, that `one` puts out of date."""
        topic = one.place.topic
        person = topic.partition("people/")[2].split("-")[0]
        olds = [
            (block.block, block.text)
            for block in self.shown.values()
            if (block.topic == topic or (person and person in block.text.casefold()))
            and block.block not in self.replaced()
        ]
        mine = [
            (str(place), old.told.text())
            for place, old in enumerate(self.drafts)
            if (old.place.topic == topic or (person and person in old.told.words.casefold()))
            and old.label not in one.cites
            and old.replaced_by is None
            and place != number
        ]
        texts = [text for _, text in (*olds, *mine)]
        best = nearest(one.told.words, texts, _names_of(one))
        if best is None and one.about:
            best = nearest(one.about, texts, _names_of(one))
        if best is None:
            return
        if best < len(olds):
            draft.replaces.append(olds[best][0])
        else:
            self.drafts[int(mine[best - len(olds)][0])].replaced_by = number

    def replaced(self) -> set[str]:
        return {name for draft in self.drafts for name in draft.replaces}

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


def _names_of(one: Said) -> tuple[str, ...]:
    """Returns names that all blocks of the topic share: they say nothing about sameness."""
    name = one.turn.speaker_name or ""
    return (name, one.place.topic.partition("/")[2].replace("-", " "))


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
