"""One watcher for all directories whose files tell something: topics now, transcripts as well.

File events are hints where to look; they are gathered for one or two steps and told in batches. All
roots share one thread (`turnmark-watcher`), one of the two things in turnmark that wake up without
a cause: once a second, because `watchfiles` has no other way to wait. It also looks whether a root
was replaced, deleted or made again; after that, after an overflow, and when roots come or go,
everything under them has to be looked at, and that is told.

Where the system gives no file events (some network and container mounts, or its limit is reached)
files are polled every few seconds instead; that is logged once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import structlog
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

log = structlog.get_logger(__name__)

THREAD_NAME: Final = "turnmark-watcher"

_COMM_LIMIT: Final = 15
"""Characters of a thread's name that Linux keeps."""

THREAD_COMM: Final = THREAD_NAME[:_COMM_LIMIT]
"""What the system calls the thread."""

STEP_MS: Final = 1_000
"""How long the thread sleeps at a time; an event is told after one to two steps."""

_IDENTITY_MS: Final = 3_600_000
"""Without any event the roots' identity is looked at this often; with one, at once."""

_ABSENT_MS: Final = 5_000
"""While a root isn't there it is looked for this often, by the thread that is awake anyway."""

_POLL_MS: Final = 2_000
_OVERFLOW: Final = 8_192
"""Half of the kernel's queue: after that many changes in one batch some may have been lost."""

_DROSS: Final = ("~", ".swp", ".swx", ".swpx", ".tmp", ".part")

_AT_ONCE_MS: Final = 1
"""The shortest that `watchfiles` waits."""

Changes = set[tuple[int, str]]
Tell = Callable[[Changes], None]

Told = Callable[[frozenset[str], bool], Awaitable[None]]
"""Hears the paths that changed under a root, and whether everything has to be looked at."""


def is_edit(name: str) -> bool:
    """Tells whether a path below a root may be of interest: no hidden name, no editor's file."""
    parts = name.split("/")
    last = parts[-1]
    return not (
        any(part.startswith(".") for part in parts) or last.endswith(_DROSS) or last == "4913"
    )  # vim tries with 4913 whether it may create files


class _Root:
    """One watched directory, and what is still to be told of it."""

    def __init__(
        self, path: Path, told: Told, accepts: Callable[[str], bool], *, deep: bool
    ) -> None:
        self.path = path
        self.told = told
        self.accepts = accepts
        self.deep = deep
        self.identity: tuple[int, int] | None = None
        self.is_new = True
        self.paths: set[str] = set()
        self.everything = False
        self.news = anyio.Event()
        self.scope = anyio.CancelScope()

    def add(self, paths: Iterable[str], *, everything: bool) -> None:
        """Notes what is to be told; runs on the loop."""
        self.paths.update(paths)
        self.everything = self.everything or everything
        if self.paths or self.everything:
            self.news.set()

    async def tell(self) -> None:
        """Tells it, until cancelled; what comes meanwhile is told together."""
        with self.scope:
            while True:
                await self.news.wait()
                self.news = anyio.Event()
                paths, everything = frozenset(self.paths), self.everything
                self.paths, self.everything = set(), False
                await self.told(paths, everything)


class _Armed:
    """What the system tells: of all below some roots, and of what lies right in some others.

    One of both waits; the other is looked at whenever that one wakes.
    """

    def __init__(self, deep: list[str], flat: list[str], *, polling: bool) -> None:
        self._flat = _notify(flat, polling=polling, recursive=False) if flat else None
        try:
            self._deep = _notify(deep, polling=polling, recursive=True) if deep else None
        except BaseException:
            if self._flat is not None:
                self._flat.close()
            raise

    def watch(self, step_ms: int, timeout_ms: int, turn: Callable[[], bool], tell: Tell) -> None:
        """Tells what changed, until `turn` says to stop, asked once a step, or the time is over."""
        first, second = (self._deep, self._flat) if self._deep is not None else (self._flat, None)
        assert first is not None  # noqa: S101  it is made of roots
        # Files that change at every step are told of after two all the same.
        found = first.watch(step_ms, step_ms, timeout_ms, _Step(second, turn, tell))
        if isinstance(found, set):
            tell(found)

    def close(self) -> None:
        """Ends the watching."""
        for one in (self._deep, self._flat):
            if one is not None:
                one.close()


class _Step:
    """What `watchfiles` asks once a step: a chance to look at what else is watched."""

    def __init__(self, second: RustNotify | None, turn: Callable[[], bool], tell: Tell) -> None:
        self._second = second
        self._turn = turn
        self._tell = tell

    def is_set(self) -> bool:
        """Tells whether to return."""
        if self._second is not None:
            found = self._second.watch(_AT_ONCE_MS, _AT_ONCE_MS, _AT_ONCE_MS, None)
            if isinstance(found, set):
                self._tell(found)
        return self._turn()


class FileWatcher:
    """Watches directories for all who want to know; `run` it once, add roots before or later."""

    def __init__(self, *, step_ms: int = STEP_MS, force_polling: bool = False) -> None:
        self._step_ms = step_ms
        self._polling = force_polling
        self._roots: dict[Path, _Root] = {}
        self._tasks: anyio.abc.TaskGroup | None = None
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._ended = False
        self._armed = anyio.Event()

    def add_root(
        self,
        path: Path,
        told: Told,
        *,
        accepts: Callable[[str], bool] = is_edit,
        deep: bool = True,
    ) -> None:
        """Watches the directory at `path`, which need not be there yet, and all below it.

        One that is not `deep` is watched for what lies right in it: where a program has its own
        code and caches below, each of their directories would cost a watch.

        `told` is awaited on the loop with absolute paths, never twice at the same time; first it
        hears that everything has to be looked at. An error that it raises ends the watcher.
        `accepts` is asked in the watcher's thread, with the path relative to the root.
        """
        root = _Root(path, told, accepts, deep=deep)
        with self._lock:
            self._roots[path] = root
        self._changed.set()
        if self._tasks is not None:
            self._tasks.start_soon(root.tell)

    def remove_root(self, path: Path) -> None:
        """Watches it no longer; one that is being told of a change hears it to its end."""
        with self._lock:
            root = self._roots.pop(path, None)
        if root is not None:
            root.scope.cancel("the root is not watched any more")
            self._changed.set()

    def statistics(self) -> dict[str, str]:
        """Returns each root with how it is watched: by events, by polling, or absent."""
        way = "polling" if self._polling else "events"
        with self._lock:
            return {
                str(path): "absent" if root.identity is None else way
                for path, root in self._roots.items()
            }

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Watches until cancelled; started once every root that is there is watched.

        Its end takes up to one step, in which the thread notices.
        """
        token = anyio.lowlevel.current_token()
        thread = threading.Thread(target=self._watch, args=(token,), name=THREAD_NAME, daemon=True)
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            for root in list(self._roots.values()):
                tasks.start_soon(root.tell)
            thread.start()
            try:
                await self._armed.wait()
                task_status.started()
                await anyio.sleep_forever()
            finally:
                self._tasks = None
                self._ended = True
                self._changed.set()
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(thread.join)

    def _watch(self, token: anyio.lowlevel.EventLoopToken) -> None:
        _name_thread()
        notify: _Armed | None = None
        try:
            while not self._ended:
                self._changed.clear()
                notify = self._rearmed(notify, token)
                anyio.from_thread.run_sync(self._armed.set, token=token)
                self._follow(notify, token)
        except anyio.RunFinishedError:
            log.debug("watcher_outlived_its_loop")
        finally:
            if notify is not None:
                notify.close()

    def _follow(self, notify: _Armed | None, token: anyio.lowlevel.EventLoopToken) -> None:
        """Tells what happens until the roots have to be looked at anew."""
        while not self._changed.is_set() and self._is_as_armed():
            absent = any(root.identity is None for root in self._snapshot())
            timeout_ms = _ABSENT_MS if absent else _IDENTITY_MS
            if notify is None:
                self._changed.wait(timeout_ms / 1_000)
                continue
            notify.watch(
                self._step_ms, timeout_ms, self._changed.is_set, partial(self._sort, token=token)
            )

    def _sort(self, found: Changes, token: anyio.lowlevel.EventLoopToken) -> None:
        paths = {path for _, path in found}
        for root in self._snapshot():
            prefix = f"{root.path}{os.sep}"
            mine = [
                path
                for path in paths
                if path.startswith(prefix) and root.accepts(path[len(prefix) :])
            ]
            overflow = len(found) >= _OVERFLOW
            if overflow:
                log.info("watcher_overflowed", root=str(root.path), changes=len(found))
            if mine or overflow:
                self._tell(root, mine, token, everything=overflow)

    @staticmethod
    def _tell(
        root: _Root,
        paths: list[str],
        token: anyio.lowlevel.EventLoopToken,
        *,
        everything: bool,
    ) -> None:
        def add() -> None:
            root.add(paths, everything=everything)

        anyio.from_thread.run_sync(add, token=token)

    def _rearmed(self, old: _Armed | None, token: anyio.lowlevel.EventLoopToken) -> _Armed | None:
        """Returns a watch on the roots as they are now; the old one goes when the new one stands.

        All of them have to be looked at wholly then.
        """
        roots = self._snapshot()
        before = {root.path: root.identity for root in roots}
        for root in roots:
            root.identity = _identity(root.path)
        notify = self._armed_on([root for root in roots if root.identity is not None])
        if old is not None:
            old.close()
        for root in roots:
            if root.identity != before[root.path] and not root.is_new:
                log.info("root_rearmed", root=str(root.path), there=root.identity is not None)
            root.is_new = False
            # Asked to return early, `watchfiles` throws away what it has gathered.
            self._tell(root, [], token, everything=True)
        return notify

    def _armed_on(self, roots: list[_Root]) -> _Armed | None:
        deep = [str(root.path) for root in roots if root.deep]
        flat = [str(root.path) for root in roots if not root.deep]
        if not roots:
            return None
        try:
            return _Armed(deep, flat, polling=self._polling)
        except FileNotFoundError:
            for root in roots:  # gone since it was looked at; the next look finds it or not
                root.identity = None
            return None
        except (OSError, WatchfilesRustInternalError) as error:
            if self._polling:
                raise
            self._polling = True
            log.warning(
                "file_events_unavailable",
                reason=str(error),
                what_to_do="files are polled instead; raise fs.inotify.max_user_watches, or move "
                "the workspace to a local disk",
            )
            return _Armed(deep, flat, polling=True)

    def _is_as_armed(self) -> bool:
        return all(root.identity == _identity(root.path) for root in self._snapshot())

    def _snapshot(self) -> list[_Root]:
        with self._lock:
            return list(self._roots.values())


def _notify(paths: list[str], *, polling: bool, recursive: bool) -> RustNotify:
    return RustNotify(paths, False, polling, _POLL_MS, recursive, True)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _name_thread() -> None:
    """Gives the thread its name where `ps` and `top` look for it, if the system lets it."""
    try:
        comm = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
        comm.write_text(THREAD_COMM)
    except OSError as error:
        log.debug("thread_not_named", reason=str(error))
