"""Follows OpenProgram's sessions while they are written.

A node's file is replaced whole, so nothing in it is half written: the fingerprint of a session is
that of names, sizes and times of its files. A node that is marked, or whose answer is finished now,
changes it as well. Of a session that is being written only the files that changed are read, and the
rest is kept in memory; what the store holds already is not placed again. A node whose predecessor
is nowhere waits a minute for it. A file that vanishes takes nothing back.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final, Unpack

from turnmark_session_store.store import SessionStore
from turnmark_session_store.transcripts.conversation_checkpoints import FileIdentity
from turnmark_session_store.transcripts.conversation_tail import ConversationTail
from turnmark_session_store.transcripts.database_live import Conversation
from turnmark_session_store.transcripts.live import Standing
from turnmark_session_store.transcripts.openprogram.homes import (
    HISTORY,
    META,
    SESSIONS,
    entries_of,
    homes_of,
    project_of,
)
from turnmark_session_store.transcripts.openprogram.kept_nodes import KeptNodes, stamp_of
from turnmark_session_store.transcripts.openprogram.reader import AGENT, SessionFiles, sessions_of
from turnmark_session_store.transcripts.tail_loop import TailOptions

# How long a node waits for the one before it.
_ORPHAN_SECONDS: Final = 60.0
# Nodes of a session that was not written for so long are not kept: a first look reads thousands.
_KEEP_SECONDS: Final = 60.0


class _Homes:
    """Finds the directories of sessions; a `SourceReader`."""

    agent = AGENT

    def places(self, root: Path) -> tuple[Path, ...]:
        """Returns where sessions are, but for those inside projects."""
        return (root / SESSIONS,)

    def databases(self, root: Path) -> Collection[Path]:
        """Returns the directories of all sessions."""
        return homes_of(root).found


class OpenProgramTail(ConversationTail[_Homes]):
    """Follows the sessions of a state directory, those inside projects included.

    It is told of changed files like any tail, but its places are not to be watched with all that
    is below them: `directories` are those whose files tell something.
    """

    def __init__(
        self,
        store: SessionStore,
        root: Path,
        *,
        orphan_seconds: float = _ORPHAN_SECONDS,
        **options: Unpack[TailOptions],
    ) -> None:
        super().__init__(store, _Homes(), root, **options)
        self._orphan_seconds = orphan_seconds
        self._nodes = KeptNodes()
        self._origins: dict[Path, list[Path]] = {}

    def directories(self) -> list[Path]:
        """Returns the directories in which a new, changed or missing name tells something.

        A session's directory is one from when it is made: what comes into it would not be heard.

        Raises:
            OSError: if one is there and can't be read.
        """
        homes = homes_of(self.root)
        histories = (home / HISTORY for home in homes.found)
        there = (one for one in histories if one.is_dir())
        return [self.root / SESSIONS, *homes.begun, *homes.found, *there]

    def _source_of(self, path: Path) -> Path | None:
        if path.parent.name == HISTORY:
            return path.parent.parent if path.suffix == ".json" else None
        if path.name in (HISTORY, META):
            return path.parent
        return None if path.suffix in (".json", ".tmp") else path

    def _found_in(self, path: Path) -> tuple[FileIdentity, int, list[Conversation]]:
        home = path.stat()
        size, newest = 0, 0.0
        told: list[str] = []
        for entry in entries_of(path):
            stamp = stamp_of(entry)
            if stamp is not None:
                size += stamp.size
                newest = max(newest, stamp.mtime_ns / 1e9)
                told.append(f"{entry.name} {stamp.size} {stamp.mtime_ns} {stamp.inode}")
        fingerprint = hashlib.blake2b("\n".join(sorted(told)).encode("utf-8", "surrogateescape"))
        one = Conversation(
            name=path.name,
            fingerprint=fingerprint.digest(),
            sessions={path.name: project_of(path)},
            touched_at=newest,
        )
        return FileIdentity(device=home.st_dev, inode=home.st_ino), size, [one]

    def _read(self, path: Path, one: Conversation, without: Collection[str]) -> Standing:
        if one.name in without:
            return Standing(sessions=())
        now = time.time()
        is_written = now < one.touched_at + _KEEP_SECONDS
        files = self._with_origins(path, self._nodes if is_written else KeptNodes())
        due = one.touched_at + self._orphan_seconds
        held: frozenset[str] = frozenset()
        if now < due:
            files, held = _without_orphans(files)
        return Standing(sessions=tuple(sessions_of(files)), held=held, due=due if held else None)

    def _with_origins(self, path: Path, nodes: KeptNodes) -> list[SessionFiles]:
        """Returns a session after those that its agents were spawned from, if they are remembered.

        A turn's caller must be in the store before the turn is.
        """
        own = nodes.files_of(path)
        named = {node.said("spawned_from_session") for node in own.graph.nodes.values()}
        named -= {None, own.name}
        homes = homes_of(self.root).found if named else ()
        origins = [home for home in homes if home.name in named and self._is_remembered(home)]
        self._origins[path] = origins
        return [*map(nodes.files_of, origins), own]

    def _forget_quiet(self) -> None:
        super()._forget_quiet()
        written = {key.path for key in self._talks}
        self._origins = {home: self._origins[home] for home in self._origins.keys() & written}
        self._nodes.forget_all_but(written.union(*self._origins.values()))

    def _is_remembered(self, home: Path) -> bool:
        return self._memory_for(project_of(home), home.name) != "off"


def _without_orphans(files: Iterable[SessionFiles]) -> tuple[list[SessionFiles], frozenset[str]]:
    """Returns the sessions without nodes that wait for another one, and those nodes."""
    left: list[SessionFiles] = []
    held: set[str] = set()
    for one in files:
        waiting = set(one.graph.lost)
        for key, parent in one.graph.parents.items():
            if parent in waiting:
                waiting.add(key)
        left.append(one.without(waiting) if waiting else one)
        held |= waiting
    return left, frozenset(held)
