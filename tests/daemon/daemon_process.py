"""A real daemon in a process of its own: started, talked to, killed, started again.

`DaemonPlace` is a state directory, a workspace and a socket under a short path; one daemon at a
time runs there. Nothing here sleeps: a start waits for the line `ready`, an end for the process.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

from turnmark import connect, connect_sync
from turnmark.client import Memory
from turnmark.client_sync import SyncClient

START_SECONDS = 90.0
"""Longer than the slowest start on a busy machine; a start takes about a second."""

FAST_IDLE_MINUTES = 0.01
_TRACEBACK = "Traceback (most recent call last)"


def by_words(config: str) -> str:
    """Returns a configuration without an embedder, unless it says which.

    One that happens to be installed would cost each daemon a second of its processor.
    """
    return config if "[recall]" in config else f'{config}\n[recall]\nembedder = "off"\n'


class DaemonPlace:
    """Where a daemon lives; start it, kill it, start it again. Made by `daemon_place`."""

    def __init__(self, root: Path, *, idle_minutes: float, config: str) -> None:
        self.root = root
        self.state = root / "state"
        self.workspace = root / "memory"
        self.socket = root / "s"
        self.log_file = root / "log"
        self.agents = root / "claude"
        self.codex = root / "codex"
        self.hermes = root / "hermes"
        self.openclaw = root / "openclaw"
        self.opencode = root / "opencode" / "opencode.db"
        self.pi = root / "pi"
        self.config = root / "config.toml"
        self.configure(idle_minutes=idle_minutes, more=config)
        self.process: subprocess.Popen[bytes] | None = None

    def configure(self, *, idle_minutes: float = FAST_IDLE_MINUTES, more: str = "") -> None:
        """Writes the configuration that the next start reads; `more` follows `[memory]`."""
        memory = f'[memory]\nidle_minutes = {idle_minutes}\nnightly = "off"\n'
        self.config.write_text(by_words(memory + more), encoding="utf-8")

    def start(
        self,
        *words: str,
        failpoint: str | None = None,
        through: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the daemon and returns when it is ready; `through` runs it under a program.

        Raises:
            AssertionError: if it ends, or is not ready in time; with what it logged.
        """
        self.begin(*words, failpoint=failpoint, through=through, environ=environ)
        assert self.wait_ready(), f"ended with {self.wait_end()}:\n{self.log_text()}"

    def begin(
        self,
        *words: str,
        failpoint: str | None = None,
        through: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the daemon and returns at once."""
        assert self.process is None, "a daemon runs here already"
        # The files of agents that this machine's user talks to are no business of a test.
        agents = {
            "CLAUDE_CONFIG_DIR": str(self.agents),
            "CODEX_HOME": str(self.codex),
            "HERMES_HOME": str(self.hermes),
            "OPENCLAW_STATE_DIR": str(self.openclaw),
            "OPENCODE_DB": str(self.opencode),
            "PI_CODING_AGENT_SESSION_DIR": str(self.pi),
        }
        given = {**os.environ, **agents, **(environ or {})}
        given.pop("TURNMARK_FAILPOINT", None)
        if failpoint is not None:
            given["TURNMARK_FAILPOINT"] = failpoint
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [*through, *self.command("--verbose", *words)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=given,
            )

    def command(self, *words: str) -> list[str]:
        """The command line of `serve` in this place."""
        places = {
            "--state": self.state,
            "--workspace": self.workspace,
            "--socket": self.socket,
            "--config": self.config,
        }
        options = [str(part) for pair in places.items() for part in pair]
        return [sys.executable, "-m", "turnmark", "serve", *options, *words]

    def wait_ready(self) -> bool:
        """Returns True once it has printed `ready`, False if it ended before."""
        assert self.process is not None
        assert self.process.stdout is not None
        pipe, heard = self.process.stdout.fileno(), b""
        end = time.monotonic() + START_SECONDS
        while b"\n" not in heard:
            left = end - time.monotonic()
            assert left > 0, f"not ready after {START_SECONDS} s:\n{self.log_text()}"
            if select.select([pipe], [], [], left)[0]:
                chunk = os.read(pipe, 4096)
                if not chunk:
                    return False
                heard += chunk
        assert heard.startswith(b"ready "), heard
        return True

    def wait_end(self, *, seconds: float = START_SECONDS) -> int:
        """Waits for the process to end by itself; returns its code, -9 after SIGKILL."""
        assert self.process is not None
        code = self.process.wait(timeout=seconds)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code

    def kill(self) -> None:
        """Kills it with SIGKILL, wherever it is."""
        assert self.process is not None
        self.process.kill()
        assert self.wait_end() == -signal.SIGKILL

    def stop(self) -> None:
        """Ends it with SIGTERM and checks that it went well."""
        assert self.process is not None
        self.process.terminate()
        code = self.wait_end()
        assert code == 0, f"ended with {code}:\n{self.log_text()}"

    def connect(self) -> AbstractAsyncContextManager[Memory]:
        """A new client."""
        return connect(self.socket)

    def connect_sync(self) -> SyncClient:
        """A new blocking client."""
        return connect_sync(self.socket)

    def log_text(self) -> str:
        """Everything that the daemons of this place have logged."""
        return self.log_file.read_text(encoding="utf-8") if self.log_file.exists() else ""

    def logged(self, event: str | None = None) -> list[dict[str, Any]]:
        """The log lines, or those of one event; the last may be torn by a kill."""
        found: list[dict[str, Any]] = []
        for line in self.log_text().splitlines():
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                assert _TRACEBACK not in line, self.log_text()
                continue
            if event is None or entry["event"] == event:
                found.append(entry)
        return found

    def assert_no_traceback(self) -> None:
        """No daemon of this place logged a bug."""
        text = self.log_text()
        assert _TRACEBACK not in text, text
        assert not [line for line in self.logged() if "exception" in line], text


@contextmanager
def daemon_place(
    *,
    idle_minutes: float = FAST_IDLE_MINUTES,
    config: str = "",
    traceback_expected: bool = False,
) -> Iterator[DaemonPlace]:
    """Gives a place for a daemon; at the end it is killed, checked for tracebacks, removed."""
    root = Path(tempfile.mkdtemp(prefix="tm-"))
    place = DaemonPlace(root, idle_minutes=idle_minutes, config=config)
    try:
        yield place
        if not traceback_expected:
            place.assert_no_traceback()
    finally:
        if place.process is not None:
            place.kill()
        shutil.rmtree(root, ignore_errors=True)


def turnmark(place: DaemonPlace, *words: object) -> str:
    """Runs a command, which must succeed, and returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "turnmark", *map(str, words), "--socket", str(place.socket)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
