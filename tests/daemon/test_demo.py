"""`turnmark demo`, run as a program: what it shows, what it checks, what it leaves behind."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from turnmark import connect_sync
from turnmark.commands import demo
from turnmark.demo_daemon import DemoFailed, demo_daemon, demo_place
from turnmark.main import main

SECONDS = 60
COMMAND = [sys.executable, "-m", "turnmark", "demo"]


@pytest.fixture
def temporary() -> Iterator[Path]:
    """The directory for temporary files of one demo, which must be empty again at the end."""
    directory = Path(tempfile.mkdtemp(prefix="tm-"))
    try:
        yield directory
        assert list(directory.iterdir()) == []
    finally:
        shutil.rmtree(directory)


def environ(temporary: Path, **more: str) -> dict[str, str]:
    """A bare environment: no home, a locale that knows no Chinese."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "PYTHONPATH"}}
    return {**kept, "LANG": "C", "TMPDIR": str(temporary), **more}


def played(temporary: Path, *words: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words],
        env=environ(temporary, **more),
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )


@contextlib.contextmanager
def held_up(temporary: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A demo that stands still in the middle because nobody reads on; gives its place, too."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)  # less than a demo says
    process = subprocess.Popen(COMMAND, env=environ(temporary), stdout=writing, cwd="/")
    os.close(writing)
    with open(reading, "rb", buffering=0) as pipe, process:  # noqa: PTH123 - a descriptor
        said = b""
        while b"TipMoved" not in said:
            said += pipe.read(1)
        (root,) = temporary.iterdir()
        try:
            yield process, root
            pipe.readall()
            process.wait(SECONDS)
        finally:
            process.kill()


def test_shows_the_whole_way(temporary: Path) -> None:
    """Without a home, in the C locale, it shows every station in English and Chinese."""
    done = played(temporary)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    stations = ("1  The conversation", "2  Writing", "3  The graph", "4  The topics")
    stations += ("5  The core", "6  Recall", "Checked: ")
    places = [text.index(station) for station in stations]
    assert places == sorted(places)
    for said in (
        "TipMoved (fork) · tip of demo-kiosk/fork-1: nothing → t12",
        "TipMoved (rewind) · tip of demo-kiosk/main: t16 → t10",
        "✓ user      t09      陈伟: 大家好",
        "(taken back)",
        "──── topics/people/陈伟.md ────",
        "陈伟：“六十顶头盔下周三（2026-08-19）发货。”[^s-",
        "turn · s-be061cc523a9",
        "sources/demo/demo-kiosk.jsonl:9",
        "`turnmark serve` starts the daemon",
    ):
        assert said in text
    assert "Traceback" not in text


def test_gives_machines_one_object(temporary: Path) -> None:
    """With --json nothing but one line of JSON is printed, and it holds all that is shown."""
    done = played(temporary, "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert result["flush"]["left"] == 0
    moves = [event for event in result["events"] if event["type"] == "TipMoved"]
    causes = {event["cause"] for event in moves}
    assert causes == {"root", "append", "fork", "checkout", "rewind", "spawn"}
    assert "topics/people/robin.md" in result["topics"]
    assert all(answer["hits"] for answer in result["recall"])


def test_needs_no_other_daemon_and_touches_none(temporary: Path) -> None:
    """What the environment says of the user's own daemon does not reach the demo's."""
    done = played(
        temporary,
        TURNMARK_STATE="/nowhere/state",
        TURNMARK_SOCKET="/nowhere/socket",
        TURNMARK_CONFIG="/nowhere/config.toml",
        XDG_RUNTIME_DIR="/nowhere",
        NOTIFY_SOCKET="/nowhere/notify",
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_leaves_nothing_when_it_is_ended(
    temporary: Path, number: signal.Signals, code: int
) -> None:
    """Ctrl-C or SIGTERM in the middle ends the daemon and removes the place."""
    with held_up(temporary) as (process, root):
        with connect_sync(root / "s") as client:
            pid = client.call("hello")["pid"]
        process.send_signal(number)
    assert process.returncode == code
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert not root.exists()


def test_says_what_the_daemon_logged_when_it_does_not_start() -> None:
    """The error names the reason, as the daemon gave it; the place is gone."""
    with demo_place() as place:
        place.config.write_text("nonsense = 1\n", encoding="utf-8")
        daemon = demo_daemon(place, os.environ)
        with pytest.raises(DemoFailed, match=r"ended with code 2 .*nonsense"):
            daemon.__enter__()
    assert not place.root.exists()


def test_reports_a_daemon_that_dies() -> None:
    """A daemon that was killed did not end well."""
    with demo_place() as place, demo_daemon(place, os.environ) as daemon:
        with connect_sync(place.socket) as client:
            os.kill(client.call("hello")["pid"], signal.SIGKILL)
        with pytest.raises(DemoFailed, match="ended with code -9"):
            daemon.stop()


def test_fails_where_recall_finds_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A question without its answer ends the demo with 1."""
    shipped = demo.conversation()
    question = msgspec.structs.replace(shipped.recall[0], answer="紫色")
    told = msgspec.structs.replace(shipped, recall=[question])
    monkeypatch.setattr(demo, "conversation", lambda: told)
    assert main(["demo"]) == 1
    assert "recall did not find '紫色'" in capsys.readouterr().err


def test_fails_where_taken_back_words_remain(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words that should be gone and are in a file end the demo with 1."""
    told = msgspec.structs.replace(demo.conversation(), taken_back="21 August")
    monkeypatch.setattr(demo, "conversation", lambda: told)
    assert main(["demo"]) == 1
    assert "'21 August' was taken back and is in" in capsys.readouterr().err
