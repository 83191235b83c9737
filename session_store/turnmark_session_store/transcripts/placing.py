"""From what a reader found in live files to turns in the store: an import that never ends.

What is placed goes the way of `session.import` (same functions, same gate), a session at a time.
Where a session has few new turns, all of it and the checkpoints of its files are one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

import apsw
import msgspec

from turnmark_events.errors import Conflict
from turnmark_session_store.export import BranchLine, EndLine, HeaderLine, TurnLine
from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.import_ends import finish_import
from turnmark_session_store.imports import SLICE_TURNS, ImportPlan, begin_import, place_slice
from turnmark_session_store.model import MemoryMode
from turnmark_session_store.queries import rows_of
from turnmark_session_store.recordable import text_of
from turnmark_session_store.sessions import get_session
from turnmark_session_store.store import SessionStore
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.reader import ReadSession, ReadTurn

InTransaction = Callable[[Transaction], None]
"""Does something more in the transaction that ends a placing."""


class StoredTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of a reader's id that is in the store, under the session where it was appended.

    `latest` is its own id, or that of the last wording that took its place (`<id>~2`, …), and
    `digest` is that wording's. `gone` says that it was taken back or forgotten.
    """

    session: str
    latest: str
    digest: bytes
    gone: bool


def find_stored(db: apsw.Connection, namespace: str, ids: Iterable[str]) -> dict[str, StoredTurn]:
    """Returns those of `ids` that are in the store, in one snapshot."""
    found = _rows(db, namespace, {turn: turn for turn in ids})
    wordings, number = found, 2
    while wordings:
        wordings = _rows(db, namespace, {f"{turn}~{number}": turn for turn in wordings})
        found.update(wordings)
        number += 1
    return found


def find_namespaces(db: apsw.Connection, sessions: Collection[str]) -> dict[str, str]:
    """Returns the namespaces of those of `sessions` that are in the store, or were deleted."""
    rows = rows_of(
        db,
        "SELECT session.name, namespace.name FROM json_each(?) AS asked"
        " JOIN session ON session.name = asked.value"
        " JOIN namespace ON namespace.id = session.namespace",
        (msgspec.json.encode(sorted(sessions)).decode(),),
    )
    return dict(rows)


def _rows(db: apsw.Connection, namespace: str, names: Mapping[str, str]) -> dict[str, StoredTurn]:
    rows = rows_of(
        db,
        "SELECT turn.key, session.name, digest,"
        " turn.id IN (SELECT turn FROM retired_turn UNION SELECT turn FROM forgotten_turn)"
        " FROM json_each(?) AS asked JOIN turn ON turn.key = asked.value"
        " JOIN session ON session.id = turn.session"
        " WHERE turn.namespace = (SELECT id FROM namespace WHERE name = ?)",
        (msgspec.json.encode(list(names)).decode(), namespace),
    )
    return {
        names[key]: StoredTurn(session=session, latest=key, digest=digest, gone=bool(gone))
        for key, session, digest, gone in rows
    }


def plan_of(
    read: ReadSession,
    turns: Sequence[ReadTurn],
    prepared: Sequence[PreparedTurn],
    *,
    more_tips: Collection[str] = (),
    memory: MemoryMode | None = None,
) -> ImportPlan:
    """Returns the plan that brings `turns` of a session, prepared, and moves its tips and head."""
    plan = ImportPlan(
        HeaderLine(
            version=1,
            session=read.session,
            agent=read.agent,
            title=read.title,
            project=read.project,
            namespace=read.namespace,
            memory=memory,
            forked_from=read.forked_from,
            caller=read.caller,
            source="reader",
        )
    )
    plan.turns = [(_line(one), ready) for one, ready in zip(turns, prepared, strict=True)]
    plan.taken_back = list(read.taken_back)
    plan.branches = [BranchLine(tip=tip) for tip in (*read.tips, *more_tips)]
    plan.end = EndLine(head=read.head, turns=len(turns))
    return plan


def _line(read: ReadTurn) -> TurnLine:
    turn = read.turn
    return TurnLine(
        id=turn.id or "",
        role=turn.role,
        kind=turn.kind,
        text=text_of(turn.text),
        predecessor=read.predecessor,
        speaker=turn.speaker,
        time=turn.time,
        caller=turn.caller,
        supersedes=turn.supersedes,
        metadata=turn.metadata,
        lost_predecessor=read.lost_predecessor,
    )


async def place(store: SessionStore, plan: ImportPlan, then: InTransaction) -> None:
    """Places a plan behind agents' appends; `then` runs in the transaction that ends it.

    Raises:
        Conflict: if the session is here with turns of another namespace, or a turn with other
            content.
        Unavailable: if the disk failed.
    """
    if len(plan.turns) <= SLICE_TURNS:
        await store.write(lambda tx: _whole(tx, plan, then), background=True)
        return
    await store.write(lambda tx: _begin(tx, plan), background=True)
    position = 0
    while position < len(plan.turns):
        position = await store.write(
            partial(place_slice, plan=plan, start=position), background=True
        )
    await store.write(lambda tx: _end(tx, plan, then), background=True)


def _whole(tx: Transaction, plan: ImportPlan, then: InTransaction) -> None:
    _begin(tx, plan)
    place_slice(tx, plan, 0)
    _end(tx, plan, then)


def _begin(tx: Transaction, plan: ImportPlan) -> None:
    begin_import(tx, plan)
    session = get_session(tx.db, plan.header.session)
    name = tx.value("SELECT name FROM namespace WHERE id = ?", (session.namespace,))
    if plan.header.namespace not in (None, name):
        raise Conflict(
            f"session {session.name!r} is here with turns of namespace {name!r}, its transcript is "
            f"of {plan.header.namespace!r}; a client has appended to it under the agent's own name",
            session=session.name,
        )


def _end(tx: Transaction, plan: ImportPlan, then: InTransaction) -> None:
    session = get_session(tx.db, plan.header.session)
    head = plan.end.head if plan.end is not None else None
    seen = tx.row("SELECT head FROM transcript_head WHERE session = ?", (session.id,))
    plan.head_moved = seen is not None and seen[0] != head
    finish_import(tx, plan)
    if head is not None:
        tx.execute(
            "INSERT INTO transcript_head (session, head) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET head = excluded.head",
            (session.id, head),
        )
    then(tx)
