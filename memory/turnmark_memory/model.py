"""What memory is made of: evidence, blocks, and the edits that a writer may ask for."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One recordable turn as the archive, a writer and a footnote see it (secrets masked).

    `key` is the store's integer key: it orders turns topologically and never leaves the process.
    `label` is `s-` + 12 or more hex digits of BLAKE2b over (`namespace`, `id`). `after` is the
    label of the recordable turn that this one was said after, empty if there is none, None if
    nobody knows. `title` is what its session is called now, None where nobody named it; the archive
    does not keep it.
    """

    key: int
    namespace: str
    id: str
    label: str
    session: str
    agent: str
    project: str | None
    role: Literal["user", "assistant"]
    speaker_id: str | None
    speaker_name: str | None
    time: datetime
    text: str
    tokens: int
    after: str | None = None
    title: str | None = None


class _Edit(msgspec.Struct, frozen=True, kw_only=True, tag_field="op", forbid_unknown_fields=True):
    pass


class Add(_Edit, frozen=True, kw_only=True, tag="add"):
    """A new block at the end of `heading` in `topic`; `cites` are labels or turn ids."""

    topic: str
    text: str
    cites: tuple[str, ...]
    heading: str | None = None


class Revise(_Edit, frozen=True, kw_only=True, tag="revise"):
    """New words for a block; `expect` is the hash of the words it was shown with."""

    block: str
    text: str
    cites: tuple[str, ...]
    expect: str | None = None


class Retire(_Edit, frozen=True, kw_only=True, tag="retire"):
    """Takes a block out, for `reason`; its `successor`, if any, says what holds now."""

    block: str
    reason: str
    successor: str | None = None
    expect: str | None = None


class Move(_Edit, frozen=True, kw_only=True, tag="move"):
    """Puts a block, words and id unchanged, at the end of another heading."""

    block: str
    topic: str
    heading: str | None = None


class Merge(_Edit, frozen=True, kw_only=True, tag="merge"):
    """One block in place of several: the first one's id, the others stay as aliases."""

    blocks: tuple[str, ...]
    text: str
    topic: str | None = None
    heading: str | None = None


class SplitPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the blocks that a split leaves."""

    text: str
    cites: tuple[str, ...]


class Split(_Edit, frozen=True, kw_only=True, tag="split"):
    """Several blocks in place of one: the first part keeps the id."""

    block: str
    parts: tuple[SplitPart, ...]


class Pin(_Edit, frozen=True, kw_only=True, tag="pin"):
    """Embeds a block in the person's part of `topics/core.md`."""

    block: str


class Unpin(_Edit, frozen=True, kw_only=True, tag="unpin"):
    """Takes an embed out of the person's part of `topics/core.md`."""

    block: str


Edit = Add | Revise | Retire | Move | Merge | Split | Pin | Unpin


class ShownBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A block as a writer is shown it: `hash` must come back with an edit of it."""

    block: str
    topic: str
    heading: str | None
    text: str
    cites: tuple[str, ...]
    hash: str


class Nothing(msgspec.Struct, frozen=True, kw_only=True, tag="nothing"):
    """A writer's honest answer that a batch holds nothing worth keeping."""

    reason: str


class Edits(msgspec.Struct, frozen=True, kw_only=True, tag="edits"):
    """A writer's answer: what to change."""

    edits: tuple[Edit, ...]


Answer = Edits | Nothing


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What a writer is asked to distil: turns oldest first, and the blocks that matter for them.

    `topics` are (topic, about). `usual` are those of `subjects/` where what was said before in this
    session stands, or else by those who speak, the largest first: (topic, its share of all that is
    kept of them). `beside` are the ids of those blocks that stand on the pages of who speaks and of
    what is spoken of, and that nothing in the turns pointed at.
    """

    turns: tuple[Evidence, ...]
    blocks: tuple[ShownBlock, ...]
    topics: tuple[tuple[str, str], ...]
    usual: tuple[tuple[str, float], ...] = ()
    beside: frozenset[str] = frozenset()
