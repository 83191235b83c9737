"""`memory.edit`, `remember`, `history` and `undo` over the socket of a real daemon."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon.daemon_process import DaemonPlace, daemon_place
from daemon.served import Daemon, Wire, fresh, has_shape, serving
from turnmark.client_sync import SyncClient
from turnmark.errors import ConnectionLost
from turnmark_events.errors import Refused, Stale

REVISION = {"revision": int, "at": str, "cause": str, "blocks": [str], "topics": [str]}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for all of these tests."""
    with serving('[memory]\nnightly = "off"\n') as running:
        yield running


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[Wire]:
    """A connection."""
    with daemon.wire() as connection:
        yield connection


def test_edits_answer_blocks_and_the_revision(wire: Wire) -> None:
    """Every operation by its tag; the words are there to be shown at once."""
    session = fresh("会话")
    wire.append(session, "a")
    cites = [f"{session}#a"]
    add = {"op": "add", "topic": "people/小明", "text": "小明养猫。", "cites": cites}
    answer = wire.call("memory.edit", edits=[add, {**add, "text": "他住在波尔图。"}])
    has_shape(answer, {"blocks": [str], "revision": int})
    one, two = answer["blocks"]
    shown = wire.call("memory.show", ref=one)
    assert shown["text"] == "小明养猫。"
    assert [source["turn"] for source in shown["sources"]] == ["a"]
    edits: list[dict[str, Any]] = [
        {"op": "revise", "block": one, "text": "小明养狗。", "cites": cites},
        {"op": "move", "block": two, "topic": "projects/x", "heading": "家"},
        {"op": "merge", "blocks": [one, two], "text": "小明在波尔图养狗。"},
        {
            "op": "split",
            "block": one,
            "parts": [{"text": "狗", "cites": cites}, {"text": "城", "cites": []}],
        },
        {"op": "pin", "block": one},
        {"op": "unpin", "block": two},
        {"op": "retire", "block": one, "reason": "wrong"},
    ]
    revision = answer["revision"]
    for edit in edits:
        answer = wire.call("memory.edit", edits=[edit], expect=revision)
        assert answer["revision"] in (revision, revision + 1)
        revision = answer["revision"]
    failed = wire.error("memory.edit", edits=[edits[0]], expect=revision - 1)
    assert failed["code"] == -32003
    assert failed["data"] == {"kind": "stale", "revision": revision}


def test_remembers_and_lists_and_undoes(wire: Wire) -> None:
    """The history has exactly the interface's fields; an undo is a revision too."""
    said = wire.call("memory.remember", text="我住在波尔图。", pin=True)
    has_shape(said, {"block": str, "topic": str, "revision": int})
    assert said["topic"] == "people/user"
    page = wire.call("memory.history", limit=1)
    has_shape(page["revisions"], [REVISION])
    newest = page["revisions"][0]
    assert newest["revision"] == said["revision"]
    assert newest["cause"] == "remember"
    assert newest["blocks"] == [said["block"]]
    undone = wire.call("memory.undo", revision=said["revision"])
    has_shape(undone, {"revision": int, "blocks": [str]})
    assert wire.call("memory.history", limit=1)["revisions"][0]["cause"] == (
        f"undo of {said['revision']}"
    )
    refused = wire.error("memory.undo", revision=said["revision"])
    assert refused["code"] == -32005
    assert refused["data"]["blocks"] == [said["block"]]
    assert wire.error("memory.undo", revision=10**6)["code"] == -32001


def test_both_clients_have_the_methods() -> None:
    """`connect_sync` raises the daemon's errors by their kind."""
    with daemon_place() as place:
        place.start()
        with place.connect_sync() as memory:
            said = memory.remember("The office is in Porto.", topic="subjects/office")
            edit: dict[str, Any] = {
                "op": "revise",
                "block": said["block"],
                "text": "It is in Lisbon.",
                "cites": [],
            }
            edited = memory.edit([edit], expect=said["revision"])
            with pytest.raises(Stale):
                memory.edit([edit], expect=said["revision"])
            with pytest.raises(Refused):
                memory.undo(said["revision"])
            assert memory.undo(edited["revision"])["blocks"] == [said["block"]]
            assert [row["revision"] for row in memory.history(limit=2)["revisions"]] == [3, 2]


def _kept(place: DaemonPlace) -> dict[str, bytes]:
    files = [*place.workspace.glob("timeline/**/*.md"), place.workspace / "core.md"]
    return {str(file.relative_to(place.workspace)): file.read_bytes() for file in files}


def _recalled(memory: SyncClient) -> list[Any]:
    queries = ("住在哪里", "Oslo", "deploy", "决定", "birthday")
    return [list(memory.recall(query, k=20)) for query in queries]


def test_what_is_derived_comes_back_the_same_after_it_was_deleted() -> None:
    """Index, core page and timeline of a daemon that was stopped; recall answers as before."""
    with daemon_place() as place:
        place.start()
        with place.connect_sync() as memory:
            for number, day in enumerate(("01", "02", "02", "05")):
                at = f"2026-08-{day}T09:0{number}:00Z"
                text = f"I have decided to deploy on {day} from Oslo. 我决定住在波尔图 {number}。"
                memory.append("talk", role="user", text=text, id=f"t{number}", time=at)
            memory.flush()
            memory.remember("My birthday is the 3rd of May.", pin=True)
            blocks = memory.recall("deploy", kinds=["block"])
            memory.edit([{"op": "pin", "block": blocks[0]["ref"]}])
            recalled, core = _recalled(memory), memory.core()
        place.stop()
        kept = _kept(place)
        assert len(kept) == 5
        shutil.rmtree(place.workspace / "timeline")
        (place.workspace / "core.md").unlink()
        for file in (place.workspace / ".turnmark").glob("*.db*"):
            file.unlink()
        place.start()
        with place.connect_sync() as memory:
            assert _kept(place) == kept
            assert memory.core() == core
            assert _recalled(memory) == recalled


def test_workspace_of_yesterday_gets_what_came_later_again_and_says_so() -> None:
    """Turns written since are written again; what a person undid before stays away."""
    with daemon_place() as place:
        place.start()
        with place.connect_sync() as memory:
            memory.append("talk", role="user", text="I have decided to move to Porto.", id="t1")
            memory.append("other", role="user", text="我决定不养猫。", id="o1")
            memory.flush("talk")
            memory.flush("other")
            memory.undo(1)
        place.stop()
        shutil.copytree(place.workspace, place.root / "yesterday")
        place.start()
        with place.connect_sync() as memory:
            memory.append("talk", role="user", text="I have decided to sell the car.", id="t2")
            memory.flush()
            before = memory.core()["text"]
        place.stop()
        shutil.rmtree(place.workspace)
        shutil.copytree(place.root / "yesterday", place.workspace)
        place.start()
        with place.connect_sync() as memory:
            memory.flush()
            assert memory.core()["text"] == before
            assert "car" in before
            assert "Porto" not in before
            marks = {turn["id"]: turn["marks"] for turn in memory.branch("talk")["turns"]}
            assert [mark["outcome"] for mark in marks["t1"].values()] == ["parked"]
        assert place.logged("workspace_went_back")


CRASHES = (
    "remember.appended",
    "remember.archived",
    "install.journalled",
    "install.file",
    "install.in_place",
    "install.settled",
    "install.cleared",
    "install.indexed",
)


@pytest.mark.parametrize("failpoint", CRASHES)
def test_fact_outlives_a_kill_at_every_step_and_is_written_once(failpoint: str) -> None:
    """It was not acknowledged, but it was said: it is in memory once, and nothing is owed."""
    with daemon_place() as place:
        place.start(failpoint=f"{failpoint}=kill")
        with place.connect_sync() as memory, pytest.raises(ConnectionLost):
            memory.remember("I have decided to learn Portuguese.")
        assert place.wait_end() == -9
        place.start()
        with place.connect_sync() as memory:
            memory.flush()
            assert memory.owed()["turns"] == 0
            assert _said(place.workspace).count("Portuguese") == 1


@pytest.mark.parametrize("failpoint", CRASHES[2:])
def test_undo_outlives_a_kill_at_every_step(failpoint: str) -> None:
    """Blocks, marks and timeline follow when it is rolled forward, as if nothing had happened."""
    with daemon_place() as place:
        place.start()
        with place.connect_sync() as memory:
            memory.append("talk", role="user", text="I have decided to sell the car.", id="t1")
            memory.flush()
        place.stop()
        place.start(failpoint=f"{failpoint}=kill")
        with place.connect_sync() as memory, pytest.raises(ConnectionLost):
            memory.undo(1)
        assert place.wait_end() == -9
        place.start()
        with place.connect_sync() as memory:
            memory.flush()
            assert "car" not in _said(place.workspace)
            assert not list(place.workspace.glob("timeline/**/*.md"))
            (tip,) = memory.owed()["tips"]
            assert (tip["state"], tip["n"]) == ("removed", 1)
            assert memory.undo(2)["revision"] == 3
            assert "car" in _said(place.workspace)
            assert memory.owed()["turns"] == 0


def _said(workspace: Path) -> str:
    files = workspace.glob("topics/*/*.md")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)
