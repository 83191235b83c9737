"""`turnmark doctor`: finds each fault as itself and none in a sound place; repair loses nothing."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import apsw
import msgspec
import pytest

from daemon.daemon_process import daemon_place
from turnmark.commands.demo import Conversation
from turnmark.doctor import examine, is_held
from turnmark_memory.tokens import load_counter

SECONDS = 60
BUDGET = 2_000


COUNTER = load_counter()


@pytest.fixture(scope="module")
def sound() -> Iterator[Path]:
    """A place in which the demo's conversation was written, whose daemon has ended."""
    packed = importlib.resources.files("turnmark") / "demo_conversation.json"
    demo = msgspec.json.decode(packed.read_bytes(), type=Conversation)
    with daemon_place(idle_minutes=60) as place:
        place.start()
        with place.connect_sync() as memory:
            for step in demo.steps:
                memory.call(step.method, step.params)
            memory.flush()
            memory.call("memory.organize")
            assert [found.level for found in look(place.root) if found.level != "ok"] == []
        place.stop()
        yield place.root


def look(root: Path) -> list[Any]:
    """What the doctor finds in a place."""
    return examine(root / "state", root / "memory", core_tokens=BUDGET, count=COUNTER.count)


@pytest.fixture
def place(sound: Path) -> Iterator[Path]:
    """A copy of the sound place, to be broken."""
    root = Path(tempfile.mkdtemp(prefix="tm-"))
    try:
        for name in ("state", "memory"):
            shutil.copytree(sound / name, root / name)
        with database(root) as db:
            db.execute("DELETE FROM meta WHERE key LIKE 'workspace_places:%'")
        yield root
    finally:
        shutil.rmtree(root)


@contextmanager
def database(root: Path, *without_triggers_of: str) -> Iterator[apsw.Connection]:
    """The store, to be written past its own guards."""
    db = apsw.Connection(str(root / "state/sessions.db"))
    try:
        names = [
            str(name)
            for (name, table) in db.execute(
                "SELECT name, tbl_name FROM sqlite_schema WHERE type = 'trigger'"
            )
            if table in without_triggers_of
        ]
        for name in names:
            db.execute(f"DROP TRIGGER {name}")
        yield db
    finally:
        db.close()


def run(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    options = [f"--state={root}/state", f"--workspace={root}/memory", f"--socket={root}/s"]
    config = root / "config.toml"
    options += [f"--config={config}"] if config.exists() else []
    return subprocess.run(
        [sys.executable, "-m", "turnmark", "doctor", *options, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def a_topic(root: Path) -> Path:
    """A topic with blocks that cite turns."""
    return next(
        path
        for path in sorted((root / "memory/topics/people").rglob("*.md"))
        if "[^s-" in path.read_text()
    )


def a_source(root: Path) -> Path:
    """A file of the archive."""
    return next(iter(sorted((root / "memory/sources").rglob("*.jsonl"))))


def without_index(root: Path) -> None:
    """Takes the index away, so that a changed topic is not compared with it."""
    for path in (root / "memory/.turnmark").glob("index.db*"):
        path.unlink()


def clear_page(root: Path) -> None:
    """Flips bytes in the middle of the database."""
    path = root / "state/sessions.db"
    content = bytearray(path.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 4096] = bytes(4096)
    path.write_bytes(content)


def lose_words(root: Path) -> None:
    with database(root, "turn_words") as db:
        db.execute("DELETE FROM turn_words WHERE turn = (SELECT max(turn) FROM turn_words)")


def lose_event(root: Path) -> None:
    with database(root) as db:
        db.execute(
            "DELETE FROM event WHERE seq = (SELECT min(seq) FROM event WHERE type = 'TipMoved'"
            " AND old IS NOT NULL AND old <> new)"
        )


def move_tip(root: Path) -> None:
    with database(root, "branch") as db:
        db.execute(
            "UPDATE branch SET tip = (SELECT predecessor FROM turn WHERE id = tip) WHERE id ="
            " (SELECT branch.id FROM branch JOIN turn ON turn.id = tip"
            " WHERE predecessor IS NOT NULL AND state = 'live' LIMIT 1)"
        )


def move_head(root: Path) -> None:
    with database(root, "session") as db:
        db.execute(
            "UPDATE session SET head = (SELECT predecessor FROM turn WHERE id = head)"
            " WHERE (SELECT predecessor FROM turn WHERE id = head) IS NOT NULL"
        )


def lose_mark(root: Path) -> None:
    with database(root, "mark") as db:
        db.execute(
            "DELETE FROM mark WHERE turn = (SELECT above.id FROM mark"
            " JOIN turn ON turn.id = mark.turn JOIN turn AS above ON above.id = turn.predecessor"
            " JOIN mark AS theirs ON theirs.turn = above.id LIMIT 1)"
        )


def leave_batch(root: Path) -> None:
    with database(root) as db:
        db.execute("UPDATE batch SET closed_ms = NULL, outcome = NULL, install = NULL WHERE id = 1")


def leave_claim(root: Path) -> None:
    with database(root) as db:
        db.execute("INSERT INTO claim SELECT workspace, tip, id, 'worker-dead' FROM batch LIMIT 1")


def owe_for_long(root: Path) -> None:
    with database(root, "mark", "turn") as db:
        tips = "SELECT tip FROM branch WHERE state = 'live' AND tip IS NOT NULL"
        db.execute(f"DELETE FROM mark WHERE turn IN ({tips})")
        db.execute("UPDATE turn SET created_ms = created_ms - 864000000")


def lose_identity(root: Path) -> None:
    (root / "memory/.turnmark/workspace.json").write_text("{")


def copy_workspace(root: Path) -> None:
    shutil.copytree(root / "memory", root / "copy")
    workspace = json.loads((root / "memory/.turnmark/workspace.json").read_text())["workspace"]
    places = json.dumps([str(root / "memory"), str(root / "copy")]).encode()
    with database(root) as db:
        db.execute("INSERT INTO meta VALUES (?, ?)", (f"workspace_places:{workspace}", places))


def go_back(root: Path) -> None:
    path = root / "memory/.turnmark/revision.json"
    stamp = json.loads(path.read_text())
    path.write_text(json.dumps({**stamp, "revision": stamp["revision"] - 1}))


def tear_source(root: Path) -> None:
    with a_source(root).open("a") as file:
        file.write('{"label": "s-12')


def spoil_source(root: Path) -> None:
    with a_source(root).open("a") as file:
        file.write("not a line of ours\n")


def double_source(root: Path) -> None:
    path = a_source(root)
    path.write_text(path.read_text() + path.read_text().splitlines()[0] + "\n")


def lose_source(root: Path) -> None:
    """Takes a kept turn's line away, with the footnotes and the index that would miss it."""
    with database(root) as db:
        sql = "SELECT key FROM mark JOIN turn ON turn.id = mark.turn WHERE outcome = 'kept'"
        kept = {str(key) for (key,) in db.execute(sql)}
    path, line = next(
        (path, line)
        for path in sorted((root / "memory/sources").rglob("*.jsonl"))
        for line in path.read_text().splitlines(keepends=True)
        if json.loads(line)["id"] in kept
    )
    path.write_text(path.read_text().replace(line, ""))
    label = re.escape(f"[^{json.loads(line)['label']}]")
    for topic in (root / "memory/topics").rglob("*.md"):
        topic.write_text(re.sub(rf"(?m)^{label}:.*\n|{label}", "", topic.read_text()))
    without_index(root)


def lose_block(root: Path) -> None:
    path = a_topic(root)
    lines = path.read_text().splitlines(keepends=True)
    (gone, *_) = [line for line in lines if re.search(r" \^b-\w+$", line.rstrip())]
    path.write_text("".join(line for line in lines if line != gone))
    without_index(root)


def cite_nothing(root: Path) -> None:
    path = a_topic(root)
    path.write_text(re.sub(r"(\[\^s-\w+\])", r"\1[^s-000000000000]", path.read_text(), count=1))
    without_index(root)


def double_block(root: Path) -> None:
    path = a_topic(root)
    (name, *_) = re.findall(r"\^b-\w+$", path.read_text(), re.MULTILINE)
    (root / "memory/topics/people/twin.md").write_text(f"# Twin\n\nThe same. {name}\n")
    without_index(root)


def spoil_index(root: Path) -> None:
    path = root / "memory/.turnmark/index.db"
    for ending in ("-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.write_bytes(b"no database" * 1000)


def hide_turn(root: Path) -> None:
    db = apsw.Connection(str(root / "memory/.turnmark/index.db"))
    db.execute("UPDATE turn SET label = 's-000000000000' WHERE row = (SELECT min(row) FROM turn)")
    db.close()


def edit_topic(root: Path) -> None:
    path = a_topic(root)
    path.write_text(
        re.sub(
            r"^(\w.*)(\[\^s-)",
            r"\1, a person adds\2",
            path.read_text(),
            count=1,
            flags=re.MULTILINE,
        )
    )


def edit_core(root: Path) -> None:
    (root / "memory/core.md").write_text("by hand\n")


def stage_file(root: Path) -> None:
    (root / "memory/.turnmark/staging/left").write_text("x")


def open_rights(root: Path) -> None:
    (root / "state").chmod(0o755)


FAULTS: list[tuple[Callable[[Path], None], dict[str, str]]] = [
    (clear_page, {"file": "bad"}),
    (lose_words, {"words": "bad"}),
    (lose_event, {"events": "bad"}),
    (move_tip, {"tips": "bad"}),
    (move_head, {"tips": "bad"}),
    (lose_mark, {"marks": "bad"}),
    (leave_batch, {"claims": "warn"}),
    (leave_claim, {"claims": "bad"}),
    (owe_for_long, {"owed": "warn"}),
    (lose_identity, {"identity": "bad"}),
    (copy_workspace, {"identity": "bad"}),
    (go_back, {"revision": "bad"}),
    (tear_source, {"archive": "warn"}),
    (spoil_source, {"archive": "bad"}),
    (double_source, {"archive": "warn"}),
    (lose_source, {"archive": "bad", "index": "warn"}),
    (lose_block, {"citations": "bad", "index": "warn"}),
    (cite_nothing, {"cites": "bad", "index": "warn"}),
    (double_block, {"blocks": "bad", "index": "warn"}),
    (spoil_index, {"index": "bad"}),
    (hide_turn, {"index": "bad"}),
    (without_index, {"index": "warn"}),
    (edit_topic, {"index": "warn"}),
    (edit_core, {"core": "warn"}),
    (stage_file, {"staging": "warn"}),
    (open_rights, {"rights": "warn"}),
]


@pytest.mark.parametrize(("fault", "wanted"), FAULTS, ids=lambda one: getattr(one, "__name__", ""))
def test_finds_exactly_what_is_broken(
    place: Path, fault: Callable[[Path], None], wanted: dict[str, str]
) -> None:
    """One fault, its finding, and no other; core.md may follow a topic that changed."""
    fault(place)
    found = {one.check: one.level for one in look(place) if one.level != "ok"}
    if fault in {lose_source, lose_block, cite_nothing, edit_topic}:
        found.pop("core", None)
    assert found == wanted


def test_says_that_a_sound_place_is_sound(place: Path) -> None:
    """Every check is ok, each with its figures, and the command ends with 0."""
    findings = look(place)
    assert {one.level for one in findings} == {"ok"}
    assert len({one.check for one in findings}) == len(findings) == 17
    done = run(place)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "All is well."
    assert json.loads(run(place, "--json").stdout)["well"] is True


MENDED = [lose_mark, leave_claim, leave_batch, lose_source, lose_block, spoil_index, hide_turn,
          edit_core, open_rights]  # fmt: skip


@pytest.mark.parametrize("fault", MENDED)
def test_repairs_what_can_be_and_loses_nothing(place: Path, fault: Callable[[Path], None]) -> None:
    """After repair nothing is bad, no evidence is gone, and a start writes what was lost again."""
    fault(place)
    sources = {path: path.read_bytes() for path in (place / "memory/sources").rglob("*.jsonl")}
    done = run(place, "--repair")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "repaired:" in done.stdout
    assert {path: path.read_bytes() for path in sources} == sources
    with daemon_place(idle_minutes=60) as daemon:
        shutil.copytree(place / "state", daemon.state)
        shutil.copytree(place / "memory", daemon.workspace)
        shutil.rmtree(place / "memory")
        daemon.start()
        with daemon.connect_sync() as memory:
            assert memory.flush()["left"] == 0
        daemon.stop()
        assert [one for one in look(daemon.root) if one.level != "ok"] == []
    (place / "memory").mkdir()


def test_gives_a_workspace_its_identity_back(place: Path) -> None:
    """The id that the store knows comes back; what was there is kept aside."""
    file = place / "memory/.turnmark/workspace.json"
    before = json.loads(file.read_text())["workspace"]
    lose_identity(place)
    assert run(place, "--repair").returncode == 0
    assert json.loads(file.read_text())["workspace"] == before
    assert [path.read_text() for path in file.parent.glob("workspace.json.unreadable-*")] == ["{"]


def test_does_not_repair_beside_a_daemon() -> None:
    """While a daemon runs it looks, asks the daemon, and refuses to repair with the pid."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        assert place.process is not None
        assert is_held(place.state / "lock")
        done = run(place.root)
        assert done.returncode == 0, done.stdout
        assert "the daemon answers" in done.stdout
        refused = run(place.root, "--repair")
        assert refused.returncode == 4
        assert f"process {place.process.pid}" in refused.stderr
        place.stop()
        assert not is_held(place.state / "lock")


@pytest.mark.anyio
async def test_knows_a_paragraph_that_has_no_id_yet() -> None:
    """What a person writes by hand stands on the core page before its file says its id."""
    with daemon_place(idle_minutes=60) as place:
        place.start()
        async with place.connect() as memory, memory.subscribe(types=["CoreRebuilt"]) as rebuilt:
            await memory.remember("Robin drinks tea.", topic="people/robin")
            path = place.workspace / "topics/people/robin.md"
            path.write_text(path.read_text().replace("# Robin\n", "# Robin\n\n王芳养猫。\n"))
            with anyio.fail_after(SECONDS):
                while "王芳养猫" not in (await memory.core())["text"]:
                    await anext(rebuilt)
        found = [one for one in look(place.root) if one.level != "ok"]
        assert "王芳养猫。\n" in path.read_text()
        place.stop()
    assert found == []


def test_looks_at_a_place_where_nothing_ran(tmp_path: Path) -> None:
    """Without a store there is nothing to prove, which is no fault; nothing is made."""
    done = run(tmp_path)
    assert done.returncode == 0
    assert "no daemon has run here" in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert run(tmp_path, "--repair").returncode == 1


def test_notices_a_copied_workspace_at_the_start(sound: Path) -> None:
    """A daemon on a copy says that the original is there too, in its status and to the doctor."""
    with daemon_place(idle_minutes=60) as daemon:
        shutil.copytree(sound / "state", daemon.state)
        shutil.copytree(sound / "memory", daemon.workspace)
        daemon.start()
        with daemon.connect_sync() as memory:
            (advice,) = memory.status()["what_to_do"]
            assert "two places" in advice
            assert str(sound / "memory") in advice
        daemon.stop()
        (found,) = [one for one in look(daemon.root) if one.level != "ok"]
        assert (found.check, found.level) == ("identity", "bad")
