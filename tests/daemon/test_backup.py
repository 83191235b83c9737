"""`turnmark backup` and `restore`: taken under load, whole, and what was acknowledged is in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from turnmark.backup import back_up
from turnmark.backup_manifest import Places
from turnmark.doctor import examine
from turnmark.restore import restore
from turnmark_events.errors import Refused, TurnmarkError
from turnmark_memory.tokens import load_counter

SECONDS = 60
BACKUPS = int(os.environ.get("TURNMARK_TEST_BACKUPS", "3"))
SESSIONS = ("alpha", "beta", "伽马")


class Load:
    """Appends numbered turns to a few sessions, and flushes, until it is told to end."""

    def __init__(self, place: DaemonPlace) -> None:
        self.acknowledged: dict[str, int] = dict.fromkeys(SESSIONS, 0)
        self.ended = threading.Event()
        self.far = threading.Event()
        self.failures: list[BaseException] = []
        self._place = place
        self._threads = [
            threading.Thread(target=self._append),
            threading.Thread(target=self._flush),
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs it while the block runs, from a moment on at which some turns are written."""
        for thread in self._threads:
            thread.start()
        try:
            assert self.far.wait(SECONDS)
            yield
        finally:
            self.ended.set()
            for thread in self._threads:
                thread.join(SECONDS)
            assert self.failures == []

    def _append(self) -> None:
        try:
            with self._place.connect_sync() as memory:
                number = 0
                while not self.ended.is_set():
                    number += 1
                    for session in SESSIONS:
                        words = f"I like dish number {number} of {session}."
                        memory.append(session, role="user", text=words, id=f"{session}-{number}")
                        self.acknowledged[session] = number
        except BaseException as error:  # noqa: BLE001 - shown where the load ends
            self.failures.append(error)

    def _flush(self) -> None:
        try:
            with self._place.connect_sync() as memory:
                while not self.ended.is_set():
                    memory.flush()
                    if self.acknowledged[SESSIONS[-1]] > 5:
                        self.far.set()
        except BaseException as error:  # noqa: BLE001 - as above
            self.failures.append(error)


def places_of(place: DaemonPlace) -> Places:
    return Places(state=place.state, workspace=place.workspace)


def faults(place: DaemonPlace) -> list[Any]:
    """What the doctor says against a place."""
    count = load_counter().count
    found = examine(place.state, place.workspace, core_tokens=2_000, count=count)
    return [one for one in found if one.level != "ok"]


def run(place: DaemonPlace, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command against a place."""
    options = [f"--state={place.state}", f"--workspace={place.workspace}"]
    return subprocess.run(
        [sys.executable, "-m", "turnmark", *words, *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A place with a few turns written, whose daemon has ended."""
    with daemon_place(idle_minutes=60) as made:
        made.start()
        with made.connect_sync() as memory:
            memory.append("s", role="user", text="I live in Porto.")
            memory.append("t", role="user", text="我的猫叫豆豆，今年三岁。")
            memory.flush()
        made.stop()
        yield made


def files_of(root: Path) -> dict[str, bytes]:
    """Every file by its name, but for locks, which name their last holder."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "lock"
    }


@pytest.mark.timeout(60 + 40 * BACKUPS)
def test_holds_what_was_acknowledged_and_nothing_half() -> None:
    """Under load: each backup is a prefix of what was said, sound, and written once to its end."""
    with daemon_place(idle_minutes=60) as busy:
        busy.start()
        load = Load(busy)
        taken: list[tuple[Path, dict[str, int], dict[str, int]]] = []
        with load.running():
            for number in range(BACKUPS):
                before = dict(load.acknowledged)
                target = busy.root / f"backup-{number}"
                back_up(places_of(busy), target)
                taken.append((target, before, dict(load.acknowledged)))
        for target, before, after in taken:
            _check_restored(target, before, after)


def _check_restored(target: Path, before: dict[str, int], after: dict[str, int]) -> None:
    with daemon_place(idle_minutes=60) as place:
        done = run(place, "restore", str(target))
        assert done.returncode == 0, done.stderr
        assert [one for one in faults(place) if one.level == "bad"] == []
        place.start()
        with place.connect_sync() as memory:
            memory.flush()
            for session in SESSIONS:
                turns = _ids(memory, session)
                assert turns == [f"{session}-{n}" for n in range(1, len(turns) + 1)]
                # One more may have been stored and not acknowledged yet.
                assert before[session] <= len(turns) <= after[session] + 1
            assert memory.owed()["turns"] == 0
        place.stop()
        assert faults(place) == []
        words = "\n".join(p.read_text() for p in (place.workspace / "topics").rglob("*.md"))
        for session in SESSIONS:
            for n in range(1, before[session] + 1):
                assert words.count(f"dish number {n} of {session}.") == 1


def _ids(memory: Any, session: str) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = memory.call("session.branch", {"session": session, **more})
        found += [turn["id"] for turn in page["turns"]]
        cursor = page.get("next")
        if cursor is None:
            return found


def test_puts_everything_back(place: DaemonPlace) -> None:
    """Stopped, backed up, lost, restored: the same store and the same Markdown, private."""
    done = run(place, "backup", str(place.root / "b"), "--json")
    assert done.returncode == 0, done.stderr
    manifest = json.loads(done.stdout)["manifest"]
    assert (manifest["turns"], manifest["format"]) == (2, 1)
    before = files_of(place.workspace)
    shutil.rmtree(place.state)
    shutil.rmtree(place.workspace)
    restored = run(place, "restore", str(place.root / "b"))
    assert restored.returncode == 0, restored.stderr
    after = files_of(place.workspace)
    kept = {name for name in before if not name.endswith((".db", "-wal", "-shm"))}
    assert after == {name: before[name] for name in kept}
    for path in [place.state, *place.state.rglob("*"), *place.workspace.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0
    place.start()
    with place.connect_sync() as memory:
        assert "Porto" in memory.recall("Where do I live?")[0]["text"]
        assert memory.owed()["turns"] == 0
    place.stop()
    assert faults(place) == []
    assert [path.name for path in place.root.iterdir() if "restor" in path.name] == []


def test_moves_what_is_there_aside_only_when_told(place: DaemonPlace) -> None:
    """Something in the way is refused and named; with --force it is kept, whole."""
    back_up(places_of(place), place.root / "b")
    (place.workspace / "topics/people/own.md").write_text("# Mine\n")
    state, memory = files_of(place.state), files_of(place.workspace)
    refused = run(place, "restore", str(place.root / "b"))
    assert refused.returncode == 1
    assert "--force" in refused.stderr
    assert (files_of(place.state), files_of(place.workspace)) == (state, memory)
    forced = run(place, "restore", str(place.root / "b"), "--force", "--json")
    assert forced.returncode == 0, forced.stderr
    aside = [Path(path) for path in json.loads(forced.stdout)["aside"]]
    assert len(aside) == 2
    assert files_of(aside[0])["sessions.db"] == state["sessions.db"]
    assert files_of(aside[1])["topics/people/own.md"] == b"# Mine\n"
    assert not (place.workspace / "topics/people/own.md").exists()


def test_refuses_while_a_daemon_runs(place: DaemonPlace) -> None:
    """A restore under a running daemon ends with 4 and its pid; a backup beside it is fine."""
    place.start()
    assert place.process is not None
    assert run(place, "backup", str(place.root / "b")).returncode == 0
    refused = run(place, "restore", str(place.root / "b"), "--force")
    assert refused.returncode == 4
    assert f"process {place.process.pid}" in refused.stderr
    place.stop()


def test_refuses_what_is_no_whole_backup(place: DaemonPlace, tmp_path: Path) -> None:
    """Damaged, cut off, newer or no backup at all: refused before anything is touched."""
    target = place.root / "b"
    back_up(places_of(place), target)
    state = files_of(place.state)

    def refused(words: str) -> None:
        with pytest.raises(Refused, match=words):
            restore(target, places_of(place), force=True)
        assert files_of(place.state) == state

    topic = next(iter((target / "workspace/topics/people").glob("*.md")))
    content = topic.read_bytes()
    topic.write_bytes(content + b"x")
    refused("missing or damaged")
    topic.unlink()
    refused("missing or damaged")
    topic.write_bytes(content)
    manifest = (target / "backup.json").read_text()
    (target / "backup.json").write_text(manifest.replace('"format": 1', '"format": 9'))
    refused("format 9")
    outside = json.loads(manifest)
    outside["files"]["../escaped"] = "00"
    (target / "backup.json").write_text(json.dumps(outside))
    refused("outside")
    (target / "backup.json").unlink()
    refused("no whole backup")
    with pytest.raises(Refused):
        restore(tmp_path / "nothing", places_of(place))


def test_leaves_nothing_where_it_can_not_be_made(place: DaemonPlace, tmp_path: Path) -> None:
    """Something at the target, nothing to back up, or no room: refused, and no half backup."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/file").write_text("x")
    with pytest.raises(Refused, match="not there yet"):
        back_up(places_of(place), tmp_path / "taken")
    with pytest.raises(Refused, match="nothing to back up"):
        back_up(Places(state=tmp_path, workspace=tmp_path), tmp_path / "new")
    (tmp_path / "empty").mkdir()
    assert back_up(places_of(place), tmp_path / "empty").turns == 2
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small file system can't be mounted here")
    try:
        with pytest.raises(TurnmarkError, match="could not write the backup"):
            back_up(places_of(place), small / "b")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_keeps_forgotten_words_out(place: DaemonPlace) -> None:
    """What was erased is in no page of a backup made afterwards."""
    place.start()
    with place.connect_sync() as memory:
        memory.append("secret", role="user", text="I keep a platypus called Quentin.")
        memory.flush()
        memory.call("session.delete", {"session": "secret"})
    back_up(places_of(place), place.root / "b")
    place.stop()
    for name, content in files_of(place.root / "b").items():
        assert b"Quentin" not in content, name
    db = apsw.Connection(str(place.root / "b/sessions.db"))
    assert db.execute("PRAGMA freelist_count").fetchone() == (0,)
    db.close()
