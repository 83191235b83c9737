"""The life of the daemon as a process: who may start, where, how it ends, what it leaves."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon.served import SECONDS, Daemon, Wire, listing, place, serving, walk

NIGHT_OFF = '[memory]\nnightly = "off"\n'


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A place for a daemon that a test starts by itself."""
    with place(NIGHT_OFF) as found:
        yield found


class Manager:
    """A service manager's end of the notification socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.socket.settimeout(SECONDS)

    def heard(self) -> list[str]:
        """The lines of the next datagram."""
        return self.socket.recv(65_536).decode().split("\n")


@pytest.fixture
def manager(daemon: Daemon) -> Iterator[Manager]:
    """A service manager."""
    found = Manager(daemon.root / "notify")
    yield found
    found.socket.close()


def turns(*texts: str) -> list[dict[str, str]]:
    """Turns of a user."""
    return [{"id": text, "role": "user", "text": text} for text in texts]


# Start.


def test_says_ready_where_clients_look(daemon: Daemon) -> None:
    """`ready` with the path is printed once the socket answers; `socket.path` names it."""
    daemon.start()
    record = daemon.state / "socket.path"
    assert record.read_text(encoding="utf-8") == f"{daemon.socket}\n"
    with daemon.wire() as wire:
        assert wire.call("hello")["pid"] == daemon.pid
    daemon.stop()
    assert not record.exists()
    assert not daemon.socket.exists()


def test_a_second_daemon_exits_4_and_names_the_first(daemon: Daemon) -> None:
    """On the same places, state or workspace; the first one's socket is left alone."""
    daemon.start()
    inode = daemon.socket.stat().st_ino
    second = daemon.refused()
    assert second.returncode == 4
    assert f"process {daemon.pid}" in second.stderr
    assert second.stdout == ""
    with place(NIGHT_OFF) as other:
        beside = daemon.refused(f"--workspace={other.workspace}", f"--socket={other.socket}")
        assert beside.returncode == 4
        assert f"{daemon.state} is in use by process {daemon.pid}" in beside.stderr
        assert not other.socket.exists()
        other.workspace = daemon.workspace
        third = other.refused()
        assert third.returncode == 4
        assert f"process {daemon.pid}" in third.stderr
        assert not other.socket.exists()
        assert not (other.state / "socket.path").exists()
    assert daemon.socket.stat().st_ino == inode
    with daemon.wire() as wire:
        assert wire.call("hello")["pid"] == daemon.pid


def test_the_lock_comes_before_the_socket(daemon: Daemon) -> None:
    """Whoever does not get the lock has not touched socket, database or workspace."""
    daemon.start()
    before = listing(daemon.root)
    assert daemon.refused("--socket", str(daemon.root / "other.sock")).returncode == 4
    assert listing(daemon.root).keys() == before.keys()


def test_a_stale_socket_is_replaced(daemon: Daemon) -> None:
    """What a killed daemon left is no obstacle, and nothing acknowledged is lost."""
    daemon.start()
    with daemon.wire() as wire:
        wire.append("s", "acknowledged")
    daemon.signal(signal.SIGKILL)
    assert daemon.wait_end() == -signal.SIGKILL
    assert daemon.socket.exists()
    daemon.start()
    with daemon.wire() as wire:
        assert wire.call("session.show", session="s")["head"] == "acknowledged"


def test_a_socket_on_which_a_daemon_listens_is_not_taken(daemon: Daemon) -> None:
    """A daemon with places of its own, but this one's socket, ends with 4 and names its pid."""
    daemon.start()
    others = [f"--{name}={daemon.root / 'other' / name}" for name in ("state", "workspace")]
    refused = daemon.refused(*others)
    assert refused.returncode == 4
    assert f"process {daemon.pid} listens on {daemon.socket}" in refused.stderr
    with daemon.wire() as wire:
        assert wire.call("hello")["pid"] == daemon.pid


@pytest.mark.parametrize("kind", ["file", "link", "dangling link", "directory", "fifo"])
def test_what_is_no_socket_is_refused_untouched(daemon: Daemon, kind: str) -> None:
    """A file, a link or a directory at the socket's path is named and left as it is."""
    precious = daemon.root / "precious"
    make: dict[str, Callable[[], object]] = {
        "file": lambda: daemon.socket.write_text("words"),
        "link": lambda: daemon.socket.symlink_to(precious),
        "dangling link": lambda: daemon.socket.symlink_to(precious),
        "directory": daemon.socket.mkdir,
        "fifo": lambda: os.mkfifo(daemon.socket),
    }
    make[kind]()
    if kind == "link":
        precious.write_text("words")
    before = daemon.socket.lstat()
    failed = daemon.refused()
    assert failed.returncode == 1
    assert str(daemon.socket) in failed.stderr
    after = daemon.socket.lstat()
    assert (after.st_ino, after.st_mode, after.st_size) == (
        before.st_ino,
        before.st_mode,
        before.st_size,
    )
    assert precious.exists() == (kind == "link")


def test_a_path_over_107_bytes_is_refused_with_the_key(daemon: Daemon) -> None:
    """The message says what is too long and which settings make it shorter."""
    daemon.socket = daemon.root / ("x" * 120)
    failed = daemon.refused()
    assert failed.returncode == 2
    assert "107" in failed.stderr
    for word in ("`socket`", "TURNMARK_SOCKET", "--socket"):
        assert word in failed.stderr
    assert not daemon.socket.exists()


def test_a_path_of_107_bytes_is_taken(daemon: Daemon) -> None:
    """The limit is the system's own."""
    size = 107 - len(str(daemon.root)) - 1
    daemon.socket = daemon.root / ("x" * size)
    daemon.start()
    with daemon.wire() as wire:
        assert wire.call("hello")


@pytest.mark.parametrize("mask", [0o022, 0o000])
def test_everything_it_makes_is_private(daemon: Daemon, mask: int) -> None:
    """Directories are 0700 and files 0600, whatever the umask: state, workspace, socket, index."""
    daemon.start(through=["sh", "-c", f'umask {mask:04o}; exec "$@"', "sh"])
    with daemon.wire() as wire:
        wire.append("会话", "My name is Dana and I live in Porto.")
        wire.call("memory.flush")
        wire.call("memory.organize")
        found = list(walk([daemon.state, daemon.workspace, daemon.socket]))
        names = {path.name for path in found}
        expected = {"sessions.db", "sessions.db-wal", "lock", "socket.path", "core.md", "index.db"}
        assert expected <= names
        for path in found:
            mode = path.lstat().st_mode
            assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path
            assert not path.is_symlink()


def damage(path: Path) -> None:
    """Overwrites the middle of a file."""
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 16_384)


def make_newer(path: Path) -> None:
    """Gives a database the schema number of a later version."""
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 1000")


def empty(path: Path) -> None:
    """Cuts a file to nothing."""
    path.write_bytes(b"")


def make_foreign(path: Path) -> None:
    """Puts another program's database there."""
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (a)")


def make_text(path: Path) -> None:
    """Puts a text there."""
    path.write_text("这不是数据库\n" * 1_000, encoding="utf-8")


def make_directory(path: Path) -> None:
    """Puts a directory there."""
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (damage, ("damaged", "backup")),
        (empty, ("damaged", "backup")),
        (make_text, ("damaged", "backup")),
        (make_newer, ("newer", "Install")),
        (make_foreign, ("another program", "--state")),
        (make_directory, ("cannot open", "check")),
    ],
)
def test_a_database_that_is_not_ours_to_use_stops_the_start(
    daemon: Daemon, harm: Callable[[Path], None], words: tuple[str, ...]
) -> None:
    """Exit 1, one line that says what is wrong and what to do; nothing is changed."""
    daemon.start()
    with daemon.wire() as wire:
        for number in range(30):
            text = f"turn {number} " + "x" * 2_000
            wire.call("turn.append", session="s", turns=[{"role": "user", "text": text}])
    daemon.stop()
    path = daemon.state / "sessions.db"
    harm(path)
    before = path.read_bytes() if path.is_file() else b""
    failed = daemon.refused()
    assert failed.returncode == 1, failed.stderr
    assert str(path) in failed.stderr
    for word in words:
        assert word in failed.stderr
    assert "Traceback" not in failed.stderr
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert not daemon.socket.exists()
    assert not (daemon.state / "socket.path").exists()


def test_a_wrong_configuration_stops_the_start(daemon: Daemon) -> None:
    """An unknown key is named with file and line before anything is made."""
    daemon.config.write_text('[memory]\nnightly = "off"\nidle_minuts = 3\n', encoding="utf-8")
    failed = daemon.refused()
    assert failed.returncode == 2
    for word in ("config.toml", "3", "idle_minuts"):
        assert word in failed.stderr
    assert not daemon.state.exists()


# The end.


def test_sigterm_under_load_answers_or_refuses_and_exits_0(daemon: Daemon) -> None:
    """Each request in flight gets its result or a refusal; what was acknowledged is there after."""
    daemon.start()
    acknowledged: list[str] = []
    with daemon.wire() as wire, daemon.wire() as ear:
        ear.call("events.subscribe")
        sent = {
            wire.request("turn.append", {"session": "s", "turns": turns(f"t-{number}")}): number
            for number in range(120)
        }
        daemon.signal(signal.SIGTERM)
        while frame := wire.frame():
            if "method" in frame:
                assert frame["method"] == "closing"
                continue
            number = sent.pop(frame["id"])
            if "result" in frame:
                acknowledged += frame["result"]["turns"]
            else:
                assert frame["error"]["data"]["kind"] == "unavailable", number
        said = []
        while frame := ear.frame():
            said.append(frame["method"])
        assert said[-1:] == ["closing"]
    assert daemon.wait_end() == 0
    daemon.start()
    with daemon.wire() as wire:
        stored = wire.call("session.branch", session="s")["turns"] if acknowledged else []
        assert {turn["id"] for turn in stored} >= set(acknowledged)


def test_a_client_that_never_reads_does_not_hold_the_end(daemon: Daemon) -> None:
    """The grace has an end: a connection full of unread answers is closed."""
    daemon.start()
    wire = daemon.wire()
    wire.call("events.subscribe", since=0)
    for _ in range(100):
        wire.request("turn.append", {"session": "s", "turns": turns(*map(str, range(300)))})
    daemon.signal(signal.SIGTERM)
    assert daemon.wait_end() == 0
    wire.close()


def test_sigint_ends_it_too(daemon: Daemon) -> None:
    """As Ctrl-C on a terminal does."""
    daemon.start()
    daemon.signal(signal.SIGINT)
    assert daemon.wait_end() == 0


def test_without_drain_what_is_owed_stays_owed(daemon: Daemon) -> None:
    """It ends at once, and the next start knows what is owed."""
    daemon.start()
    with daemon.wire() as wire:
        wire.append("s", "I live in Porto.")
    daemon.stop()
    daemon.start()
    with daemon.wire() as wire:
        assert wire.call("memory.owed")["turns"] == 1


def test_drain_writes_what_is_owed_before_it_ends(daemon: Daemon) -> None:
    """With `--drain` SIGTERM writes every live tip, the head or not, and then exits 0."""
    daemon.start("--drain")
    with daemon.wire() as wire:
        wire.append("s", "I live in Porto.", "b")
        wire.append("s", "I work for the railway.", after="b")
    daemon.signal(signal.SIGTERM)
    assert daemon.wait_end() == 0
    daemon.start()
    with daemon.wire() as wire:
        assert wire.call("memory.owed")["turns"] == 0
        assert wire.call("memory.recall", query="who works for the railway?")["hits"]


def stuck(daemon: Daemon) -> Wire:
    """Makes what is owed so much that a drain takes its time; returns the connection."""
    wire = daemon.wire()
    for number in range(40):
        texts = [f"I live in town {number}-{line}. 我住在第{line}号。" for line in range(100)]
        wire.call("turn.append", session=f"s-{number}", turns=turns(*texts))
    return wire


def test_a_second_sigterm_skips_the_drain(daemon: Daemon) -> None:
    """It ends with 0 all the same; what was not written stays owed."""
    daemon.start("--drain")
    wire = stuck(daemon)
    daemon.signal(signal.SIGTERM)
    while '"stopping"' not in daemon.log_text():
        assert daemon.process is not None
        assert daemon.process.poll() is None
    daemon.signal(signal.SIGTERM)
    assert daemon.wait_end() == 0
    wire.close()
    assert "drain_skipped" in daemon.log_text() or '"drained"' in daemon.log_text()
    daemon.start()
    with daemon.wire() as again:
        count = again.call("status")
        assert count["turns"] == 4_000


# The service manager.


def test_tells_the_manager_ready_and_stopping(daemon: Daemon, manager: Manager) -> None:
    """READY=1 once clients can connect, STOPPING=1 at the end, on a real datagram socket."""
    daemon.start(environ={"NOTIFY_SOCKET": str(manager.path)})
    assert manager.heard()[0] == "READY=1"
    daemon.stop()
    assert manager.heard()[0] == "STOPPING=1"


def test_feeds_the_watchdog_while_all_is_well(daemon: Daemon, manager: Manager) -> None:
    """WATCHDOG=1 comes again and again where systemd asks for it, and only then."""
    told = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "200000"}
    daemon.start(environ=told)
    assert manager.heard()[0] == "READY=1"
    assert [manager.heard() for _ in range(4)] == [["WATCHDOG=1"]] * 4
    daemon.stop()


def test_a_watchdog_of_another_process_is_not_ours(daemon: Daemon, manager: Manager) -> None:
    """WATCHDOG_PID names who is meant; it is inherited by everything that a service starts."""
    told = {"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
    daemon.start(environ=told)
    assert manager.heard()[0] == "READY=1"
    with daemon.wire() as wire:
        wire.call("memory.flush")
    daemon.stop()
    assert manager.heard()[0] == "STOPPING=1"


# Descriptors.


@contextmanager
def crowd(daemon: Daemon, size: int) -> Iterator[list[socket.socket]]:
    """That many clients that have connected and say nothing."""
    clients: list[socket.socket] = []
    try:
        for _ in range(size):
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            clients.append(client)
            client.settimeout(SECONDS)
            client.connect(str(daemon.socket))
        yield clients
    finally:
        for client in clients:
            client.close()


def test_survives_running_out_of_descriptors(daemon: Daemon) -> None:
    """At a limit of 60 descriptors those inside are served, and later ones get in when some go."""
    daemon.start(through=["sh", "-c", 'ulimit -n 60; exec "$@"', "sh"])
    with daemon.wire() as wire:
        wire.append("s", "before")
        wire.call("memory.flush")
        with crowd(daemon, 200):
            while "accept_paused" not in daemon.log_text():
                assert daemon.process is not None
                assert daemon.process.poll() is None
            assert wire.append("s", "meanwhile")["new"] == 1
            assert wire.call("session.show", session="s")["head"] == "meanwhile"
        with daemon.wire() as late:
            assert late.call("session.show", session="s")["head"] == "meanwhile"


def test_lives_through_a_workspace_that_goes_away(daemon: Daemon) -> None:
    """Where the workspace is gone appends go on; the daemon says what is wrong."""
    daemon.start()
    with daemon.wire() as wire:
        wire.append("s", "I live in Porto.")
        shutil.rmtree(daemon.workspace)
        answer: dict[str, Any] = wire.ask("memory.flush")
        assert "error" in answer or answer["result"]["left"] >= 0
        assert wire.append("s", "more")["new"] == 1
        assert wire.call("status")
    daemon.stop()


def test_a_daemon_that_cannot_write_its_place_says_so(daemon: Daemon) -> None:
    """A state directory that can't be made is named with the option that chooses another."""
    (daemon.root / "file").write_text("words")
    daemon.state = daemon.root / "file" / "state"
    failed = daemon.refused()
    assert failed.returncode == 1
    assert "--state" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_logs_no_text_of_a_turn() -> None:
    """Neither a turn's words nor a query's reach the log, also where a request fails."""
    with serving(NIGHT_OFF) as daemon, daemon.wire() as wire:
        wire.append("s", "Xanadu is my secret place.")
        wire.call("memory.flush")
        wire.call("memory.recall", query="Xanadu")
        wire.error("turn.append", session="s", turns=[{"role": "Xanadu", "text": "Xanadu"}])
        daemon.stop()
        assert "Xanadu" not in daemon.log_text()


def test_the_command_line_says_how_to_start_it(daemon: Daemon) -> None:
    """Without a daemon a command exits 3 and names `turnmark serve`."""
    command = daemon.command()
    command[command.index("serve")] = "status"
    failed = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert failed.returncode == 3
    assert "turnmark serve" in failed.stderr
