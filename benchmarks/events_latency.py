"""How soon a subscriber on the socket hears: of a move after its acknowledgement, of a silence.

Run: python benchmarks/events_latency.py [--appends 300] [--silences 20]

A real daemon. One connection appends, another listens; both are watched by one loop, and what
counts is the time between the two answers (below zero: the event came before the acknowledgement).
Then branches fall silent one after the other, and their `TipIdle` is compared with their deadline.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

_IDLE_MINUTES = 0.01


class Line:
    """A connection, read line by line, each with the moment at which it came."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))
        self._held = b""

    def ask(self, method: str, **params: object) -> None:
        """Sends a request."""
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.socket.sendall(json.dumps(frame).encode() + b"\n")

    def read(self) -> list[dict[str, Any]]:
        """The frames that have come; waits for bytes, perhaps of half a frame."""
        *lines, self._held = (self._held + self.socket.recv(1 << 20)).split(b"\n")
        return [json.loads(line) for line in lines]

    def call(self, method: str, **params: object) -> Any:
        """The result of a request."""
        self.ask(method, **params)
        while True:
            for frame in self.read():
                if "result" in frame:
                    return frame["result"]


def moves(path: Path, appends: int) -> list[float]:
    """Seconds from each acknowledgement to its `TipMoved`."""
    writer, ear = Line(path), Line(path)
    ear.call("events.subscribe", types=["TipMoved"], session="s")
    with selectors.DefaultSelector() as watch:
        watch.register(writer.socket, selectors.EVENT_READ, writer)
        watch.register(ear.socket, selectors.EVENT_READ, ear)
        found: list[float] = []
        for number in range(appends):
            turns = [{"role": "user", "text": f"第{number}句话"}]
            writer.ask("turn.append", session="s", turns=turns)
            came: dict[Line, float] = {}
            while len(came) < 2:
                for key, _ in watch.select():
                    at = time.perf_counter()
                    if key.data.read():
                        came[key.data] = at
            found.append(came[ear] - came[writer])
    return found


def silences(path: Path, count: int) -> list[float]:
    """Seconds from each branch's deadline to its `TipIdle`."""
    writer, ear = Line(path), Line(path)
    ear.call("events.subscribe", types=["TipIdle"], session="idle")
    late: list[float] = []
    for number in range(count):
        turns = [{"role": "user", "text": f"turn {number}"}]
        writer.call("turn.append", session="idle", turns=turns)
        (branch,) = writer.call("session.show", session="idle")["branches"]
        due = datetime.fromisoformat(branch["idle_at"]).timestamp()
        while not any(frame.get("method") == "event" for frame in ear.read()):
            pass
        late.append(time.time() - due)
    return late


def show(what: str, seconds: list[float], target: str) -> None:
    """Prints median and spread in milliseconds."""
    ordered = sorted(1e3 * one for one in seconds)
    print(
        f"{what}: median {statistics.median(ordered):.2f} ms, 95 % within "
        f"{ordered[int(0.95 * len(ordered))]:.2f} ms, worst {ordered[-1]:.2f} ms ({target})"
    )


def main() -> None:
    """Runs a daemon in a throw-away place and prints both."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--appends", type=int, default=300)
    parser.add_argument("--silences", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tm-") as root:
        config = Path(root, "config.toml")
        config.write_text(f'[memory]\nnightly = "off"\nidle_minutes = {_IDLE_MINUTES}\n', "utf-8")
        places = [f"--{name}={root}/{name}" for name in ("state", "workspace", "socket")]
        with subprocess.Popen(
            [sys.executable, "-m", "turnmark", "serve", f"--config={config}", *places],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as daemon:
            assert daemon.stdout is not None
            daemon.stdout.readline()
            path = Path(root, "socket")
            show("TipMoved after the acknowledgement", moves(path, asked.appends), "target: 5 ms")
            late = silences(path, asked.silences)
            show("TipIdle after its deadline", late, "target: within 100 ms")
            daemon.terminate()


if __name__ == "__main__":
    main()
