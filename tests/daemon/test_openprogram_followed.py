"""OpenProgram's sessions followed by a real daemon, while a program beside it writes them."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from daemon.daemon_process import daemon_place
from session_store.transcripts.openprogram_state import OpenProgramState
from turnmark.client import Memory

pytestmark = pytest.mark.anyio

SECONDS = 60
QUIET_MINUTES = 60


async def wait_for(memory: Memory, session: str, head: str) -> None:
    """Returns once a session's head is there, looking after each move."""
    with anyio.fail_after(SECONDS):
        async with memory.subscribe(types=["TipMoved"]) as events:
            while (await heads(memory)).get(session) != head:
                await anext(events)


async def heads(memory: Memory) -> dict[str, str | None]:
    """Where each session is."""
    return {one["session"]: one["head"] for one in (await memory.sessions())["sessions"]}


async def test_sessions_are_followed_from_before_there_is_a_directory(tmp_path: Path) -> None:
    """Nodes, new sessions, a project's, a rewind; off unless the configuration says otherwise."""
    root = tmp_path / "home" / "openprogram"
    config = f'[transcripts]\nopenprogram = "{root}"\n'
    with daemon_place(idle_minutes=QUIET_MINUTES, config=config) as place:
        place.start()
        async with place.connect() as memory:
            state = OpenProgramState(tmp_path / "made")
            chat = state.session("sess-a", title="搬家")
            chat.user("u1", "I moved to Porto.")
            root.parent.mkdir()
            shutil.move(state.root, root)
            await wait_for(memory, "sess-a", "u1")
            state.root = root
            chat.home = root / "sessions" / "sess-a"
            chat.llm("a2", "Noted.")
            await wait_for(memory, "sess-a", "a2")
            other = state.session("sess-b")
            other.user("b1", "我喜欢茶。")
            await wait_for(memory, "sess-b", "b1")
            other.llm("b2", "好。")
            await wait_for(memory, "sess-b", "b2")
            bound = state.project_session(tmp_path / "work", "bound")
            bound.user("p1", "in a project")
            await wait_for(memory, "bound", "p1")
            chat.change("a2", rewound=True)
            chat.go_to("u1")
            await wait_for(memory, "sess-a", "u1")
            shown = await memory.call("session.show", {"session": "bound"})
            assert shown["project"] == str(tmp_path / "work")
            status = await memory.call("status")
            found = status["transcripts"]["openprogram"]
            assert (found["files"], found["unread"], found["last_error"]) == (3, 0, None)
        place.stop()
    with daemon_place() as place:
        place.start()
        with place.connect_sync() as client:
            assert client.call("status")["transcripts"]["openprogram"] == {"state": "off"}
        place.stop()
