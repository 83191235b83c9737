"""A full disk and a failing one: what was acknowledged stays, the rest is refused in words.

Needs root for small tmpfs mounts and strace for a failing fsync; skipped where they are missing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from laws.soundness import store_faults, times_settled, workspace_faults
from turnmark.client import Memory
from turnmark_events.errors import Unavailable
from turnmark_memory.tokens import load_counter

pytestmark = pytest.mark.anyio

SIZE = "2m"
LONG = " ".join(["The parcel for Porto is on its way."] * 1_000)


@contextmanager
def _small_disk(at: Path) -> Iterator[None]:
    """Mounts 2 MiB of memory at a directory."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    at.mkdir(mode=0o700)
    options = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "turnmark-test", str(at)]
    mounted = subprocess.run(options, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"tmpfs can't be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A place whose state and whose workspace have 2 MiB each."""
    with (
        daemon_place(idle_minutes=0.005) as made,
        _small_disk(made.state),
        _small_disk(made.workspace),
    ):
        yield made
        if made.process is not None:
            made.kill()


def _fill(directory: Path) -> Path:
    """Takes all the space that is left; returns the file that holds it."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 4_096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


async def _wait_written(memory: Memory) -> None:
    async with memory.subscribe(types=["TurnsWritten"], since=0) as events:
        while (await memory.owed())["turns"]:
            await anext(events)


async def _say(memory: Memory, said: list[str], words: str) -> None:
    """Appends until it is refused; `said` keeps what was acknowledged."""
    while True:
        text = f"{len(said)} {words}"
        await memory.append("s", role="user", text=text)
        said.append(text)


async def _texts(memory: Memory, session: str) -> list[str]:
    page = await memory.branch(session, limit=1_000)
    return [turn["text"] for turn in page["turns"]]


def _assert_sound(place: DaemonPlace) -> None:
    database = place.state / "sessions.db"
    assert store_faults(database) == []
    assert workspace_faults(place.workspace, load_counter().count) == []
    assert set(times_settled(database).values()) == {1}


async def test_refuses_appends_in_words_while_the_state_has_no_space(place: DaemonPlace) -> None:
    """Reading and status go on; nothing acknowledged is lost; freed space is used at once."""
    place.start()
    with anyio.fail_after(60):
        async with place.connect() as memory:
            await memory.append("s", role="user", text="I live in Porto.")
            await memory.flush()
            ballast = _fill(place.state)
            said = ["I live in Porto."]
            with pytest.raises(Unavailable, match=r"disk is full.*[Ff]ree some space"):
                await _say(memory, said, LONG)
            assert await _texts(memory, "s") == said
            status = await memory.status()
            assert status["turns"] == len(said)
            assert any("Free some space" in sentence for sentence in status["what_to_do"])
            hits = await memory.recall("Where do I live?", session="s")
            assert "Porto" in hits[0]["text"]

            ballast.unlink()
            await memory.append("s", role="user", text="I moved on to Faro.")
            await _wait_written(memory)
            await memory.flush()
    place.stop()
    _assert_sound(place)


async def test_survives_kill_9_while_the_state_has_no_space(place: DaemonPlace) -> None:
    """What was acknowledged before is there after the restart; appends work when there is space."""
    place.start()
    with anyio.fail_after(60):
        async with place.connect() as memory:
            ballast = _fill(place.state)
            said: list[str] = []
            with pytest.raises(Unavailable):
                await _say(memory, said, LONG)
        place.kill()
        ballast.unlink()
        place.start()
        async with place.connect() as memory:
            if said:
                assert await _texts(memory, "s") == said
            await memory.append("s", role="user", text="Space again.")
            await _wait_written(memory)
            await memory.flush()
    place.stop()
    _assert_sound(place)


@pytest.mark.parametrize("free_kib", [0, 24, 64])
async def test_goes_on_by_itself_when_the_workspace_has_space_again(
    place: DaemonPlace, free_kib: int
) -> None:
    """Appends are taken all the while; what could not be written is, without anybody asking."""
    place.start()
    with anyio.fail_after(110):
        async with place.connect() as memory:
            await memory.append("a", role="user", text="I live in Porto.")
            await memory.flush()
            ballast = _fill(place.workspace)
            os.truncate(ballast, max(0, ballast.stat().st_size - free_kib * 1_024))
            await memory.append("a", role="user", text="My daughter is called Ida.")
            await memory.append("b", role="user", text="我的猫叫豆豆，今年三岁。")
            await memory.append("c", role="assistant", text=LONG * 3)
            status = await _wait_failure(memory)
            assert "space" in status["last_failure"]["reason"]
            assert "Porto" in (await memory.recall("Where do I live?", session="a"))[0]["text"]
            with pytest.raises(Unavailable, match="space"):
                await memory.flush()
            assert (await memory.owed())["turns"] == 3

            ballast.unlink()
            await _wait_written(memory)
            await memory.flush()
            hits = await memory.recall("Ida", session="a", kinds=["block"])
            assert "Ida" in hits[0]["text"]
    place.stop()
    _assert_sound(place)


async def _wait_failure(memory: Memory) -> dict[str, Any]:
    """Waits for the worker to have failed, woken by the silence that it heard of."""
    async with memory.subscribe(types=["TipIdle"], since=0) as silences:
        while True:
            await anext(silences)
            status: dict[str, Any] = await memory.status()
            # A flush joins the look that the silence began.
            try:
                await memory.flush()
            except Unavailable:
                status = await memory.status()
            if status["last_failure"] is not None:
                return status


@pytest.mark.parametrize("failpoint", ["install.manifest", "install.staged", "install.file"])
async def test_finishes_an_install_that_the_disk_stopped_behind_its_journal(
    failpoint: str,
) -> None:
    """The same process goes on from the journal; the writer is not asked, nothing stands twice."""
    with daemon_place(idle_minutes=0.005) as place:
        place.start(failpoint=f"{failpoint}=error")
        with anyio.fail_after(60):
            async with place.connect() as memory:
                await memory.append("a", role="user", text="I live in Porto.")
                await memory.append("b", role="user", text="我的猫叫豆豆，今年三岁。")
                await _wait_written(memory)
                await memory.append("a", role="user", text="My daughter is called Ida.")
                await _wait_written(memory)
                await memory.flush()
                assert (await memory.status())["last_failure"] is not None
        assert len(place.logged("install_rolled_forward")) == 1
        place.stop()
        _assert_sound(place)


async def test_is_read_only_after_a_failed_fsync_until_the_restart() -> None:
    """A failed fsync is never tried again: status says it, reading works, a restart mends it."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with place.connect() as memory:
            await memory.append("s", role="user", text="I live in Porto.")
        place.stop()
        calls = "fsync,fdatasync"
        inject = ["-f", "-qq", "-o", "/dev/null", "-P", str(place.state / "sessions.db-wal")]
        fault = f"inject={calls}:error=EIO:when=3+"
        place.begin(through=[strace, *inject, "-e", f"trace={calls}", "-e", fault])
        if not place.wait_ready():
            pytest.skip(f"strace can't trace here:\\n{place.log_text()[-500:]}")
        said = ["I live in Porto."]
        with anyio.fail_after(60):
            async with place.connect() as memory:
                with pytest.raises(Unavailable, match=r"read-only.*restart"):
                    await _say(memory, said, "times I was in Porto")
                with pytest.raises(Unavailable, match="read-only"):
                    await memory.append("other", role="user", text="no")
                pid = (await memory.hello())["pid"]
                advice = (await memory.status())["what_to_do"]
                assert "restart turnmark" in advice[0]
                assert (await _texts(memory, "s"))[: len(said)] == said
        os.kill(pid, signal.SIGKILL)
        assert place.wait_end() == -signal.SIGKILL
        place.start()
        with anyio.fail_after(60):
            async with place.connect() as memory:
                # The commit whose sync failed was never acknowledged: it may be there or not.
                assert (await _texts(memory, "s"))[: len(said)] == said
                await memory.append("s", role="user", text="It works again.")
                await memory.flush()
        place.stop()
        _assert_sound(place)
