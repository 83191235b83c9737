"""The built-in writer: no model, no network, the same answer for the same batch.

It quotes. A block of it is what somebody said, framed by who said it, with relative dates resolved;
so it never claims what no turn supports. It keeps users' statements, and an assistant's only where
the user's next turn says yes to them. The same words said again add a cite to the block that holds
them; nothing is superseded or taken out.
"""

from __future__ import annotations

import anyio.to_thread
import msgspec

from turnmark_memory.model import (
    Add,
    Answer,
    Batch,
    Edit,
    Edits,
    Evidence,
    Nothing,
    Revise,
    ShownBlock,
)
from turnmark_memory.writers.dates import with_dates
from turnmark_memory.writers.filing import Shelf, heading_of, shelf_of, topic_of
from turnmark_memory.writers.quoting import agreed_speaker, plain, quoted, speaker_of, unquoted
from turnmark_memory.writers.sentences import split_sentences
from turnmark_memory.writers.statements import Statement, is_confirmation, statements_in

# A block is one paragraph that a person reads at a glance.
_LONGEST_BLOCK = 600
# An assistant's turn that was agreed to is cited for its gist, not copied out.
_MOST_CONFIRMED = 3

# Stands where a statement had to be cut to fit its block.
_CUT = " …"

_NOTHING_STATED = "no turn states anything worth keeping"
_NOTHING_NEW = "memory already holds all that the turns state"


class _Said(msgspec.Struct, frozen=True):
    """One statement with the turn that made it and the labels that prove it."""

    turn: Evidence
    statement: Statement
    speaker: str
    cites: tuple[str, ...]


class _Draft(msgspec.Struct):
    """A block in the making: statements of one turn that belong together."""

    topic: str
    heading: str
    label: str
    speaker: str
    chinese: bool
    words: str
    last_place: int
    cites: list[str]

    def text(self, more: str = "") -> str:
        """Returns the block's words, with `more` added."""
        return quoted(self.speaker, self.words + more, chinese=self.chinese)


class BuiltinWriter:
    """Writes without a model; see the module. Works in a thread beside the event loop."""

    name = "builtin/1"

    async def write(self, batch: Batch) -> Answer:
        """Returns the statements of `batch` as quotations. Never fails, whatever the text is."""
        return await anyio.to_thread.run_sync(self.distil, batch)

    def distil(self, batch: Batch) -> Answer:
        """Does what `write` does, blocking: about 0.3 ms of CPU a turn."""
        said: list[_Said] = []
        for number, turn in enumerate(batch.turns):
            following = batch.turns[number + 1 : number + 2]
            said += _said_in(turn, following[0] if following else None)
        edits = _edits(said, batch)
        if edits:
            return Edits(edits=edits)
        return Nothing(reason=_NOTHING_NEW if said else _NOTHING_STATED)


def _said_in(turn: Evidence, following: Evidence | None) -> list[_Said]:
    """Returns what `turn` states, if its speaker is a user or the user agreed to it."""
    if turn.role == "user":
        return [
            _Said(turn, one, speaker_of(turn, chinese=one.chinese), (turn.label,))
            for one in statements_in(turn.text)
        ]
    if following is None or not _agrees(following, turn):
        return []
    agreed = [one for one in statements_in(turn.text) if _can_be_agreed(one)]
    return [
        _Said(
            turn, one, agreed_speaker(following, chinese=one.chinese), (turn.label, following.label)
        )
        for one in agreed[:_MOST_CONFIRMED]
    ]


def _agrees(following: Evidence, turn: Evidence) -> bool:
    same_session = (following.namespace, following.session) == (turn.namespace, turn.session)
    return same_session and following.role == "user" and is_confirmation(following.text)


def _can_be_agreed(statement: Statement) -> bool:
    """Returns whether a statement is a decision, a plan or a fact about something else."""
    if statement.kind == "fact":
        return not statement.personal
    return statement.kind in {"decision", "plan"}


def _edits(said: list[_Said], batch: Batch) -> tuple[Edit, ...]:
    """Returns an add for what is new and one revision for each block that was said again."""
    shelf = shelf_of(batch, [one.statement for one in said])
    shown = _shown_sentences(batch.blocks)
    drafts: list[_Draft] = []
    drafted: dict[tuple[str, str], _Draft] = {}
    again: dict[str, list[str]] = {}
    for one in said:
        words = _words_of(one)
        key = (one.speaker, _normal(words))
        if block := shown.get(key):
            again.setdefault(block.block, []).extend(one.cites)
        elif key in drafted:
            drafted[key].cites.extend(one.cites)
        else:
            drafted[key] = _draft(one, words, drafts, shelf)
    adds = [
        Add(topic=draft.topic, heading=draft.heading, text=draft.text(), cites=_once(draft.cites))
        for draft in drafts
    ]
    revisions = (_said_again(block, again.get(block.block, [])) for block in batch.blocks)
    return (*adds, *(revision for revision in revisions if revision))


def _draft(one: _Said, words: str, drafts: list[_Draft], shelf: Shelf) -> _Draft:
    """Returns the draft that holds `words`: the last one if they belong there, else a new one."""
    topic, heading = topic_of(one.statement, one.turn, shelf), heading_of(one.statement)
    place, chinese = one.statement.place, one.statement.chinese
    last = drafts[-1] if drafts else None
    if last and _belongs(one, topic, heading, last):
        space = "" if chinese else " "
        gap = space if place == last.last_place + 1 else f"{space}…{space}"
        if len(last.text(gap + words)) <= _LONGEST_BLOCK:
            last.words, last.last_place = last.words + gap + words, place
            return last
    draft = _Draft(
        topic, heading, one.turn.label, one.speaker, chinese, words, place, list(one.cites)
    )
    drafts.append(draft)
    return draft


def _belongs(one: _Said, topic: str, heading: str, draft: _Draft) -> bool:
    mine = (one.turn.label, one.speaker, topic, heading, one.statement.chinese)
    return mine == (draft.label, draft.speaker, draft.topic, draft.heading, draft.chinese)


def _words_of(one: _Said) -> str:
    """Returns the statement's words with its dates, short enough for a block of its own."""
    said = plain(one.statement.text)
    dated = with_dates(said, one.turn.time)
    chinese = one.statement.chinese
    if len(quoted(one.speaker, dated, chinese=chinese)) <= _LONGEST_BLOCK:
        return dated
    over = len(quoted(one.speaker, said, chinese=chinese)) - _LONGEST_BLOCK
    return f"{said[: len(said) - over - len(_CUT)]}{_CUT}" if over > 0 else said


def _shown_sentences(blocks: tuple[ShownBlock, ...]) -> dict[tuple[str, str], ShownBlock]:
    """Returns the first block that holds a sentence, by its speaker and normal words."""
    found: dict[tuple[str, str], ShownBlock] = {}
    for block in blocks:
        speaker, words = unquoted(block.text)
        for sentence in split_sentences(words):
            found.setdefault((speaker, _normal(sentence)), block)
    return found


def _said_again(block: ShownBlock, cites: list[str]) -> Revise | None:
    """Returns the revision that lets `block` cite `cites` too, None where it does already."""
    if set(cites) <= set(block.cites):
        return None
    return Revise(
        block=block.block,
        text=block.text,
        cites=_once([*block.cites, *cites]),
        expect=block.hash,
    )


def _normal(words: str) -> str:
    """Returns `words` as letters and digits alone: case, spaces and marks make no new statement."""
    return "".join(sign for sign in words.casefold() if sign.isalnum())


def _once(labels: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(labels))
