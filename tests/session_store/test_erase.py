"""Forgetting: counted at once, erased in slices, for ever."""

from __future__ import annotations

import anyio
import pytest

from session_store.stage import Stage, user
from turnmark_events.types import Forgotten
from turnmark_session_store.batches import fail
from turnmark_session_store.erase import erase_slice, forget_turns

pytestmark = pytest.mark.anyio


async def test_forgetting_is_said_once_with_a_number(stage: Stage) -> None:
    """No ids, no text; turns that were forgotten before are not counted again."""
    await stage.append("a", "b", "c")
    assert await stage.write(lambda tx: forget_turns(tx, [1, 2])) == [1, 2]
    assert await stage.write(lambda tx: forget_turns(tx, [2, 3])) == [3]
    assert await stage.write(lambda tx: forget_turns(tx, [1])) == []
    said = [event.turns for event in stage.events if isinstance(event, Forgotten)]
    assert said == [2, 1]


async def test_the_chain_stays_whole(stage: Stage) -> None:
    """A forgotten turn is passed through: never owed, never in the way."""
    await stage.workspace()
    await stage.append("a", "b", "c")
    await stage.write(lambda tx: forget_turns(tx, [2]))
    assert await stage.owes() == {"a", "c"}
    assert await stage.settle("a", "b", "c") == ["a", "c"]
    assert [turn.state for turn in await stage.line()] == ["live", "forgotten", "live"]
    await stage.append("d")
    assert await stage.path_to() == ["a", "b", "c", "d"]


async def test_words_go_in_slices_and_after_a_crash_too(stage: Stage) -> None:
    """What was forgotten before a restart is erased after it."""
    ids = [f"t{number}" for number in range(1_200)]
    await stage.append(*ids)
    await stage.write(lambda tx: forget_turns(tx, range(1, 1_201)))
    assert await stage.write(erase_slice) == 500
    await stage.restart()
    await stage.store.erase_forgotten()
    assert stage.sql("SELECT count(*) FROM turn_words") == [(0,)]


WORD = "Xylophonkonzert"


def files_with_the_word(stage: Stage) -> list[str]:
    """Returns the store's files that hold it."""
    found = stage.path.parent.iterdir()
    return [file.name for file in found if WORD.encode() in file.read_bytes()]


async def test_nothing_forgotten_is_left_in_the_files(stage: Stage) -> None:
    """Neither in the database nor in its log, while the store is open."""
    await stage.append(user(f"the word is {WORD}", "a"))
    assert files_with_the_word(stage)
    await stage.delete()
    assert files_with_the_word(stage) == []


async def test_why_an_answer_was_refused_goes_too(stage: Stage) -> None:
    """A reason may quote a model, which may quote what was said."""
    await stage.workspace()
    await stage.append("a", "b")
    batch = await stage.batch("a", "b")
    why = f"the topic '{WORD}' can't be used"
    await stage.write(lambda tx: fail(tx, batch, why, not_before_ms=0, limit_turns=1))
    assert files_with_the_word(stage)
    await stage.write(lambda tx: forget_turns(tx, [2]))
    await stage.store.erase_forgotten()
    assert files_with_the_word(stage) == []


async def test_a_reader_puts_the_end_of_the_log_off(stage: Stage) -> None:
    """Nobody waits for it; the next group tries again."""
    await stage.append(user(f"the word is {WORD}", "a"))
    with stage.store._readers.snapshot() as reader:
        reader.execute("SELECT * FROM turn").fetchall()
        await stage.write(lambda tx: tx.db.set_busy_timeout(120_000))
        with anyio.fail_after(60):
            await stage.delete()
    assert files_with_the_word(stage) == ["sessions.db-wal"]
    await stage.append("next")
    assert files_with_the_word(stage) == []


async def test_deleting_takes_title_partials_and_keys(stage: Stage) -> None:
    """Nothing of a person's words stays behind."""
    await stage.open(title="about Dana")
    await stage.append("a", user("half", "p", kind="partial"), key="k")
    await stage.delete()
    for table in ("session_words", "partial_turn", "request_key", "turn_words"):
        assert stage.sql(f"SELECT count(*) FROM {table}") == [(0,)]


async def test_deleting_a_session_ends_each_of_its_branches(stage: Stage) -> None:
    """A row each; none is live, none has a tip, and what another session reaches stays."""
    await stage.workspace()
    await stage.append("a", "b")
    await stage.append("c", after="a")
    await stage.append("d", after="a", move_head=False)
    await stage.open("t", forked_from=("s", "b"))
    said = await stage.said(stage.delete())
    assert [(cause, new) for cause, _, new in said] == [("delete", None)] * 3
    assert {old for _, old, _ in said} == {"b", "c", "d"}
    rows = stage.sql("SELECT DISTINCT state, tip FROM branch WHERE session = 1")
    assert rows == [("deleted", None)]
    assert await stage.owes() == {"a", "b"}
