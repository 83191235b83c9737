"""The transcripts that the daemon follows: each agent's tail, its place, its rules, its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final

import anyio
import msgspec
import structlog
from anyio.abc import TaskStatus

from turnmark.config import MemoryMode, Rules, Settings
from turnmark.openprogram.watch import watch_openprogram
from turnmark.places import writer_dirs
from turnmark.watching import STEP_MS, FileWatcher
from turnmark_memory import Memory
from turnmark_session_store import SessionStore
from turnmark_session_store.backlog import park_backlog
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts import weclaw
from turnmark_session_store.transcripts.claude_code.live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.claude_code.sessions import AGENT as CLAUDE_CODE
from turnmark_session_store.transcripts.codex.compressed import compressed_below, is_unread
from turnmark_session_store.transcripts.codex.live import CodexLiveReader
from turnmark_session_store.transcripts.codex.sessions import AGENT as CODEX
from turnmark_session_store.transcripts.database_live import DatabaseReader
from turnmark_session_store.transcripts.database_tail import DatabaseTail
from turnmark_session_store.transcripts.hermes.database import HermesDatabaseReader
from turnmark_session_store.transcripts.hermes.sessions import AGENT as HERMES
from turnmark_session_store.transcripts.live import LiveReader
from turnmark_session_store.transcripts.openclaw.database import OpenClawDatabaseReader
from turnmark_session_store.transcripts.openclaw.live import OpenClawLiveReader
from turnmark_session_store.transcripts.openclaw.sessions import AGENT as OPENCLAW
from turnmark_session_store.transcripts.opencode.database import OpencodeDatabaseReader
from turnmark_session_store.transcripts.opencode.sessions import AGENT as OPENCODE
from turnmark_session_store.transcripts.opencode.storage import OpencodeStorages, StorageTail
from turnmark_session_store.transcripts.openprogram.reader import AGENT as OPENPROGRAM
from turnmark_session_store.transcripts.openprogram.tail import OpenProgramTail
from turnmark_session_store.transcripts.pi.live import PiLiveReader
from turnmark_session_store.transcripts.pi.sessions import AGENT as PI
from turnmark_session_store.transcripts.tail import TranscriptTail
from turnmark_session_store.transcripts.tail_loop import (
    Placed,
    Tail,
    TailOptions,
    TailStatus,
    connect,
)

log = structlog.get_logger(__name__)

_FREE_WRITER = "builtin"
# A look at all files takes a second or two. More is a first scan: neither a night nor a person who
# asked for one waits for its end.
_CATCH_UP_SECONDS = 60.0
# Transcripts, databases and their logs; SQLite's shared memory is changed by readers as well.
_ENDINGS = (".json", ".jsonl", ".db", ".sqlite", ".sqlite3", "-wal")

WATCHER_STEP_MS: Final = 300
"""The watcher's step where transcripts are followed. A line is to be a turn in under a second: two
steps until its event is told, and 0.4 s for reading, resolving and the commit, which a session of
some thousand records takes on a busy machine (`benchmarks/tail_latency.py` measures it)."""


Making = Callable[[SessionStore, Path, TailOptions], Tail]
"""Makes what follows an agent at the place that the configuration names."""


def _files(reader: Callable[[], LiveReader]) -> Making:
    return lambda store, root, options: TranscriptTail(store, reader(), root, **options)


def _databases(reader: Callable[[], DatabaseReader]) -> Making:
    return lambda store, root, options: DatabaseTail(store, reader(), root, **options)


_FOLLOWED: Mapping[str, Sequence[Making]] = {
    CLAUDE_CODE: (_files(ClaudeCodeLiveReader),),
    CODEX: (_files(CodexLiveReader),),
    OPENCLAW: (_files(OpenClawLiveReader), _databases(OpenClawDatabaseReader)),
    PI: (_files(PiLiveReader),),
    HERMES: (_databases(HermesDatabaseReader),),
    OPENCODE: (
        _databases(OpencodeDatabaseReader),
        lambda store, root, options: StorageTail(store, OpencodeStorages(), root, **options),
    ),
    OPENPROGRAM: (lambda store, root, options: OpenProgramTail(store, root, **options),),
}


class Transcripts:
    """Follows the agents that the configuration names: `watch_with` a watcher, then `run`."""

    def __init__(self, settings: Settings, store: SessionStore, memory: Memory) -> None:
        self._store = store
        followed = settings.transcripts
        self._weclaw = followed.get(weclaw.AGENT)
        self._compressed: list[Path] = []
        passed_over = writer_dirs(settings.state)
        if self._weclaw is None:
            passed_over += _as_named(weclaw.workspace(settings.home / weclaw.HOME))
        placed = _backlog_holder(settings, memory)

        def options(agent: str) -> TailOptions:
            memory_for = partial(_memory_for, settings.rules, agent, passed_over)
            return {"memory_for": memory_for, "placed": placed}

        self._off = [agent for agent in _FOLLOWED if agent not in followed]
        self._tails = {
            agent: [make(store, followed[agent], options(agent)) for make in makings]
            for agent, makings in _FOLLOWED.items()
            if agent in followed
        }

    @property
    def step_ms(self) -> int:
        """The step that the watcher of their files needs."""
        return WATCHER_STEP_MS if self._tails else STEP_MS

    def watch_with(self, watcher: FileWatcher) -> None:
        """Lets a watcher tell what changes below the places, which need not be there yet."""
        listeners: dict[Path, list[Tail]] = {}
        for tail in self._each():
            # OpenProgram's directories have a watch of their own: see `run`.
            for place in () if isinstance(tail, OpenProgramTail) else tail.places:
                listeners.setdefault(place, []).append(tail)
        for place, tails in listeners.items():
            deep = any(place not in tail.flat_places for tail in tails)
            told = partial(_tell, tails)
            watcher.add_root(place, told, accepts=is_of_transcripts, deep=deep)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follows until cancelled."""
        await connect(self._store, list(self._each()))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._look_for_compressed)
            for tail in self._each():
                await tasks.start(tail.run)
                if isinstance(tail, OpenProgramTail):
                    await tasks.start(watch_openprogram, tail)
            task_status.started()

    async def catch_up(self) -> None:
        """Looks at every file again, as before the night, and waits until that is done.

        A first scan of many files goes on behind the night; the newest files come first in it.
        """
        with anyio.move_on_after(_CATCH_UP_SECONDS) as waited:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._look_for_compressed)
                for tail in self._each():
                    tasks.start_soon(tail.catch_up)
        if waited.cancelled_caught:
            log.warning("transcripts_still_read", waited_seconds=_CATCH_UP_SECONDS)

    async def _look_for_compressed(self) -> None:
        """Notes Codex's compressed rollouts; new ones are seen at the next start or night."""
        places = [place for tail in self._tails.get(CODEX, ()) for place in tail.places]
        found = await anyio.to_thread.run_sync(lambda: list(compressed_below(places)))
        self._compressed = found

    def status(self) -> dict[str, Any]:
        """Returns for each agent how far it is followed."""
        found: dict[str, Any] = {agent: {"state": "off"} for agent in self._off}
        found |= {
            agent: msgspec.to_builtins(together([tail.status() for tail in tails]))
            for agent, tails in self._tails.items()
        }
        if compressed := sum(map(is_unread, self._compressed)):
            found[CODEX] |= {"compressed": compressed}
        return found | {weclaw.AGENT: _of_weclaw(self._weclaw)}

    def _each(self) -> Iterator[Tail]:
        for tails in self._tails.values():
            yield from tails


def is_of_transcripts(name: str) -> bool:
    """Tells whether a path below a root may be a transcript or a directory of them."""
    last = name.rsplit("/", 1)[-1]
    return last.endswith(_ENDINGS) or "." not in last


def together(found: Sequence[TailStatus]) -> TailStatus:
    """Returns the state of all that an agent keeps, in files and in databases."""
    there = [one for one in found if one.state != "waiting"] or found[:1]
    failed = next((one for one in there if one.last_error), None)
    return TailStatus(
        state="scanning" if any(one.state == "scanning" for one in there) else there[0].state,
        path=there[0].path,
        files=sum(one.files for one in there),
        bytes_done=sum(one.bytes_done for one in there),
        bytes_total=sum(one.bytes_total for one in there),
        held=sum(one.held for one in there),
        unread=sum(one.unread for one in there),
        last_error=None if failed is None else failed.last_error,
        next_try=None if failed is None else failed.next_try,
    )


async def _tell(tails: Sequence[Tail], paths: frozenset[str], everything: bool) -> None:
    for tail in tails:
        tail.changed(Path(path) for path in paths)
        if everything:
            tail.rescan()


def _of_weclaw(home: Path | None) -> dict[str, Any]:
    """Returns what becomes of what is said through weclaw, which nothing here follows."""
    if home is None:
        return {"state": "off"}
    state = "elsewhere" if home.is_dir() else "waiting"
    return {"state": state, "path": str(home), "note": weclaw.ELSEWHERE}


def _as_named(place: Path) -> tuple[Path, ...]:
    """Returns a directory under its name and as the system names it, links resolved."""
    return tuple(dict.fromkeys((place, place.resolve())))


def _memory_for(
    rules: Rules, agent: str, passed_over: Sequence[PurePath], project: str | None, session: str
) -> MemoryMode:
    """Says how a session may be remembered; a writer's own sessions are no memories (law 15)."""
    if project is not None and any(map(PurePath(project).is_relative_to, passed_over)):
        return "off"
    return rules.memory_for(agent, project, session)


def _backlog_holder(settings: Settings, memory: Memory) -> Placed:
    """Returns what holds older turns back from a writer that costs money, and nothing else."""
    config = settings.config
    if config.writer.kind == _FREE_WRITER or config.transcripts.backlog == "write":
        return _nothing_more
    return partial(hold_backlog, memory.key)


def hold_backlog(workspace: int, tx: Transaction, session: str, connected_ms: int) -> None:
    """Parks a session's turns from before its source was connected; see `park_backlog`."""
    park_backlog(tx, workspace, session, connected_ms)


def _nothing_more(tx: Transaction, session: str, connected_ms: int) -> None:
    del tx, session, connected_ms
