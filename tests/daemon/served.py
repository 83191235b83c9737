"""A daemon as a process of its own, and a blocking client that sees every frame."""

from __future__ import annotations

import itertools
import json
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from daemon.daemon_process import FAST_IDLE_MINUTES, DaemonPlace, by_words

SECONDS = 60.0
"""How long anything may take: a wait that is over sooner on any machine that can run the tests."""

_numbers = itertools.count(1)


class Wire:
    """One connection: requests out, answers and notifications in, in the order they came."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(SECONDS)
        try:
            self.socket.connect(str(path))
        except OSError:
            self.socket.close()
            raise
        self.notes: list[dict[str, Any]] = []
        self._lines = self.socket.makefile("rb")
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes both halves."""
        self._lines.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Sends bytes as they are."""
        self.socket.sendall(data)

    def request(self, method: str, params: object = None, **fields: object) -> int:
        """Sends one request and returns its id."""
        number = next(self._ids)
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.send(json.dumps(frame | fields).encode() + b"\n")
        return number

    def tell(self, method: str, params: object) -> None:
        """Sends one notification."""
        frame = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send(json.dumps(frame).encode() + b"\n")

    def frame(self) -> dict[str, Any]:
        """The next frame; an empty one where the daemon has closed."""
        line = self._lines.readline()
        if not line:
            return {}
        found: dict[str, Any] = json.loads(line)
        assert found["jsonrpc"] == "2.0"
        return found

    def answer(self, number: int | None) -> dict[str, Any]:
        """The answer to a request; notifications that come before it are kept in `notes`."""
        while True:
            found = self.frame()
            assert found, "the daemon closed the connection"
            if "method" in found:
                self.notes.append(found)
            elif found["id"] == number:
                return found

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """The whole answer to a request: a result or an error."""
        return self.answer(self.request(method, params))

    def call(self, method: str, **params: object) -> Any:
        """The result of a request, which must succeed."""
        found = self.ask(method, **params)
        assert "result" in found, found
        return found["result"]

    def error(self, method: str, **params: object) -> dict[str, Any]:
        """The error of a request, which must fail in a way that says what and what to do."""
        found = self.ask(method, **params)
        assert "error" in found, found
        failure: dict[str, Any] = found["error"]
        assert set(failure) == {"code", "message", "data"}
        assert isinstance(failure["message"], str)
        assert failure["message"]
        assert isinstance(failure["data"]["kind"], str)
        return failure

    def events(self, count: int) -> list[dict[str, Any]]:
        """The next `count` events of this connection's subscriptions."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            note = self.notes.pop(0) if self.notes else self.frame()
            assert note, "the daemon closed the connection"
            if note.get("method") == "event":
                found.append(note["params"]["event"])
        return found

    def drained(self) -> list[dict[str, Any]]:
        """All events that came up to now: those before the answer to a question asked now."""
        self.call("hello")
        found = [note["params"]["event"] for note in self.notes if note["method"] == "event"]
        self.notes.clear()
        return found

    def append(self, session: str, *texts: str, role: str = "user", **params: object) -> Any:
        """Appends turns whose ids are their texts."""
        turns = [{"id": text, "role": role, "text": text} for text in texts]
        return self.call("turn.append", session=session, turns=turns, **params)


class Daemon(DaemonPlace):
    """A place whose daemon is spoken to frame by frame, and that a test may see fail to start."""

    def __init__(self, root: Path, config: str) -> None:
        super().__init__(root, idle_minutes=FAST_IDLE_MINUTES, config="")
        self.config.write_text(by_words(config), encoding="utf-8")

    @property
    def pid(self) -> int:
        """The process that runs."""
        assert self.process is not None
        return self.process.pid

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wire(self) -> Wire:
        """A new connection."""
        return Wire(self.socket)

    def refused(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs `serve` to its end, for starts that should fail."""
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )


@contextmanager
def place(config: str = "") -> Iterator[Daemon]:
    """A place for a daemon with a short path, for a socket's sake; whatever runs there is ended."""
    daemon = Daemon(Path(tempfile.mkdtemp(prefix="tm-")), config)
    try:
        yield daemon
    finally:
        if daemon.process is not None:
            daemon.kill()
        shutil.rmtree(daemon.root)


@contextmanager
def serving(config: str = "") -> Iterator[Daemon]:
    """A running daemon, which must end well and have met no bug."""
    with place(config) as daemon:
        daemon.start()
        yield daemon
        if daemon.process is not None:
            daemon.stop()
        assert "call_failed" not in daemon.log_text()
        daemon.assert_no_traceback()


def fresh(name: str = "session") -> str:
    """A name that no test had before."""
    return f"{name}-{next(_numbers)}"


def has_shape(value: object, shape: Any) -> None:
    """Checks names and types, all the way down.

    A shape is a type, a tuple of alternatives (None for null), `[shape]` for a list, or a mapping;
    a name that ends in `?` may be missing. Names beyond the shape are additions, and allowed.
    """
    if isinstance(shape, Mapping):
        assert isinstance(value, dict), (value, shape)
        for name, inner in shape.items():
            if name.endswith("?") and name[:-1] not in value:
                continue
            assert name.removesuffix("?") in value, f"{name} is missing in {value}"
            has_shape(value[name.removesuffix("?")], inner)
    elif isinstance(shape, list):
        assert isinstance(value, list), (value, shape)
        for item in value:
            has_shape(item, shape[0])
    elif isinstance(shape, tuple):
        assert any(_has(value, one) for one in shape), (value, shape)
    else:
        assert _has(value, shape), (value, shape)


def _has(value: object, shape: Any) -> bool:
    if shape is None or isinstance(shape, str | int):
        return value is shape or value == shape
    if isinstance(shape, type):
        return type(value) is shape or (shape is float and type(value) is int)
    try:
        has_shape(value, shape)
    except AssertionError:
        return False
    return True


def listing(*roots: Path) -> dict[str, int]:
    """Every path below some directories, with its mode."""
    return {str(path): stat.S_IMODE(path.lstat().st_mode) for path in walk(roots)}


def walk(roots: Iterable[Path]) -> Iterator[Path]:
    """Every path below some directories, themselves included."""
    for root in roots:
        yield root
        if root.is_dir() and not root.is_symlink():
            yield from walk(sorted(root.iterdir()))
