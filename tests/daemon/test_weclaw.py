"""Tests of what becomes of conversations over weclaw: a real daemon, and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from session_store.transcripts.claude_records import SESSION, user
from session_store.transcripts.written_files import append
from turnmark.places import weclaw_dir

SECONDS = 60
OTHER = "9d2f1c3e-0000-4000-8000-000000000002"
ELSEWHERE = "weclaw keeps no transcripts"


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A place for a daemon."""
    with daemon_place(idle_minutes=60) as made:
        yield made


def run(place: DaemonPlace, *words: object) -> tuple[int, str]:
    """Runs a command; returns its exit code and all that it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "turnmark", *map(str, words), "--socket", str(place.socket)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout


def say(place: DaemonPlace, session: str, words: str, cwd: Path) -> Path:
    """Writes what somebody said to Claude Code in a directory."""
    record = user(f"u-{session}", None, 0, words, cwd=str(cwd), sessionId=session)
    file = place.agents / "projects" / "-w" / f"{session}.jsonl"
    append(file, json.dumps(record, ensure_ascii=False).encode() + b"\n")
    return file


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("setting", "said", "kept"),
    [("auto", f"weclaw {ELSEWHERE}", {SESSION, OTHER}), ("off", "weclaw off", {OTHER})],
)
async def test_what_is_said_through_weclaw_is_read_with_the_agent_that_it_calls(
    place: DaemonPlace, setting: str, said: str, kept: set[str]
) -> None:
    """Unless weclaw is off: by the directory in which its agents work."""
    workspace = place.root / ".weclaw" / "workspace"
    workspace.mkdir(parents=True)
    say(place, SESSION, "我搬到了卑尔根。", workspace)
    os.utime(say(place, OTHER, "I live in Oslo.", place.root / "demo"), (1, 1))
    place.configure(idle_minutes=60, more=f'[transcripts]\nweclaw = "{setting}"\n')
    place.start(environ={"HOME": str(place.root)})
    async with place.connect() as client, client.subscribe(since=0, types=["TipMoved"]) as events:
        with anyio.fail_after(SECONDS):
            while (await anext(events)).session != OTHER:  # which is read last: its file is older
                pass
        sessions = await client.call("session.list")
    assert {one["session"] for one in sessions["sessions"]} == kept
    _, told = run(place, "status")
    assert said in " ".join(told.split())
    place.stop()


def test_an_import_says_where_weclaws_conversations_are_and_opens_no_account(
    place: DaemonPlace,
) -> None:
    """Neither when it is named nor on the way through what is around it."""
    home = place.root / "home" / ".weclaw"
    account = home / "accounts" / "bot.jsonl"
    append(account, json.dumps(user("u9", None, 0, "A credential")).encode() + b"\n")
    place.start()
    for words in ((home,), (account,), (home.parent, "--agent", "weclaw")):
        code, told = run(place, "import", *words)
        assert (code, told.count(ELSEWHERE)) == (1, 1)
    code, told = run(place, "import", home.parent)
    assert (code, "holds no transcript" in told) == (1, True)
    place.stop()


def test_weclaw_has_a_directory_at_home_or_where_it_is_said() -> None:
    """As other agents do."""
    home = {"HOME": "/home/me"}
    assert weclaw_dir("auto", environ=home) == Path("/home/me/.weclaw")
    assert weclaw_dir("~/w", environ=home) == Path("/home/me/w")
    assert weclaw_dir("off", environ=home) is None
