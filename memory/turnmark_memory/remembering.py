"""Remembering on request: one block now, resting on the turn that it was said in.

A fact that belongs to no conversation becomes a turn of its own, in the session
`turnmark:remembered`, so that it has provenance like any other. That turn is claimed in the
transaction that appends it and settled by the install that writes its block: the worker never
writes it a second time, and after a crash in between it is owed like everything else.
"""

from __future__ import annotations

from typing import Final

import anyio
import anyio.to_thread
import apsw
import msgspec
from msgspec import UNSET

from turnmark_events.errors import Refused, TurnmarkError
from turnmark_memory.citing import Citing, evidence_key
from turnmark_memory.editing import Editing, checked_words
from turnmark_memory.journal import InstallUnfinished
from turnmark_memory.model import Add, Batch, Edit, Edits, Evidence, Pin, Revise
from turnmark_memory.requests import RememberRequest
from turnmark_memory.shelf import Shelf
from turnmark_memory.topic_path import topic_path
from turnmark_memory.words import clean_words
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_session_store import SessionStore
from turnmark_session_store.append import AppendOrder, append
from turnmark_session_store.batches import claim, release
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.fences import cut_fences
from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.model import TurnIn
from turnmark_session_store.queries import value_of
from turnmark_session_store.requests import OpenSession
from turnmark_session_store.sessions import find_turn, get_session, open_session
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import unwritten

REMEMBERED: Final = "turnmark:remembered"
"""The session of what was remembered outside any conversation."""

WRITER: Final = "remember/1"
_AGENT: Final = "turnmark"
_NOTES: Final = "subjects/notes"
"""Where a fact goes that says nothing of whom or what it is about."""

_KNOWN_TOPICS_LIMIT: Final = 200

_LAST_SAID = """
WITH RECURSIVE walk (id) AS (
    SELECT head FROM session WHERE id = ? AND head IS NOT NULL
    UNION SELECT predecessor FROM walk JOIN turn USING (id) WHERE predecessor IS NOT NULL
)
SELECT id FROM walk JOIN turn USING (id) WHERE role = 'user' AND recordable
    AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = id)
    AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = id)
LIMIT 1
"""


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.remember`'s answer."""

    block: str
    topic: str
    revision: int


class Remembering:
    """Writes one block at once. Serial: callers wait for one another."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        workspace_key: int,
        editing: Editing,
        citing: Citing,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._workspace = workspace_key
        self._editing = editing
        self._citing = citing
        self._serial = anyio.Lock()

    async def remember(self, asked: RememberRequest) -> Remembered:
        """Writes `asked.text` as a block of a person's, pinned if asked.

        Without `topic` it goes where the built-in writer would file it: to the person who says
        something of themselves, to the session's project, else to `subjects/notes`. Words that
        a block there says already are cited again, not doubled.

        Raises:
            NotFound: if `session` or `turn` is unknown.
            Refused: if the text, the topic or the turn can't be used.
            Forgotten: if the turn was forgotten.
            Unavailable: if the disk fails.
        """
        text = checked_words(cut_fences(asked.text))
        clean_words(text)
        topic = asked.topic
        if topic is not None:
            topic = await anyio.to_thread.run_sync(self._named, topic)
        async with self._serial:
            key = await self._store.read(lambda db: _said_in(db, asked))
            batch = None
            if key is None:
                key, batch = await self._said_now(text)
                failpoint("remember.appended")
            try:
                return await self._write(text, topic, key, batch, pinned=asked.pin)
            except InstallUnfinished:
                raise
            except TurnmarkError:
                if batch is not None:
                    claimed = batch
                    await self._store.write(lambda tx: release(tx, claimed))
                raise

    async def _write(
        self, text: str, topic: str | None, key: int, batch: int | None, *, pinned: bool
    ) -> Remembered:
        turn = (await self._citing.archived([key]))[0]
        failpoint("remember.archived")
        if topic is None:
            place, heading = await anyio.to_thread.run_sync(self._filed, text, turn)
        else:
            place, heading = topic, None
        add = Add(topic=place, heading=heading, text=text, cites=(turn.label,))
        edits: list[Edit] = [await anyio.to_thread.run_sync(self._said_again, add)]
        if pinned:
            edits.append(Pin(block="+0"))
        installed = await self._editing.install(edits, cause="remember", batch=batch)
        block = installed.composed.done[0].blocks[0]
        return Remembered(block=block, topic=place, revision=installed.revision)

    def _said_again(self, add: Add) -> Add | Revise:
        """Returns the edit that lets a block which says these very words rest on this turn too."""
        words, topic = clean_words(add.text), self._shelf.load(add.topic)
        for block in topic.blocks() if topic is not None else ():
            if block.id is not None and block.text == words and block.superseded_by is None:
                return Revise(block=block.id, text=add.text, cites=(*block.cites, *add.cites))
        return add

    def _filed(self, text: str, turn: Evidence) -> tuple[str, str | None]:
        """Returns the topic and heading under which the built-in writer would file the words."""
        said = msgspec.structs.replace(turn, role="user", text=text)
        known = self._shelf.index.topics(limit=_KNOWN_TOPICS_LIMIT)
        topics = tuple((row.topic, row.about) for row in known)
        answer = BuiltinWriter().distil(Batch(turns=(said,), blocks=(), topics=topics))
        for edit in answer.edits if isinstance(answer, Edits) else ():
            if isinstance(edit, Add):
                return self._named(edit.topic), edit.heading
        return _NOTES, None

    def _named(self, topic: str) -> str:
        return self._shelf.workspace.topic_name(topic_path(topic))

    async def _said_now(self, text: str) -> tuple[int, int | None]:
        """Appends the words as a turn and claims it; the batch is None if it is written already."""
        turns = await self._store.prepare([TurnIn(role="user", text=text)])
        return await self._store.write(lambda tx: self._append(tx, turns[0]))

    def _append(self, tx: Transaction, turn: PreparedTurn) -> tuple[int, int | None]:
        opened, _ = open_session(
            tx, OpenSession(session=REMEMBERED, agent=_AGENT, title="remembered")
        )
        after = None if self._is_held(tx, opened.head) else UNSET
        appended = append(tx, AppendOrder(session=REMEMBERED, turns=[turn], after=after))
        session = get_session(tx.db, REMEMBERED)
        key = find_turn(tx.db, session, appended.turns[0]) if appended.turns else None
        if key is None or appended.forgotten or not turn.recordable:
            raise Refused("these words can't be remembered; they were forgotten, or hold no text")
        marked = "SELECT 1 FROM mark WHERE workspace = ? AND turn = ?"
        if tx.row(marked, (self._workspace, key)):
            return key, None
        branch = tx.value("SELECT id FROM branch WHERE name = ?", (appended.branch,))
        return key, claim(
            tx,
            self._workspace,
            [key],
            session=session.id,
            branch=branch,
            tip=key,
            owner=WRITER,
            writer=WRITER,
        )

    def _is_held(self, tx: Transaction, head: int | None) -> bool:
        """Tells whether the session's last turns are under way or owed: then a new root is made.

        Otherwise this turn would have to wait for them, since a batch is settled oldest first.
        """
        if head is None:
            return False
        claimed = tx.row(
            "SELECT 1 FROM claim JOIN turn ON turn.root = claim.root"
            " WHERE turn.id = ? AND workspace = ?",
            (head, self._workspace),
        )
        return claimed is not None or bool(unwritten(tx.db, self._workspace, [head]))


def _said_in(db: apsw.Connection, asked: RememberRequest) -> int | None:
    """Returns the turn that the words rest on: the one named, else the session's last user turn."""
    if asked.turn is not None:
        ref = asked.turn if asked.session is None else f"{asked.session}#{asked.turn}"
        return evidence_key(db, ref)
    if asked.session is None:
        return None
    found = value_of(db, _LAST_SAID, (get_session(db, asked.session).id,))
    return None if found is None else int(found)
