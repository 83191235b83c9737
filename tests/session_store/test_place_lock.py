"""One holder per place, and none after its death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from turnmark_events.errors import Busy, Refused, Unavailable
from turnmark_session_store.place_lock import PlaceTaken, hold_lock

_HOLDER = """
import sys
from pathlib import Path
from turnmark_session_store.place_lock import hold_lock
lock = hold_lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def _holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=60)


def test_second_holder_is_told_the_first_ones_pid(tmp_path: Path) -> None:
    """PlaceTaken is of kind busy and names the process that has the place."""
    process = _holder(tmp_path / "lock")
    try:
        with pytest.raises(PlaceTaken, match=str(process.pid)) as caught:
            hold_lock(tmp_path / "lock")
        assert isinstance(caught.value, Busy)
        assert caught.value.facts["pid"] == process.pid
    finally:
        _end(process)


def test_is_free_after_sigkill_of_its_holder(tmp_path: Path) -> None:
    """The kernel frees the lock: nothing is stale and nothing has to be repaired."""
    process = _holder(tmp_path / "lock")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    with hold_lock(tmp_path / "lock"):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_is_not_inherited_by_a_child_program(tmp_path: Path) -> None:
    """A program that the holder started doesn't keep the place after its release."""
    lock = hold_lock(tmp_path / "lock")
    child = subprocess.Popen(
        [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        close_fds=False,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        lock.release()
        hold_lock(tmp_path / "lock").release()
    finally:
        _end(child)


def test_holds_against_the_same_process_until_released(tmp_path: Path) -> None:
    """Two locks of one process exclude each other; release is repeatable."""
    first = hold_lock(tmp_path / "lock")
    with pytest.raises(PlaceTaken):
        hold_lock(tmp_path / "lock")
    first.release()
    first.release()
    with hold_lock(tmp_path / "lock"):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_refuses_a_link_and_a_fifo(tmp_path: Path) -> None:
    """The file behind a link is neither locked nor written."""
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(Refused, match="symbolic link"):
        hold_lock(tmp_path / "link")
    with pytest.raises(Refused, match="regular file"):
        hold_lock(tmp_path / "fifo")
    assert target.read_text() == "mine"


def test_reports_a_missing_directory(tmp_path: Path) -> None:
    """A place that isn't there is unavailable, not taken."""
    with pytest.raises(Unavailable, match="can't be opened"):
        hold_lock(tmp_path / "nowhere" / "lock")


def test_does_not_guess_a_pid_from_foreign_content(tmp_path: Path) -> None:
    """A lock file without a pid still tells that the place is taken."""
    lock = hold_lock(tmp_path / "lock")
    (tmp_path / "lock").write_text("no pid")
    with lock, pytest.raises(PlaceTaken, match="another process") as caught:
        hold_lock(tmp_path / "lock")
    assert caught.value.facts["pid"] is None
