"""`turnmark hook claude-code`: memory in time, or nothing, and never an agent that waits."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.daemon_process import DaemonPlace as Daemon
from daemon.daemon_process import daemon_place
from turnmark_memory.models.command import MARK_VARIABLE

# Long enough for a machine that does much else; what is measured has its own bound.
PATIENT_MS = "30000"
COMMAND = (sys.executable, "-m", "turnmark", "hook", "claude-code")
START = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s", "cwd": "/"}


def prompt(text: str, session: str = "s") -> dict[str, Any]:
    """What Claude Code sends with a prompt."""
    return {"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt": text}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with daemon_place(idle_minutes=60) as place:
        place.start()
        with place.connect_sync() as memory:
            memory.append("a", role="user", text="My sister's cat is called Mochi.")
            memory.append("b", role="user", text="我住在波尔图。")
            memory.flush()
        yield place


def hook(socket_path: Path, said: object, *words: str) -> str:
    """Runs the hook with `said` on its standard input; it must end with 0 and in silence."""
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "turnmark",
            "hook",
            "claude-code",
            f"--socket={socket_path}",
            *words,
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        input=text,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    return done.stdout.decode()


def context_of(printed: str, event: str) -> str:
    """Returns what the model is given, from an answer in Claude Code's shape."""
    answer = json.loads(printed)
    assert answer.keys() == {"hookSpecificOutput"}
    output = answer["hookSpecificOutput"]
    assert output.keys() == {"hookEventName", "additionalContext"}
    assert output["hookEventName"] == event
    text: str = output["additionalContext"]
    assert text.startswith("<turnmark-memory>\n")
    assert text.endswith("\n</turnmark-memory>\n")
    return text


@pytest.mark.parametrize(
    ("asked", "answer", "other"),
    [("What is the cat called?", "Mochi", "波尔图"), ("我住在哪里？", "波尔图", "Mochi")],
)
def test_gives_a_prompt_what_memory_says(
    daemon: Daemon, asked: str, answer: str, other: str
) -> None:
    """The hits for this prompt, fenced, also in a session that the daemon doesn't know."""
    printed = hook(daemon.socket, prompt(asked, "unknown"), "--within-ms", PATIENT_MS)
    text = context_of(printed, "UserPromptSubmit")
    assert answer in text
    assert other not in text


def test_gives_a_session_its_core_page() -> None:
    """At the start the core, which no prompt gets again, and never more than is taken whole."""
    with daemon_place(idle_minutes=60, config="core_tokens = 20000\n") as daemon:
        daemon.start()
        core = daemon.workspace / "topics" / "core.md"
        paragraphs = [f"Dana's rule number {n}: {'never, ' * 40}." for n in range(60)]
        core.write_text("# Core\n\n" + "\n\n".join(paragraphs) + "\n")
        with daemon.connect_sync() as memory:
            memory.call("memory.organize")
        text = context_of(hook(daemon.socket, START, "--within-ms", PATIENT_MS), "SessionStart")
        assert "rule number 0" in text
        assert 5_000 < len(text) <= 10_000
        assert hook(daemon.socket, prompt("xyzzy"), "--within-ms", PATIENT_MS) == ""


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"\xff\xfe",
        [],
        "text",
        {},
        {"hook_event_name": "Stop", "session_id": "s"},
        prompt("  "),
        {"hook_event_name": "UserPromptSubmit"},
        {"hook_event_name": ["SessionStart"], "prompt": 3},
    ],
)
def test_prints_nothing_for_what_it_does_not_know(daemon: Daemon, said: object) -> None:
    """Other events, empty prompts and broken input are no reason to fail."""
    assert hook(daemon.socket, said, "--within-ms", PATIENT_MS) == ""


def test_adds_nothing_to_a_writers_own_session(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 15: Claude Code that distils a batch for turnmark is not told what was recalled."""
    asked = prompt("What is the cat called?")
    assert "Mochi" in hook(daemon.socket, asked, "--within-ms", PATIENT_MS)
    monkeypatch.setenv(MARK_VARIABLE, "1")
    assert hook(daemon.socket, asked, "--within-ms", PATIENT_MS) == ""


def test_is_silent_without_a_daemon(tmp_path: Path) -> None:
    """No socket, a stale one, and a file in its place: nothing printed, 0."""
    stale = tmp_path / "stale"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(stale))
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none", stale, tmp_path / "file"):
        assert hook(path, prompt("Where?"), "--within-ms", PATIENT_MS) == ""


@pytest.mark.parametrize("answer", [b"", b"no JSON\n", b'{"id": 1, "error": {}}\n', b"[]\n"])
def test_is_silent_before_a_daemon_that_fails(tmp_path: Path, answer: bytes) -> None:
    """One that closes, talks nonsense or answers with an error: nothing printed, 0."""
    path = tmp_path / "odd"
    with socket.socket(socket.AF_UNIX) as odd:
        odd.bind(str(path))
        odd.listen()

        def serve() -> None:
            with odd.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        assert hook(path, prompt("Where?"), "--within-ms", PATIENT_MS) == ""
        server.join(60)


def test_leaves_in_time_whatever_hangs(tmp_path: Path) -> None:
    """A daemon that never answers, and input that never ends, hold it no longer than it says."""
    path = tmp_path / "mute"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen()
        assert hook(path, prompt("Where?"), "--within-ms", "400") == ""
        endless = subprocess.Popen(
            [*COMMAND, f"--socket={path}"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with endless:
            assert endless.wait(60) == 0
            assert endless.stdout is not None
            assert endless.stdout.read() == b""


def test_answers_in_time_or_is_gone(daemon: Daemon) -> None:
    """By default it has a tenth of a second, which a busy machine may need for itself."""
    for _ in range(5):
        printed = hook(daemon.socket, prompt("What is the cat called?"))
        assert printed == "" or "Mochi" in context_of(printed, "UserPromptSubmit")


def test_starts_with_little() -> None:
    """The short way has no part of what other commands need."""
    code = "import sys; from turnmark import agent_hook; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({"msgspec", "argparse", "asyncio", "structlog"})
