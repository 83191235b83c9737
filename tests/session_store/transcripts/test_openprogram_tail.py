"""Tests of `session_store/transcripts/openprogram/tail.py`: nodes are turns while others come."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Self

import anyio
import pytest

from session_store.stage import Stage
from session_store.transcripts.openprogram_state import OpenProgramState, Session
from session_store.transcripts.tailing import dag_of
from turnmark_session_store.model import MemoryMode
from turnmark_session_store.transcripts.openprogram.tail import OpenProgramTail

pytestmark = pytest.mark.anyio

_LONG_AGO = 1_000_000_000


@pytest.fixture
def state(tmp_path: Path) -> OpenProgramState:
    """An empty state directory."""
    return OpenProgramState(tmp_path / "openprogram")


class Followed:
    """A store, and a tail that is told of all files that changed since it was asked last."""

    def __init__(self, place: Path, state: OpenProgramState, **more: Any) -> None:
        self.stage = Stage(place / "tail.db")
        self.state = state
        self.more: dict[str, Any] = {"orphan_seconds": 0.0, **more}
        self.tail: OpenProgramTail
        self._seen: set[tuple[Path, int]] = set()

    async def __aenter__(self) -> Self:
        await self.stage.__aenter__()
        self.renew()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stage.__aexit__(*error)

    def renew(self) -> None:
        """Puts another tail in the place of this one, as a new process would."""
        self.tail = OpenProgramTail(
            self.stage.store, self.state.root, rest_per_work=0.0, **self.more
        )

    async def settle(self) -> None:
        """Tells of what changed and lets the tail deal with it."""
        now = {(path, path.stat().st_mtime_ns) for path in self.state.files()}
        self.tail.changed(path for path, _ in now - self._seen)
        self._seen = now
        with anyio.fail_after(60):
            await self.tail.deal_with_all()

    async def turns(self) -> dict[str, str | None]:
        """The live turns with their predecessors."""
        found = await dag_of(self.stage)
        return {key: turn[0] for key, turn in found["turns"].items()}


async def test_an_answer_is_a_turn_when_it_is_finished_and_again_when_its_words_change(
    place: Path, state: OpenProgramState
) -> None:
    """Running is not yet; other words are a turn that takes the place of the first one."""
    chat = state.session("sess-a")
    async with Followed(place, state) as followed:
        chat.user("u1", "go")
        chat.llm("a2", "half", status="running")
        await followed.settle()
        assert await followed.turns() == {"u1": None}
        chat.nodes["a2"]["output"] = "whole"
        chat.change("a2", status="completed")
        await followed.settle()
        assert await followed.turns() == {"u1": None, "a2": "u1"}
        chat.nodes["a2"]["output"] = "better"
        chat.write("a2")
        await followed.settle()
        assert await followed.turns() == {"u1": None, "a2~2": "u1"}


async def test_a_session_is_listened_to_from_when_its_directory_is_made(
    stage: Stage, state: OpenProgramState, tmp_path: Path
) -> None:
    """Between two calls of the program it holds nothing: what comes next would not be heard."""
    sessions = state.root / "sessions"
    tail = OpenProgramTail(stage.store, state.root)
    new, placed = sessions / "sess-new", tmp_path / "work" / "placed"
    for directory in (new, placed):
        directory.mkdir(parents=True)
    (sessions / "linked").symlink_to(placed)
    (sessions / "locations.json").write_text(
        json.dumps({"placed": str(placed), "long": "/" + "x" * 5_000}), "utf-8"
    )
    assert tail.directories() == [sessions, new, placed]
    for directory in (new, placed):
        (directory / "history").mkdir()
    assert set(tail.directories()) == {
        sessions, new, placed, new / "history", placed / "history"
    }  # fmt: skip


async def test_a_node_waits_for_the_one_before_it(place: Path, state: OpenProgramState) -> None:
    """Within a minute it comes to its place; nothing is hung elsewhere meanwhile."""
    chat = state.session("sess-a")
    async with Followed(place, state, orphan_seconds=6_000.0) as followed:
        chat.user("u1", "one")
        chat.user("u3", "three", after="u2")
        chat.user("u4", "four")
        await followed.settle()
        assert await followed.turns() == {"u1": None}
        assert followed.tail.status().held == 2
        chat.user("u2", "two", after="u1")
        await followed.settle()
        assert await followed.turns() == {"u1": None, "u2": "u1", "u3": "u2", "u4": "u3"}
        assert followed.tail.status().held == 0


async def test_of_a_session_that_is_written_only_changed_files_are_read(
    place: Path, state: OpenProgramState
) -> None:
    """One that kept its stamp says what it said; only another process reads it again."""
    chat = state.session("sess-a")
    async with Followed(place, state) as followed:
        chat.user("u1", "one")
        await followed.settle()
        disguise(chat, "u1", "two")
        chat.llm("a2", "and on")
        await followed.settle()
        assert await followed.turns() == {"u1": None, "a2": "u1"}
        followed.renew()
        chat.user("u3", "further")
        await followed.settle()
        assert await followed.turns() == {"u1~2": None, "a2": "u1", "u3": "a2"}


async def test_of_a_session_that_is_quiet_nothing_is_kept(
    place: Path, state: OpenProgramState
) -> None:
    """A first look at all that was ever said holds one session at a time."""
    chat = state.session("sess-a")
    chat.user("u1", "one")
    for path in state.files():
        os.utime(path, (_LONG_AGO, _LONG_AGO))
    async with Followed(place, state) as followed:
        await followed.settle()
        disguise(chat, "u1", "two")
        chat.llm("a2", "and on")
        await followed.settle()
        assert await followed.turns() == {"u1~2": None, "a2": "u1~2"}


def disguise(chat: Session, key: str, words: str) -> None:
    """Puts other words of the same length into a node's file, which bears its old stamp."""
    file = chat.file_of(key)
    before = file.stat()
    content = file.read_text("utf-8").replace(chat.nodes[key]["output"], words)
    with file.open("r+", encoding="utf-8") as kept:
        kept.write(content)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_ino) == (before.st_size, before.st_ino)


async def test_what_vanishes_takes_nothing_back(place: Path, state: OpenProgramState) -> None:
    """A node's file, and a whole session; a rewound turn is taken back by its record."""
    chat, other = state.session("sess-a"), state.session("sess-b")
    async with Followed(place, state) as followed:
        chat.user("u1", "one")
        chat.llm("a2", "two")
        other.user("o1", "other")
        await followed.settle()
        chat.file_of("a2").unlink()
        shutil.rmtree(other.home)
        followed.tail.rescan()
        await followed.settle()
        assert await followed.turns() == {"u1": None, "a2": "u1", "o1": None}
        chat.change("u1", rewound=True)
        chat.change("a2", rewound=True)
        await followed.settle()
        assert await followed.turns() == {"o1": None}


async def test_projects_sessions_rules_and_agents_of_other_sessions(
    place: Path, tmp_path: Path, state: OpenProgramState
) -> None:
    """Those inside projects are found, one that is off is not read; callers may be elsewhere."""
    private = state.project_session(tmp_path / "private", "secret")
    bound = state.project_session(tmp_path / "work", "bound")
    chat = state.session("sess-a")

    def memory_for(project: str | None, _session: str) -> MemoryMode:
        return "off" if project == str(tmp_path / "private") else "on"

    async with Followed(place, state, memory_for=memory_for) as followed:
        private.user("p1", "private")
        chat.user("u1", "ask")
        chat.llm("a2", "asking")
        chat.code("c3", "", caller="a2")
        task: dict[str, Any] = {"source": "agent_spawn", "spawned_from_session": "sess-a"}
        bound.node("b1", "user", "task", None, caller="c3", spawn_branch_root=True, **task)
        await followed.settle()
        found = (await dag_of(followed.stage))["turns"]
        assert sorted(found) == ["a2", "b1", "u1"]
        assert found["b1"][-1] == "a2"
        assert set(followed.tail.directories()) >= {bound.home, bound.home / "history"}
        status = followed.tail.status()
        assert (status.state, status.files, status.unread) == ("following", 3, 0)
