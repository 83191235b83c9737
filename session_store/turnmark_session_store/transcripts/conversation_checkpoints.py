"""Which conversations of agents' databases are in the store as they are: one fingerprint each.

A row moves in the transaction of the last turns that it covers, and never while turns of the
conversation are held back. It counts for one file only: where another takes the name of a database,
all of it is read again.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import msgspec

from turnmark_session_store.queries import rows_of
from turnmark_session_store.transaction import Transaction


class FileIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What tells a database from another one that takes its name."""

    device: int
    inode: int


class ConversationCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation that is in the store as it was when it had this fingerprint."""

    path: Path
    name: str
    identity: FileIdentity
    fingerprint: bytes


def save_conversation(tx: Transaction, agent: str, one: ConversationCheckpoint) -> None:
    """Notes that a conversation is in the store, in the transaction of its last turns."""
    tx.execute(
        "INSERT INTO transcript_conversation (agent, path, name, device, inode, fingerprint)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET device = excluded.device,"
        " inode = excluded.inode, fingerprint = excluded.fingerprint",
        (
            agent,
            os.fsencode(one.path),
            one.name,
            one.identity.device,
            one.identity.inode,
            one.fingerprint,
        ),
    )


def load_conversations(
    db: apsw.Connection, agent: str, path: Path, identity: FileIdentity
) -> dict[str, bytes]:
    """Returns the fingerprints of a database's conversations by name, as they are in the store."""
    rows = rows_of(
        db,
        "SELECT name, fingerprint FROM transcript_conversation"
        " WHERE agent = ? AND path = ? AND device = ? AND inode = ?",
        (agent, os.fsencode(path), identity.device, identity.inode),
    )
    return dict(rows)
