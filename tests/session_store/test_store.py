"""The store as one object: writes, reads, events, and many at once."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import anyio
import apsw
import pytest

from session_store.stage import Stage, turns
from turnmark_events.errors import Gone, TurnmarkError, Unavailable
from turnmark_session_store import event_table

pytestmark = pytest.mark.anyio


async def test_many_writers_lose_nothing(stage: Stage) -> None:
    """64 writers, each its own session and all one more: every turn, every move, in order."""

    async def write(number: int) -> None:
        for count in range(10):
            await stage.append(f"w{number}-{count}", session=f"w{number}")
            await stage.append(f"all-{number}-{count}", session="all")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(64):
                tasks.start_soon(write, number)
    assert stage.sql("SELECT count(*) FROM turn") == [(1280,)]
    assert [event.seq for event in stage.events] == list(range(1, 1281))
    tips: dict[str, str | None] = defaultdict(lambda: None)
    for move in stage.moves():
        assert move.old == tips[move.branch]
        tips[move.branch] = move.new
    assert len(await stage.path_to("all")) == 640
    assert stage.store.statistics()["groups"] < 1280


async def test_events_come_before_the_answer(stage: Stage) -> None:
    """Whoever has an answer finds the event published."""
    await stage.append("a")
    assert [move.new for move in stage.moves()] == ["a"]


async def test_a_read_sees_one_commit(stage: Stage) -> None:
    """Also while others write."""
    await stage.append("a")

    def read(db: apsw.Connection) -> tuple[int, int]:
        first = db.execute("SELECT count(*) FROM turn").fetchall()[0][0]
        stage.store._writer.submit(
            lambda tx: tx.execute("INSERT INTO namespace (name) VALUES ('x')")
        ).exception(10)
        rows = db.execute("SELECT count(*) FROM namespace WHERE name = 'x'").fetchall()
        return first, rows[0][0]

    with anyio.fail_after(60):
        assert await stage.store.read(read) == (1, 0)


async def test_a_read_whose_transaction_ended_says_why(stage: Stage) -> None:
    """A disk error rolls back by itself; that error is said, and not that nothing is open."""

    def read(db: apsw.Connection) -> None:
        db.execute("ROLLBACK")
        raise apsw.IOError

    with pytest.raises(Unavailable, match="could not be read"):
        await stage.store.read(read)


async def test_a_cancelled_append_may_have_been_stored(stage: Stage) -> None:
    """Its waiter is gone, the thread goes on, and a retry by id finds it."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await stage.append("a")
    assert (await stage.append("a", "b", after=None)).turns == ["a", "b"]


async def test_a_closed_store_says_so(place: Path) -> None:
    """What was queued is done, what comes later is refused."""
    async with Stage(place / "sessions.db") as stage:
        await stage.append("a")
    with pytest.raises(Unavailable, match="shutting down"):
        await stage.append("b")


async def test_events_are_kept_a_while(stage: Stage) -> None:
    """Thirty days or a million, whichever is more; who asks for older ones is told."""
    await stage.append("a")
    await stage.append("b")
    await stage.append("c")
    assert [event.seq for event in await stage.store.events_after(1, 10)] == [2, 3]
    assert [event.seq for event in await stage.store.events_after(0, 2)] == [1, 2]
    far = stage.clock.at_ms + 90 * 86_400_000
    assert await stage.write(lambda tx: event_table.trim(tx.db, far)) == 0
    await stage.write(lambda tx: tx.execute("DELETE FROM event WHERE seq < 3"))
    with pytest.raises(Gone) as caught:
        await stage.store.events_after(1, 10)
    assert caught.value.facts["oldest"] == 3
    assert [event.seq for event in await stage.store.events_after(2, 10)] == [3]
    assert [event.seq for event in await stage.store.events_after(0, 10)] == [3]


async def test_every_error_says_what_to_do(stage: Stage) -> None:
    """A sentence, a kind, and no words of a turn."""
    await stage.append("a")
    with pytest.raises(TurnmarkError) as caught:
        await stage.append(*turns("b"), after="nobody")
    assert caught.value.kind == "not_found"
    assert "turnmark tree s" in caught.value.message
