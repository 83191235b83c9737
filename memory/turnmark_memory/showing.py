"""Showing one thing by its ref: a block, a source, a topic or a turn, with where it comes from."""

from __future__ import annotations

import anyio.to_thread
import msgspec

from turnmark_events.errors import Forgotten, NotFound, Refused
from turnmark_memory.hits import Source
from turnmark_memory.labels import is_block_id, is_label
from turnmark_memory.placing import source_of
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic_path import topic_path
from turnmark_session_store import SessionStore
from turnmark_session_store.model import TurnOut
from turnmark_session_store.sessions import get_turn_anywhere
from turnmark_session_store.turn_views import show_turns


class Shown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`memory.show`'s answer: the text and its provenance, as far as the kind has one."""

    kind: str
    ref: str
    text: str
    topic: str | None = None
    heading: str | None = None
    superseded_by: str | None = None
    sources: list[Source] = msgspec.field(default_factory=list[Source])
    turn: TurnOut | None = None
    path: str | None = None
    line: int | None = None


async def show(store: SessionStore, shelf: Shelf, ref: str) -> Shown:
    """Returns what `ref` names: first a block, then a label, a topic, `SESSION#ID`, a turn id.

    Raises:
        NotFound: if nothing is called that.
        Refused: if a bare turn id stands in several namespaces; names the candidates.
        Forgotten: if it was forgotten.
    """
    name = ref.removeprefix("^")
    if not (is_block_id(name) or is_label(name)):
        topic = await anyio.to_thread.run_sync(_topic, shelf, ref)
        return topic or await _turn(store, shelf, ref)
    try:
        return await anyio.to_thread.run_sync(_block if is_block_id(name) else _source, shelf, name)
    except NotFound as missing:
        try:  # an agent may call its turns so, too
            return await _turn(store, shelf, ref)
        except NotFound:
            raise missing from None


def _block(shelf: Shelf, name: str) -> Shown:
    topic = shelf.index.where(name)
    block = shelf.block(topic, name) if topic is not None else None
    if topic is None or block is None:
        raise NotFound(
            f"no block ^{name} in this memory; `turnmark topics` lists its topics", ref=name
        )
    cited = (shelf.index.turn(label) for label in block.cites)
    return Shown(
        kind="block",
        ref=block.id or name,
        text=block.text,
        topic=topic,
        heading=block.section,
        superseded_by=block.superseded_by,
        sources=[source_of(turn) for turn in cited if turn is not None],
        path=shelf.workspace.topic_file(topic),
    )


def _source(shelf: Shelf, label: str) -> Shown:
    turn = shelf.index.turn(label)
    if turn is None:
        if shelf.index.is_forgotten(label):
            raise Forgotten(f"the source {label} was forgotten", ref=label)
        raise NotFound(
            f"no source {label} in this memory; `turnmark show` of a block names those it cites",
            ref=label,
        )
    return Shown(
        kind="source",
        ref=label,
        text=turn.text,
        sources=[source_of(turn)],
        path=turn.path,
        line=turn.line,
    )


def _topic(shelf: Shelf, ref: str) -> Shown | None:
    if "#" in ref:
        return None
    try:
        topic = shelf.workspace.topic_name(topic_path(ref))
        content = shelf.read(topic)
    except Refused:
        return None
    if content is None:
        return None
    return Shown(
        kind="topic",
        ref=topic,
        text=content.decode("utf-8", "replace"),
        topic=topic,
        path=shelf.workspace.topic_file(topic),
    )


async def _turn(store: SessionStore, shelf: Shelf, ref: str) -> Shown:
    found = await store.read(lambda db: show_turns(db, [get_turn_anywhere(db, ref)])[0])
    if found.state == "forgotten":
        raise Forgotten(f"the turn {ref!r} was forgotten", ref=ref)
    sources = [
        source_of(doc) for doc in shelf.index.turns_of_id(found.id) if doc.session in found.sessions
    ]
    return Shown(
        kind="turn",
        ref=f"{found.session}#{found.id}",
        text=found.text,
        sources=sources,
        turn=found,
        path=sources[0].path if sources else None,
        line=sources[0].line if sources else None,
    )
