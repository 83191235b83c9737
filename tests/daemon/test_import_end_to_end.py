"""From a transcript on disk to topics, the core and a recall: a real daemon, real files.

The transcripts of `tests/data` are always read; a directory named by TURNMARK_TRANSCRIPTS, with a
folder for each agent, is read too where it is given.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from daemon.daemon_process import DaemonPlace, daemon_place, turnmark
from turnmark.client_sync import SyncClient
from turnmark_events import TurnsWritten

SECONDS = 60
DATA = Path(__file__).resolve().parents[1] / "data" / "claude-code"
GIVEN = Path(os.environ.get("TURNMARK_TRANSCRIPTS") or "/dev/null") / "claude-code"
SETS = [DATA, *([GIVEN] if GIVEN.is_dir() else [])]
# Longer than any test: what is written here is written by a flush.
QUIET_MINUTES = 60

TABS, SPACES = "prefers tabs", "prefers two spaces"


@pytest.fixture
def place() -> Iterator[DaemonPlace]:
    """A running daemon."""
    with daemon_place(idle_minutes=QUIET_MINUTES) as place:
        place.start()
        yield place
        place.stop()


def pages(place: DaemonPlace) -> dict[str, str]:
    """Returns every Markdown file of the memory."""
    files = sorted(place.workspace.rglob("*.md"))
    return {str(file.relative_to(place.workspace)): file.read_text("utf-8") for file in files}


def blocks(place: DaemonPlace) -> list[str]:
    """Returns the text and the footnotes of each block of each topic, without its own id."""
    found: list[str] = []
    for name, text in pages(place).items():
        if name.startswith("topics/"):
            found += [
                f"{name}: {one}" for one in re.findall(r"^(.*) \^b-[0-9a-f]+$", text, re.MULTILINE)
            ]
    return sorted(found)


def human_texts(directory: Path) -> set[str]:
    """Returns what people typed, read from the files without any of turnmark's code."""
    found: set[str] = set()
    for file in directory.rglob("*.jsonl"):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            typed = row.get("type") == "user" and not row.get("isSidechain")
            if not typed or row.get("isMeta") or row.get("isCompactSummary"):
                continue
            content = row["message"]["content"]
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            found |= {part["text"] for part in parts if part["type"] == "text"}
    return found


def stored_turns(client: SyncClient) -> dict[tuple[str, str], dict[str, Any]]:
    """Returns every turn of every branch by session and id, each once."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for session in client.call("session.list")["sessions"]:
        shown = client.call("session.show", {"session": session["session"]})
        for branch in shown["branches"]:
            asked = {"session": session["session"], "tip": branch["tip"]}
            for turn in client.call("session.branch", asked)["turns"]:
                found[turn["session"], turn["id"]] = turn
    return found


def written_turns(client: SyncClient) -> Counter[str]:
    """Returns how often each turn was written, from all events up to now."""
    with client.subscribe() as fence:
        last = fence.seq
    count: Counter[str] = Counter()
    with client.subscribe(since=0) as stream:
        while stream.seq < last:
            event = next(stream)
            if isinstance(event, TurnsWritten):
                count.update(event.turns)
    return count


@pytest.mark.parametrize("directory", SETS, ids=lambda path: path.parent.name)
def test_writes_each_human_turn_once(place: DaemonPlace, directory: Path) -> None:
    """Every prompt in the files is a turn with one mark; nothing is owed; nothing comes twice."""
    printed = turnmark(place, "import", directory)
    texts = human_texts(directory)
    with place.connect_sync() as client:
        turns = stored_turns(client)
        assert f"{len(turns)} turns, {len(turns)} new." in printed
        recordable = [turn for turn in turns.values() if turn["recordable"]]
        users = [turn["text"] for turn in recordable if turn["role"] == "user"]
        assert sorted(users) == sorted(texts)
        (workspace,) = {name for turn in recordable for name in turn["marks"]}
        marks = [turn["marks"][workspace]["outcome"] for turn in recordable]
        assert set(marks) <= {"kept", "nothing"}
        assert written_turns(client) == Counter(turn["id"] for turn in recordable)
        assert f"{len(marks)} turns," in printed.splitlines()[1]
        assert client.call("memory.owed")["turns"] == 0
    before = pages(place)
    again = turnmark(place, "import", directory)
    assert f"{len(turns)} turns, 0 new." in again
    assert again.endswith("\nNothing to write.\n")
    assert pages(place) == before
    assert len(blocks(place)) == len(set(blocks(place))) > 0


def test_keeps_the_branches_of_a_conversation(place: DaemonPlace) -> None:
    """What was forked in the agent is forked here: two tips behind one shared beginning."""
    turnmark(place, "import", DATA)
    with place.connect_sync() as client:
        sessions = {one["session"]: one for one in client.call("session.list")["sessions"]}
        assert len(sessions) == 3
        turns = stored_turns(client)
        followers = Counter(turn["predecessor"] for turn in turns.values())
        assert max(followers.values()) == 2
        tips = {
            branch["tip"]
            for name in sessions
            for branch in client.call("session.show", {"session": name})["branches"]
        }
        by_id = {turn["id"]: turn for turn in turns.values()}
        assert {by_id[tip]["text"] for tip in tips} == {"Noted: tabs.", "Noted: two spaces."}


def test_keeps_alternatives_of_sibling_branches(place: DaemonPlace) -> None:
    """Tabs on one branch and spaces on the other are two blocks; neither supersedes the other."""
    turnmark(place, "import", DATA)
    user = pages(place)["topics/people/user.md"]
    assert TABS in user
    assert SPACES in user
    core = pages(place)["core.md"]
    assert TABS in core
    assert SPACES in core
    with place.connect_sync() as client:
        hits = client.call("memory.recall", {"query": "tabs or spaces", "kinds": ["block"]})["hits"]
        texts = " ".join(hit["text"] for hit in hits)
        assert TABS in texts
        assert SPACES in texts
        assert [hit for hit in hits if hit.get("superseded_by")] == []


@pytest.mark.parametrize(
    ("query", "answers"),
    [("where does Robin live", ["Bergen"]), ("tabs or spaces", ["tabs", "two spaces"])],
)
def test_recalls_with_provenance_to_the_line(
    place: DaemonPlace, query: str, answers: Sequence[str]
) -> None:
    """A hit names the line of the archive that holds its words, and the agent's own line."""
    turnmark(place, "import", DATA)
    with place.connect_sync() as client:
        hits = client.call("memory.recall", {"query": query})["hits"]
        for answer in answers:
            assert any(answer in hit["text"] for hit in hits[:4])
        turns = {turn["id"]: turn for turn in stored_turns(client).values()}
    for hit in hits:
        assert hit["sources"]
        for source in hit["sources"]:
            lines = (place.workspace / source["path"]).read_text("utf-8").splitlines()
            archived = json.loads(lines[source["line"] - 1])
            assert (archived["label"], archived["id"]) == (source["label"], source["turn"])
            turn = turns[source["turn"]]
            assert archived["text"] == turn["text"]
            assert turn["text"] in hit["text"] or hit["kind"] == "block"
            origin = turn["metadata"]["origin"]
            (file,) = DATA.rglob(origin["file"])
            assert turn["text"] in file.read_text("utf-8").splitlines()[origin["line"] - 1]


# One conversation, three ways in

ROOT: list[dict[str, Any]] = [
    {"id": "u1", "role": "user", "text": "My name is Robin and I live in Bergen."},
    {"id": "a1", "role": "assistant", "text": "Nice to meet you, Robin."},
]
LEFT: list[dict[str, Any]] = [
    {"id": "u2", "role": "user", "text": "我们决定用制表符。"},
    {"id": "a2", "role": "assistant", "text": "好的，制表符。"},
]
RIGHT: list[dict[str, Any]] = [
    {"id": "u3", "role": "user", "text": "We decided to use two spaces."},
    {"id": "a3", "role": "assistant", "text": "Two spaces it is."},
]
LINES = ([*ROOT, *LEFT], [*ROOT, *RIGHT])


def timed(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns messages with the times that they have in every telling."""
    return [turn | {"time": f"2026-08-09T14:0{turn['id'][1]}:00Z"} for turn in messages]


def append_all(client: SyncClient) -> int:
    """Appends turn by turn, forks in the middle, and returns how many turns were new."""
    new = 0
    for messages in LINES:
        before: str | None = None
        for turn in timed(messages):
            asked = {"session": "s", "turns": [turn], "after": before}
            new += client.call("turn.append", asked)["new"]
            before = turn["id"]
    return new


def sync_all(client: SyncClient, *, ids: bool = True) -> int:
    """Syncs each line as a whole array and returns how many turns were new."""
    new = 0
    for messages in LINES:
        told = timed(messages)
        if not ids:
            told = [{key: turn[key] for key in turn if key != "id"} for turn in told]
        new += client.call("turn.sync", {"session": "s", "messages": told})["new"]
    return new


def shape_of(client: SyncClient) -> list[tuple[Any, ...]]:
    """Returns the DAG of the session with its marks, without what only one daemon knows."""
    found: list[tuple[Any, ...]] = []
    for turn in stored_turns(client).values():
        marks = [mark["outcome"] for mark in turn["marks"].values()]
        place = (turn["session"], turn["id"], turn["predecessor"], turn["role"], turn["text"])
        found.append((*place, turn["state"], turn["recordable"], marks))
    return sorted(found, key=str)


def test_is_one_conversation_whichever_way_it_comes(place: DaemonPlace) -> None:
    """Appended, synced with and without ids, imported: nothing is new or written again."""
    with place.connect_sync() as client:
        assert append_all(client) == 6
        assert client.call("memory.flush", {})["left"] == 0
        shape, memory = shape_of(client), pages(place)
        exported = list(client.export("s"))
        assert sync_all(client) == 0
        assert sync_all(client, ids=False) == 0
        assert append_all(client) == 0
        assert client.import_lines(exported)["new"] == 0
        assert client.call("memory.owed")["turns"] == 0
        assert client.call("memory.flush", {})["batches"] == 0
        assert shape_of(client) == shape
        assert pages(place) == memory
    assert len(shape) == 6
    assert all(row[-1] == ["kept"] for row in shape)


def test_is_one_conversation_in_every_daemon(place: DaemonPlace) -> None:
    """Told to three daemons in three ways, it is one DAG, one set of marks and the same blocks."""
    with place.connect_sync() as client:
        append_all(client)
        exported = list(client.export("s"))
        assert client.call("memory.flush", {})["left"] == 0
        shape = shape_of(client)
        assert {branch["tip"] for branch in branches(client)} == {"a2", "a3"}
    expected = blocks(place)
    assert len(expected) == 3
    for tell in (sync_all, lambda client: client.import_lines(exported)["new"]):
        with daemon_place(idle_minutes=QUIET_MINUTES) as other:
            other.start()
            with other.connect_sync() as client:
                assert tell(client) == 6
                assert client.call("memory.flush", {})["left"] == 0
                assert shape_of(client) == shape
                assert {branch["tip"] for branch in branches(client)} == {"a2", "a3"}
                assert client.import_lines(exported)["new"] == 0
                assert client.call("memory.flush", {})["batches"] == 0
            assert blocks(other) == expected
            other.stop()


def branches(client: SyncClient) -> list[dict[str, Any]]:
    """Returns the live branches of the session."""
    shown = client.call("session.show", {"session": "s"})["branches"]
    return [branch for branch in shown if branch["state"] == "live"]
