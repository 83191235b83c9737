"""The transcripts that the daemon follows: each agent's tail, its place, its rules, its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final

import anyio
import msgspec
import structlog
from anyio.abc import TaskStatus

from turnmark.config import MemoryMode, Rules, Settings
from turnmark.places import writer_dirs
from turnmark.watching import STEP_MS, FileWatcher
from turnmark_memory import Memory
from turnmark_session_store import SessionStore
from turnmark_session_store.backlog import park_backlog
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.transcripts.claude_live import ClaudeCodeLiveReader
from turnmark_session_store.transcripts.codex_live import CodexLiveReader
from turnmark_session_store.transcripts.live import LiveReader
from turnmark_session_store.transcripts.tail import Placed, TranscriptTail

log = structlog.get_logger(__name__)

_FREE_WRITER = "builtin"
# A look at all files takes a second or two. More is a first scan: neither a night nor a person who
# asked for one waits for its end.
_CATCH_UP_SECONDS = 60.0

WATCHER_STEP_MS: Final = 300
"""The watcher's step where transcripts are followed. A line is to be a turn in under a second: two
steps until its event is told, and 0.4 s for reading, resolving and the commit, which a session of
some thousand records takes on a busy machine (`benchmarks/tail_latency.py` measures it)."""


class Transcripts:
    """Follows the agents that the configuration names: `watch_with` a watcher, then `run`."""

    def __init__(self, settings: Settings, store: SessionStore, memory: Memory) -> None:
        readers: Iterable[LiveReader] = (ClaudeCodeLiveReader(), CodexLiveReader())
        self._off = [reader.agent for reader in readers if reader.agent not in settings.transcripts]
        placed = _backlog_holder(settings, memory)
        self._tails = {
            reader.agent: TranscriptTail(
                store,
                reader,
                settings.transcripts[reader.agent],
                memory_for=partial(
                    _memory_for, settings.rules, reader.agent, writer_dirs(settings.state)
                ),
                placed=placed,
            )
            for reader in readers
            if reader.agent in settings.transcripts
        }

    @property
    def step_ms(self) -> int:
        """The step that the watcher of their files needs."""
        return WATCHER_STEP_MS if self._tails else STEP_MS

    def watch_with(self, watcher: FileWatcher) -> None:
        """Lets a watcher tell what changes below the places, which need not be there yet."""
        for tail in self._tails.values():
            for place in tail.places:
                watcher.add_root(place, partial(_tell, tail), accepts=is_of_transcripts)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Follows until cancelled."""
        async with anyio.create_task_group() as tasks:
            for tail in self._tails.values():
                await tasks.start(tail.run)
            task_status.started()

    async def catch_up(self) -> None:
        """Looks at every file again, as before the night, and waits until that is done.

        A first scan of many files goes on behind the night; the newest files come first in it.
        """
        with anyio.move_on_after(_CATCH_UP_SECONDS) as waited:
            async with anyio.create_task_group() as tasks:
                for tail in self._tails.values():
                    tasks.start_soon(tail.catch_up)
        if waited.cancelled_caught:
            log.warning("transcripts_still_read", waited_seconds=_CATCH_UP_SECONDS)

    def status(self) -> dict[str, Any]:
        """Returns for each agent how far it is followed."""
        found: dict[str, Any] = {agent: {"state": "off"} for agent in self._off}
        return found | {
            agent: msgspec.to_builtins(tail.status()) for agent, tail in self._tails.items()
        }


def is_of_transcripts(name: str) -> bool:
    """Tells whether a path below a root may be a transcript or a directory of them."""
    last = name.rsplit("/", 1)[-1]
    return last.endswith(".jsonl") or "." not in last


async def _tell(tail: TranscriptTail, paths: frozenset[str], everything: bool) -> None:
    tail.changed(Path(path) for path in paths)
    if everything:
        tail.rescan()


def _memory_for(
    rules: Rules, agent: str, writers: Sequence[PurePath], project: str | None, session: str
) -> MemoryMode:
    """Says how a session may be remembered; a writer's own sessions are no memories (law 15)."""
    if project is not None and any(map(PurePath(project).is_relative_to, writers)):
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
