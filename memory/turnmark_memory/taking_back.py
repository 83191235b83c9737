"""What the user takes back leaves memory: blocks that rest only on it go, forgotten words go too.

A block may repeat any of the turns that it cites. So one that cites a forgotten turn goes even if
it cites others; those others are offered to the writer again, if no other block rests on them.

Nothing here trusts an event. Each look compares the store's list of what was taken back with what
was dealt with since the start; the first look of a process deals with all of it, so a crash in the
middle is finished by the next start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import anyio
import anyio.to_thread
import structlog

from turnmark_events.errors import Refused
from turnmark_memory.abouts import plain_about
from turnmark_memory.apply import Applied, Sources
from turnmark_memory.compose import Composed, Work, compose
from turnmark_memory.fallen import all_fallen, signature_of, taken_back, taken_back_refs
from turnmark_memory.forgotten_topics import hide_forgotten_topics
from turnmark_memory.install import Installer
from turnmark_memory.labels import label_of
from turnmark_memory.loop_calls import call_loop
from turnmark_memory.model import Retire
from turnmark_memory.pins import without_embeds
from turnmark_memory.relations import TurnRef, keys_of, refs_of
from turnmark_memory.removal import live_citing
from turnmark_memory.revisions import scrub_records
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic import Definition, FrontMatter, Heading, Topic
from turnmark_memory.topic_edit import set_about
from turnmark_memory.topic_path import CORE
from turnmark_session_store import SessionStore
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.queries import json_keys
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)

FORGOTTEN = "turns were forgotten"


class TakingBack:
    """Keeps a workspace free of what was taken back. Serial: callers wait for one another."""

    def __init__(
        self, store: SessionStore, shelf: Shelf, installer: Installer, workspace: int
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._shelf = shelf
        self._installer = installer
        self._signature: object = None
        self._seen: set[tuple[int, int, bool]] = set()
        self._serial = anyio.Lock()

    async def check(self, turns: Sequence[int]) -> None:
        """Lets the next look see those of `turns`, just written, that were taken back meanwhile."""
        fallen = await self._store.read(lambda db: taken_back(db, turns))
        if fallen:
            async with self._serial:
                self._signature = None
                self._seen = {one for one in self._seen if one[0] not in fallen}

    def forget_looks(self) -> None:
        """Lets the next look go over everything, as the first one does."""
        self._signature = None
        self._seen = set()

    async def look(self) -> int:
        """Takes out what rests only on turns that were taken back; returns how many blocks.

        Costs a count where nothing was taken back since the last look.

        Raises:
            Refused: if a topic's file can't be used.
            Unavailable: if the disk fails.
        """
        async with self._serial:
            return await self._look()

    async def _look(self) -> int:
        signature = await self._store.read(signature_of)
        if signature == self._signature:
            return 0
        fallen = await self._store.read(all_fallen)
        fresh = [one for one in fallen if (one.turn, one.at_ms, one.forgotten) not in self._seen]
        retired = await self._retire(
            [one.ref for one in fresh if not one.forgotten],
            self._resting,
            cause="turns were taken back",
        )
        await self._erase([one.ref for one in fresh if one.forgotten])
        self._seen = {(one.turn, one.at_ms, one.forgotten) for one in fallen}
        self._signature = signature
        return len(retired)

    async def erase(self, turns: Sequence[int], removed: Collection[str] = ()) -> list[int]:
        """Erases forgotten turns, and blocks `removed` just now, from all that memory keeps.

        Returns the turns that are offered again: blocks that went said them, too.

        Raises:
            Refused: if a topic's file can't be used.
            Unavailable: if the disk fails; the next look goes on.
        """
        async with self._serial:
            refs = await self._store.read(lambda db: refs_of(db, turns))
            return await self._erase(refs, removed)

    async def _erase(self, refs: Sequence[TurnRef], removed: Collection[str] = ()) -> list[int]:
        """Erases in an order that can be repeated: sources and index say that it is not done."""
        if not refs and not removed:
            return []
        again = await self._offer_again(refs)
        blocks = await self._retire(refs, self._going, cause=FORGOTTEN)
        await self._cut_embeds()
        failpoint("erase.retired")
        labels = await anyio.to_thread.run_sync(self.labels_of, refs)
        if labels or blocks or removed:
            await anyio.to_thread.run_sync(self._scrub, labels, {*blocks, *removed})
        return again

    async def _offer_again(self, refs: Sequence[TurnRef]) -> list[int]:
        """Parks, and returns, the other turns that lose their last block with those that go.

        Before they go, so that a crash between can't lose it: at worst it is written twice.
        """

        def find() -> list[TurnRef]:
            index = self._shelf.index
            going = set(self._not_by_person(self.citing(refs)))
            cited = {label for block in going for label in index.cites(block)}
            said = {label: set(live_citing(index, label)) for label in sorted(cited)}
            lost = (
                index.turn(label) for label, blocks in said.items() if blocks and blocks <= going
            )
            found = [(turn.namespace, turn.id) for turn in lost if turn is not None]
            return [ref for ref in found if ref not in refs]

        others = await anyio.to_thread.run_sync(find)
        keys = await self._store.read(lambda db: keys_of(db, others)) if others else []
        turns = [key for key in keys if key is not None]
        if turns:
            await self._store.write(lambda tx: _park_kept(tx, self._workspace, turns))
        return turns

    async def _retire(
        self,
        refs: Sequence[TurnRef],
        choose: Callable[[Sequence[TurnRef]], Coroutine[Any, Any, list[str]]],
        *,
        cause: str,
    ) -> list[str]:
        """Takes out the blocks that `choose` finds, judged when no other install is under way.

        Judged earlier, a block could fall although its turns were restored, and written again,
        while this install waited for its turn.
        """
        blocks = await choose(refs)
        if not blocks:
            return []

        def make(revision: int) -> Composed:
            blocks[:] = call_loop(lambda: choose(refs))
            works = [
                Work(name=f"{cause}/{block}", edits=(Retire(block=block, reason=cause),))
                for block in blocks
            ]
            works.append(self._plain_abouts(blocks, is_forgetting=cause == FORGOTTEN))
            at = datetime.now(UTC)
            return compose(self._shelf, works, revision=revision, cause=cause, at=at, turns=None)

        installed = await self._installer.carry_out(make)
        problems = [done for done in installed.composed.done if done.problem and not done.stale]
        if problems:
            raise Refused(f"blocks could not be taken out: {problems[0].problem}")
        if blocks:
            log.info("blocks_retired", blocks=len(blocks), cause=cause)
        return blocks

    async def _cut_embeds(self) -> None:
        """Takes embeds out of the core topic whose block is gone, and its topic with it.

        The line names the topic, whose name may say who was forgotten.
        """
        dead = await anyio.to_thread.run_sync(self._dead_embeds)
        if not dead:
            return

        def carry_out(sources: Sources) -> Applied:
            core = sources.load(CORE)
            cut = None if core is None else without_embeds(core, self._dead_embeds())
            return Applied(topics={} if cut is None else {CORE: cut}, blocks=(), changes=())

        def make(revision: int) -> Composed:
            works = [Work(name=f"{FORGOTTEN}/embeds", carry_out=carry_out)]
            at = datetime.now(UTC)
            return compose(
                self._shelf, works, revision=revision, cause=FORGOTTEN, at=at, turns=None
            )

        await self._installer.carry_out(make)

    def _dead_embeds(self) -> list[str]:
        core = self._shelf.load(CORE)
        there = {file.topic for file in self._shelf.workspace.topics()}
        embeds = () if core is None else core.embeds()
        return [
            embed.block
            for embed in embeds
            if embed.topic not in there and self._shelf.index.block(embed.block) is None
        ]

    def _plain_abouts(self, blocks: Iterable[str], *, is_forgetting: bool) -> Work:
        """Returns the work that takes back what a model said of the topics of `blocks`.

        It was made of them, and may repeat them. A topic in which forgetting left nothing goes: its
        name may be that of who was forgotten.
        """
        topics = sorted({topic for block in blocks if (topic := self._shelf.index.where(block))})

        def carry_out(sources: Sources) -> Applied:
            found = {topic: sources.load(topic) for topic in topics}
            changed = {
                name: set_about(topic, plain_about(name))
                for name, topic in found.items()
                if topic is not None and self._shelf.abouts.is_made(name, topic.about or "")
            }
            bare = [
                name
                for name, topic in found.items()
                if is_forgetting and topic is not None and self._is_bare(name, topic)
            ]
            kept = {name: topic for name, topic in changed.items() if name not in bare}
            return Applied(topics=kept, blocks=(), changes=(), exact=dict.fromkeys(bare))

        return Work(name="plain abouts", carry_out=carry_out)

    def _is_bare(self, name: str, topic: Topic) -> bool:
        """Tells whether a topic says nothing any more, and a person has not written in its file."""
        return (
            all(
                isinstance(part, FrontMatter | Heading | Definition) or not part.raw.strip()
                for part in topic.segments
            )
            and self._shelf.abouts.is_ours(name, topic.about or "")
            and all(base.kind == "install" for base in self._shelf.bases.recent(name))
        )

    async def _resting(self, refs: Sequence[TurnRef]) -> list[str]:
        """Returns the blocks that cite any of `refs` and nothing that still counts."""
        candidates = await anyio.to_thread.run_sync(self.citing, refs)
        cited = {ref for cites in candidates.values() for ref in cites}
        gone = await self._store.read(lambda db: taken_back_refs(db, list(cited)))
        resting = [block for block, cites in candidates.items() if gone.issuperset(cites)]
        return await anyio.to_thread.run_sync(self._not_by_person, resting)

    async def _going(self, refs: Sequence[TurnRef]) -> list[str]:
        """Returns the blocks that cite any of `refs`, but not those of a person's."""
        return await anyio.to_thread.run_sync(lambda: self._not_by_person(self.citing(refs)))

    def citing(self, refs: Iterable[TurnRef]) -> dict[str, list[TurnRef]]:
        """Returns the blocks that cite any of `refs`, each with all the turns that it cites.

        A label that resolves to no turn counts for nothing.
        """
        index = self._shelf.index
        labels = {doc.label for space, turn in refs for doc in index.turns_of_id(turn, space)}
        labels.update(label_of(*ref) for ref in refs)  # the index knows no forgotten turn any more
        blocks = {block for label in labels for block in index.blocks_citing(label)}
        found: dict[str, list[TurnRef]] = {}
        for block in sorted(blocks):
            turns = (index.turn(label) for label in index.cites(block))
            found[block] = [(turn.namespace, turn.id) for turn in turns if turn is not None]
        return found

    def _not_by_person(self, blocks: Iterable[str]) -> list[str]:
        return [block for block in blocks if not self._shelf.by_person(block)]

    def labels_of(self, refs: Iterable[TurnRef]) -> list[str]:
        """Returns the labels of those that are still in `sources/` or in the index."""
        found: dict[str, None] = {}
        for namespace, turn in refs:
            line = self._shelf.archive.by_turn(namespace, turn)
            found.update({line.label: None} if line is not None else {})
            docs = self._shelf.index.turns_of_id(turn, namespace)
            found.update(dict.fromkeys(doc.label for doc in docs))
        return list(found)

    def _scrub(self, labels: Sequence[str], blocks: Collection[str]) -> None:
        self._scrub_records(labels, blocks)
        hide_forgotten_topics(self._shelf)
        self._shelf.bases.scrub([*labels, *blocks])
        self._shelf.holding.scrub([*labels, *blocks])
        self._shelf.archive.forget(labels)
        failpoint("erase.archived")
        self._shelf.forget(labels, blocks)
        failpoint("erase.indexed")

    def _scrub_records(self, labels: Sequence[str], blocks: Collection[str]) -> None:
        """Takes words out of every revision's record: what was forgotten must not be undone back.

        Those of the retired blocks, of blocks that an erasure took out before a crash, and all
        that cited one of `labels` at its time.
        """
        scrub_records(self._shelf.workspace, blocks, labels, causes=(FORGOTTEN,))


def _park_kept(tx: Transaction, workspace: int, turns: Sequence[int]) -> None:
    """Offers those of `turns` again that are kept: what they alone said is about to go."""
    tx.execute(
        "UPDATE mark SET outcome = 'parked', reason = 'rewrite', at_ms = ? WHERE workspace = ?"
        " AND outcome = 'kept' AND turn IN (SELECT value FROM json_each(?))",
        (tx.at_ms, workspace, json_keys(turns)),
    )
