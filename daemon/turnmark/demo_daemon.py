"""A daemon in a throw-away place: a process of its own, and nothing left when it has ended."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from turnmark_events.errors import TurnmarkError

# A start takes half a second; this is for a machine that does much else.
_START_SECONDS = 40.0
_STOP_SECONDS = 15.0
# A socket's path takes 107 bytes, and its name in the place, with what mkdtemp adds, some 40.
_LONGEST_PARENT_BYTES = 60
_LOG_LINES = 20
# What systemd tells its service and TURNMARK_… tell a daemon is not for this one.
_NOT_INHERITED = ("TURNMARK_", "XDG_", "NOTIFY_", "WATCHDOG_", "JOURNAL_")
_CONFIG = """\
[memory]
nightly = "off"
[writer]
kind = "builtin"
[transcripts]
claude-code = "off"
codex = "off"
openclaw = "off"
hermes = "off"
pi = "off"
opencode = "off"
weclaw = "off"
"""


class DemoFailed(TurnmarkError):
    """Something did not go as it does on a machine where turnmark works."""

    kind = "demo_failed"


class DemoPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where the daemon of a demo lives."""

    root: Path

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.root / "s"

    @property
    def workspace(self) -> Path:
        """Its Markdown memory."""
        return self.root / "memory"

    @property
    def log(self) -> Path:
        """What it has logged."""
        return self.root / "log"

    @property
    def config(self) -> Path:
        """Its configuration."""
        return self.root / "config.toml"

    def command(self) -> list[str]:
        """Returns the command line that starts it."""
        serve = [sys.executable, "-m", "turnmark", "serve", "--state", f"{self.root / 'state'}"]
        places = ["--workspace", f"{self.workspace}", "--socket", f"{self.socket}"]
        return [*serve, *places, "--config", f"{self.config}"]


@contextmanager
def demo_place() -> Generator[DemoPlace]:
    """Gives a private directory with a configuration in it, and removes it, whatever happens."""
    parent = tempfile.gettempdir()
    fits = len(os.fsencode(parent)) <= _LONGEST_PARENT_BYTES
    root = Path(tempfile.mkdtemp(prefix="turnmark-demo-", dir=parent if fits else "/tmp"))  # noqa: S108 - mkdtemp makes a private one in it
    try:
        place = DemoPlace(root=root)
        place.config.write_text(_CONFIG, encoding="utf-8")
        yield place
    finally:
        shutil.rmtree(root, ignore_errors=True)


class DemoDaemon:
    """The process; made by `demo_daemon`."""

    def __init__(self, place: DemoPlace, environ: Mapping[str, str]) -> None:
        self._place = place
        inherited = {k: v for k, v in environ.items() if not k.startswith(_NOT_INHERITED)}
        with place.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and our own words
                place.command(),
                env={**inherited, "HOME": str(place.root)},
                cwd=place.root,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends its daemon
            )

    def wait_ready(self) -> None:
        """Returns once the daemon has printed `ready`.

        Raises:
            DemoFailed: if it ends or is not ready in time; with what it logged.
        """
        pipe = self._process.stdout
        if pipe is None:
            raise AssertionError("stdout was not a pipe")
        heard, end = b"", time.monotonic() + _START_SECONDS
        while b"\n" not in heard:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise self.failed(f"the daemon is not ready after {_START_SECONDS:.0f} seconds")
            chunk = os.read(pipe.fileno(), 4096)
            if not chunk:
                code = self._process.wait(_STOP_SECONDS)
                raise self.failed(f"the daemon ended with code {code} before it was ready")
            heard += chunk
        if not heard.startswith(b"ready "):
            raise self.failed(f"the daemon said {heard!r} in place of `ready`")

    def stop(self) -> None:
        """Ends it with SIGTERM, as systemd does.

        Raises:
            DemoFailed: if it does not end, or not well.
        """
        self._process.terminate()
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise self.failed(f"the daemon did not end in {_STOP_SECONDS:.0f} seconds") from None
        if code != 0:
            raise self.failed(f"the daemon ended with code {code} after SIGTERM")

    def kill(self) -> None:
        """Ends it at once, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def failed(self, reason: str) -> DemoFailed:
        """Returns the error, with the end of the daemon's log in its message."""
        text = self._place.log.read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()[-_LOG_LINES:]
        return DemoFailed(f"{reason}; its log ends with: {' | '.join(lines) or 'nothing'}")


@contextmanager
def demo_daemon(place: DemoPlace, environ: Mapping[str, str]) -> Generator[DemoDaemon]:
    """Gives a daemon that is ready; `stop` ends it well, leaving without ends it at once.

    Raises:
        DemoFailed: if it does not start.
    """
    daemon = DemoDaemon(place, environ)
    try:
        daemon.wait_ready()
        yield daemon
    finally:
        daemon.kill()
