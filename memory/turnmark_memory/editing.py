"""Edits on purpose: what a person, or an agent for them, asks to be changed in so many words.

It is the user's act, like a paragraph changed by hand. So the blocks that get words from it (added,
revised, merged, split) are a person's from then on: no automatic edit changes them, they need no
cites, and no old wording is kept beside them; the revision's record has it, and can be undone. A
block that is only moved, pinned or taken out keeps its origin. Turns that lose their last block are
parked as removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from turnmark_events.errors import Refused, Stale
from turnmark_memory.citing import Citing
from turnmark_memory.compose import Composed, Work, compose
from turnmark_memory.install import BatchWork, Installed, Installer
from turnmark_memory.model import Add, Edit, Merge, Revise, Split
from turnmark_memory.requests import EditRequest
from turnmark_memory.shelf import Shelf
from turnmark_memory.words import WORDS_LIMIT_CHARACTERS
from turnmark_session_store.masking import mask_secrets


class Edited(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.edit`'s answer: the blocks made or changed, and the revision that holds them."""

    blocks: list[str]
    revision: int


class Editing:
    """Carries a person's edits out, all of them or none."""

    def __init__(self, shelf: Shelf, installer: Installer, citing: Citing) -> None:
        self._shelf = shelf
        self._installer = installer
        self._citing = citing

    async def edit(self, asked: EditRequest) -> Edited:
        """Applies `asked.edits` in one revision; edits that change nothing make none.

        Raises:
            Stale: if `expect` is not the memory's revision, or a block is not as an edit expects.
            NotFound: if a block or a cited turn isn't there.
            Refused: if there is nothing to do, or a text, path or cite can't be used.
            Forgotten: if a cited turn was forgotten.
            Unavailable: if the disk fails.
        """
        if not asked.edits:
            raise Refused("edits is empty; give at least one edit")
        cited = await self._citing.labels(cite for edit in asked.edits for cite in cites_of(edit))
        edits = tuple(_prepared(edit, cited) for edit in asked.edits)
        kinds = dict.fromkeys(type(edit).__name__.lower() for edit in edits)
        installed = await self.install(
            edits, cause=f"edit: {', '.join(kinds)}", expect=asked.expect
        )
        blocks = [block for done in installed.composed.done for block in done.blocks]
        return Edited(blocks=blocks, revision=installed.revision)

    async def install(
        self,
        edits: Sequence[Edit],
        *,
        cause: str,
        expect: int | None = None,
        batch: int | None = None,
    ) -> Installed:
        """Installs a person's edits whose cites are labels; `batch` is settled with them.

        Raises:
            TurnmarkError: what keeps the edits from being carried out; nothing is changed then.
        """
        work = Work(name=f"person/{secrets.token_hex(8)}", edits=tuple(edits), by_person=True)
        batches = [] if batch is None else [BatchWork(batch=batch, work=work, turns=1)]
        make = composer(self._shelf, work, cause=cause, expect=expect, turns=len(batches) or None)
        return await self._installer.carry_out(make, batches)


def composer(
    shelf: Shelf, work: Work, *, cause: str, expect: int | None = None, turns: int | None = None
) -> Callable[[int], Composed]:
    """Returns what composes an install of `work` alone, and raises what keeps it from being done.

    `expect` is the revision that must be the newest one.
    """

    def make(revision: int) -> Composed:
        if expect is not None and expect != revision - 1:
            raise Stale(
                f"the memory is at revision {revision - 1}, not {expect}; look at the blocks "
                "again and decide anew",
                revision=revision - 1,
            )
        composed = compose(
            shelf, [work], revision=revision, cause=cause, at=datetime.now(UTC), turns=turns
        )
        error = composed.done[0].error
        if error is not None:
            raise error
        return composed

    return make


def cites_of(edit: Edit) -> tuple[str, ...]:
    """Returns what an edit names as evidence."""
    if isinstance(edit, Add | Revise):
        return edit.cites
    if isinstance(edit, Split):
        return tuple(cite for part in edit.parts for cite in part.cites)
    return ()


def checked_words(text: str) -> str:
    """Returns the words of a person with secrets masked, as those of any turn.

    Raises:
        Refused: if they are too many for one block.
    """
    if len(text) > WORDS_LIMIT_CHARACTERS:
        raise Refused(
            f"the text has {len(text)} characters; a block has at most {WORDS_LIMIT_CHARACTERS}, "
            "so give several edits"
        )
    return mask_secrets(text)[0]


def _prepared(edit: Edit, cited: dict[str, str]) -> Edit:
    """Returns the edit with labels for cites and words that may be stored."""

    def labels(cites: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cited[cite] for cite in cites))

    if isinstance(edit, Add | Revise):
        return msgspec.structs.replace(
            edit, text=checked_words(edit.text), cites=labels(edit.cites)
        )
    if isinstance(edit, Merge):
        return msgspec.structs.replace(edit, text=checked_words(edit.text))
    if isinstance(edit, Split):
        parts = tuple(
            msgspec.structs.replace(part, text=checked_words(part.text), cites=labels(part.cites))
            for part in edit.parts
        )
        return msgspec.structs.replace(edit, parts=parts)
    return edit
