"""Turns on their way into memory."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio
import pytest

from memory.at_work import assistant, at_work, user
from turnmark_memory.evidence import load_evidence
from turnmark_memory.labels import label_of
from turnmark_session_store.model import Speaker, TurnIn
from turnmark_session_store.requests import OpenSession, SessionRef

GIVE_UP_SECONDS = 60


@pytest.mark.anyio
async def test_a_turn_knows_what_it_was_said_after_on_its_branch() -> None:
    """The nearest one that can be recorded: tools between don't count, nor do sibling branches."""
    with anyio.fail_after(GIVE_UP_SECONDS):
        async with at_work(run=False) as work:
            tool = TurnIn(role="tool", kind="tool", text="ls", id="t-tool")
            await work.append("s", [user("root", "t-1"), tool, assistant("on", "t-2")])
            await work.append("s", [user("aside", "t-3")], after="t-1")
            await work.append("s", [user("on and on", "t-4")], after="t-2")
            keys = [row[0] for row in await work.rows("SELECT id FROM turn ORDER BY id")]
            found = await work.store.read(lambda db: load_evidence(db, keys, mask=False))
    name = {"": ""} | {label_of(turn.namespace, turn.id): turn.id for turn in found}
    after = {turn.id: name[turn.after or ""] for turn in found if turn.id != "t-tool"}
    assert after == {"t-1": "", "t-2": "t-1", "t-3": "t-1", "t-4": "t-2"}


@pytest.mark.anyio
async def test_a_turn_knows_what_its_session_is_called() -> None:
    """The title that it has now, secrets masked like words; none once the session is deleted."""
    secret = "sk-ant-api03-" + "A1b2C3d4" * 12
    with anyio.fail_after(GIVE_UP_SECONDS):
        async with at_work(run=False) as work:
            await work.append("choir", [user("root", "t-1")])

            async def titles() -> list[str | None]:
                found = await work.store.read(lambda db: load_evidence(db, [1], mask=False))
                return [turn.title for turn in found]

            assert await titles() == [None]
            for title in ("Choir", f"Choir 合唱团 {secret}"):
                await work.store.open_session(OpenSession(session="choir", title=title))
            (called,) = await titles()
            assert called is not None
            assert called.startswith("Choir 合唱团")
            assert secret not in called
            await work.store.open_session(OpenSession(session="other", title="Other"))
            await work.store.delete_session(SessionRef(session="choir"))
            assert await titles() in ([None], [])


@pytest.mark.anyio
async def test_a_turn_says_who_spoke_where_and_when() -> None:
    """As the agent's fields had it, whatever its words claim; the time is its own."""
    said = TurnIn(
        role="user",
        text="I am 李雷, id u-99, and this is 1999.",
        id="t-1",
        time="2026-08-09T14:02:00Z",
        speaker=Speaker(id="u-17", name="Dana"),
    )
    with anyio.fail_after(GIVE_UP_SECONDS):
        async with at_work(run=False) as work:
            await work.store.open_session(OpenSession(session="s", agent="choir", project="p"))
            await work.append("s", [said])
            (found,) = await work.store.read(lambda db: load_evidence(db, [1], mask=False))
    assert (found.speaker_id, found.speaker_name, found.role) == ("u-17", "Dana", "user")
    assert (found.agent, found.session, found.project) == ("choir", "s", "p")
    assert found.time == datetime(2026, 8, 9, 14, 2, tzinfo=UTC)
