"""Follows an agent's databases while they are written, each reading in a transaction of its own."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from turnmark_session_store.transcripts.conversation_checkpoints import FileIdentity
from turnmark_session_store.transcripts.conversation_tail import ConversationTail
from turnmark_session_store.transcripts.database_file import (
    Database,
    database_of,
    read_database,
    size_of,
    stamp_of,
)
from turnmark_session_store.transcripts.database_live import Conversation, DatabaseReader
from turnmark_session_store.transcripts.live import Standing


class DatabaseTail(ConversationTail[DatabaseReader]):
    """Follows the databases of one agent below one directory; run it in a task of its own.

    A commit is told when the log is written and can be seen when the disk has it, of which nothing
    is told: the last one of an evening would wait until the morning.
    """

    # A disk that takes longer to sync is one that is looked at again with its next change.
    seen_after_seconds = 2.0

    def _source_of(self, path: Path) -> Path | None:
        return database_of(path)

    def _found_in(self, path: Path) -> tuple[FileIdentity, int, list[Conversation]]:
        """Returns what a database is, its bytes and its conversations, the newest first."""
        stamp = stamp_of(path)
        found = read_database(path, self._reader.conversations)
        return (
            FileIdentity(device=stamp.device, inode=stamp.inode),
            size_of(path),
            sorted(found, key=lambda one: -one.touched_at),
        )

    def _read(self, path: Path, one: Conversation, without: Collection[str]) -> Standing:
        def read(db: Database) -> Standing:
            return self._reader.read(db, one, without=without, now=time.time())

        return read_database(path, read)
