"""A daemon at rest wakes for nothing (law 10); benchmarks/idle_daemon.py measures it for long."""

from __future__ import annotations

import select
import sys
from pathlib import Path

import pytest

from daemon.served import Daemon, Wire, serving
from turnmark.watching import THREAD_COMM

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SESSIONS = 200
QUIET_SECONDS = 3.0
MOST_SWITCHES = 10
_LOOKS = 40
_STRETCHES = 4


def switches(pid: int) -> dict[str, int]:
    """The voluntary context switches of each thread, but the watcher's, which law 10 excepts."""
    found: dict[str, int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        comm = (task / "comm").read_text(encoding="utf-8").rstrip("\n")
        if comm == THREAD_COMM:
            continue
        status = (task / "status").read_text(encoding="utf-8")
        count = int(status.split("\nvoluntary_ctxt_switches:")[1].split("\n")[0])
        found[f"{task.name} {comm}"] = count
    return found


def assert_silent(wire: Wire, seconds: float) -> None:
    """Nothing comes over a connection for that long."""
    assert select.select([wire.socket], [], [], seconds)[0] == []


def assert_rests(daemon: Daemon, wire: Wire) -> None:
    """Once what was asked for is done, the threads together wake fewer than ten times.

    Whatever polls wakes in every stretch of quiet, while a late page of the disk's or a busy
    machine disturbs one: one quiet stretch among several is what a sleeping daemon shows.
    """
    seen: list[dict[str, int]] = []
    for _ in range(_STRETCHES):
        before = settled_switches(daemon, wire)
        assert_silent(wire, QUIET_SECONDS)
        after = switches(daemon.pid)
        seen.append({thread: count - before.get(thread, 0) for thread, count in after.items()})
        if sum(seen[-1].values()) < MOST_SWITCHES:
            return
    raise AssertionError(seen)


def settled_switches(daemon: Daemon, wire: Wire) -> dict[str, int]:
    """Returns the counts once they stand still for a moment."""
    before = switches(daemon.pid)
    for _ in range(_LOOKS):
        assert_silent(wire, 0.25)
        now = switches(daemon.pid)
        if now == before:
            break
        before = now
    return before


def fill(wire: Wire, role: str) -> None:
    """Appends to many sessions, all under way at once."""
    for number in range(SESSIONS):
        turns = [{"role": role, "text": f"第{number}句: done"}]
        wire.request("turn.append", {"session": f"s-{number}", "turns": turns})
        if number % 50 == 49:
            for _ in range(50):
                assert "result" in wire.frame()


@pytest.mark.parametrize("nightly", ["off", "03:00"])
def test_nothing_wakes_where_nothing_is_due(nightly: str) -> None:
    """With deadlines to come, all written, a client and a subscriber connected: silence."""
    with serving(f'[memory]\nnightly = "{nightly}"\n') as daemon, daemon.wire() as wire:
        fill(wire, "user")
        assert wire.call("memory.flush")["left"] == 0
        wire.call("events.subscribe", types=["TipIdle"])
        assert_rests(daemon, wire)


def test_nothing_wakes_where_much_is_owed_but_not_due() -> None:
    """What waits for its silence or its batch waits asleep."""
    with serving('[memory]\nnightly = "off"\n') as daemon, daemon.wire() as wire:
        fill(wire, "user")
        assert wire.call("memory.owed")["turns"] == SESSIONS
        assert_rests(daemon, wire)


def test_rests_again_after_a_start_with_everything_in_the_store() -> None:
    """A restart looks once at what is there, and then sleeps as well."""
    with serving('[memory]\nnightly = "off"\n') as daemon:
        with daemon.wire() as wire:
            fill(wire, "user")
            wire.call("memory.flush")
        daemon.stop()
        daemon.start()
        with daemon.wire() as wire:
            wire.call("events.subscribe")
            assert_rests(daemon, wire)
