"""Taking over what another memory knows: its blocks, and which turns it has dealt with.

Its sessions are imported first, so that a block's sources are turns of this store. Then, in this
order: the cited turns are archived, the blocks are installed, and only when all of them stand are
turns settled (law 4). A block is known by its id: one that is here, or was here and went, is not
brought again, so the same request twice adds nothing, and what somebody took out stays out. Only
what an undo took back may come again.

A block that no turn bears out is a person's: no automatic pass changes it. One that rests only on
turns that were taken back, or forgotten, is left out (law 13).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import anyio
import anyio.to_thread
import apsw
import msgspec

from turnmark_events.errors import Busy, Refused
from turnmark_memory.apply import Applied, Sources
from turnmark_memory.block_change import change_of
from turnmark_memory.citing import Citing
from turnmark_memory.compose import Work
from turnmark_memory.editing import composer
from turnmark_memory.install import Installer
from turnmark_memory.labels import is_block_id, label_of
from turnmark_memory.requests import AdoptedBlock, AdoptRequest, SettledTurns
from turnmark_memory.revisions import read_record, revision_numbers
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic import Block, Topic
from turnmark_memory.topic_edit import new_topic, put_block
from turnmark_memory.topic_format import parse_text, render_text
from turnmark_memory.topic_path import CORE, first_about, title_of, topic_path
from turnmark_memory.words import clean_title, clean_words, is_chinese
from turnmark_session_store import SessionStore
from turnmark_session_store.batches import BatchResult, claim, close_batch
from turnmark_session_store.masking import mask_secrets
from turnmark_session_store.model import CallerRef
from turnmark_session_store.owed import live_branches
from turnmark_session_store.queries import json_keys, row_of, rows_of
from turnmark_session_store.sessions import find_session, find_turn
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import ancestors, descendants, unwritten

_ORIGIN = re.compile(r"[a-z][a-z0-9-]{0,40}")
_UNDO: Final = "undo of "
_TAKEN_BACK: Final = "it rests only on turns that were taken back or forgotten"

_Standing = Literal["unknown", "gone", "no evidence"]


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A block that was not taken over, and why."""

    block: str
    reason: str


class Adopted(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.adopt`'s answer.

    `blocks` are new here; `persons` counts those of them that no turn bears out, `known` the ones
    that are or were here. `settled` counts turns; `revision` is the newest one.
    """

    blocks: list[str]
    persons: int
    known: int
    left_out: list[LeftOut]
    settled: int
    revision: int


class Adopting:
    """Takes blocks and marks of another memory over. Serial: callers wait for one another."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        workspace_key: int,
        installer: Installer,
        citing: Citing,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._workspace = workspace_key
        self._installer = installer
        self._citing = citing
        self._serial = anyio.Lock()
        self._past = _Past(shelf)

    async def adopt(self, asked: AdoptRequest) -> Adopted:
        """Installs `asked.blocks` in one revision, then settles `asked.settled`.

        Raises:
            Refused: if an id, a topic or the origin's name can't be used; nothing was changed.
            Unavailable: if the disk fails; the same request again goes on.
        """
        _check(asked)
        async with self._serial:
            desk = _Adoption(self._shelf, self._past, await self._evidence(asked.blocks))
            revision = await self._install(asked, desk)
            settled = 0
            for turns in asked.settled:
                settled += await self._settle(asked.origin, turns)
        return Adopted(
            blocks=desk.added,
            persons=desk.persons,
            known=desk.known,
            left_out=desk.left_out,
            settled=settled,
            revision=revision,
        )

    async def _install(self, asked: AdoptRequest, desk: _Adoption) -> int:
        def carry_out(sources: Sources) -> Applied:
            desk.begin()
            return desk.carry_out(asked.blocks, sources)

        cause = f"migrated from {asked.origin}"
        work = Work(name=cause, by_person=True, carry_out=carry_out)
        return (await self._installer.carry_out(composer(self._shelf, work, cause=cause))).revision

    async def _evidence(self, blocks: Sequence[AdoptedBlock]) -> dict[CallerRef, str | _Standing]:
        """Returns the label of each cited turn, archived, or why there is none."""
        refs = list(dict.fromkeys(ref for block in blocks for ref in block.cites))
        found = await self._store.read(lambda db: {ref: _standing(db, ref) for ref in refs})
        keys = {ref: key for ref, key in found.items() if isinstance(key, int)}
        archived = await self._citing.archived(list(keys.values())) if keys else []
        labels = {turn.key: turn.label for turn in archived}
        named: dict[CallerRef, str | _Standing] = {}
        for ref, key in found.items():
            named[ref] = labels.get(key, "gone") if isinstance(key, int) else key
        return named

    async def _settle(self, origin: str, asked: SettledTurns) -> int:
        namespace = await self._store.read(lambda db: _namespace(db, asked.session))
        citing = self._shelf.index.blocks_citing

        def blocks() -> dict[str, list[str]]:
            return {turn: citing(label_of(namespace or "", turn)) for turn in asked.turns}

        found = await anyio.to_thread.run_sync(blocks)
        return await self._store.write(
            lambda tx: _settle(tx, self._workspace, origin, asked, found), background=True
        )


class _Past:
    """The blocks that any revision ever changed, and whether the last one was an undo of it."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._read = 0
        self._gone: dict[str, bool] = {}

    def refresh(self) -> None:
        """Reads the records that are new since the last look; blocks on disk."""
        numbers = sorted(revision_numbers(self._shelf.workspace))
        for number in (one for one in numbers if one > self._read):
            record = read_record(self._shelf.workspace, number)
            undone = record.cause.startswith(_UNDO)
            for change in record.changes:
                self._gone[change.block] = undone and change.after is None
            self._read = number

    def knows(self, block: str) -> bool:
        """Tells whether a block was here, and did not go by an undo."""
        return not self._gone.get(block, True)


class _Adoption:
    """One request on its way into topics."""

    def __init__(
        self, shelf: Shelf, past: _Past, evidence: Mapping[CallerRef, str | _Standing]
    ) -> None:
        self._shelf = shelf
        self._past = past
        self._evidence = evidence
        self.begin()

    def begin(self) -> None:
        """Begins anew: an install that was overtaken by a person's save composes again."""
        self.added: list[str] = []
        self.left_out: list[LeftOut] = []
        self.persons = self.known = 0
        self._names: set[str] = set()
        self._before: dict[str, Topic | None] = {}
        self._after: dict[str, Topic] = {}

    def carry_out(self, blocks: Iterable[AdoptedBlock], sources: Sources) -> Applied:
        """Returns the topics with the blocks that are new, each at the end of its heading."""
        self._past.refresh()
        blocks = list(blocks)
        self._names = {block.id for block in blocks}
        places: dict[str, str] = {}
        for block in blocks:
            if block.id in places or self._is_known(block.id, sources):
                self.known += 1
                continue
            reason = self._unusable(block)
            if reason is not None:
                self.left_out.append(LeftOut(block=block.id, reason=reason))
                continue
            places[block.id] = self._put(block, sources)
            self.added.append(block.id)
        changes = (
            change_of(self._before[path], self._after[path], path, name)
            for name, path in places.items()
        )
        return Applied(
            topics=self._after,
            blocks=(tuple(self.added),),
            changes=tuple(change for change in changes if change is not None),
        )

    def _is_known(self, block: str, sources: Sources) -> bool:
        return sources.where(block) is not None or self._past.knows(block)

    def _unusable(self, block: AdoptedBlock) -> str | None:
        standing = {self._evidence[ref] for ref in block.cites}
        if standing == {"gone"}:
            return _TAKEN_BACK
        try:
            clean_words(block.text)
        except Refused as error:
            return error.message
        return None

    def _put(self, block: AdoptedBlock, sources: Sources) -> str:
        path = sources.named(topic_path(block.topic))
        if path not in self._before:
            self._before[path] = sources.load(path)
        topic = self._after.get(path) or self._before[path] or _begun(path, block)
        cites = tuple(dict.fromkeys(self._labels(block)))
        self.persons += not cites
        aliases = [name for name in dict.fromkeys(block.aliases) if name not in self._names]
        aliases = [name for name in aliases if not self._is_known(name, sources)]
        self._names.update(aliases)
        line = Block(
            raw="",
            kind="paragraph",
            id=block.id,
            text=mask_secrets(block.text)[0],
            cites=cites,
            aliases=tuple(aliases),
        )
        self._after[path] = put_block(topic, line, block.heading)
        return path

    def _labels(self, block: AdoptedBlock) -> Iterator[str]:
        for ref in block.cites:
            label = self._evidence[ref]
            if label not in ("unknown", "gone", "no evidence"):
                yield label


def _check(asked: AdoptRequest) -> None:
    if not _ORIGIN.fullmatch(asked.origin):
        raise Refused(f"the origin {asked.origin!r} can't be used; name it like an agent")
    for block in asked.blocks:
        for name in (block.id, *block.aliases):
            if not is_block_id(name):
                raise Refused(f"{name!r} is no id of a block: b- and at least 8 hex digits")
        topic_path(block.topic)
        for title in (block.heading, block.title):
            if title is not None:
                clean_title(title)


def _begun(path: str, block: AdoptedBlock) -> Topic:
    """Returns the topic of a first block, under its own title if it has one."""
    chinese = is_chinese(f"{block.title or ''} {block.text}")
    if block.title is None or path == CORE:
        return new_topic(path, chinese=chinese)
    title = clean_title(block.title)
    about = first_about(f"{path.split('/', 1)[0]}/{title.replace('/', ' ')}", chinese=chinese)
    begun = render_text(new_topic(path, about)).removesuffix(f"# {title_of(path)}\n")
    return parse_text(f"{begun}# {title}\n")


def _standing(db: apsw.Connection, ref: CallerRef) -> int | _Standing:
    """Returns the key of a cited turn, or why it can't be evidence."""
    session = find_session(db, ref.session)
    key = find_turn(db, session, ref.turn) if session is not None else None
    if key is None:
        return "unknown"
    recordable, gone = row_of(
        db,
        "SELECT recordable, EXISTS (SELECT 1 FROM retired_turn WHERE turn = ?1)"
        " OR EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = ?1) FROM turn WHERE id = ?1",
        (key,),
    ) or (0, 0)
    if gone:
        return "gone"
    return key if recordable else "no evidence"


def _namespace(db: apsw.Connection, session: str) -> str | None:
    found = find_session(db, session)
    return None if found is None else found.namespace_name


def _settle(
    tx: Transaction,
    workspace: int,
    origin: str,
    asked: SettledTurns,
    blocks: Mapping[str, Sequence[str]],
) -> int:
    """Settles those of a session's turns that may be, a batch for each branch that reaches some.

    A turn that is being written now, or that stands behind one that is owed, is left as it is.
    """
    session = find_session(tx.db, asked.session)
    if session is None:
        return 0
    named = {find_turn(tx.db, session, turn): turn for turn in asked.turns}
    left = _settleable(tx.db, workspace, [key for key in named if key is not None])
    settled = 0
    for live in live_branches(tx.db, session.name):
        if not left:
            break
        mine = sorted(left.intersection(ancestors(tx.db, live.tip, min(left))))
        left.difference_update(mine)
        if not mine:
            continue
        try:
            batch = claim(
                tx,
                workspace,
                mine,
                session=session.id,
                branch=live.branch,
                tip=live.tip,
                owner=origin,
                writer=origin,
            )
        except Busy:
            continue
        made = dict.fromkeys(block for key in mine for block in blocks[named[key]])
        result = BatchResult(batch=batch, outcome="kept", blocks=list(made))
        settled += len(close_batch(tx, result))
    return settled


def _settleable(db: apsw.Connection, workspace: int, turns: Sequence[int]) -> set[int]:
    """Returns those of `turns` that count and are not settled, without those behind owed ones."""
    rows = rows_of(
        db,
        "SELECT turn.id FROM json_each(?) AS asked JOIN turn ON turn.id = asked.value"
        " WHERE recordable AND turn.id NOT IN (SELECT turn FROM retired_turn)"
        " AND turn.id NOT IN (SELECT turn FROM forgotten_turn) AND NOT EXISTS (SELECT 1 FROM mark"
        " WHERE workspace = ? AND mark.turn = turn.id AND outcome <> 'parked')",
        (json_keys(turns), workspace),
    )
    found = {turn for (turn,) in rows}
    owed = {turn for turn, _ in unwritten(db, workspace, found)} - found
    return found.difference(descendants(db, owed)) if owed else found
