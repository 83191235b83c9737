"""What the READMEs tell a newcomer to type, typed against a real daemon in an empty home."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from turnmark.commands import registry

SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]
READMES = ("README.md", "README.zh.md")
QUIET_MINUTES = 60
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A running daemon."""
    with daemon_place(idle_minutes=QUIET_MINUTES) as place:
        place.start()
        yield place
        place.stop()


def environ(place: DaemonPlace) -> dict[str, str]:
    """An environment that knows nothing but where the daemon is."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "PYTHONPATH"}}
    return {**kept, "LANG": "C", "HOME": str(place.root), "TURNMARK_SOCKET": str(place.socket)}


def typed(place: DaemonPlace, *words: str) -> str:
    """Runs a program and returns what it printed; it must succeed."""
    done = subprocess.run(
        [sys.executable, *words],
        env=environ(place),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.parametrize("readme", READMES)
def test_the_first_commands_remember_and_recall(place: DaemonPlace, readme: str) -> None:
    """The commands after `make serve` work in their order, and the question is answered."""
    text = (ROOT / readme).read_text("utf-8")
    (block,) = (found for found in SHELL.findall(text) if "turnmark append" in found)
    printed: dict[str, str] = {}
    for line in block.splitlines():
        program, command, *rest = shlex.split(line)
        assert program == "turnmark"
        printed[command] = typed(place, "-m", "turnmark", command, *rest)
    assert "Porto" in printed["recall"].splitlines()[0]
    assert "Porto" in printed["core"]
    assert printed["flush"].startswith("Wrote 1 batch: 1 turn, ")


@pytest.mark.parametrize("readme", READMES)
def test_the_python_example_runs(place: DaemonPlace, readme: str) -> None:
    """The example for programs prints the hit that it asks for."""
    (example,) = PYTHON.findall((ROOT / readme).read_text("utf-8"))
    assert "I moved to Porto." in typed(place, "-c", example)


def test_the_agent_of_ones_own_runs(place: DaemonPlace) -> None:
    """The page's example remembers what was said, and what was taken back is not there."""
    (example,) = PYTHON.findall((ROOT / "docs" / "your-own-agent.md").read_text("utf-8"))
    typed(place, "-c", example)
    typed(place, "-m", "turnmark", "flush")
    assert "moved to Porto" in typed(place, "-m", "turnmark", "recall", "Where do I live?")
    assert "at ten" not in typed(place, "-m", "turnmark", "core")


LISTS = ["sessions", "owed", "topics", "core", "status", "flush", "organize"]


@pytest.mark.parametrize("command", LISTS)
def test_an_empty_memory_is_said_to_be_empty(place: DaemonPlace, command: str) -> None:
    """Before anything was said each command ends well, for people and for machines."""
    assert command in registry.names()
    assert typed(place, "-m", "turnmark", command).strip() or command == "core"
    json.loads(typed(place, "-m", "turnmark", command, "--json"))
