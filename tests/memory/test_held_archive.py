"""Held backlog: evidence at once, written when asked for, or by a writer without a price."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from memory.at_work import AtWork, Scribe, at_work, numbered, user
from turnmark_memory import held_archive
from turnmark_memory.requests import RecallRequest
from turnmark_memory.writers.builtin import BuiltinWriter
from turnmark_session_store.backlog import park_backlog
from turnmark_session_store.requests import ExportSession, ImportLines
from turnmark_session_store.times import from_rfc3339

pytestmark = pytest.mark.anyio

OLD, CONNECTED = "2026-01-10T09:00:00Z", "2026-06-01T00:00:00Z"


async def bring(work: AtWork, session: str, ids: Sequence[str]) -> None:
    """Brings old turns and holds them, as following a transcript does."""
    await work.append(session, [user(f"fact {one}", one, time=OLD) for one in ids])
    connected_ms = from_rfc3339(CONNECTED)
    await work.store.write(lambda tx: park_backlog(tx, work.memory.key, session, connected_ms))
    work.memory.worker._rouse()
    await work.quiet()


async def test_archives_and_finds_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written, no writer is asked; the words are in sources and found by a recall."""
    monkeypatch.setattr(held_archive, "_SLICE_TURNS", 3)
    async with at_work(scribe := Scribe(name="openai/far")) as work:
        ids = numbered("m", 8)
        await bring(work, "s", ids)
        assert sorted(work.source_ids()) == ids
        found = await work.memory.recall(RecallRequest(query="m004", kinds=("turn",)))
        assert found.hits[0].text == "fact m004"
        assert scribe.batches == []
        assert set((await work.marks()).values()) == {("parked", "backlog")}


async def test_archives_nothing_twice_and_finds_the_rest_after_a_restart() -> None:
    """A line a turn, whenever the process ends."""
    async with at_work(Scribe(name="openai/far")) as work:
        await bring(work, "s", ["m1", "m2"])
        await work.restart()
        await bring(work, "t", ["t1"])
        await work.quiet()
        assert sorted(work.source_ids()) == ["m1", "m2", "t1"]


async def test_writes_new_turns_behind_what_is_held() -> None:
    """The old ones stay held, and a flush of the backlog names their tokens first."""
    async with at_work(scribe := Scribe(name="openai/far")) as work:
        await bring(work, "s", ["m1", "m2"])
        await work.say("s", "n1")
        await work.silence()
        await work.wait_written("n1")
        assert scribe.offered == [["n1"]]
        plan = await work.flush(backlog=True, dry_run=True)
        assert (plan.turns, plan.tokens) == (2, 4)
        assert (await work.flush(backlog=True)).left == 0
        assert scribe.offered == [["n1"], ["m1", "m2"]]
        assert len(work.source_ids()) == 3


async def test_lets_the_built_in_writer_write_what_was_held_for_another() -> None:
    """Nothing is paid for it: with the next start it is owed like anything else."""
    async with at_work(Scribe(name="openai/far")) as work:
        await bring(work, "s", ["m1", "m2"])
        await work.silence()
        await work.quiet()
        work.writer = BuiltinWriter()
        await work.restart()
        await work.quiet()
        assert await work.owed_count() == 0
        assert {outcome for outcome, _ in (await work.marks()).values()} <= {"kept", "nothing"}


async def test_lets_go_what_the_configuration_no_longer_holds() -> None:
    """`backlog = "write"` is an answer to the question, given once and for all."""
    async with at_work(scribe := Scribe(name="openai/far")) as work:
        await bring(work, "s", ["m1", "m2"])
        await work.silence()
        await work.quiet()
        await work.restart()
        assert scribe.batches == []
        work.settings = msgspec.structs.replace(work.settings, holds_backlog=False)
        await work.restart()
        await work.wait_written("m1", "m2")
        assert (await work.marks())["m1"] == ("kept", None)


async def exported(session: str, ids: Sequence[str]) -> list[str]:
    """Returns a session of these turns as another machine exports it."""
    async with at_work() as other:
        await other.append(session, [user(f"fact {one}", one, time=OLD) for one in ids])
        return (await other.store.export_session(ExportSession(session=session))).lines


async def bring_lines(work: AtWork, lines: list[str]) -> None:
    """Imports an export as the daemon does."""
    asked = ImportLines(lines=lines, last=True)
    await work.store.import_lines(asked, finished=work.memory.hold_imported)
    await work.silence()
    await work.quiet()


async def test_holds_what_an_import_brings() -> None:
    """A paid writer gets years of old talk only when somebody says so."""
    lines = await exported("s", ["m1", "m2"])
    async with at_work(scribe := Scribe(name="openai/far")) as work:
        await bring_lines(work, lines)
        assert scribe.batches == []
        assert set((await work.marks()).values()) == {("parked", "backlog")}
        assert sorted(work.source_ids()) == ["m1", "m2"]


async def test_holds_nothing_that_was_there_before_the_import() -> None:
    """What the session owed already, and what hangs on it, is written as ever."""
    lines = await exported("s", ["m1", "m2"])
    async with at_work(scribe := Scribe(name="openai/far")) as work:
        await work.append("s", [user("fact m1", "m1", time=OLD)])
        await bring_lines(work, lines)
        assert scribe.offered_ids == ["m1", "m2"]


async def test_holds_no_import_from_the_built_in_writer() -> None:
    """It is written in its own time, as always."""
    lines = await exported("s", ["m1", "m2"])
    async with at_work(BuiltinWriter()) as work:
        await bring_lines(work, lines)
        assert await work.owed_count() == 0


async def test_archives_what_is_held_after_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is parked at an earlier time than all that was archived before."""
    async with at_work(Scribe(name="openai/far")) as work:
        await bring(work, "s", ["m1", "m2"])
        monkeypatch.setattr(work.store._writer, "_clock", lambda: 1_000)
        await bring(work, "t", ["t1"])
        await bring(work, "u", ["u1"])
        assert sorted(work.source_ids()) == ["m1", "m2", "t1", "u1"]
