"""Where a line ends: the branch that goes on to it, or begins with it, and the head.

An append never fails for concurrency: where it can't continue a tip, a new branch begins here.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from turnmark_events.types import MoveCause
from turnmark_session_store.branches import branch_at, branch_reaching, branches_at
from turnmark_session_store.heads import Keep, TipMove, To, begin_branch, move
from turnmark_session_store.line import Line
from turnmark_session_store.retirement import retire
from turnmark_session_store.sessions import SessionRow, session_by_id
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import LIVE_BRANCH


class LineEnd(msgspec.Struct, frozen=True):
    """The branch that ends with a line, whether it began by a fork, and the session's head now."""

    branch: int | None
    forked: bool
    head: int | None


def move_to_end(
    tx: Transaction,
    session: SessionRow,
    line: Line,
    *,
    move_head: bool,
    spawns_too: bool = False,
) -> LineEnd:
    """Moves a branch's tip, and the head, to the end of a placed line.

    From the deepest turn of the line that a live branch of this session already reaches: if that
    turn is a tip, its branch goes on; else a new branch begins. A line that is wholly there moves
    the head alone. A spawn leaves the head where it is unless `spawns_too`.
    """
    if line.superseded:
        return _supersede(tx, session, line, move_head=move_head)
    takes_head = move_head and (session.head is None or spawns_too or not line.leaves_head)
    reached, branch = _deepest_reached(tx, session, line)
    if branch is not None and reached == line.last:
        head = To(reached, branch) if takes_head else Keep()
        move(tx, session.id, [], head, cause="append")
        return LineEnd(branch, forked=False, head=reached if takes_head else session.head)
    continues = line.continues if reached == line.start else None
    going_on = continues or branch_at(tx, session, reached)
    return _go_on_or_begin(tx, session, line, reached, going_on, takes_head=takes_head)


def _deepest_reached(
    tx: Transaction, session: SessionRow, line: Line
) -> tuple[int | None, int | None]:
    """Returns the last turn of the line that this session's live branches reach, and a branch."""
    for placed in reversed(line.placed):
        if not placed.new:
            branch = branch_reaching(tx, session, placed.turn)
            if branch is not None:
                return placed.turn, branch
    return line.start, None


def _go_on_or_begin(
    tx: Transaction,
    session: SessionRow,
    line: Line,
    reached: int | None,
    going_on: int | None,
    *,
    takes_head: bool,
) -> LineEnd:
    cause = _cause(line, reached, begins=going_on is None)
    branch = begin_branch(tx, session.id, cause) if going_on is None else going_on
    head = To(line.last, branch) if takes_head else Keep()
    move(tx, session.id, [TipMove(branch, line.last, cause)], head, cause=cause)
    return LineEnd(
        branch,
        forked=going_on is None and reached is not None,
        head=line.last if takes_head else session.head,
    )


def _cause(line: Line, reached: int | None, *, begins: bool) -> MoveCause:
    if line.restored:
        return "restore"
    if not begins:
        return "append"
    if line.superseded:
        return "supersede"
    if reached is not None:
        return "fork"
    return "spawn" if line.spawned else "root"


def _supersede(tx: Transaction, session: SessionRow, line: Line, *, move_head: bool) -> LineEnd:
    """Retires what the line replaces; branches that ended there move to its end in one go.

    The head follows where it stood on a replaced turn; new wording far behind it leaves it alone.
    Another session's branch goes to the replacing turn and no further.
    """
    retire(tx, line.superseded)
    supersede_elsewhere(tx, session, line.superseded)
    takes_head = session.head in line.superseded or (move_head and session.head is None)
    ended = [branch for old in line.superseded for branch in branches_at(tx, session, old)]
    if not ended:
        reached, _ = _deepest_reached(tx, session, line)
        going_on = branch_at(tx, session, reached)
        return _go_on_or_begin(tx, session, line, reached, going_on, takes_head=takes_head)
    moves = [TipMove(branch, line.last, "supersede") for branch in ended]
    head = To(line.last, ended[0]) if takes_head else Keep()
    move(tx, session.id, moves, head, cause="supersede")
    return LineEnd(ended[0], forked=False, head=line.last if takes_head else session.head)


def supersede_elsewhere(
    tx: Transaction, session: SessionRow, superseded: Mapping[int, int]
) -> None:
    """Moves other sessions' branches from each replaced turn to the one that replaces it."""
    for old, new in superseded.items():
        for (owner,) in tx.rows(
            f"SELECT DISTINCT session FROM branch WHERE tip = ? AND session <> ? AND {LIVE_BRANCH}",
            (old, session.id),
        ):
            other = session_by_id(tx.db, owner)
            branches = branches_at(tx, other, old)
            head = To(new, branches[0]) if other.head == old else Keep()
            moves = [TipMove(branch, new, "supersede") for branch in branches]
            move(tx, owner, moves, head, cause="supersede")
