"""Back-off: counted per root, bounded by halves, over by itself, and forgotten by success."""

from __future__ import annotations

import pytest

from session_store.stage import Stage
from turnmark_session_store.back_off import (
    BackOff,
    back_offs,
    bring_near,
    end_pauses,
    failing,
    forget_failures,
    leave_alone,
    next_retry_ms,
    note_failed,
    note_succeeded,
    roots_due_again,
)
from turnmark_session_store.transaction import Transaction

pytestmark = pytest.mark.anyio


def _fail(tx: Transaction, root: int, *, limit_turns: int | None = None) -> int:
    return note_failed(tx, 1, [root], "no answer", not_before_ms=tx.at_ms, limit_turns=limit_turns)


@pytest.fixture(autouse=True)
async def talks(stage: Stage) -> None:
    """Two conversations, whose roots are 1 and 2."""
    await stage.workspace()
    await stage.append("a")
    await stage.append("x", session="t")


async def test_failures_are_counted_for_each_root(stage: Stage) -> None:
    """The count of one says nothing about the other; the last reason is told."""

    def run(tx: Transaction) -> None:
        assert [_fail(tx, 1), _fail(tx, 1), _fail(tx, 2)] == [1, 2, 1]
        assert failing(tx.db, 1) == {1: "no answer", 2: "no answer"}
        forget_failures(tx, 1, [1])
        assert set(failing(tx.db, 1)) == {2}
        assert failing(tx.db, 2) == {}

    await stage.write(run)


async def test_a_bound_stays_where_a_failure_sets_none(stage: Stage) -> None:
    """A dead endpoint does not undo what was halved before it died."""

    def run(tx: Transaction) -> None:
        _fail(tx, 1, limit_turns=8)
        _fail(tx, 1)
        assert back_offs(tx.db, 1)[1].limit_turns == 8

    await stage.write(run)


async def test_success_lets_the_bound_grow_from_the_second_one_on(stage: Stage) -> None:
    """Half went well, so the other half may fail; then it doubles, and from 64 on it is dropped."""

    def run(tx: Transaction) -> None:
        _fail(tx, 1, limit_turns=16)
        seen: list[int | None] = []
        while (known := back_offs(tx.db, 1).get(1)) is not None:
            seen.append(known.limit_turns)
            note_succeeded(tx, 1, [1])
        assert seen == [16, 16, 32, 64]
        _fail(tx, 1)
        note_succeeded(tx, 1, [1])
        assert back_offs(tx.db, 1) == {}

    await stage.write(run)


async def test_a_pause_ends_at_its_moment_and_is_told_beforehand(stage: Stage) -> None:
    """What was over when somebody looked is not told again; a rest of the endpoint ends all."""

    def run(tx: Transaction) -> None:
        now_ms = tx.at_ms
        _fail(tx, 1)
        _fail(tx, 2)
        leave_alone(tx, 1, [1], now_ms + 50)
        leave_alone(tx, 1, [2], now_ms + 90)
        assert back_offs(tx.db, 1)[1] == BackOff(limit_turns=None, not_before_ms=now_ms + 50)
        assert next_retry_ms(tx.db, 1, now_ms) == now_ms + 50
        assert next_retry_ms(tx.db, 1, now_ms + 50) == now_ms + 90
        assert roots_due_again(tx.db, 1, now_ms + 49) == set()
        assert roots_due_again(tx.db, 1, now_ms + 50) == {1}
        end_pauses(tx, 1, [2])
        assert roots_due_again(tx.db, 1, now_ms) == {2}
        note_succeeded(tx, 1, [1, 2])
        assert next_retry_ms(tx.db, 1, 0) is None
        assert roots_due_again(tx.db, 1, now_ms + 1_000) == set()

    await stage.write(run)


async def test_no_pause_is_longer_than_one_that_begins_now(stage: Stage) -> None:
    """A clock that was ahead set one; that of the other conversation, and workspace, stays."""

    def run(tx: Transaction) -> None:
        _fail(tx, 1)
        _fail(tx, 2)
        leave_alone(tx, 1, [1], tx.at_ms + 1_000_000)
        leave_alone(tx, 1, [2], tx.at_ms + 50)
        assert bring_near(tx, 2, tx.at_ms) == 0
        assert bring_near(tx, 1, tx.at_ms + 100) == 1
        pauses = [one.not_before_ms - tx.at_ms for one in back_offs(tx.db, 1).values()]
        assert pauses == [100, 50]

    await stage.write(run)
