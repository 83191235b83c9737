"""From what was ranked to hits with their provenance, as a reader at one tip sees them.

What rests only on turns that were taken back becomes no hit, however old the index is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from turnmark_memory.hits import BranchLabel, Hit, Source
from turnmark_memory.index import Index
from turnmark_memory.index_rows import microseconds
from turnmark_memory.index_schema import BlockDoc, TurnDoc
from turnmark_memory.ranking import Ranked
from turnmark_session_store.times import to_rfc3339

TurnRef = tuple[str, str]
"""A turn's key: namespace and id."""

_OWN_BOOST = 1.15
"""What brings the reader's own branch into the first `k`; there it comes before all others."""

_LONGEST_HIT_CHARS = 8_000
"""Some 2,000 tokens: a reader who wants more of one turn than that asks for it by its ref."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn lies to a reader. `only_here`: no other live branch reaches it.

    `state` is `unknown` for a turn that this store never had (a copied workspace).
    """

    state: Literal["live", "retired", "forgotten", "unknown"]
    on_path: bool
    only_here: bool
    of_session: bool

    @property
    def is_taken_back(self) -> bool:
        """True if memory must not rest on this turn."""
        return self.state in ("retired", "forgotten")


_ERASED = Place(state="forgotten", on_path=False, only_here=False, of_session=False)
_UNKNOWN = Place(state="unknown", on_path=False, only_here=False, of_session=False)


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A ranked block or turn with the turns that it rests on; `lost` stand for those not here.

    `superseded_by` is the block that holds instead of what was said there.
    """

    ranked: Ranked
    block: BlockDoc | None
    turns: tuple[TurnDoc, ...]
    lost: tuple[Place, ...] = ()
    superseded_by: str | None = None


def label_of_places(places: Iterable[Place]) -> BranchLabel | None:
    """Returns how what rests on turns at `places` lies to the reader, None if it fell with them.

    Turns that were taken back don't count; what never cited one stands by itself.
    """
    given = list(places)
    standing = [place for place in given if not place.is_taken_back]
    if given and not standing:
        return None
    of_session = [place for place in standing if place.of_session]
    if not of_session:
        return "other-session"
    if not all(place.on_path for place in of_session):
        return "other-branch"
    return "own" if any(place.only_here for place in of_session) else "shared"


def load(index: Index, ranked: Sequence[Ranked]) -> list[Loaded]:
    """Returns the documents of what was ranked, without what went out of the index since."""
    blocks = index.blocks(one.found.ref for one in ranked if one.kind == "block")
    labels = [one.found.ref for one in ranked if one.kind == "turn"]
    labels += (label for block in blocks.values() for label in block.cites)
    turns = index.turns(dict.fromkeys(labels))
    successors = index.successors(one.found.ref for one in ranked if one.kind == "turn")
    loaded = (
        _loaded_turn(one, turns, successors)
        if one.kind == "turn"
        else _loaded_block(index, one, blocks, turns)
        for one in ranked
    )
    return [one for one in loaded if one is not None]


def _loaded_turn(
    ranked: Ranked, turns: Mapping[str, TurnDoc], successors: Mapping[str, str]
) -> Loaded | None:
    turn = turns.get(ranked.found.ref)
    if turn is None:
        return None
    successor = successors.get(turn.label)
    return Loaded(ranked=ranked, block=None, turns=(turn,), superseded_by=successor)


def _loaded_block(
    index: Index, ranked: Ranked, blocks: Mapping[str, BlockDoc], turns: Mapping[str, TurnDoc]
) -> Loaded | None:
    block = blocks.get(ranked.found.ref)
    if block is None:
        return None
    return Loaded(
        ranked=ranked,
        block=block,
        turns=tuple(turns[label] for label in block.cites if label in turns),
        lost=tuple(
            _ERASED if index.is_forgotten(label) else _UNKNOWN
            for label in block.cites
            if label not in turns
        ),
        superseded_by=block.superseded_by,
    )


def hit_of(loaded: Loaded, places: Mapping[TurnRef, Place]) -> Hit | None:
    """Returns the hit, or None if all that it rests on was taken back."""
    placed = [(turn, places[turn.namespace, turn.id]) for turn in loaded.turns]
    branch = label_of_places([*(place for _, place in placed), *loaded.lost])
    if branch is None:
        return None
    score = loaded.ranked.score * (_OWN_BOOST if branch == "own" else 1.0)
    sources = tuple(source_of(turn) for turn, place in placed if not place.is_taken_back)
    if loaded.block is None:
        hit = _turn_hit(loaded.turns[0], score, branch, sources)
    else:
        hit = _block_hit(loaded.block, score, branch, sources)
    return msgspec.structs.replace(hit, superseded_by=loaded.superseded_by)


def _turn_hit(turn: TurnDoc, score: float, branch: BranchLabel, sources: tuple[Source, ...]) -> Hit:
    return Hit(
        ref=turn.label,
        kind="turn",
        text=_excerpt(turn.text),
        score=score,
        branch=branch,
        sources=sources,
        session=turn.session,
        speaker=turn.speaker,
        time=_rfc3339(turn.time),
    )


def _block_hit(
    block: BlockDoc, score: float, branch: BranchLabel, sources: tuple[Source, ...]
) -> Hit:
    newest = max((source.time for source in sources), default=None)
    written = None if block.updated_at is None else _rfc3339(block.updated_at)
    return Hit(
        ref=block.block,
        kind="block",
        text=_excerpt(block.text),
        score=score,
        branch=branch,
        sources=sources,
        topic=block.topic,
        time=newest or written,
    )


def _excerpt(text: str) -> str:
    """Returns the text, or the beginning of a very long one: `memory.show` gives the whole."""
    return text if len(text) <= _LONGEST_HIT_CHARS else f"{text[:_LONGEST_HIT_CHARS]}…"


def source_of(turn: TurnDoc) -> Source:
    """Returns where an archived turn stands, as hits and `memory.show` say it."""
    return Source(
        turn=turn.id,
        label=turn.label,
        session=turn.session,
        speaker=turn.speaker,
        time=_rfc3339(turn.time),
        path=turn.path,
        line=turn.line,
    )


def _rfc3339(moment: datetime) -> str:
    return to_rfc3339(microseconds(moment) // 1_000)
