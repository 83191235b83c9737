"""opencode's files of old versions, followed: most lie still, some are written to this day.

All files of a storage are one source. Those of a session are read again when one of them changed,
with the sessions that belong to it. A session that a database holds is left to it: what an old file
still has may have been taken back since.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from turnmark_session_store.transcripts.conversation_checkpoints import FileIdentity
from turnmark_session_store.transcripts.conversation_tail import ConversationTail
from turnmark_session_store.transcripts.database_file import directory_of, read_database, stamp_of
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.fields import mapping_at, string_at
from turnmark_session_store.transcripts.json_lines import unreadable
from turnmark_session_store.transcripts.live import Patience, Standing
from turnmark_session_store.transcripts.opencode.chain import without_sessions
from turnmark_session_store.transcripts.opencode.database import (
    PATIENCE,
    PATTERNS,
    stand,
)
from turnmark_session_store.transcripts.opencode.families import joined
from turnmark_session_store.transcripts.opencode.files import KINDS, Storage, id_in, read_object
from turnmark_session_store.transcripts.opencode.records import moment_of
from turnmark_session_store.transcripts.opencode.sessions import AGENT
from turnmark_session_store.transcripts.opencode.tables import sessions_with_messages

_NAME = "storage"
# Before that each project had a storage of its own.
_PROJECTS = "project"
# How many of the last messages of a session may still be written.
_LATE_MESSAGES = 4
_FINGERPRINT_BYTES = 16


class _Stat(NamedTuple):
    """What a file was when it was last looked at."""

    name: str
    mtime_ns: int
    size: int


class _Seen(NamedTuple):
    """A session as its files tell it without their words; `first_ms` is its first moment."""

    info: Mapping[str, Any]
    first_ms: int | None
    stats: list[_Stat]


class OpencodeStorages:
    """The storages below opencode's directory; a `SourceReader`."""

    agent = AGENT

    def __init__(self, patience: Patience = PATIENCE) -> None:
        self._patience = patience
        self._objects: dict[Path, tuple[_Stat, Mapping[str, Any]]] = {}

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns where storages are; `root` may be a database, beside which they are."""
        top = directory_of(root)
        return top / _NAME, top / _PROJECTS

    def databases(self, root: Path) -> Collection[Path]:
        """Returns the storages that are there."""
        storage, projects = self.places(root)
        found = [storage, *projects.glob(f"*/{_NAME}")]
        return sorted(path for path in found if (path / "session").is_dir())

    def look(self, base: Path) -> tuple[int, list[Conversation]]:
        """Returns the bytes of a storage and its families of sessions; reads no words.

        Raises:
            Unavailable: if a file, or a database beside it, can't be read.
        """
        seen = self._sessions(base)
        firsts: dict[int, list[str]] = {}
        for name, one in seen.items():
            if one.first_ms is not None:
                firsts.setdefault(one.first_ms, []).append(name)
        families = joined(
            {name: _began(one) for name, one in seen.items()},
            [(name, one.info.get("parentID")) for name, one in seen.items()],
            firsts.values(),
        )
        found = [_family([(name, seen[name]) for name in names]) for names in families]
        found.sort(key=lambda one: -one.touched_at)
        return sum(stat.size for one in seen.values() for stat in one.stats), found

    def read(
        self, base: Path, conversation: Conversation, *, without: Collection[str], now: float
    ) -> Standing:
        """Returns the sessions of a family, and what waits.

        Raises:
            Unavailable: if a file can't be read.
        """
        paths = Storage(base).session_files()
        own = [path for path in paths if id_in(self._object(path), path) in conversation.sessions]
        records = without_sessions(list(Storage(base, is_live=True).sessions(own)), without)
        return stand(records, self._patience, now)

    def _sessions(self, base: Path) -> dict[str, _Seen]:
        """Returns the sessions of a storage that no database holds."""
        storage, held = Storage(base), _held_by_databases(base)
        found: dict[str, _Seen] = {}
        for path in storage.session_files():
            info = self._object(path)
            name = id_in(info, path)
            if name in held or not ({"directory", "version"} & info.keys()):
                continue
            messages = storage.message_files(name, path)
            late = [
                part
                for message in messages[-_LATE_MESSAGES:]
                for part in storage.part_files(name, message.stem, path)
            ]
            first = self._object(messages[0]) if messages else info
            made = mapping_at(first, "time").get("created")
            stats = [*map(_stat, (path, *messages, *late))]
            found[name] = _Seen(info, moment_of(made) if messages else None, stats)
        return found

    def _object(self, path: Path) -> Mapping[str, Any]:
        """Returns the object in a file, read again only when it changed."""
        stat = _stat(path)
        known = self._objects.get(path)
        if known is None or known[0] != stat:
            known = self._objects[path] = stat, read_object(path)
        return known[1]


class StorageTail(ConversationTail[OpencodeStorages]):
    """Follows opencode's storages below one directory; run it in a task of its own."""

    def _source_of(self, path: Path) -> Path | None:
        storage, projects = self.places
        for base in (path, *path.parents):
            if base == storage or (base.name == _NAME and base.parent.parent == projects):
                # The program of today keeps other files beside them, written at each answer.
                within = path.relative_to(base).parts
                return base if not within or within[0] in KINDS else None
        return None

    def _found_in(self, path: Path) -> tuple[FileIdentity, int, list[Conversation]]:
        stamp = stamp_of(path)
        size, found = self._reader.look(path)
        return FileIdentity(device=stamp.device, inode=stamp.inode), size, found

    def _read(self, path: Path, one: Conversation, without: Collection[str]) -> Standing:
        return self._reader.read(path, one, without=without, now=time.time())


def _family(members: list[tuple[str, _Seen]]) -> Conversation:
    stats = [one.stats for _, one in members]
    digest = hashlib.blake2b(repr(stats).encode("utf-8", "surrogatepass"))
    return Conversation(
        name=members[0][0],
        fingerprint=digest.digest()[:_FINGERPRINT_BYTES],
        sessions={name: string_at(one.info, "directory") for name, one in members},
        touched_at=max(stat.mtime_ns for one in stats for stat in one) / 1e9,
    )


def _began(one: _Seen) -> int:
    return moment_of(mapping_at(one.info, "time").get("created")) or 0


def _held_by_databases(base: Path) -> set[str]:
    """Returns the sessions that the databases beside a storage hold."""
    top = base.parent
    top = top.parents[1] if top.parent.name == _PROJECTS else top
    paths = {path for pattern in PATTERNS for path in top.glob(pattern)}
    return set[str]().union(*(read_database(path, sessions_with_messages) for path in paths))


def _stat(path: Path) -> _Stat:
    try:
        status = path.stat()
    except FileNotFoundError:
        return _Stat(path.name, 0, 0)  # gone since it was listed
    except OSError as error:
        raise unreadable(path, error) from error
    return _Stat(path.name, status.st_mtime_ns, status.st_size)
