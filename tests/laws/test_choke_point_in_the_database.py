"""The database itself refuses what only the gate may do: raw SQL on the real file."""

from __future__ import annotations

from collections.abc import AsyncIterator

import apsw
import pytest

from session_store.stage import Stage, scratch, user

pytestmark = pytest.mark.anyio


@pytest.fixture
async def raw() -> AsyncIterator[apsw.Connection]:
    """A connection of somebody else's to a store with a history, none of our pragmas set."""
    with scratch() as place:
        async with Stage(place / "sessions.db") as stage:
            await stage.workspace()
            await stage.append("a", "b", "c")
            await stage.append("d", after="a")
            await stage.merge(["c", "d"], user("m", "m"))
            await stage.append("e", session="t")
            await stage.settle("a")
            await stage.append("f", session="u")
            await stage.delete("u")
        connection = apsw.Connection(str(place / "sessions.db"))
        yield connection
        connection.close()


REFUSED = [
    # Tips and heads.
    "UPDATE branch SET tip = 1 WHERE id = 1",
    "UPDATE branch SET tip = NULL WHERE id = 1",
    "UPDATE branch SET tip = 1, move = 99 WHERE id = 1",
    "UPDATE branch SET tip = 1, move = (SELECT max(seq) FROM event) WHERE id = 1",
    "UPDATE branch SET move = 1 WHERE id = 1",
    "UPDATE session SET head = 1 WHERE name = 's'",
    "UPDATE session SET head = NULL WHERE name = 's'",
    "UPDATE session SET head = 1, head_move = (SELECT max(seq) FROM event) WHERE name = 's'",
    "UPDATE OR REPLACE branch SET tip = 1",
    "INSERT INTO branch (name, session, title, tip, moved_ms) VALUES ('x', 1, 'x', 1, 0)",
    "INSERT INTO branch (name, session, title, state, moved_ms) VALUES ('x', 1, 'x', 'merged', 0)",
    "INSERT INTO session (name, agent, head, created_ms, updated_ms) VALUES ('x', 'a', 1, 0, 0)",
    "REPLACE INTO branch (id, name, session, title, moved_ms) VALUES (1, 'x', 1, 'x', 0)",
    "REPLACE INTO branch (name, session, title, moved_ms) SELECT name, 1, 'x', 0 FROM branch",
    "REPLACE INTO session (id, name, agent, created_ms, updated_ms) VALUES (1, 'x', 'a', 0, 0)",
    "REPLACE INTO session (name, agent, created_ms, updated_ms) VALUES ('s', 'a', 0, 0)",
    # Ends.
    "UPDATE branch SET state = 'retired' WHERE id = 1",
    "UPDATE branch SET state = 'live' WHERE state = 'merged'",
    "UPDATE branch SET session = 2 WHERE id = 1",
    "UPDATE branch SET id = 77 WHERE id = 1",
    "DELETE FROM branch",
    "DELETE FROM session WHERE name = 't'",
    # Shape.
    "DELETE FROM turn WHERE id = 5",
    "UPDATE turn SET predecessor = NULL WHERE id = 2",
    "UPDATE turn SET recordable = 0",
    "REPLACE INTO turn SELECT * FROM turn WHERE id = 5",
    "DELETE FROM merge_parent",
    "UPDATE merge_parent SET parent = 1",
    "INSERT INTO merge_parent VALUES (3, 2)",
    # Words, marks, what is forgotten, what has happened.
    "DELETE FROM turn_words WHERE turn = 1",
    "UPDATE turn_words SET text = x'00'",
    "DELETE FROM mark",
    "UPDATE mark SET turn = 2",
    "UPDATE mark SET workspace = 2",
    "DELETE FROM forgotten_turn",
    "UPDATE forgotten_turn SET turn = 1",
    "UPDATE event SET new = 1",
]


@pytest.mark.parametrize("sql", REFUSED)
async def test_refuses(raw: apsw.Connection, sql: str) -> None:
    """The statement fails and nothing has changed."""
    before = _all(raw)
    with pytest.raises(apsw.ConstraintError):
        raw.execute(sql)
    assert _all(raw) == before


async def test_lets_a_move_with_its_row_through(raw: apsw.Connection) -> None:
    """The row names branch, session, old and new; then the tip may name the row."""
    (old,) = raw.execute("SELECT tip FROM branch WHERE id = 1").fetchall()[0]
    with raw:
        raw.execute(
            "INSERT INTO event (at_ms, type, session, branch, old, new, body)"
            " VALUES (0, 'TipMoved', 1, 1, ?, 1, x'')",
            (old,),
        )
        raw.execute("UPDATE branch SET tip = 1, move = last_insert_rowid() WHERE id = 1")
    assert raw.execute("SELECT tip FROM branch WHERE id = 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("session", "branch", "old", "new"),
    [(2, 1, "tip", 1), (1, 2, "tip", 1), (1, 1, "1", 1), (1, 1, "tip", 2)],
)
async def test_a_row_that_says_something_else_does_not_help(
    raw: apsw.Connection, session: int, branch: int, old: str, new: int
) -> None:
    """Each of the four must agree with the move."""
    raw.execute(
        "INSERT INTO event (at_ms, type, session, branch, old, new, body)"
        f" SELECT 0, 'TipMoved', ?, ?, {old}, ?, x'' FROM branch WHERE id = 1",
        (session, branch, new),
    )
    with pytest.raises(apsw.ConstraintError, match="only with its event row"):
        raw.execute("UPDATE branch SET tip = 1, move = last_insert_rowid() WHERE id = 1")


@pytest.mark.parametrize(("session", "old", "new"), [(2, "head", 1), (1, "1", 1), (1, "head", 2)])
async def test_a_row_of_another_head_does_not_help(
    raw: apsw.Connection, session: int, old: str, new: int
) -> None:
    """Session, old and new head must agree with the move."""
    raw.execute(
        "INSERT INTO event (at_ms, type, session, branch, head_old, head_new, body)"
        f" SELECT 0, 'TipMoved', ?, 1, {old}, ?, x'' FROM session WHERE id = 1",
        (session, new),
    )
    with pytest.raises(apsw.ConstraintError, match="only with its event row"):
        raw.execute("UPDATE session SET head = 1, head_move = last_insert_rowid() WHERE id = 1")


def _all(raw: apsw.Connection) -> list[object]:
    tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
    return [list(raw.execute(f"SELECT * FROM {name}")) for name in tables]
