"""`turnmark migrate openprogram`: a made-up state directory into a real daemon's memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from memory.by_hand import live_blocks
from session_store.transcripts.openprogram_state import OpenProgramState, definition

SECONDS = 60
# Longer than any test: nothing is written here by itself.
QUIET_MINUTES = 600
BLOCKS = {"b-0000000d", "b-0000000e", "b-af3dee4f"}


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """Where a daemon may run; none does yet."""
    with daemon_place(idle_minutes=QUIET_MINUTES) as place:
        yield place


@pytest.fixture
def state(tmp_path: Path) -> OpenProgramState:
    """Two conversations, one with a fork and a sub-agent; what was said first is in topics."""
    state = OpenProgramState(tmp_path / "openprogram")
    state.workspace()
    chat = state.session("sess-a", title="Moving")
    chat.user("u1", "I moved to Porto in August.")
    chat.llm("a2", "Noted.")
    chat.user("u3", "Dana leads the billing team.")
    chat.mark("u1", "a2", "u3")
    chat.llm("a4", "Good to know.")
    chat.user("u5", "Or is it Robin?", after="a2")
    chat.user("s6", "find out", None, caller="a4", source="agent_spawn", spawn_branch_root=True)
    chat.llm("s7", "It is Dana.")
    chat.user("u8", "forget that", after="a4", rewound=True)
    chat.go_to("a4")
    state.archive("sess-a", *[chat.frame(key) for key in ("u1", "a2", "u3")])
    other = state.session("sess-z", title="中文")
    other.user("z1", "我喜欢用Python写后端服务。")
    other.mark("z1", workspace="w-ffffffff")
    state.archive("sess-z", other.frame("z1"))
    state.topic(
        "owner",
        "# The owner\n\n## Home\n\nThe owner moved to Porto.[^e-1] ^af3dee4f\n\nA note by hand.\n\n"
        f"{definition('e-1', chat.link('u1'), time='2026-08')}\n",
    )
    state.topic(
        "people/dana",
        f"Dana leads billing.[^e-1] ^0000000d\n\n{definition('e-1', chat.link('u3'))}\n",
    )
    state.topic(
        "subjects/偏好", f"喜欢Python。[^e-1] ^0000000e\n\n{definition('e-1', other.link('z1'))}\n"
    )
    state.topic(
        "subjects/gone", f"Wrong.[^e-1] ^0000000f\n\n{definition('e-1', chat.link('u8'))}\n"
    )
    return state


def migrate(
    place: DaemonPlace, state: OpenProgramState, *words: str
) -> subprocess.CompletedProcess[str]:
    """Runs the command to its end."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "turnmark", "migrate", "openprogram", str(state.root)),
            *("--socket", str(place.socket), "--state", str(place.state), *words),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def migrated(place: DaemonPlace, state: OpenProgramState, *words: str) -> dict[str, Any]:
    """Runs the command, which must succeed, and returns its answer for machines."""
    done = migrate(place, state, "--json", *words)
    assert (done.returncode, done.stderr) == (0, "")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def owed(place: DaemonPlace) -> set[str]:
    """The turns that wait for a writer."""
    with place.connect_sync() as client:
        tips = client.call("memory.owed", {"ids": True})["tips"]
    return {turn for tip in tips for turn in tip["turns"]}


def memory(place: DaemonPlace) -> dict[str, bytes]:
    """Every file of the memory that people and agents read."""
    files = sorted([*place.workspace.rglob("*.md"), *place.workspace.rglob("*.jsonl")])
    return {str(file.relative_to(place.workspace)): file.read_bytes() for file in files}


def test_a_state_directory_becomes_sessions_topics_sources_and_marks(
    place: DaemonPlace, state: OpenProgramState
) -> None:
    """Once, however often it is run; a dry run says the same; nothing of the state is changed."""
    before = state.snapshot()
    dry = migrated(place, state, "--dry-run")
    assert not place.state.exists()
    assert not place.workspace.exists()
    place.start()
    first = migrated(place, state)
    assert {name: first[name] for name in ("sessions", "turns", "new", "settled", "waiting")} == {
        "sessions": 2,
        "turns": 9,
        "new": 9,
        "settled": 3,
        "waiting": 4,
    }
    assert (first["topics"], first["blocks"], first["persons"], first["known"]) == (4, 4, 1, 0)
    assert [(one["name"], first["failed"]) for one in first["problems"]] == [
        ("subjects/gone, b-0000000f", [])
    ]
    same = ("sessions", "turns", "settled", "waiting", "topics", "blocks", "persons", "sources")
    assert {name: dry[name] for name in same} == {name: first[name] for name in same}
    assert [one["name"] for one in dry["problems"]] == [one["name"] for one in first["problems"]]
    assert (dry["new"], dry["dry_run"], dry["failed"]) == (0, True, [])
    assert owed(place) == {"a4", "u5", "s7", "z1"}

    with place.connect_sync() as client:
        shown = client.call("session.show", {"session": "sess-a"})
        assert (shown["title"], shown["agent"], shown["head"]) == ("Moving", "openprogram", "a4")
        live = {one["tip"] for one in shown["branches"] if one["state"] == "live"}
        assert live == {"a4", "u5", "s7"}
        spawned = client.call("session.branch", {"session": "sess-a", "tip": "s7"})["turns"]
        assert spawned[0]["caller"] == {"session": "sess-a", "turn": "a4"}
        [mark] = client.call("memory.show", {"ref": "sess-a#u1"})["turn"]["marks"].values()
        assert (mark["outcome"], mark["writer"], mark["revision"]) == ("kept", "openprogram", 1)
        block = client.call("memory.show", {"ref": "b-af3dee4f"})
        [source] = block["sources"]
        assert (source["turn"], source["speaker"]) == ("u1", "Owner")
        hits = client.recall("喜欢用什么语言", kinds=["block"])
        assert [hit["ref"] for hit in hits][:1] == ["b-0000000e"]
    assert (
        "## Home\n\nThe owner moved to Porto.[^s-"
        in memory(place)["topics/people/owner.md"].decode()
    )

    there = memory(place)
    again = migrated(place, state)
    assert (again["new"], again["blocks"], again["known"], again["settled"]) == (0, 0, 4, 0)
    assert memory(place) == there
    assert state.snapshot() == before
    place.stop()
    doctor = [sys.executable, "-m", "turnmark", "doctor", "--state", str(place.state)]
    proved = subprocess.run(
        [*doctor, "--workspace", str(place.workspace), "--json"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert proved.returncode == 0, proved.stdout


@pytest.mark.parametrize(
    "failpoint", ["import.placed=kill", "install.journalled=kill", "install.indexed=kill"]
)
def test_a_kill_in_the_middle_is_a_redo(
    place: DaemonPlace, state: OpenProgramState, failpoint: str
) -> None:
    """The command says that the daemon went; run again, it comes to the same memory."""
    place.start(failpoint=failpoint)
    done = migrate(place, state)
    assert (done.returncode, place.wait_end()) == (1, -signal.SIGKILL)
    assert "Traceback" not in done.stderr
    place.start()
    migrated(place, state)
    assert owed(place) == {"a4", "u5", "s7", "z1"}
    assert set(live_blocks(place.workspace)) > BLOCKS
    assert len(live_blocks(place.workspace)) == len(BLOCKS) + 1
    with place.connect_sync() as client:
        turns = client.call("session.branch", {"session": "sess-a", "tip": "u3"})["turns"]
    outcomes = [one["outcome"] for turn in turns for one in turn["marks"].values()]
    assert outcomes == ["kept"] * 3
    there = memory(place)
    migrated(place, state)
    assert memory(place) == there
    place.stop()


def test_a_memory_that_is_there_is_added_to_and_a_session_that_fails_is_named(
    place: DaemonPlace, state: OpenProgramState
) -> None:
    """A person's topic keeps its words; blocks of what could not come wait for the next run."""
    topic = place.workspace / "topics" / "people" / "dana.md"
    place.start()
    with place.connect_sync() as client:
        client.append("sess-z", id="z1", role="user", text="said by another")
        client.remember("Dana likes tea.", topic="people/dana")
    before = topic.read_text("utf-8")
    done = migrate(place, state)
    assert done.returncode == 1
    assert "1 block" in done.stdout
    assert "  sess-z: " in done.stdout
    text = topic.read_text("utf-8")
    assert "Dana likes tea." in text
    assert text.startswith(before.split("[^s-", 1)[0])
    assert "Dana leads billing." in text
    assert not (place.workspace / "topics" / "subjects" / "偏好.md").exists()
    assert owed(place) == {"a4", "u5", "s7", "z1"}
    place.stop()
