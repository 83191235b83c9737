"""The watcher: what happens to files reaches those who asked, whatever happens to directories."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from watchfiles._rust_notify import RustNotify

from turnmark import watching
from turnmark.watching import THREAD_NAME, FileWatcher, is_edit

pytestmark = pytest.mark.anyio

LONGEST_SECONDS = 60.0


class Listener:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.everything = 0
        self._told = anyio.Event()

    async def __call__(self, paths: frozenset[str], everything: bool) -> None:
        """Hears."""
        self.paths |= paths
        self.everything += everything
        self._told.set()
        self._told = anyio.Event()

    async def wait_for(self, path: Path) -> None:
        """Returns once it was told of `path`."""
        with anyio.fail_after(LONGEST_SECONDS):
            while str(path) not in self.paths:
                await self._told.wait()

    async def wait_everything(self, times: int) -> None:
        """Returns once it was told so often that everything has to be looked at."""
        with anyio.fail_after(LONGEST_SECONDS):
            while self.everything < times:
                await self._told.wait()


@asynccontextmanager
async def running(watcher: FileWatcher) -> AsyncGenerator[None, None]:
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(LONGEST_SECONDS):
            await tasks.start(watcher.run)
        yield
        tasks.cancel_scope.cancel()


def quick() -> FileWatcher:
    """A watcher with short steps, for the patience of tests."""
    return FileWatcher(step_ms=20)


async def test_tells_of_each_way_of_saving(tmp_path: Path) -> None:
    """In place, by rename, vim's way, and a new directory with a file in it."""
    listener, watcher = Listener(), quick()
    watcher.add_root(tmp_path, listener)
    in_place, renamed, vim = (tmp_path / f"{name}.md" for name in "abc")
    for file in (in_place, renamed, vim):
        file.write_text("old")
    async with running(watcher):
        await listener.wait_everything(1)
        in_place.write_text("new")
        (tmp_path / ".x").write_text("new")
        (tmp_path / ".x").rename(renamed)
        vim.rename(tmp_path / "c.md~")
        vim.write_text("new")
        (tmp_path / "c.md~").unlink()
        made = tmp_path / "sub"
        made.mkdir()
        (made / "d.md").write_text("new")
        for path in (in_place, renamed, vim, made):
            await listener.wait_for(path)
        assert not any(path.endswith(("~", ".x")) for path in listener.paths)


async def test_runs_one_named_thread_for_all_roots(tmp_path: Path) -> None:
    """Roots may be added and removed while it runs; each hears only of its own."""
    first, second = Listener(), Listener()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    watcher = quick()
    watcher.add_root(tmp_path / "a", first)
    async with running(watcher):
        watcher.add_root(tmp_path / "b", second)
        await second.wait_everything(1)
        await first.wait_everything(2)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count(THREAD_NAME) == 1
        (tmp_path / "b" / "x.md").write_text("x")
        await second.wait_for(tmp_path / "b" / "x.md")
        watcher.remove_root(tmp_path / "b")
        await first.wait_everything(3)
        (tmp_path / "b" / "y.md").write_text("y")
        (tmp_path / "a" / "z.md").write_text("z")
        await first.wait_for(tmp_path / "a" / "z.md")
        assert first.paths == {str(tmp_path / "a" / "z.md")}
        assert str(tmp_path / "b" / "y.md") not in second.paths
        assert list(watcher.statistics().values()) == ["events"]
    assert THREAD_NAME not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("alone", [True, False])
async def test_a_root_that_is_not_deep_is_watched_right_in_it(tmp_path: Path, alone: bool) -> None:
    """Whether others are watched with all that is below them or not, by the one thread."""
    flat, deep, watcher = Listener(), Listener(), quick()
    (tmp_path / "flat" / "below").mkdir(parents=True)
    (tmp_path / "deep" / "below").mkdir(parents=True)
    watcher.add_root(tmp_path / "flat", flat, deep=False)
    if not alone:
        watcher.add_root(tmp_path / "deep", deep)
    async with running(watcher):
        await flat.wait_everything(1)
        for number in range(2):
            (tmp_path / "flat" / "below" / f"{number}.md").write_text("not told")
            (tmp_path / "flat" / f"{number}.md").write_text("told")
            await flat.wait_for(tmp_path / "flat" / f"{number}.md")
            if not alone:
                (tmp_path / "deep" / "below" / f"{number}.md").write_text("told")
                await deep.wait_for(tmp_path / "deep" / "below" / f"{number}.md")
        assert not any("below" in path for path in flat.paths)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count(THREAD_NAME) == 1
    assert THREAD_NAME not in [thread.name for thread in threading.enumerate()]


async def test_goes_on_when_the_directory_is_replaced_or_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened meanwhile is not known, so everything has to be looked at."""
    monkeypatch.setattr(watching, "_ABSENT_MS", 50)
    root, other = tmp_path / "root", tmp_path / "other"
    root.mkdir()
    other.mkdir()
    listener, watcher = Listener(), quick()
    watcher.add_root(root, listener)
    async with running(watcher):
        await listener.wait_everything(1)
        root.rename(tmp_path / "old")
        other.rename(root)
        await listener.wait_everything(2)
        (root / "x.md").write_text("x")
        await listener.wait_for(root / "x.md")
        seen = listener.everything
        shutil.rmtree(root)
        await listener.wait_everything(seen + 1)
        root.mkdir()
        await listener.wait_everything(seen + 2)
        (root / "y.md").write_text("y")
        await listener.wait_for(root / "y.md")


async def test_waits_for_a_root_that_is_not_there_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transcripts of an agent that nobody has used yet, say."""
    monkeypatch.setattr(watching, "_ABSENT_MS", 50)
    listener, watcher = Listener(), quick()
    watcher.add_root(tmp_path / "later", listener)
    async with running(watcher):
        await listener.wait_everything(1)
        assert list(watcher.statistics().values()) == ["absent"]
        (tmp_path / "later").mkdir()
        await listener.wait_everything(2)
        (tmp_path / "later" / "x.md").write_text("x")
        await listener.wait_for(tmp_path / "later" / "x.md")


async def test_says_so_when_too_much_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of very many changes at once some may be missing."""
    monkeypatch.setattr(watching, "_OVERFLOW", 50)
    listener = Listener()
    watcher = FileWatcher(step_ms=200)
    watcher.add_root(tmp_path, listener)
    async with running(watcher):
        await listener.wait_everything(1)
        for number in range(200):
            (tmp_path / f"{number}.md").write_text("x")
        await listener.wait_everything(2)


async def test_polls_where_there_are_no_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says so once, and changes are seen all the same."""
    monkeypatch.setattr(watching, "_POLL_MS", 20)

    def refusing(
        paths: list[str], debug: bool, polling: bool, delay_ms: int, deep: bool, lenient: bool
    ) -> RustNotify:
        if not polling:
            raise OSError(28, "OS file watch limit reached")
        return RustNotify(paths, debug, polling, delay_ms, deep, lenient)

    monkeypatch.setattr(watching, "RustNotify", refusing)
    (tmp_path / "a").mkdir()
    listener, watcher = Listener(), quick()
    watcher.add_root(tmp_path, listener)
    async with running(watcher):
        await listener.wait_everything(1)
        second = Listener()
        watcher.add_root(tmp_path / "a", second)
        await second.wait_everything(1)
        (tmp_path / "x.md").write_text("x")
        await listener.wait_for(tmp_path / "x.md")
        assert set(watcher.statistics().values()) == {"polling"}
    assert capsys.readouterr().out.count("file_events_unavailable") == 1


async def test_an_error_of_a_listener_ends_it(tmp_path: Path) -> None:
    """Half a watcher would look like a whole one."""

    async def fail(paths: frozenset[str], everything: bool) -> None:
        raise RuntimeError("no")

    watcher = quick()
    watcher.add_root(tmp_path, fail)
    with pytest.raises(BaseExceptionGroup) as caught, anyio.fail_after(LONGEST_SECONDS):
        await watcher.run()
    assert [str(error) for error in caught.value.exceptions] == ["no"]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("people/dana.md", True),
        ("people", True),
        ("people/dana.md~", False),
        ("people/.dana.md.swp", False),
        (".obsidian/workspace.json", False),
        ("people/4913", False),
        ("主题/张三.md", True),
    ],
)
def test_passes_over_what_editors_leave_beside(name: str, wanted: bool) -> None:
    """Hidden files, backups, swap files and vim's probe."""
    assert is_edit(name) == wanted


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_thread_has_its_name_where_the_system_shows_it(tmp_path: Path) -> None:
    """For whoever looks which thread wakes up."""
    watcher = quick()
    watcher.add_root(tmp_path, Listener())
    async with running(watcher):
        assert thread_names().count(THREAD_NAME[:15]) == 1


def thread_names() -> list[str]:
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
