"""Appending turns: the verb behind `turn.append`.

In this order: the session is opened, the head's expectation checked, the turns placed on a line
(`line.py`), and a tip moved to the line's end (`line_end.py`). An append never fails for
concurrency. Where it can't continue a tip it forks, and says so; only an expectation that the
caller wrote down can fail it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

from turnmark_events.errors import Refused
from turnmark_session_store.heads import check_head, expectation
from turnmark_session_store.idempotency import once
from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.line import Line, place_line
from turnmark_session_store.line_end import LineEnd, move_to_end
from turnmark_session_store.partials import keep_partials
from turnmark_session_store.sessions import SessionRow, find_or_open, get_turn, in_namespace
from turnmark_session_store.transaction import Transaction


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """`turn.append`'s answer; ids in the order given, `new` counts the turns written now."""

    turns: list[str]
    head: str | None
    branch: str | None
    forked: bool
    new: int
    forgotten: list[str] = []


class AppendOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to append and where; `turns` are prepared, everything else as the caller said it."""

    session: str
    turns: Sequence[PreparedTurn]
    after: str | UnsetType | None = UNSET
    expect: str | UnsetType | None = UNSET
    key: str | None = None
    move_head: bool = True


def append(tx: Transaction, order: AppendOrder) -> Appended:
    """Appends `order.turns` one after the other, all or none, and moves tip and head.

    Raises:
        Stale: if `expect` is not the head.
        Conflict: if an id is there with other content, or `key` came before with other turns.
        NotFound: if `after`, `caller` or `supersedes` names what is not here.
        Refused: if there is nothing to append.
    """
    if not order.turns:
        raise Refused("turns is empty; give at least one turn")
    session = find_or_open(tx, order.session)
    if session.memory == "off":
        head = tx.turn_id(session.head)
        return Appended(turns=[], head=head, branch=None, forked=False, new=0)

    def act() -> Appended:
        check_head(tx, session.id, expectation(order.expect))
        return _append(tx, in_namespace(tx, session), order)

    return once(tx, session, order.key, order.turns, Appended, act)


def _append(tx: Transaction, session: SessionRow, order: AppendOrder) -> Appended:
    turns = [turn for turn in order.turns if turn.kind != "partial"]
    line = place_line(tx, session, turns, _start(tx, session, order, turns))
    keep_partials(tx, session, line.last, order.turns)
    if line.placed:
        end = move_to_end(tx, session, line, move_head=order.move_head)
    else:
        end = LineEnd(session.head_branch, forked=False, head=session.head)
    return Appended(
        turns=_ids(order.turns, line),
        head=tx.turn_id(end.head),
        branch=None if end.branch is None else tx.branch_name(end.branch),
        forked=end.forked,
        new=line.new,
        forgotten=[placed.id for placed in line.placed if placed.forgotten],
    )


def _start(
    tx: Transaction, session: SessionRow, order: AppendOrder, turns: Sequence[PreparedTurn]
) -> int | None:
    """Returns the turn that the first one comes after, None for a new root."""
    first = turns[0] if turns else None
    if isinstance(order.after, str):
        return get_turn(tx.db, session, order.after)
    if order.after is None:
        return None
    if first is not None and first.supersedes is not None:
        old = get_turn(tx.db, session, first.supersedes)
        found = tx.value("SELECT predecessor FROM turn WHERE id = ?", (old,))
        return None if found is None else int(found)
    if first is not None and first.caller is not None:
        return None
    return session.head


def _ids(turns: Sequence[PreparedTurn], line: Line) -> list[str]:
    """Returns the ids of `turns` as they were given: a partial has but the one that it will get."""
    placed = iter(line.placed)
    return [(turn.id or "") if turn.kind == "partial" else next(placed).id for turn in turns]
