"""`turnmark forget` against a real daemon: seen first, erased on request, proved."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import anyio
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from turnmark.errors import ConnectionLost

SECRET = "备用钥匙在左边第三个花盆下面, the spare key."
KEPT = "Dana 负责账单团队 since May 2026."


def run(place: DaemonPlace, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the place's daemon to its end, with nobody to ask."""
    return subprocess.run(
        [sys.executable, "-m", "turnmark", *words, "--socket", str(place.socket)],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=False,
    )


def holding(place: DaemonPlace, words: str) -> list[str]:
    """Returns the files below the place, but its log, that hold `words` as they are or in JSON."""
    forms = (words.encode(), json.dumps(words)[1:-1].encode())
    files = [file for file in place.root.rglob("*") if file.is_file() and file.name != "log"]
    return [str(file) for file in files if any(form in file.read_bytes() for form in forms)]


def keep(place: DaemonPlace) -> None:
    """Says two things in two sessions, and lets both be written."""
    with place.connect_sync() as memory:
        memory.append("家", role="user", text=SECRET)
        memory.append("work", role="user", text=KEPT)
        memory.flush()


def test_shows_then_erases_what_was_confirmed() -> None:
    """Without anybody to ask nothing is erased; the printed code erases just what was shown."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        keep(place)
        seen = run(place, "forget", "--session", "家")
        assert seen.returncode == 0, seen.stderr
        assert "would erase 1 turn of 1 session" in seen.stdout
        assert SECRET in seen.stdout
        assert "Nothing was erased" in seen.stdout
        assert holding(place, SECRET)
        confirm = seen.stdout.split("--confirm ")[1].split()[0]
        wrong = run(place, "forget", "--session", "work", "--confirm", confirm)
        assert wrong.returncode == 1
        assert "run it dry again" in wrong.stderr
        done = run(place, "forget", "--session", "家", "--confirm", confirm)
        assert done.returncode == 0, done.stderr
        assert "they are in none" in done.stdout
        assert holding(place, SECRET) == []
        assert KEPT in run(place, "recall", "Dana").stdout


def test_answers_machines_in_json() -> None:
    """A dry run's numbers and code; `--yes` erases at once and gives the proof."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        keep(place)
        plan: dict[str, Any] = json.loads(run(place, "--json", "forget", "--query", "花盆").stdout)
        assert (plan["turns"], plan["sources"], plan["sessions"]) == (1, 1, 1)
        done = json.loads(run(place, "--json", "forget", "--query", "花盆", "--yes").stdout)
        assert done["turns"] == 1
        assert set(done["proof"]["left"].values()) == {0}
        assert holding(place, "花盆") == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "one of --block --turn --session --speaker --query is needed"),
        (("--turn", "x", "--speaker", "y"), "not allowed with"),
        (("--turn", "x", "--dry-run", "--yes"), "--dry-run erases nothing"),
    ],
)
def test_says_what_is_wrong_with_the_words(words: tuple[str, ...], sentence: str) -> None:
    """Exit 2 and one line, before any daemon is asked."""
    ran = subprocess.run(
        [sys.executable, "-m", "turnmark", "forget", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    assert sentence in ran.stderr


@pytest.mark.anyio
@pytest.mark.parametrize(
    "failpoint", ["erase.forgotten", "erase.slice", "erase.retired", "erase.archived"]
)
async def test_ends_a_forgetting_that_was_killed(failpoint: str) -> None:
    """Whatever was confirmed is gone after the next start, and stays away."""
    with daemon_place(idle_minutes=60) as place:
        place.start(failpoint=f"{failpoint}=kill")
        with anyio.fail_after(60):
            async with place.connect() as memory:
                await memory.append("家", role="user", text=SECRET)
                await memory.append("work", role="user", text=KEPT)
                await memory.flush()
                plan = await memory.forget(session="家")
                with pytest.raises(ConnectionLost):
                    await memory.forget(session="家", dry_run=False, confirm=plan["confirm"])
        assert place.wait_end() == -signal.SIGKILL
        place.start()
        with anyio.fail_after(60):
            async with place.connect() as memory:
                await memory.append("work", role="user", text="And one more thing: 再说一句。")
                await memory.flush()
        place.stop()
        assert holding(place, SECRET) == []
        assert holding(place, KEPT)
