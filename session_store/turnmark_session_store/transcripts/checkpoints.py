"""How far each transcript is in the store: rows that move in the transaction of the turns.

A checkpoint's position never passes a line whose turn is still held back, so whoever starts from
it loses nothing; reading again from the beginning adds nothing. A file that vanished keeps its row
and, above all, its turns: absence at the source takes nothing back.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import apsw
import msgspec

from turnmark_session_store.queries import rows_of
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.line_file import FileStamp, Mark, Reached

_COLUMNS = (
    "session, device, inode, size, mtime_ns, position, done, head_length, head_digest, last_start,"
    " last_length, last_digest"
)
_SAVE = (
    f"INSERT INTO transcript_file (agent, path, {_COLUMNS})"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (agent, path) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", "))
)


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How far one file is in the store.

    `reached.position` is the committed offset: every turn before it is in the store. `done` says
    that nothing of the file is left to do until it changes.
    """

    path: Path
    session: str
    reached: Reached
    done: bool


def connect_sources(tx: Transaction, agents: Collection[str]) -> dict[str, int]:
    """Notes that agents' transcripts are connected; returns what `connected_sources` does."""
    for agent in agents:
        tx.execute(
            "INSERT OR IGNORE INTO transcript_source (agent, connected_ms) VALUES (?, ?)",
            (agent, tx.at_ms),
        )
    return connected_sources(tx.db)


def connected_sources(db: apsw.Connection) -> dict[str, int]:
    """Returns by agent when its transcripts were first connected, in ms."""
    return dict(rows_of(db, "SELECT agent, connected_ms FROM transcript_source"))


def save_checkpoints(tx: Transaction, agent: str, checkpoints: Collection[Checkpoint]) -> None:
    """Notes how far files are, in the transaction of the last turns that they cover."""
    for one in checkpoints:
        stamp, head, last = one.reached.stamp, one.reached.head, one.reached.last
        tx.execute(
            _SAVE,
            (
                agent,
                os.fsencode(one.path),
                one.session,
                stamp.device,
                stamp.inode,
                stamp.size,
                stamp.mtime_ns,
                one.reached.position,
                int(one.done),
                head.length,
                head.digest,
                last.start,
                last.length,
                last.digest,
            ),
        )


def load_checkpoints(
    db: apsw.Connection, agent: str, session: str | None = None
) -> dict[Path, Checkpoint]:
    """Returns the checkpoints of an agent's files, or of those of one session."""
    sql = f"SELECT path, {_COLUMNS} FROM transcript_file WHERE agent = ?"
    if session is None:
        rows = rows_of(db, sql, (agent,))
    else:
        rows = rows_of(db, f"{sql} AND session = ?", (agent, session))
    found = (_checkpoint(*row) for row in rows)
    return {one.path: one for one in found}


def _checkpoint(
    path: bytes,
    session: str,
    device: int,
    inode: int,
    size: int,
    mtime_ns: int,
    position: int,
    done: int,
    *marks: Any,
) -> Checkpoint:
    head_length, head_digest, last_start, last_length, last_digest = marks
    return Checkpoint(
        path=Path(os.fsdecode(path)),
        session=session,
        reached=Reached(
            stamp=FileStamp(device=device, inode=inode, size=size, mtime_ns=mtime_ns),
            position=position,
            head=Mark(length=head_length, digest=head_digest),
            last=Mark(start=last_start, length=last_length, digest=last_digest),
        ),
        done=bool(done),
    )
