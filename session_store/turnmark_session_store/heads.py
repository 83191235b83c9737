"""The gate: the one place that moves a branch's tip or a session's head.

In this order, inside the caller's transaction: the true old values are read, the expectation is
checked against them, one event row is written per move, and only then the tip or head changes and
names its row. The triggers of `schema.py` refuse any update that has no such row, so a second way
in would fail at once, wherever it were written. Subscribers hear of it after the commit.

What does not change anything announces nothing. Only a tip that really moved re-arms the idle
deadline of its branch.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec import UnsetType

from turnmark_events.errors import Stale
from turnmark_events.types import MoveCause, TipMoved
from turnmark_session_store.sessions import session_by_id
from turnmark_session_store.transaction import Transaction


class Unchecked(msgspec.Struct, frozen=True):
    """The caller did not say what the head should be."""


class Absent(msgspec.Struct, frozen=True):
    """The session should have no head."""


class Exactly(msgspec.Struct, frozen=True):
    """The head should be this turn's id."""

    turn: str


Expectation = Unchecked | Absent | Exactly
_UNCHECKED = Unchecked()


def expectation(expect: str | UnsetType | None) -> Expectation:
    """Returns what a request said of the head: a turn, None for no head, or nothing at all."""
    if isinstance(expect, UnsetType):
        return _UNCHECKED
    return Absent() if expect is None else Exactly(expect)


class Keep(msgspec.Struct, frozen=True):
    """The head stays where it is."""


class To(msgspec.Struct, frozen=True):
    """The head goes to `turn` (None: the session has none any more), on `branch`."""

    turn: int | None
    branch: int | None


class TipMove(msgspec.Struct, frozen=True):
    """One branch's move: `new` None ends it; `ends_as` is the state of a branch that ends."""

    branch: int
    new: int | None
    cause: MoveCause
    ends_as: Literal["merged", "retired", "deleted"] | None = None


def begin_branch(
    tx: Transaction,
    session: int,
    cause: MoveCause,
    *,
    name: str | None = None,
    title: str | None = None,
) -> int:
    """Returns a new branch without a tip; its first move, in this transaction, gives it one.

    An import gives the `name` (which nothing here may have) and `title` that the branch had.
    """
    if title is None:
        made = tx.value("SELECT count(*) FROM branch WHERE session = ?", (session,))
        title = "main" if made == 0 else f"{cause}-{made}"
    return tx.insert(
        "INSERT INTO branch (name, session, title, moved_ms) VALUES (?, ?, ?, ?)",
        (name or f"br-{secrets.token_hex(6)}", session, title, tx.at_ms),
    )


def check_head(tx: Transaction, session: int, expect: Expectation) -> None:
    """Passes if the session's true head is as expected.

    Raises:
        Stale: if it is not; `facts["head"]` names the head that is there.
    """
    if isinstance(expect, Unchecked):
        return
    row = session_by_id(tx.db, session)
    head = tx.turn_id(row.head)
    wanted = expect.turn if isinstance(expect, Exactly) else None
    if head != wanted:
        raise Stale(
            f"the head of session {row.name!r} is {head or 'not set'}, not {wanted or 'unset'}; "
            "read it again and decide anew",
            session=row.name,
            head=head,
        )


def move(
    tx: Transaction,
    session: int,
    tips: Sequence[TipMove],
    head: Keep | To,
    *,
    cause: MoveCause,
    expect: Expectation = _UNCHECKED,
) -> None:
    """Moves any number of tips of one session and its head, all or none.

    `cause` names the verb for a move of the head alone. `head_old` and `head_new` are equal on all
    rows of the call.

    Raises:
        Stale: if `expect` does not hold; nothing is moved.
    """
    check_head(tx, session, expect)
    # Read here, inside the transaction: whatever the caller knew of tips and head may be old.
    stands = [_stands(tx, session, tip.branch) for tip in tips]
    old = stands[0].head if stands else session_by_id(tx.db, session).head
    heads = (old, old if isinstance(head, Keep) else head.turn)
    rows = [
        _move_tip(tx, session, tip, stand, heads) for tip, stand in zip(tips, stands, strict=True)
    ]
    last = max((seq for seq in rows if seq is not None), default=None)
    if isinstance(head, To):
        _move_head(tx, session, head, heads, last, cause)
    elif last is not None:
        tx.execute("UPDATE session SET updated_ms = ? WHERE id = ?", (tx.at_ms, session))


_MOVED = "UPDATE branch SET tip = ?1, move = ?2, moved_ms = ?3, idle_ms = ?4, archived = 0"
"""The state beside it only where it changes: its check and its trigger cost a third more."""


class _Stands(NamedTuple):
    """The true values before a move: a session's name and head, a branch's name, tip and state."""

    session: str
    head: int | None
    branch: str
    tip: int | None
    state: str


def _stands(tx: Transaction, session: int, branch: int | None) -> _Stands:
    return _Stands._make(
        tx.row(
            # Looks by key and no join: a join is planned anew at each call, to see which of the
            # partial indexes on `branch` these very values would allow.
            "SELECT name, head, (SELECT name FROM branch WHERE id = ?2),"
            " (SELECT tip FROM branch WHERE id = ?2), (SELECT state FROM branch WHERE id = ?2)"
            " FROM session WHERE id = ?1",
            (session, branch),
        )
    )


def _move_tip(
    tx: Transaction,
    session: int,
    tip: TipMove,
    stands: _Stands,
    heads: tuple[int | None, int | None],
) -> int | None:
    tx.names(tip.branch, stands.branch)
    if stands.tip == tip.new and tip.cause != "archive":
        tx.execute("UPDATE branch SET archived = 0 WHERE id = ?", (tip.branch,))
        return None
    seq = _record(tx, session, tip.branch, stands, (stands.tip, tip.new), heads, tip.cause)
    if tip.cause == "archive":
        tx.execute("UPDATE branch SET archived = 1 WHERE id = ?", (tip.branch,))
        return seq
    idle_ms = None if tip.ends_as else tx.at_ms + tx.idle_ms
    moved = (tip.new, seq, tx.at_ms, idle_ms, tip.branch)
    state = tip.ends_as or "live"
    if state == stands.state:
        tx.execute(f"{_MOVED} WHERE id = ?5", moved)
    else:
        tx.execute(f"{_MOVED}, state = ?6 WHERE id = ?5", (*moved, state))
    return seq


def _move_head(
    tx: Transaction,
    session: int,
    head: To,
    heads: tuple[int | None, int | None],
    tip_row: int | None,
    cause: MoveCause,
) -> None:
    """Moves the head by the row of the tip that moves with it, or by one of its own."""
    if heads[0] == heads[1]:
        tx.execute(
            "UPDATE session SET head_branch = ?, updated_ms = iif(?, ?, updated_ms) WHERE id = ?",
            (head.branch, tip_row is not None, tx.at_ms, session),
        )
        return
    row = tip_row
    if row is None:
        stands = _stands(tx, session, head.branch)
        row = _record(tx, session, head.branch or 0, stands, (stands.tip, stands.tip), heads, cause)
    tx.execute(
        "UPDATE session SET head = ?, head_move = ?, head_branch = ?, updated_ms = ? WHERE id = ?",
        (head.turn, row, head.branch, tx.at_ms, session),
    )


def _record(
    tx: Transaction,
    session: int,
    branch: int,
    stands: _Stands,
    tips: tuple[int | None, int | None],
    heads: tuple[int | None, int | None],
    cause: MoveCause,
) -> int:
    facts = {
        "session": stands.session,
        "branch": stands.branch,
        "old": tx.turn_id(tips[0]),
        "new": tx.turn_id(tips[1]),
        "head_old": tx.turn_id(heads[0]),
        "head_new": tx.turn_id(heads[1]),
        "cause": cause,
    }
    return tx.record(TipMoved, facts, session=session, branch=branch, tips=tips, heads=heads)
