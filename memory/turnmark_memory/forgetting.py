"""Forgetting on request: first what would go is shown, then exactly that is erased and proved.

The dry run's `confirm` is a digest of everything that it named, so that the erasure takes that and
nothing else: turns that came since, or another request, have another digest. Nothing is stored in
between.

Forgetting is a person's own act and, unlike automatic passes, takes a person's blocks too, where
they cite what is to be forgotten: the dry run shows them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Sequence

import anyio
import anyio.to_thread
import apsw
import msgspec
import structlog

from turnmark_events.errors import Forgotten, NotFound, Refused, Stale
from turnmark_memory.editing import Editing
from turnmark_memory.forget_proof import Proof, pieces_of, search
from turnmark_memory.labels import is_block_id, is_label
from turnmark_memory.model import Retire
from turnmark_memory.recall import RecallAnswer
from turnmark_memory.relations import TurnRef, keys_of, refs_of
from turnmark_memory.requests import ForgetRequest, RecallRequest
from turnmark_memory.search_text import Unit, query_of, terms_of
from turnmark_memory.shelf import Shelf
from turnmark_memory.taking_back import FORGOTTEN, TakingBack
from turnmark_session_store import SessionStore
from turnmark_session_store import forgettable as turns_for
from turnmark_session_store.erase import forget_turns
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.queries import json_keys, value_of
from turnmark_session_store.requests import SessionRef
from turnmark_session_store.sessions import get_turn_anywhere

log = structlog.get_logger(__name__)

_HITS = 20
"""A query forgets what recall finds for it with this `k` and has all the words of it."""

_EXAMPLES = 40
_EXAMPLE_CHARACTERS = 200


class Example(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of the things that would go: a block, or a turn by its `SESSION#ID`."""

    ref: str
    text: str
    topic: str | None = None


class ForgetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A dry run's answer: how many of each would go, some of them, and what confirms just that."""

    turns: int
    blocks: int
    sources: int
    sessions: int
    confirm: str
    examples: tuple[Example, ...]


class Forgot(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased, and the proof."""

    turns: int
    blocks: int
    sources: int
    proof: Proof


class _Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is about: turns by the store's keys and by their refs, blocks by id.

    `turns` are erased; `blocks` go, with whatever else cites the turns.
    """

    turns: tuple[int, ...]
    refs: tuple[TurnRef, ...]
    blocks: tuple[str, ...]
    sources: tuple[str, ...]
    texts: tuple[str, ...]
    sessions: tuple[str, ...]


class Forgetting:
    """Chooses, shows, erases and proves. Serial: one erasure at a time."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        editing: Editing,
        taking_back: TakingBack,
        *,
        recall: Callable[[RecallRequest], Awaitable[RecallAnswer]],
        erase: Callable[[Sequence[int], Collection[str]], Awaitable[None]],
    ) -> None:
        """`erase` takes forgotten turns, and blocks taken out, out of all that memory keeps."""
        self._store = store
        self._shelf = shelf
        self._editing = editing
        self._taking_back = taking_back
        self._recall = recall
        self._erase_from_memory = erase
        self._serial = anyio.Lock()

    async def forget(self, asked: ForgetRequest) -> ForgetPlan | Forgot:
        """Says what would be erased; erases it if `dry_run` is false and `confirm` fits.

        Raises:
            NotFound: if what is named isn't here.
            Forgotten: if it was forgotten before.
            Refused: if a bare turn id stands for several turns, or `confirm` is missing.
            Stale: if `confirm` is not that of a dry run of this request as things are now.
            Unavailable: if the disk fails; ask again, what is erased stays erased.
        """
        async with self._serial:
            chosen = await self._chosen(asked)
            confirm = _confirm(str(self._shelf.workspace.id), asked, chosen)
            if asked.dry_run:
                return await self._plan(chosen, confirm)
            if asked.confirm is None:
                raise Refused("to erase, run it dry first and give the confirm of its answer")
            if asked.confirm != confirm:
                raise Stale(
                    "this confirm is not that of this request, or what it names has changed since;"
                    " run it dry again"
                )
            return await self._erase(asked, chosen)

    async def _chosen(self, asked: ForgetRequest) -> _Chosen:
        named = await self._named_blocks(asked)
        turns = await self._named_turns(asked, named)
        if asked.everywhere and turns:
            turns = await self._store.read(
                lambda db: turns_for.turns_with_the_same_words(db, turns)
            )
        refs = await self._store.read(lambda db: refs_of(db, turns))
        citing = await anyio.to_thread.run_sync(self._blocks_citing, refs)
        blocks = sorted({*named, *(citing if _takes_citing(asked) else ())})
        if not asked.evidence:
            turns, refs = [], []
        return _Chosen(
            turns=tuple(turns),
            refs=tuple(refs),
            blocks=tuple(blocks),
            sources=tuple(await anyio.to_thread.run_sync(self._taking_back.labels_of, refs)),
            texts=tuple(await self._store.read(lambda db: turns_for.texts_of(db, turns))),
            sessions=tuple(await self._store.read(lambda db: turns_for.sessions_of(db, turns))),
        )

    async def _named_blocks(self, asked: ForgetRequest) -> list[str]:
        """Returns the blocks that the request itself is about."""
        if asked.block is not None:
            name = asked.block.removeprefix("^")
            found = await anyio.to_thread.run_sync(self._shelf.index.block, name)
            if not is_block_id(name) or found is None:
                raise NotFound(
                    f"no block {asked.block!r} in this memory; `turnmark recall` names them"
                )
            return [found.block]
        return [ref for ref in await self._hits(asked) if is_block_id(ref)]

    async def _hits(self, asked: ForgetRequest) -> list[str]:
        if asked.query is None:
            return []
        found = await self._recall(RecallRequest(query=asked.query, k=_HITS, history=True))
        units = query_of(asked.query).units
        return [hit.ref for hit in found.hits if _has_all(hit.text, units)]

    async def _named_turns(self, asked: ForgetRequest, blocks: Sequence[str]) -> list[int]:
        """Returns the turns that the request is about: named, said, or cited by its blocks."""
        if asked.session is not None:
            name = asked.session
            return await self._store.read(
                lambda db: turns_for.turns_of_session(db, name, shared=asked.everywhere)
            )
        if asked.speaker is not None:
            return await self._turns_of_speaker(asked.speaker)
        if asked.turn is not None:
            return [await self._turn(asked.turn)]
        labels = [
            label for ref in await self._hits(asked) for label in ([ref] if is_label(ref) else [])
        ]
        cited = [label for block in blocks for label in self._shelf.index.cites(block)]
        return await self._keys([*labels, *cited])

    async def _turns_of_speaker(self, speaker: str) -> list[int]:
        found = await self._store.read(lambda db: turns_for.turns_of_speaker(db, speaker))
        if not found:
            raise NotFound(
                f"no turn here is said by {speaker!r}; give a speaker's id, or the whole name"
            )
        return found

    async def _turn(self, ref: str) -> int:
        if is_label(ref):
            found = await self._keys([ref])
            if not found:
                raise NotFound(
                    f"no source {ref} in this memory; name the turn as SESSION#ID", ref=ref
                )
            return found[0]

        def look(db: apsw.Connection) -> tuple[int, list[int]]:
            turn = get_turn_anywhere(db, ref)
            return turn, turns_for.still_kept(db, [turn])

        turn, kept = await self._store.read(look)
        if not kept:
            raise Forgotten(f"the turn {ref!r} was forgotten", ref=ref)
        return turn

    async def _keys(self, labels: Sequence[str]) -> list[int]:
        """Returns the keys of those turns that the store still has."""
        turns = (self._shelf.index.turn(label) for label in dict.fromkeys(labels))
        refs = [(turn.namespace, turn.id) for turn in turns if turn is not None]

        def look(db: apsw.Connection) -> list[int]:
            keys = keys_of(db, refs)
            return turns_for.still_kept(db, [key for key in keys if key is not None])

        return await self._store.read(look)

    def _blocks_citing(self, refs: Sequence[TurnRef]) -> list[str]:
        return list(self._taking_back.citing(refs))

    async def _plan(self, chosen: _Chosen, confirm: str) -> ForgetPlan:
        return ForgetPlan(
            turns=len(chosen.turns),
            blocks=len(chosen.blocks),
            sources=len(chosen.sources),
            sessions=len(chosen.sessions),
            confirm=confirm,
            examples=await anyio.to_thread.run_sync(self._examples, chosen),
        )

    def _examples(self, chosen: _Chosen) -> tuple[Example, ...]:
        """Returns blocks first: they are what people know; turns that they quote follow."""
        found: list[Example] = []
        for name in chosen.blocks[:_EXAMPLES]:
            block = self._shelf.index.block(name)
            if block is not None:
                found.append(Example(ref=name, text=_short(block.text), topic=block.topic))
        turns = zip(chosen.refs, chosen.texts, strict=False)
        for (_, turn), text in [*turns][: _EXAMPLES - len(found)]:
            found.append(Example(ref=turn, text=_short(text)))
        return tuple(found)

    async def _erase(self, asked: ForgetRequest, chosen: _Chosen) -> Forgot:
        words = await anyio.to_thread.run_sync(self._words, chosen)
        await self._take_out(await anyio.to_thread.run_sync(self._kept_by_erasing, chosen))
        failpoint("forget.taken_out")
        if asked.session is not None and asked.evidence:
            await self._store.delete_session(SessionRef(session=asked.session))
        if chosen.turns:
            await self._store.write(lambda tx: forget_turns(tx, chosen.turns))
            failpoint("erase.forgotten")
            await self._store.erase_forgotten()
        await self._erase_from_memory(chosen.turns, chosen.blocks)
        log.info("forgotten", turns=len(chosen.turns), blocks=len(chosen.blocks))
        return Forgot(
            turns=len(chosen.turns),
            blocks=len(chosen.blocks),
            sources=len(chosen.sources),
            proof=await self._proof(chosen, words),
        )

    def _words(self, chosen: _Chosen) -> tuple[str, ...]:
        blocks = (self._shelf.index.block(name) for name in chosen.blocks)
        return pieces_of([*chosen.texts, *(block.text for block in blocks if block is not None)])

    def _kept_by_erasing(self, chosen: _Chosen) -> list[str]:
        """Returns the blocks that don't go with the turns: a person's, and those without cites."""
        going = self._taking_back.citing(chosen.refs)
        return [name for name in chosen.blocks if name not in going or self._shelf.by_person(name)]

    async def _take_out(self, blocks: Sequence[str]) -> None:
        """Takes the blocks out as a person's edit: turns that stay are not written again."""
        edits = [Retire(block=block, reason=FORGOTTEN) for block in blocks]
        if edits:
            await self._editing.install(edits, cause=FORGOTTEN)

    async def _proof(self, chosen: _Chosen, words: Sequence[str]) -> Proof:
        turns = json_keys(chosen.turns)
        stored = await self._store.read(
            lambda db: int(
                value_of(
                    db,
                    "SELECT count(*) FROM turn_words JOIN json_each(?) ON turn = value",
                    (turns,),
                )
            )
        )
        return await anyio.to_thread.run_sync(self._prove, chosen, words, stored)

    def _prove(self, chosen: _Chosen, words: Sequence[str], stored: int) -> Proof:
        index, archive = self._shelf.index, self._shelf.archive
        roots = (self._store.path.parent, self._shelf.workspace.root)
        searched, size, found = search(roots, words)
        return Proof(
            left={
                "store": stored,
                "sources": sum(archive.resolve(label) is not None for label in chosen.sources),
                "index": sum(index.turn(label) is not None for label in chosen.sources),
                "blocks": sum(index.block(name) is not None for name in chosen.blocks),
                "cites": sum(len(index.blocks_citing(label)) for label in chosen.sources),
            },
            searched=searched,
            bytes=size,
            found=found,
        )


def _has_all(text: str, units: Sequence[Unit]) -> bool:
    """Tells whether a text has everything that a question asks about: erasing is no guessing."""
    terms = set(terms_of(text))
    return bool(units) and all(not terms.isdisjoint(unit.full) for unit in units)


def _takes_citing(asked: ForgetRequest) -> bool:
    """Tells whether blocks go because of the turns that they cite, not only those named."""
    return asked.evidence or (asked.block is None and asked.query is None)


def _confirm(workspace: str, asked: ForgetRequest, chosen: _Chosen) -> str:
    aim = msgspec.structs.replace(asked, dry_run=True, confirm=None)
    named = msgspec.json.encode((workspace, aim, chosen.turns, chosen.blocks, chosen.sources))
    return "f-" + hashlib.blake2b(named, digest_size=8).hexdigest()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EXAMPLE_CHARACTERS else line[: _EXAMPLE_CHARACTERS - 1] + "…"
