"""How soon a line that Claude Code writes is a turn, and what following costs.

Run: python benchmarks/tail_latency.py [--lines 60] [--before 2000] [--files 100] [--rows 400]

A real daemon. First it scans `--files` finished sessions of `--rows` records: time, and the most
memory that it held. Then a session that holds `--before` records already goes on: a prompt, and an
answer without a stop reason, in turn; each is timed from before its write to the `TipMoved` at a
client on the socket. Last, the wake-ups and the CPU of ten seconds in which nothing happens.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from turnmark import connect_sync
from turnmark.client_sync import SyncClient

_SESSION = "5e55107a-0000-4000-8000-{:012d}"
_TICKS = os.sysconf("SC_CLK_TCK")


class Talk:
    """One session's file: records that hang one from the other."""

    def __init__(self, root: Path, number: int) -> None:
        self.session = _SESSION.format(number)
        self.path = root / "-home-robin-demo" / f"{self.session}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._above: str | None = None
        self._count = 0

    def record(self, role: str, *, tools: bool = True) -> tuple[str, bytes]:
        """The next record of a role, with its id; every third answer calls a tool, if any may."""
        self._count += 1
        uuid = f"{self.session[:8]}-{self._count:04x}-4000-8000-{self.session[-12:]}"
        tool = tools and role == "assistant" and self._count % 3 == 0
        block: dict[str, Any] = {"type": "text", "text": f"Bergen {self._count} " + "word " * 60}
        if tool:
            block = {"type": "tool_use", "id": f"t{self._count}", "name": "Bash", "input": {}}
        record = {
            "parentUuid": self._above,
            "sessionId": self.session,
            "cwd": "/home/robin/demo",
            "type": role,
            "uuid": uuid,
            "timestamp": f"2026-08-09T10:{self._count // 60 % 60:02}:{self._count % 60:02}.000Z",
            "message": {"role": role, "id": f"m{self._count}", "content": [block]},
            "toolUseResult": "x" * random.randrange(200, 3_000),
        }
        self._above = uuid
        return uuid, json.dumps(record).encode() + b"\n"

    def fill(self, records: int) -> None:
        """Writes that many records at once."""
        roles = ("user", *["assistant"] * 9)
        self.path.write_bytes(
            b"".join(self.record(roles[number % 10])[1] for number in range(records))
        )

    def write(self, role: str) -> str:
        """Writes one more record; returns its id."""
        uuid, line = self.record(role, tools=False)
        with self.path.open("ab") as file:
            file.write(line)
        return uuid


def latencies(client: SyncClient, talk: Talk, lines: int) -> dict[str, list[float]]:
    """Seconds from before each write to its event, by role."""
    found: dict[str, list[float]] = {"user": [], "assistant": []}
    with client.subscribe(types=["TipMoved"], session=talk.session) as events:
        for number in range(lines):
            role = ("user", "assistant")[number % 2]
            began = time.perf_counter()
            uuid = talk.write(role)
            while getattr(next(events), "new", None) != uuid:
                pass
            found[role].append(time.perf_counter() - began)
    return found


def scanned(client: SyncClient, files: int) -> dict[str, Any]:
    """Waits until so many files are read; returns the figures of the status."""
    while True:
        found: dict[str, Any] = client.call("status")["transcripts"]["claude-code"]
        done = found["state"] == "following" and found["bytes_done"] == found["bytes_total"]
        if done and found["files"] == files:
            return found
        time.sleep(0.2)


def memory_mb(pid: int) -> float:
    """The most memory that a process has held."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_seconds(pid: int) -> float:
    """The CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def switches(pid: int) -> int:
    """How often threads of a process have gone to sleep by themselves."""
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        for line in (task / "status").read_text("utf-8").splitlines():
            if line.startswith("voluntary_ctxt"):
                found += int(line.split()[1])
    return found


def show(what: str, seconds: list[float]) -> None:
    """Prints median and spread."""
    ordered = sorted(seconds)
    print(
        f"{what}: median {statistics.median(ordered):.3f} s, 95 % within "
        f"{ordered[int(0.95 * len(ordered))]:.3f} s, worst {ordered[-1]:.3f} s"
    )


def main() -> None:
    """Runs a daemon in a throw-away place and prints all of it."""
    parser = argparse.ArgumentParser()
    for name, default in (("lines", 60), ("before", 2_000), ("files", 100), ("rows", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tm-") as made:
        root = Path(made)
        projects = root / "claude" / "projects"
        for number in range(asked.files):
            Talk(projects, number + 10).fill(asked.rows)
        config = root / "config.toml"
        config.write_text('[memory]\nnightly = "off"\nidle_minutes = 600\n', "utf-8")
        places = [f"--{name}={made}/{name}" for name in ("state", "workspace", "socket")]
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-m", "turnmark", "serve", f"--config={config}", *places],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "CLAUDE_CONFIG_DIR": str(root / "claude"),
                "CODEX_HOME": str(root / "codex"),
            },
        ) as daemon:
            assert daemon.stdout is not None
            daemon.stdout.readline()
            with connect_sync(root / "socket") as client:
                figures = scanned(client, asked.files)
                print(
                    f"first scan: {figures['files']} files, {figures['bytes_total'] / 1e6:.1f} MB "
                    f"in {time.perf_counter() - began:.1f} s; at most "
                    f"{memory_mb(daemon.pid):.0f} MB held"
                )
                talk = Talk(projects, 1)
                talk.fill(asked.before)
                scanned(client, asked.files + 1)
                before = cpu_seconds(daemon.pid)
                found = latencies(client, talk, asked.lines)
                spent = cpu_seconds(daemon.pid) - before
                show("a prompt is a turn after", found["user"])
                show("an answer without a stop reason after", found["assistant"])
                print(f"CPU per line, behind {asked.before:,} records: {spent / asked.lines:.3f} s")
                time.sleep(2.0)
                woken, before = switches(daemon.pid), cpu_seconds(daemon.pid)
                time.sleep(10.0)
                print(
                    f"idle: {(switches(daemon.pid) - woken) / 10:.1f} wake-ups a second, "
                    f"{(cpu_seconds(daemon.pid) - before) * 10:.1f} % of a CPU"
                )
            daemon.terminate()


if __name__ == "__main__":
    main()
