"""The daemon: started bottom up, stopped top down, each step named in the log.

Order of a start: the state directory and its lock, the token counter, the session store, the bus,
the memory (its workspace's lock, unfinished installs), the worker, the idle clock, and the socket
last: whoever can connect is served. The end goes the other way.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import structlog

from turnmark.config import ConfigRefused, Settings
from turnmark.methods import Api, method_table
from turnmark.notify import Notifier
from turnmark.places import writer_dirs
from turnmark.rpc.server import Server
from turnmark.rpc.socket_path import check_socket_path
from turnmark.transcripts import Transcripts
from turnmark.watching import FileWatcher
from turnmark.writer_table import Task, WriterTable
from turnmark_events.bus import Bus
from turnmark_events.errors import Unavailable
from turnmark_events.types import Event
from turnmark_memory import Memory, MemorySettings
from turnmark_memory.budget import Budget
from turnmark_memory.embedding.embedder import Choice, Embedder, find_embedder
from turnmark_memory.models.metering import metered
from turnmark_memory.models.registry import Models, make_models, missing
from turnmark_memory.planning import Look
from turnmark_memory.tokens import TokenCounter, load_counter
from turnmark_memory.writers.registry import make_writer
from turnmark_session_store import SessionStore
from turnmark_session_store.idle import IdleClock
from turnmark_session_store.place_lock import hold_lock

log = structlog.get_logger(__name__)

DATABASE = "sessions.db"
SOCKET_PATH_FILE = "socket.path"
_GRACE_SECONDS = 5.0
_MS_PER_MINUTE = 60_000


async def serve(settings: Settings) -> None:
    """Runs the daemon until SIGTERM or SIGINT; a second signal skips the waiting.

    Raises:
        PlaceTaken: if another daemon holds the state or the workspace.
        TurnmarkError: whatever else keeps it from starting; the message says what to do.
    """
    notifier = Notifier(settings.notify_socket)
    async with AsyncExitStack() as stack:
        started = time.monotonic()
        daemon = await _start(stack, settings)
        # Before `ready` is said: whoever has read it may send a signal at once.
        signals = stack.enter_context(anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT))
        notifier.ready(f"listening on {settings.socket}")
        print(f"ready {settings.socket}", flush=True)  # noqa: T201  the promise of `serve`
        log.info("ready", socket=str(settings.socket), seconds=_since(started))
        await _wait_for_end(daemon, settings, notifier, signals)


class _Daemon:
    """The running parts, for those who stop or inspect them."""

    def __init__(self, store: SessionStore, memory: Memory, bus: Bus, writer: WriterTable) -> None:
        self.store = store
        self.memory = memory
        self.bus = bus
        self._writer = writer
        self.server: Server | None = None
        self.transcripts: Transcripts | None = None
        self._ready_at = time.monotonic()

    def inspect(self) -> dict[str, Any]:
        """Returns what `status` shows of the process itself."""
        connections = 0 if self.server is None else len(self.server.statistics().connections)
        return {
            "uptime_seconds": time.monotonic() - self._ready_at,
            "subscribers": list(self.bus.statistics().subscribers),
            "connections": connections,
            "transcripts": {} if self.transcripts is None else self.transcripts.status(),
            "models_lack": _models_lack(self._writer),
        }


async def _start(stack: AsyncExitStack, settings: Settings) -> _Daemon:
    """Starts everything, bottom up; the stack stops it in reverse."""
    check_socket_path(settings.socket)  # here, before anything is made
    _make_private(settings.state)
    stack.enter_context(hold_lock(settings.state / "lock"))
    counter = await anyio.to_thread.run_sync(_loaded_counter)
    store = await stack.enter_async_context(_open_store(settings, counter))
    bus = Bus(replay=store.events_after, last_seq=await store.last_seq())
    clock = IdleClock(store)
    store.publish = _publisher(bus, clock)
    memory = await stack.enter_async_context(_open_memory(settings, store, counter))
    daemon = _Daemon(store, memory, bus, settings.config.writer)
    for lack in _models_lack(settings.config.writer):
        log.warning("model_not_ready", lack=lack)
    transcripts = Transcripts(settings, store, memory)
    memory.before_night.append(transcripts.catch_up)
    tasks = await stack.enter_async_context(_tasks("worker and idle clock"))
    await tasks.start(memory.run, bus)
    tasks.start_soon(clock.run)
    watcher = _watcher_of(memory, transcripts)
    await tasks.start(watcher.run)
    await tasks.start(transcripts.run)
    daemon.transcripts = transcripts
    tasks.start_soon(store.erase_forgotten)
    tasks.start_soon(_trim_events, store, bus)
    api = Api(store, memory, settings.rules, daemon.inspect, state=settings.state.resolve())
    methods = method_table(api, store, memory, bus)
    daemon.server = Server(path=settings.socket, methods=methods, grace_seconds=_GRACE_SECONDS)
    await stack.enter_async_context(_serving(daemon.server, settings))
    return daemon


async def _trim_events(store: SessionStore, bus: Bus) -> None:
    """Drops events that are past keeping, now and after each night."""
    await store.trim_events()
    async with bus.subscribe(name="trimming", types=["NightDone"]) as nights:
        async for _ in nights:
            await store.trim_events()


def _loaded_counter() -> TokenCounter:
    """Returns the counter with its vocabulary loaded, so that no append waits for it later."""
    counter = load_counter()
    counter.count("")
    log.debug("counter_loaded", counter=counter.name)
    return counter


def _watcher_of(memory: Memory, transcripts: Transcripts) -> FileWatcher:
    """Returns the watcher of all files that tell something: topics, and other agents' files."""

    async def told(paths: frozenset[str], everything: bool) -> None:
        if everything:
            await memory.rescan()
        else:
            await memory.files_changed(paths)

    watcher = FileWatcher(step_ms=transcripts.step_ms)
    watcher.add_root(memory.topics_folder, told)
    transcripts.watch_with(watcher)
    return watcher


def _publisher(bus: Bus, clock: IdleClock) -> Any:
    def publish(events: Sequence[Event]) -> None:
        bus.publish(events)
        clock.saw(events)

    return publish


@asynccontextmanager
async def _open_store(
    settings: Settings, counter: TokenCounter
) -> AsyncGenerator[SessionStore, None]:
    store = SessionStore.open(
        settings.state / DATABASE,
        count=counter.count,
        idle_ms=max(1, round(settings.config.memory.idle_minutes * _MS_PER_MINUTE)),
        mask=settings.config.privacy.mask,
    )
    try:
        yield store
    finally:
        await store.aclose()
        log.info("store_closed")


@asynccontextmanager
async def _open_memory(
    settings: Settings, store: SessionStore, counter: TokenCounter
) -> AsyncGenerator[Memory, None]:
    config = settings.config
    budget = Budget(store, config.writer.daily_tokens)
    models = metered(_models(settings), budget, counter.count)
    memory = await Memory.open(
        store,
        settings.workspace,
        make_writer(
            config.writer.kind,
            models.write,
            count=counter.count,
            trigger_tokens=config.memory.trigger_tokens,
        ),
        MemorySettings(
            trigger_tokens=config.memory.trigger_tokens,
            core_tokens=config.memory.core_tokens,
            nightly=config.memory.nightly_at,
            mask_on_exit=config.privacy.mask == "exits",
            holds_backlog=config.transcripts.backlog == "hold",
        ),
        count=counter.count,
        counter=counter.name,
        tidier=models.tidy,
        selector=models.select,
        embedder=_embedder(config.recall.embedder),
    )
    try:
        yield memory
    finally:
        memory.close()
        log.info("memory_closed")


def _embedder(choice: Choice) -> Embedder | None:
    """Returns the embedder of a configuration, None for words alone.

    Raises:
        ConfigRefused: if it is asked for by name and can't run here: starting again won't help.
    """
    try:
        return find_embedder(choice)
    except Unavailable as error:
        raise ConfigRefused(error.message, key="recall.embedder") from error


def _models_lack(writer: WriterTable) -> list[str]:
    """Returns what the configured models lack, each once; looks at the PATH and small files."""
    tasks: tuple[Task, ...] = ("write", "tidy", "select")
    models = dict.fromkeys(model for task in tasks if (model := writer.model_for(task)))
    lacks = (missing(model, os.environ) for model in models)
    return list(dict.fromkeys(lack for lack in lacks if lack is not None))


def _models(settings: Settings) -> Models:
    """Returns the models that the configuration names; none of them is asked before it is due."""
    writer = settings.config.writer
    return make_models(
        write=writer.model_for("write"),
        tidy=writer.model_for("tidy"),
        select=writer.model_for("select"),
        directory=writer_dirs(settings.state)[0],
        environ=dict(os.environ),
    )


@asynccontextmanager
async def _tasks(name: str) -> AsyncGenerator[anyio.abc.TaskGroup, None]:
    """Gives a task group whose tasks are cancelled at the end; a task that dies ends the daemon."""
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel(f"stopping {name}")
    log.info("tasks_stopped", tasks=name)


@asynccontextmanager
async def _serving(server: Server, settings: Settings) -> AsyncGenerator[None, None]:
    """Listens, and says where in the state directory; stops accepting at the end."""
    record = settings.state / SOCKET_PATH_FILE
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.run)
        await anyio.to_thread.run_sync(_write_private, record, f"{settings.socket}\n")
        try:
            yield
        finally:
            server.stop()
            record.unlink(missing_ok=True)
    log.info("socket_closed")


async def _wait_for_end(
    daemon: _Daemon, settings: Settings, notifier: Notifier, signals: AsyncIterator[signal.Signals]
) -> None:
    """Returns when the daemon has been told to end and what `--drain` asks for is written."""
    async with anyio.create_task_group() as tasks:
        if settings.watchdog_usec:
            tasks.start_soon(_feed_watchdog, daemon, notifier, settings.watchdog_usec / 2_000_000)
        first = await anext(signals)
        notifier.stopping("shutting down")
        log.info("stopping", signal=signal.Signals(first).name, drain=settings.drain)
        if settings.drain:
            tasks.start_soon(_drain, daemon, tasks.cancel_scope)
            await anext(signals)
            log.warning("drain_skipped", reason="a second signal came")
        tasks.cancel_scope.cancel("told to end")


async def _drain(daemon: _Daemon, ended: anyio.CancelScope) -> None:
    """Writes all that is owed, then lets the daemon end."""
    done = await daemon.memory.worker.flush(Look(moved=None, whole=None, at_once=True))
    log.info("drained", batches=done.batches, turns=done.turns, failures=len(done.failures))
    ended.cancel("drained")


async def _feed_watchdog(daemon: _Daemon, notifier: Notifier, seconds: float) -> None:
    """Tells systemd that loop and writer thread are alive; the one clock that ticks (law 10)."""
    while True:
        await daemon.store.write(lambda _: None)
        notifier.watchdog()
        await anyio.sleep(seconds)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"the state directory {directory} can't be made: {error.strerror}; choose another "
            "with --state",
            path=str(directory),
        ) from error


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)
