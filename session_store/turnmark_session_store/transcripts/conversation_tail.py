"""Follows conversations that are changed where they are: rows in, turns of the store out.

A change of what holds them, a database or its log, say, makes the reader say which conversations
there are; only those whose fingerprint is not the one in the store are read, and what is final of
them is placed. A row that vanishes takes nothing back. However fast the agent writes, and in how
many conversations of a source, looking and reading take at most half of the time; a quarter where
each takes no more than a tenth of a second. Older conversations are read without a rest.

A conversation is not kept in memory: only what the store is known to hold of it, for a minute.
"""

from __future__ import annotations

import hashlib
import math
import time
from abc import abstractmethod
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar, Unpack

import anyio.to_thread

from turnmark_events.errors import TurnmarkError
from turnmark_session_store.store import SessionStore
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.conversation_checkpoints import (
    ConversationCheckpoint,
    FileIdentity,
    load_conversations,
    save_conversation,
)
from turnmark_session_store.transcripts.conversation_sources import Key, Source, Talk
from turnmark_session_store.transcripts.database_live import (
    Conversation,
    ReadsFlatPlaces,
    SourceReader,
)
from turnmark_session_store.transcripts.known import Known
from turnmark_session_store.transcripts.live import Standing
from turnmark_session_store.transcripts.placing import place
from turnmark_session_store.transcripts.tail_loop import (
    Tail,
    TailOptions,
    TailStatus,
)

# What is known of a conversation's turns is dropped after so long without a change.
_KEEP_SECONDS = 60.0
# Conversations in memory at once, of which only ids are kept.
_KEEP_CONVERSATIONS = 32


R = TypeVar("R", bound=SourceReader)


class ConversationTail(Tail, Generic[R]):
    """Follows conversations of one agent that are changed where they are, whatever holds them.

    Of some sources a change is told before it can be seen: `seen_after_seconds` is how much later
    they are looked at once more, None for those that are as they are told.
    """

    seen_after_seconds: float | None = None

    def __init__(
        self, store: SessionStore, reader: R, root: Path, **options: Unpack[TailOptions]
    ) -> None:
        super().__init__(store, reader.agent, root, reader.places(root), **options)
        self._reader = reader
        source: SourceReader = reader
        if isinstance(source, ReadsFlatPlaces):
            self.flat_places = source.flat_places(root)
        self._sources: dict[Path, Source] = {}
        self._changed: dict[Key, None] = {}
        self._backlog: dict[Key, None] = {}
        self._talks: dict[Key, Talk] = {}
        self._off: dict[tuple[str, str | None], bool] = {}
        self._unread: dict[Key, int] = {}
        self._sizes: dict[Path, int] = {}

    def status(self) -> TailStatus:
        """Returns how far it is; of a database that is read, a share by its conversations."""
        total = sum(self._sizes.values())
        looking = self._scan_wanted or any(one.is_backlog for one in self._sources.values())
        there = bool(self._sources) or looking
        scanning = looking or bool(self._backlog)
        return TailStatus(
            state="waiting" if not there else "scanning" if scanning else "following",
            path=str(self.root if there else self.places[0]),
            files=len(self._sources),
            bytes_done=total - sum(map(self._bytes_left, self._sources.values())),
            bytes_total=total,
            held=sum(talk.held for talk in self._talks.values()),
            unread=sum(self._unread.values()),
            last_error=self._last_error,
            next_try=self._next_try,
        )

    def _bytes_left(self, source: Source) -> int:
        size = self._sizes.get(source.path, 0)
        if source.is_backlog:
            return size
        waiting = (self._changed.keys() | self._backlog.keys()) if source.found else ()
        left = sum(key.path == source.path for key in waiting)
        return size * left // len(source.found) if left else 0

    async def _do_next(self) -> bool:
        if self._scan_wanted or self._dirty or self._is_root_due():
            await self._sort_in()
        elif (source := self._next_source()) is not None:
            await self._look(source)
        elif (key := self._next()) is not None:
            await self._follow(key)
        elif self._backlog:
            await self._follow(self._take(next(iter(self._backlog))), is_backlog=True)
        else:
            self._forget_quiet()
            return False
        return True

    def _moments(self) -> list[float]:
        moments = [one.due for one in self._sources.values() if one.due < math.inf]
        moments += [self._talks[key].rests_until for key in self._changed if key in self._talks]
        for talk in self._talks.values():
            if talk.due is not None:
                moments.append(max(talk.due, talk.rests_until))
            else:
                moments.append(talk.touched_at + _KEEP_SECONDS)
        return [*moments, *self._root_tries()]

    def _is_root_due(self) -> bool:
        return any(at <= time.time() for at in self._root_tries())

    def _root_tries(self) -> Collection[float]:
        """Returns when a directory that could not be looked at is looked at again."""
        return self._failures.next_tries([str(self.root)]).values()

    @abstractmethod
    def _source_of(self, path: Path) -> Path | None:
        """Returns what holds the conversation that a changed path is of, None if nothing does."""

    @abstractmethod
    def _found_in(self, path: Path) -> tuple[FileIdentity, int, list[Conversation]]:
        """Returns what a source is, its bytes and its conversations, the newest first."""

    @abstractmethod
    def _read(self, path: Path, one: Conversation, without: Collection[str]) -> Standing:
        """Returns what a conversation says now; blocks on disk."""

    # What to look at next.

    async def _sort_in(self) -> None:
        """Turns wishes and changed paths into databases to look at."""
        dirty, self._dirty = self._dirty, set()
        scan, self._scan_wanted = self._scan_wanted or self._is_root_due(), False
        changed = set(filter(None, map(self._source_of, dirty)))
        if scan or not changed <= self._sources.keys():
            there = await self._sources_there()
            found = {path for path in there if scan or changed & {path, *path.parents}}
        else:
            found = changed
        if scan:
            for path in self._sources.keys() - found:
                self._forget_source(path)
            self._tell_of_scan("databases_scanned", databases=len(found))
        for path in found:
            source = self._sources.setdefault(path, Source(path))
            source.wants_look = True
            if scan:  # whoever asks for it waits for it
                source.is_backlog, source.looks_from = True, 0.0

    async def _sources_there(self) -> Collection[Path]:
        """Returns all that there is; what was there where the directory can't be looked at."""
        try:
            there = await anyio.to_thread.run_sync(self._reader.databases, self.root)
        except OSError as error:
            self._failed(str(self.root), error)
            return list(self._sources)
        self._failures.end(str(self.root))
        return there

    def _forget_source(self, path: Path) -> None:
        del self._sources[path]
        self._sizes.pop(path, None)
        for waiting in (self._changed, self._backlog):
            for key in [key for key in waiting if key.path == path]:
                del waiting[key]
        for key in [key for key in self._talks if key.path == path]:
            del self._talks[key]
            self._failures.end(key.label)
        self._failures.end(str(path))

    def _next_source(self) -> Source | None:
        now = time.time()
        return next((one for one in self._sources.values() if one.due <= now), None)

    async def _look(self, source: Source) -> None:
        """Finds the conversations of a database that are not in the store as they are."""
        was_told = source.wants_look
        source.wants_look, source.retry_at = False, math.inf
        began = time.monotonic()
        try:
            found = await anyio.to_thread.run_sync(self._found_in, source.path)
        except FileNotFoundError:
            self._forget_source(source.path)  # its turns stay: absence takes nothing back
            return
        except (TurnmarkError, OSError) as error:
            source.retry_at = self._failed(str(source.path), error)
            source.is_backlog = False
        else:
            self._failures.end(str(source.path))
            await self._compare(source, found)
            if was_told and self.seen_after_seconds is not None:
                source.retry_at = time.time() + self.seen_after_seconds
        source.looks_from = time.time() + self._rest_after(time.monotonic() - began)

    async def _compare(
        self, source: Source, found: tuple[FileIdentity, int, list[Conversation]]
    ) -> None:
        identity, self._sizes[source.path], conversations = found
        if source.identity != identity:
            load = partial(
                load_conversations, agent=self.agent, path=source.path, identity=identity
            )
            source.seen = await self._store.read(load)
            source.identity = identity
        source.found = {one.name: one for one in conversations}
        waiting = self._backlog if source.is_backlog else self._changed
        for one in conversations:
            if self._without_memory(one) >= one.sessions.keys():
                continue
            if source.seen.get(one.name) != self._fingerprint(one):
                waiting[Key(source.path, one.name)] = None
        source.is_backlog = False

    def _next(self) -> Key | None:
        """Returns what changed, else what is due."""
        now = time.time()
        for key in self._changed:
            if key not in self._talks or self._talks[key].rests_until <= now:
                return self._take(key)
        for key, talk in self._talks.items():
            if talk.due is not None and max(talk.due, talk.rests_until) <= now:
                return self._take(key)
        return None

    def _take(self, key: Key) -> Key:
        self._changed.pop(key, None)
        self._backlog.pop(key, None)
        return key

    def _forget_quiet(self) -> None:
        """Drops what is known of conversations that are quiet, and of too many."""
        now = time.time()
        whole = [key for key, talk in self._talks.items() if talk.due is None]
        whole.sort(key=lambda key: self._talks[key].touched_at)
        too_many = len(self._talks) - _KEEP_CONVERSATIONS
        for index, key in enumerate(whole):
            if index < too_many or self._talks[key].touched_at + _KEEP_SECONDS <= now:
                del self._talks[key]

    # One conversation.

    async def _follow(self, key: Key, *, is_backlog: bool = False) -> None:
        """Brings a conversation up to its rows; a failure is told and tried again, never fatal."""
        source = self._sources.get(key.path)
        conversation = source.found.get(key.name) if source is not None else None
        talk = self._talks.setdefault(key, Talk())
        talk.due = None
        if source is None or conversation is None:
            del self._talks[key]  # gone at the source: what is in the store stays
            self._failures.end(key.label)
            return
        began = time.monotonic()
        try:
            await self._bring(source, conversation, talk)
        except (TurnmarkError, OSError) as error:
            talk.due = self._failed(key.label, error)
        else:
            self._failures.end(key.label)
        spent = time.monotonic() - began
        rest = self._rest_after(spent)
        talk.touched_at = now = time.time()
        talk.rests_until = now + rest
        if not is_backlog:
            # The rests of all that one look leads to add up, before the next look.
            source.looks_from = max(source.looks_from + spent, now) + rest
        if len(self._talks) > _KEEP_CONVERSATIONS:
            self._forget_quiet()

    async def _bring(self, source: Source, one: Conversation, talk: Talk) -> None:
        """Places what is final, and saves the fingerprint with the last of it."""
        without = self._without_memory(one)
        standing = await anyio.to_thread.run_sync(self._read, source.path, one, without)
        await self._look_up(talk.known, standing)
        works = await anyio.to_thread.run_sync(partial(talk.known.works, standing, rewritten=True))
        checkpoint = None if standing.held else self._checkpoint(source, one)
        for work in works:
            prepared = await self._store.prepare([turn.turn for turn in work.turns])
            mode = self._memory_for(work.read.project, work.read.session)
            saved = checkpoint if work is works[-1] else None
            then = partial(self._end_placing, session=work.read.session, checkpoint=saved)
            await place(self._store, work.plan(prepared, mode), then)
            talk.known.was_placed(work, prepared)
        if checkpoint is not None and not works:
            save = partial(save_conversation, agent=self.agent, one=checkpoint)
            await self._store.write(save, background=True)
        source.seen[one.name] = self._fingerprint(one)
        talk.held, talk.due = len(standing.held), standing.due
        self._unread[Key(source.path, one.name)] = sum(
            len(read.warnings) for read in standing.sessions
        )

    def _without_memory(self, one: Conversation) -> set[str]:
        """Returns the sessions that must not be remembered; each is asked about once."""
        for key in one.sessions.items():
            if key not in self._off:
                session, project = key
                self._off[key] = self._memory_for(project, session) == "off"
        return {session for session, project in one.sessions.items() if self._off[session, project]}

    def _fingerprint(self, one: Conversation) -> bytes:
        """Returns a conversation's fingerprint, another one if other sessions are left out."""
        without = sorted(self._without_memory(one))
        if not without:
            return one.fingerprint
        return one.fingerprint + hashlib.blake2b("\n".join(without).encode()).digest()

    async def _look_up(self, known: Known, standing: Standing) -> None:
        """Learns which turns of a conversation are in the store."""
        ids = {turn.turn.id or "" for read in standing.sessions for turn in read.turns}
        ids.update(standing.replaced)
        sessions = {read.session for read in standing.sessions}
        sessions |= {read.forked_from.session for read in standing.sessions if read.forked_from}
        for namespace in {read.namespace for read in standing.sessions}:
            await known.look_up(self._store, ids, sessions=sessions, namespace=namespace)

    def _checkpoint(self, source: Source, one: Conversation) -> ConversationCheckpoint:
        assert source.identity is not None  # noqa: S101  it was looked at before it is read
        return ConversationCheckpoint(
            path=source.path,
            name=one.name,
            identity=source.identity,
            fingerprint=self._fingerprint(one),
        )

    def _end_placing(
        self, tx: Transaction, session: str, checkpoint: ConversationCheckpoint | None
    ) -> None:
        self._placed(tx, session, self._connected_ms)
        if checkpoint is not None:
            save_conversation(tx, self.agent, checkpoint)
