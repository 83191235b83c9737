"""Moving the head, and taking back: checkout, rewind, merge, archive."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnmark_events.errors import Conflict, Forgotten, NotFound, Refused
from turnmark_events.types import MoveCause
from turnmark_session_store.branches import branch_reaching, branches_at
from turnmark_session_store.heads import (
    Keep,
    TipMove,
    To,
    begin_branch,
    check_head,
    expectation,
    move,
)
from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.requests import Archive, Checkout, Rewind
from turnmark_session_store.retirement import restore_path, retire_unreached
from turnmark_session_store.sessions import (
    SessionRow,
    get_session,
    get_turn,
    namespace_of,
    turn_id,
)
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.turn_rows import place_turn
from turnmark_session_store.walks import LIVE_BRANCH, is_ancestor, parents_of


class HeadIs(msgspec.Struct, frozen=True, kw_only=True):
    """`session.checkout`'s answer."""

    head: str | None


class Rewound(msgspec.Struct, frozen=True, kw_only=True):
    """`session.rewind`'s answer: `retired` counts the turns that no live branch reaches now."""

    head: str | None
    retired: int


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """`session.merge`'s answer."""

    turn: str
    head: str | None


def put_head(tx: Transaction, session: SessionRow, turn: int) -> None:
    """Puts the head on a turn that is there, restoring it and its path where it was retired.

    A turn that no live branch of the session reaches gets a branch of its own.
    """
    restored = bool(restore_path(tx, turn))
    branch = None if restored else branch_reaching(tx, session, turn)
    if branch is not None:
        move(tx, session.id, [], To(turn, branch), cause="checkout")
        return
    cause: MoveCause = "restore" if restored else "fork"
    made = begin_branch(tx, session.id, cause)
    move(tx, session.id, [TipMove(made, turn, cause)], To(turn, made), cause=cause)


def checkout(tx: Transaction, asked: Checkout) -> HeadIs:
    """Puts the head on any live turn of the session; with `restore`, on a retired one too.

    Raises:
        Stale: if `expect` is not the head.
        NotFound: if the turn is not one of the session's.
        Refused: if it is retired and `restore` was not asked for.
        Forgotten: if it was forgotten.
    """
    session = get_session(tx.db, asked.session)
    turn = get_turn(tx.db, session, asked.tip)
    check_head(tx, session.id, expectation(asked.expect))
    _check_kept(tx, turn)
    retired = tx.row("SELECT 1 FROM retired_turn WHERE turn = ?", (turn,)) is not None
    if retired and not asked.restore:
        raise Refused(
            f"turn {asked.tip!r} was taken back; add restore: true to bring it and its path back"
        )
    if not retired and branch_reaching(tx, session, turn) is None:
        raise NotFound(
            f"no branch of session {session.name!r} reaches turn {asked.tip!r}; open a session "
            "with forked_from to go on from it",
            turn=asked.tip,
        )
    put_head(tx, session, turn)
    return HeadIs(head=asked.tip)


def rewind(tx: Transaction, asked: Rewind) -> Rewound:
    """Moves the head's branch back to `to` and retires what no live branch reaches then.

    Raises:
        Stale: if `expect` is not the head.
        NotFound: if `to` is not a turn of the session.
        Refused: if the session has no head, or `to` is no ancestor of it that still stands.
        Forgotten: if `to` was forgotten.
    """
    session = get_session(tx.db, asked.session)
    turn = get_turn(tx.db, session, asked.to)
    check_head(tx, session.id, expectation(asked.expect))
    head, branch = session.head, session.head_branch
    if head is None or branch is None:
        raise Refused(
            f"session {session.name!r} has no head to rewind; put it on a turn with checkout first",
            session=session.name,
        )
    _check_stands(tx, turn)
    if not is_ancestor(tx.db, turn, head):
        raise Refused(
            f"turn {asked.to!r} does not come before the head {turn_id(tx.db, head)!r}; rewind "
            "goes back along the head's own line. To go elsewhere, use checkout",
            head=turn_id(tx.db, head),
        )
    tip = tx.value("SELECT tip FROM branch WHERE id = ?", (branch,))
    move(tx, session.id, [TipMove(branch, turn, "rewind")], To(turn, branch), cause="rewind")
    retired = retire_unreached(tx, [tip, head], [turn])
    return Rewound(head=asked.to, retired=len(retired))


def _check_stands(tx: Transaction, turn: int) -> None:
    """Refuses a turn that was replaced, taken back or forgotten as the place to go back to."""
    _check_kept(tx, turn)
    if tx.row("SELECT 1 FROM retired_turn WHERE turn = ?", (turn,)):
        name = tx.turn_id(turn)
        raise Refused(f"turn {name!r} was taken back; choose one that still stands", turn=name)


def _check_kept(tx: Transaction, turn: int) -> None:
    if tx.row("SELECT 1 FROM forgotten_turn WHERE turn = ?", (turn,)):
        name = tx.turn_id(turn)
        raise Forgotten(f"turn {name!r} was forgotten; choose another", turn=name)


def merge(
    tx: Transaction,
    session_name: str,
    tips: Sequence[str],
    turn: PreparedTurn,
) -> Merged:
    """Joins branches in one turn whose parents are all of `tips`; the others end there.

    The head's branch goes on if its tip is one of them, else the first one's.

    Raises:
        NotFound: if a tip is not a turn of the session.
        Refused: if fewer than two different tips are given, or one is no live tip; if the turn is a
            partial one, or the session's memory is off.
        Conflict: if the turn's id is there with other content or other parents.
    """
    session = get_session(tx.db, session_name)
    if session.memory == "off" or turn.kind == "partial":
        raise Refused(
            "nothing is stored for a session with memory: off"
            if session.memory == "off"
            else "a partial turn is for display and joins nothing; merge with the final one"
        )
    turns = list(dict.fromkeys(get_turn(tx.db, session, tip) for tip in tips))
    if len(turns) < 2:  # noqa: PLR2004  a merge joins at least two
        raise Refused(
            "a merge needs at least two different tips; "
            f"`turnmark tree {session.name}` shows those there are"
        )
    branches = [(tip, _ending_at(tx, session, tip)) for tip in turns]
    first = _going_on(session, branches)
    merged = [tip for tip, _ in branches if tip != first[0]]
    placed = place_turn(tx, session, namespace_of(tx, session), turn, first[0], merged=merged)
    if not placed.new and set(parents_of(tx.db, placed.turn)) != set(turns):
        raise Conflict(
            f"turn {placed.id!r} is already here and joins other turns; give the merge a new id",
            turn=placed.id,
        )
    restore_path(tx, placed.turn)
    moves = [TipMove(first[1], placed.turn, "merge")]
    moves += [
        TipMove(branch, placed.turn, "merge", ends_as="merged")
        for _, ids in branches
        for branch in ids
        if branch != first[1]
    ]
    move(tx, session.id, moves, To(placed.turn, first[1]), cause="merge")
    return Merged(turn=placed.id, head=placed.id)


def _ending_at(tx: Transaction, session: SessionRow, tip: int) -> list[int]:
    """Returns the live branches that end at `tip`, the oldest first."""
    branches = sorted(branches_at(tx, session, tip))
    if not branches:
        raise Refused(
            f"turn {turn_id(tx.db, tip)!r} is not the tip of a live branch of session "
            f"{session.name!r}; `turnmark tree {session.name}` shows the tips"
        )
    return branches


def _going_on(session: SessionRow, branches: list[tuple[int, list[int]]]) -> tuple[int, int]:
    for tip, ids in branches:
        if session.head_branch in ids:
            return tip, session.head_branch
    return branches[0][0], branches[0][1][0]


def archive(tx: Transaction, asked: Archive) -> None:
    """Hides a branch, or all live ones; they stay live for memory and nothing is re-armed.

    Raises:
        NotFound: if the session or the branch is unknown.
    """
    session = get_session(tx.db, asked.session)
    rows = tx.rows(
        f"SELECT id, tip, name FROM branch WHERE session = ? AND {LIVE_BRANCH} ORDER BY id",
        (session.id,),
    )
    chosen = [row for row in rows if asked.branch in (None, row[2])]
    if asked.branch is not None and not chosen:
        raise NotFound(
            f"session {session.name!r} has no live branch {asked.branch!r}; "
            f"`turnmark tree {session.name}` shows those it has",
            session=session.name,
            branch=asked.branch,
        )
    moves = [TipMove(branch, tip, "archive") for branch, tip, _ in chosen]
    move(tx, session.id, moves, Keep(), cause="archive")


def close(tx: Transaction, session_name: str) -> None:
    """Notes that a session is closed; its branches stay live for memory."""
    session = get_session(tx.db, session_name)
    tx.execute("UPDATE session SET closed_ms = ? WHERE id = ?", (tx.at_ms, session.id))
