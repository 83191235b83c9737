"""How often a daemon at rest wakes up: voluntary context switches of all its threads.

Run: python benchmarks/idle_daemon.py [--sessions 10000] [--seconds 60]

The sessions are written before the clock starts: nothing is owed, and each has an idle deadline to
come. Law 10 allows two wakers: the watcher's own thread, and systemd's watchdog (not asked for
here). The target is fewer than ten switches a minute in sum, the watcher's aside.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from turnmark import connect_sync
from turnmark_session_store import SessionStore
from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import AppendTurns

WATCHER_THREADS = ("turnmark-watch", "watchfiles", "notify-rs")
"""How threads are named that may tick: watchfiles' own."""

_IDLE_MS = 1_800_000
_AT_ONCE = 250


def switches(pid: int) -> dict[tuple[int, str], int]:
    """Returns the voluntary context switches of each thread of a process, with its name."""
    found: dict[tuple[int, str], int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        status = (task / "status").read_text(encoding="utf-8")
        count = status.split("\nvoluntary_ctxt_switches:")[1].split("\n")[0]
        found[int(task.name), (task / "comm").read_text(encoding="utf-8").strip()] = int(count)
    return found


def woken(
    before: dict[tuple[int, str], int], after: dict[tuple[int, str], int]
) -> tuple[int, int, list[str]]:
    """Returns the switches between two looks: ours, the watcher's, and who they were of."""
    ours = watcher = 0
    who: list[str] = []
    for thread, count in after.items():
        more = count - before.get(thread, 0)
        if thread[1].startswith(WATCHER_THREADS):
            watcher += more
        else:
            ours += more
        if more:
            who.append(f"{thread[1]}:{more}")
    return ours, watcher, who


async def fill(path: Path, sessions: int) -> None:
    """Writes short sessions straight into a store, each with a deadline to come."""
    store = SessionStore.open(path, count=len, idle_ms=_IDLE_MS)
    turns = [TurnIn(role="user", text="ok"), TurnIn(role="assistant", text="done")]
    try:
        for start in range(0, sessions, _AT_ONCE):
            async with anyio.create_task_group() as tasks:
                for number in range(start, min(start + _AT_ONCE, sessions)):
                    tasks.start_soon(store.append, AppendTurns(session=f"s-{number}", turns=turns))
    finally:
        await store.aclose()


def main() -> None:
    """Prints both counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tm-") as root:
        state = Path(root, "state")
        state.mkdir(mode=0o700)
        anyio.run(fill, state / "sessions.db", asked.sessions)
        places = [f"--state={state}", f"--workspace={root}/memory", f"--socket={root}/s"]
        with subprocess.Popen(
            [sys.executable, "-m", "turnmark", "serve", *places],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as daemon:
            assert daemon.stdout is not None
            daemon.stdout.readline()
            measure(daemon.pid, Path(root, "s"), asked.seconds)
            daemon.terminate()


def measure(pid: int, socket: Path, seconds: float) -> None:
    """Lets the daemon write what it owes, then counts while nobody speaks to it."""
    started = time.monotonic()
    with connect_sync(socket) as memory:
        flushed = memory.flush()
        status = memory.status()
    print(
        f"{status['sessions']} sessions, {flushed['turns']} turns written in "
        f"{time.monotonic() - started:.1f} s, {status['owed']['turns']} owed, "
        f"{status['tips']} live tips with a deadline to come"
    )
    time.sleep(2.0)  # the connection's end, the checkpoint: the last of what was asked for
    before = switches(pid)
    time.sleep(seconds)
    ours, watcher, who = woken(before, switches(pid))
    print(f"threads: {', '.join(sorted(name for _, name in before))}")
    print(f"voluntary switches in {seconds:g} s: {ours} (target: fewer than 10 in 60 s)")
    print(f"of the watcher's thread, which may tick: {watcher}")
    print(f"by thread: {', '.join(who) or 'none'}")


if __name__ == "__main__":
    main()
