"""Batches and installs: claimed, journalled, closed; what a dead process left is taken up again.

A claim row per root of the DAG keeps two batches off one conversation. An install's row holds all
that is needed to finish it without asking a writer again; it is committed before the first file is
touched, so recovery rolls forward from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw
import msgspec

from turnmark_events.errors import Busy
from turnmark_events.types import TurnsWritten
from turnmark_session_store.back_off import note_failed, note_succeeded
from turnmark_session_store.marks import (
    note_rewritten,
    parked_for,
    settle,
    workspace_revision,
)
from turnmark_session_store.model import MarkOutcome
from turnmark_session_store.queries import json_keys, rows_of
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import unwritten


class OpenInstall(msgspec.Struct, frozen=True, kw_only=True):
    """An install whose journal is committed and whose end is not: to be rolled forward."""

    install: int
    revision: int
    cause: str
    body: bytes
    batches: list[int]


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch of an install came to: its outcome and the blocks that cite its turns."""

    batch: int
    outcome: MarkOutcome
    blocks: list[str]
    reason: str | None = None


def claim(
    tx: Transaction,
    workspace: int,
    turns: Sequence[int],
    *,
    session: int,
    branch: int,
    tip: int,
    owner: str,
    writer: str,
) -> int:
    """Returns a new batch of `turns` that holds the claim of every root they descend from.

    Raises:
        Busy: if another batch holds one of the roots, or `turns` are not (or not all) what is owed
            any more because the conversation moved on; look again.
    """
    roots = _roots(tx, turns)
    for root in roots:
        if tx.row("SELECT 1 FROM claim WHERE workspace = ? AND root = ?", (workspace, root)):
            raise Busy("another batch of this conversation is under way")
    _check_owed(tx, workspace, turns)
    batch = tx.insert(
        "INSERT INTO batch (workspace, session, branch, tip, writer) VALUES (?, ?, ?, ?, ?)",
        (workspace, session, branch, tip, writer),
    )
    for turn in turns:
        tx.execute("INSERT INTO batch_turn (batch, turn) VALUES (?, ?)", (batch, turn))
    for root in roots:
        tx.execute(
            "INSERT INTO claim (workspace, root, batch, owner) VALUES (?, ?, ?, ?)",
            (workspace, root, batch, owner),
        )
    return batch


def _check_owed(tx: Transaction, workspace: int, turns: Sequence[int]) -> None:
    """Refuses turns that were settled meanwhile, and turns with an older one owed above them."""
    settled = tx.row(
        "SELECT 1 FROM mark JOIN json_each(?) ON mark.turn = value"
        " WHERE workspace = ? AND outcome <> 'parked'",
        (json_keys(turns), workspace),
    )
    older = {turn for turn, _ in unwritten(tx.db, workspace, turns)}
    if settled or not older.issubset(turns):
        raise Busy("this conversation moved on since it was looked at")


def _roots(tx: Transaction, turns: Sequence[int]) -> list[int]:
    rows = tx.rows(
        "SELECT DISTINCT turn.root FROM turn JOIN json_each(?) ON turn.id = value ORDER BY 1",
        (json_keys(turns),),
    )
    return [root for (root,) in rows]


def turns_of(db: apsw.Connection, batch: int) -> list[int]:
    """Returns a batch's turns in topological order."""
    rows = rows_of(db, "SELECT turn FROM batch_turn WHERE batch = ? ORDER BY turn", (batch,))
    return [turn for (turn,) in rows]


def open_install(
    tx: Transaction,
    workspace: int,
    *,
    revision: int,
    cause: str,
    body: bytes,
    results: Sequence[BatchResult] = (),
) -> int:
    """Journals an install: from this commit on it will be finished, crash or not.

    Raises:
        Busy: if one of the batches was ended or taken over meanwhile.
    """
    install = tx.insert(
        "INSERT INTO install (workspace, revision, cause, body) VALUES (?, ?, ?, ?)",
        (workspace, revision, cause, body),
    )
    for result in results:
        _check_open(tx, result.batch)
        tx.execute(
            "UPDATE batch SET install = ?, outcome = ?, reason = ?, blocks = ? WHERE id = ?",
            (
                install,
                result.outcome,
                result.reason,
                msgspec.json.encode(result.blocks),
                result.batch,
            ),
        )
    return install


def close_install(tx: Transaction, install: int) -> None:
    """Ends an install whose files stand: settles its turns, says so, frees its claims.

    Ending one twice does nothing the second time.
    """
    workspace, revision, closed_ms = tx.row(
        "SELECT workspace, revision, closed_ms FROM install WHERE id = ?", (install,)
    )
    if closed_ms is not None:
        return
    tx.execute(
        "UPDATE workspace SET revision = max(revision, ?) WHERE id = ?", (revision, workspace)
    )
    for batch, outcome, reason, blocks in tx.rows(
        "SELECT id, outcome, reason, blocks FROM batch WHERE install = ? ORDER BY id", (install,)
    ):
        result = BatchResult(
            batch=batch, outcome=outcome, reason=reason, blocks=msgspec.json.decode(blocks)
        )
        close_batch(tx, result)
    tx.execute("UPDATE install SET closed_ms = ?, body = x'' WHERE id = ?", (tx.at_ms, install))


def close_batch(tx: Transaction, result: BatchResult) -> list[int]:
    """Settles a batch's turns, records `TurnsWritten` and frees its claims.

    A turn above them that was restored since the claim is owed again, as what it is: `restored`.

    Raises:
        Busy: if the batch was ended or taken over meanwhile; its turns are offered again.
    """
    _check_open(tx, result.batch)
    workspace, session, branch, tip, writer = tx.row(
        "SELECT workspace, session, branch, tip, writer FROM batch WHERE id = ?", (result.batch,)
    )
    revision = workspace_revision(tx.db, workspace)
    turns = turns_of(tx.db, result.batch)
    _park_restored(tx, workspace, turns)
    again = parked_for(tx, workspace, turns, "rewrite")
    settled = settle(
        tx,
        workspace,
        turns,
        outcome=result.outcome,
        writer=writer,
        revision=revision,
        reason=result.reason,
    )
    if again:
        note_rewritten(tx, workspace, again)
    note_succeeded(tx, workspace, _roots(tx, settled))
    _end(tx, result.batch)
    if settled:
        _say_written(tx, workspace, session, branch, tip, settled, result, revision)
    return settled


def leave_out(tx: Transaction, batch: int, turns: Iterable[int]) -> None:
    """Takes turns out of a batch whose answer leaves them out: it will not settle them.

    They were taken back when the answer was judged. Restored before the batch is closed, they are
    owed again, as they would be after it.
    """
    for turn in turns:
        tx.execute("DELETE FROM batch_turn WHERE batch = ? AND turn = ?", (batch, turn))


def _check_open(tx: Transaction, batch: int) -> None:
    if not tx.row("SELECT 1 FROM batch WHERE id = ? AND closed_ms IS NULL", (batch,)):
        raise Busy("this batch is over: another took its turns, or they are offered again")


def _park_restored(tx: Transaction, workspace: int, turns: Sequence[int]) -> None:
    """Marks what a claim could not know: turns restored between the claim and now.

    Nothing else can stand unsettled above the turns of a batch (`claim` looks), and without a mark
    of their own they would keep the batch from ever being settled.
    """
    written = set(turns)
    above = [turn for turn, _ in unwritten(tx.db, workspace, turns) if turn not in written]
    revision = workspace_revision(tx.db, workspace)
    for turn in above:
        tx.execute(
            "INSERT INTO mark (workspace, turn, outcome, reason, writer, revision, at_ms)"
            " VALUES (?, ?, 'parked', 'restored', '', ?, ?)",
            (workspace, turn, revision, tx.at_ms),
        )


def _say_written(
    tx: Transaction,
    workspace: int,
    session: int,
    branch: int,
    tip: int,
    settled: Sequence[int],
    result: BatchResult,
    revision: int,
) -> None:
    ids = dict(
        tx.rows(
            "SELECT turn.id, turn.key FROM turn JOIN json_each(?) ON turn.id = value",
            (json_keys([*settled, tip]),),
        )
    )
    facts = {
        "workspace": tx.value("SELECT name FROM workspace WHERE id = ?", (workspace,)),
        "session": tx.value("SELECT name FROM session WHERE id = ?", (session,)),
        "branch": tx.value("SELECT name FROM branch WHERE id = ?", (branch,)),
        "tip": ids[tip],
        "turns": [ids[turn] for turn in settled],
        "outcome": result.outcome,
        "reason": result.reason,
        "blocks": result.blocks,
        "revision": revision,
    }
    tx.record(TurnsWritten, facts, session=session, branch=branch)


def release(tx: Transaction, batch: int) -> None:
    """Ends a batch without settling anything: its turns are offered again.

    One that is over, or journalled and so to be finished, is left as it is.
    """
    if tx.row(
        "SELECT 1 FROM batch WHERE id = ? AND closed_ms IS NULL AND install IS NULL", (batch,)
    ):
        _end(tx, batch)


def _end(tx: Transaction, batch: int) -> None:
    tx.execute("DELETE FROM claim WHERE batch = ?", (batch,))
    tx.execute("UPDATE batch SET closed_ms = ? WHERE id = ?", (tx.at_ms, batch))


def fail(
    tx: Transaction,
    batch: int,
    reason: str,
    *,
    not_before_ms: int,
    limit_turns: int | None,
) -> int:
    """Ends a batch that came to nothing good; returns how often its conversation has failed now.

    `limit_turns` bounds the next batch (a failing one is halved), None leaves it as it is.
    """
    workspace = int(tx.value("SELECT workspace FROM batch WHERE id = ?", (batch,)))
    failures = note_failed(
        tx,
        workspace,
        _roots(tx, turns_of(tx.db, batch)),
        reason,
        not_before_ms=not_before_ms,
        limit_turns=limit_turns,
    )
    note_reason(tx, batch, reason)
    _end(tx, batch)
    return failures


def note_reason(tx: Transaction, batch: int, reason: str) -> None:
    """Notes why a batch comes to nothing; forgetting one of its turns takes that out again."""
    tx.execute("UPDATE batch SET reason = ? WHERE id = ?", (reason, batch))


def take_over(tx: Transaction, workspace: int) -> list[OpenInstall]:
    """Frees what a dead process claimed; returns the installs that it journalled and didn't end.

    Called once at start, before the worker looks for what is owed. Only one process can hold the
    state directory, so every claim that is found belongs to a dead one.
    """
    for (batch,) in tx.rows(
        "SELECT id FROM batch WHERE workspace = ? AND closed_ms IS NULL AND install IS NULL",
        (workspace,),
    ):
        _end(tx, batch)
    return open_installs(tx.db, workspace)


def open_installs(db: apsw.Connection, workspace: int) -> list[OpenInstall]:
    """Returns the installs that are journalled and not ended, oldest first."""
    rows = rows_of(
        db,
        "SELECT id, revision, cause, body FROM install WHERE workspace = ? AND closed_ms IS NULL"
        " ORDER BY id",
        (workspace,),
    )
    return [
        OpenInstall(
            install=install,
            revision=revision,
            cause=cause,
            body=bytes(body),
            batches=[
                batch
                for (batch,) in rows_of(db, "SELECT id FROM batch WHERE install = ?", (install,))
            ],
        )
        for install, revision, cause, body in rows
    ]
