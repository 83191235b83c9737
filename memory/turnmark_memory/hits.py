"""What a recall answers: hits with their provenance, each thing said once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from turnmark_memory.requests import HitKind
from turnmark_memory.search_text import terms_of

BranchLabel = Literal["own", "shared", "other-branch", "other-session"]

_NEARLY_ALL = 0.8
"""The share of a turn's words from which a block that cites it leaves nothing of it unsaid."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where a hit comes from: a turn, and the line of the archive that holds its words."""

    turn: str
    label: str
    session: str
    speaker: str
    time: str
    path: str
    line: int


class Hit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A block or turn that answers; `ref` is a block id or a label.

    `superseded_by` of a turn is the block that holds instead of all that rested on it.
    """

    ref: str
    kind: HitKind
    text: str
    score: float
    branch: BranchLabel
    sources: tuple[Source, ...]
    topic: str | None = None
    session: str | None = None
    speaker: str | None = None
    time: str | None = None
    superseded_by: str | None = None


def collapsed(hits: Sequence[Hit]) -> list[Hit]:
    """Returns the hits, best first, without those that say again what another one says.

    A block stands for a turn that it cites and quotes, at the better one's place, and comes before
    what it superseded. Turns in the same words stay: they were said at different times, and may lie
    on different branches.
    """
    quoting = {
        source.label: hit for hit in reversed(hits) if hit.kind == "block" for source in hit.sources
    }
    blocks = {hit.ref: hit for hit in hits if hit.kind == "block"}
    kept: dict[str, Hit] = {}
    for hit in hits:
        successor = blocks.get(hit.superseded_by or "")
        if successor is not None:
            kept.setdefault(successor.ref, msgspec.structs.replace(successor, score=hit.score))
        block = quoting.get(hit.ref) if hit.kind == "turn" else None
        if block is not None and quotes(block.text, hit.text):
            kept.setdefault(block.ref, msgspec.structs.replace(block, score=hit.score))
            continue
        kept.setdefault(hit.ref, hit)
    return list(kept.values())


def quotes(block: str, turn: str) -> bool:
    """Tells whether a block says what a turn says, nearly in its words."""
    said, wanted = set(terms_of(block)), set(terms_of(turn))
    return len(said & wanted) >= _NEARLY_ALL * len(wanted)
