"""Follows an agent's transcripts while they are written: files in, turns of the store out.

Nothing is polled. A file event (`changed`), a wish for a look at everything (`rescan`) or the
nearest deadline wakes one task, which reads what has grown, resolves it together with the files it
rests on, and places what is final. The files are the truth and the checkpoints are behind it: an
event that is lost, or a process that dies anywhere, costs a second reading and no turn.

Memory is bounded by what is being written: a session's rows are kept while its files grow and for
a minute after, and read again when they grow later.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Unpack

import anyio
import anyio.to_thread

from turnmark_events.errors import TurnmarkError
from turnmark_session_store.store import SessionStore
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.checkpoints import (
    Checkpoint,
    load_checkpoints,
    save_checkpoints,
)
from turnmark_session_store.transcripts.following import Followed
from turnmark_session_store.transcripts.live import LiveReader
from turnmark_session_store.transcripts.placing import place
from turnmark_session_store.transcripts.scanning import FoundFile, files_below
from turnmark_session_store.transcripts.tail_loop import (
    Tail,
    TailOptions,
    TailStatus,
)

# A session that was quiet for so long leaves memory; its files are read again if it goes on.
_KEEP_SECONDS = 60.0
# Sessions in memory at once; people write in a handful, a machine with more reads some again.
_KEEP_SESSIONS = 32


class TranscriptTail(Tail):
    """Follows the transcripts of one agent below one directory; run it in a task of its own.

    `places` are those below `root` where transcripts lie; nothing else is looked at.
    """

    def __init__(
        self, store: SessionStore, reader: LiveReader, root: Path, **options: Unpack[TailOptions]
    ) -> None:
        super().__init__(store, reader.agent, root, reader.places(root), **options)
        self._reader = reader
        self._is_looking = False
        self._root_is_there = False
        self._changed: dict[str, None] = {}
        self._backlog: dict[str, None] = {}
        self._files: dict[Path, FoundFile] = {}
        self._paths: dict[str, set[Path]] = {}
        self._followed: dict[str, Followed] = {}
        self._off: set[str] = set()
        self._unread: dict[str, int] = {}

    def status(self) -> TailStatus:
        """Returns how far it is."""
        total = sum(file.stamp.size for file in self._files.values())
        waiting = self._changed.keys() | self._backlog.keys()
        left = sum(
            self._files[path].stamp.size
            for session in waiting
            for path in self._paths.get(session, ())
            if path in self._files
        )
        looking = self._scan_wanted or self._is_looking
        scanning = looking or bool(self._backlog)
        there = self._root_is_there or looking
        return TailStatus(
            state="waiting" if not there else "scanning" if scanning else "following",
            path=str(self.root if there else self.places[0]),
            files=len(self._files),
            bytes_done=total - left,
            bytes_total=total,
            held=sum(len(one.held) for one in self._each()),
            unread=self._count_unread(),
            last_error=self._last_error,
            next_try=self._next_try,
        )

    async def _do_next(self) -> bool:
        if self._scan_wanted or self._dirty:
            await self._sort_in()
        elif (session := self._next()) is not None:
            await self._follow(session)
        else:
            self._forget_quiet()
            return False
        return True

    # What to look at next.

    async def _sort_in(self) -> None:
        """Turns wishes and changed paths into sessions to look at."""
        if self._scan_wanted:
            self._scan_wanted, self._is_looking = False, True
            await self._scan()
            self._is_looking = False
        dirty, self._dirty = self._dirty, set()
        found = await anyio.to_thread.run_sync(self._found_among, dirty)
        for file in found:
            self._root_is_there = True
            if self._files.get(file.path) != file or file.session in self._failures:
                if file.session not in self._paths:
                    self._look_again_for(file.session)
                self._note(file)
                self._changed[file.session] = None

    def _look_again_for(self, session: str) -> None:
        """Lets those be looked at again whose turns may wait for a session that has come."""
        for followed in self._each():
            if followed.held and session in followed.live.sessions_named():
                self._changed[followed.session] = None

    def _found_among(self, paths: Collection[Path]) -> list[FoundFile]:
        found: list[FoundFile] = []
        for path in paths:
            if any(path == place or place in path.parents for place in self.places):
                found += files_below(path, self._reader.session_of)
        return found

    def _is_a_place_there(self) -> bool:
        return any(place.is_dir() for place in self.places)

    async def _scan(self) -> None:
        """Looks at every file; what its checkpoint covers is not opened. The newest come first."""
        found = await anyio.to_thread.run_sync(self._found_among, self.places)
        self._root_is_there = await anyio.to_thread.run_sync(self._is_a_place_there)
        known = await self._store.read(lambda db: load_checkpoints(db, self.agent))
        self._files.clear()
        self._paths.clear()
        newest_first = sorted(found, key=lambda file: -file.stamp.mtime_ns)
        for file in newest_first:
            self._note(file)
            checkpoint = known.get(file.path)
            if checkpoint is None or not checkpoint.done or checkpoint.reached.stamp != file.stamp:
                self._backlog[file.session] = None
        self._failures.keep_only(self._paths)
        self._tell_of_scan(
            "transcripts_scanned", files=len(found), sessions_to_read=len(self._backlog)
        )

    def _note(self, file: FoundFile) -> None:
        self._files[file.path] = file
        self._paths.setdefault(file.session, set()).add(file.path)

    def _next(self) -> str | None:
        """Returns what changed, else what is due, else the next of the backlog."""
        now = time.time()
        for session in self._changed:
            followed = self._followed.get(session)
            if followed is None or followed.rests_until <= now:
                return self._take(session)
        for followed in self._each():
            if followed.due is not None and followed.due <= now and followed.rests_until <= now:
                return self._take(followed.session)
        for session, at in self._failures.next_tries(self._paths).items():
            if at <= now:
                return self._take(session)
        oldest = next(iter(self._backlog), None)
        return None if oldest is None else self._take(oldest)

    def _take(self, session: str) -> str:
        self._changed.pop(session, None)
        self._backlog.pop(session, None)
        return session

    def _moments(self) -> list[float]:
        moments = [
            followed.rests_until
            for session in self._changed
            if (followed := self._followed.get(session)) is not None
        ]
        for followed in self._each():
            if followed.due is not None:
                moments.append(max(followed.due, followed.rests_until))
            elif not followed.held:
                moments.append(followed.touched_at + _KEEP_SECONDS)
        return [*moments, *self._failures.next_tries(self._paths).values()]

    def _each(self) -> list[Followed]:
        return list({id(one): one for one in self._followed.values()}.values())

    def _count_unread(self) -> int:
        """Returns how many lines can't be read, each once, however often its file is read."""
        live = {one.session: one.live.unread for one in self._each()}
        return sum((self._unread | live).values())

    def _forget_quiet(self) -> None:
        """Drops from memory what is quiet and whole, and the longest quiet of too many."""
        now = time.time()
        whole = sorted((one for one in self._each() if not one.held), key=lambda o: o.touched_at)
        too_many = len(self._each()) - _KEEP_SESSIONS
        for index, followed in enumerate(whole):
            if index < too_many or followed.touched_at + _KEEP_SECONDS <= now:
                self._drop(followed)

    def _drop(self, followed: Followed) -> None:
        self._unread[followed.session] = followed.live.unread
        for session in followed.sessions:
            self._followed.pop(session, None)

    # One session and what it rests on.

    async def _follow(self, session: str) -> None:
        """Brings a session up to its files; a failure is told and tried again, never fatal."""
        if session in self._off:
            self._failures.end(session)
            return
        followed = self._followed.get(session)
        began = time.monotonic()
        is_first = followed is None
        try:
            if followed is None:
                followed = Followed(session, self._reader.live_set())
                self._followed[session] = followed
            unreadable = await self._read(followed)
            await self._bring(followed)
            if unreadable is not None:
                raise unreadable
        except (TurnmarkError, OSError) as error:
            due = self._failed(session, error)
            if session in self._followed:
                self._followed[session].due = due
        else:
            self._failures.end(session)
            spent = time.monotonic() - began
            followed.touched_at = now = time.time()
            # The first look reads the whole file, which no other does: it says nothing of them.
            followed.rests_until = now + (0.0 if is_first else self._rest_after(spent))
            quiet = now - followed.live.grown_at > _KEEP_SECONDS
            if quiet and not followed.held and not self._changed.keys() & followed.sessions:
                self._drop(followed)

    async def _add(self, followed: Followed, session: str) -> None:
        """Adds a session's files, or all that is in memory together with them."""
        other = self._followed.get(session)
        if other is not None and other is not followed:
            followed.join(other)
        else:
            known = await self._store.read(lambda db: load_checkpoints(db, self.agent, session))
            reached = {path: one.reached for path, one in known.items()}
            followed.live.add(session, self._paths.get(session, set()), reached)
            followed.sessions.add(session)
        for name in followed.sessions:
            self._followed[name] = followed

    async def _read(self, followed: Followed) -> OSError | None:
        """Reads what has grown, and adds the sessions that the records and their turns lead to.

        A file that can't be read keeps no other from being followed; its error is returned.
        """
        unreadable: OSError | None = None
        for session in followed.sessions:
            if not self._paths.get(session, set()) <= set(followed.live.paths):
                followed.live.add(session, self._paths[session], {})
        more = [followed.session] if not followed.sessions else []
        while True:
            for session in more:
                await self._add(followed, session)
            try:
                await anyio.to_thread.run_sync(followed.live.read_on, time.time())
            except OSError as error:
                unreadable = error
            self._leave_out_what_is_off(followed)
            named = followed.live.sessions_named()
            await followed.known.look_up(
                self._store,
                followed.live.turn_ids(),
                sessions=followed.sessions | named,
                namespace=self._reader.namespace,
            )
            named |= followed.known.owners
            named -= followed.sessions | self._off
            more = [session for session in sorted(named) if session in self._paths]
            if not more:
                return unreadable

    def _leave_out_what_is_off(self, followed: Followed) -> None:
        """Drops the files of sessions that must not be remembered; they are not opened again."""
        for session in list(followed.sessions):
            project = followed.live.project_of(session)
            if self._memory_for(project, session) == "off":
                followed.live.leave_out(session)
                followed.sessions.discard(session)
                self._followed.pop(session, None)
                self._off.add(session)

    async def _bring(self, followed: Followed) -> None:
        """Places what is final, and saves how far the files are with the last of it."""
        works = await anyio.to_thread.run_sync(followed.stand, time.time())
        checkpoints = followed.unsaved()
        for work in works:
            prepared = await self._store.prepare([one.turn for one in work.turns])
            mode = self._memory_for(work.read.project, work.read.session)
            saved = checkpoints if work is works[-1] else []
            then = partial(self._end_placing, session=work.read.session, checkpoints=saved)
            await place(self._store, work.plan(prepared, mode), then)
            followed.known.was_placed(work, prepared)
        if checkpoints and not works:
            save = partial(save_checkpoints, agent=self.agent, checkpoints=checkpoints)
            await self._store.write(save, background=True)
        followed.were_saved(checkpoints)

    def _end_placing(
        self, tx: Transaction, session: str, checkpoints: Sequence[Checkpoint]
    ) -> None:
        self._placed(tx, session, self._connected_ms)
        save_checkpoints(tx, self.agent, checkpoints)
