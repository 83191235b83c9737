"""Appending turns: the verb behind `turn.append`, imports and the walk's new end of `turn.sync`.

An append never fails for concurrency. Where it can't continue a tip it forks, and says so; only an
expectation that the caller wrote down can fail it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET, UnsetType

from turnmark_events.errors import Conflict, Refused
from turnmark_events.types import MoveCause
from turnmark_session_store.heads import (
    Absent,
    Exactly,
    Expectation,
    Keep,
    TipMove,
    To,
    Unchecked,
    begin_branch,
    check_head,
    move,
)
from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.model import CallerRef
from turnmark_session_store.requests import OpenSession
from turnmark_session_store.retirement import restore_path, retire
from turnmark_session_store.sessions import (
    SessionRow,
    find_session,
    find_turn,
    get_turn,
    namespace_of,
    open_session,
    resolve_caller,
    session_by_id,
    turn_id,
)
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.turn_rows import Placed, place_turn
from turnmark_session_store.walks import LIVE_BRANCH, is_ancestor


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """`turn.append`'s answer; ids in the order given, `new` counts the turns written now."""

    turns: list[str]
    head: str | None
    branch: str | None
    forked: bool
    new: int
    forgotten: list[str] = msgspec.field(default_factory=list[str])


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendOrder:
    """What to append and where; `turns` are prepared, everything else as the caller said it."""

    session: str
    turns: Sequence[PreparedTurn]
    after: str | UnsetType | None = UNSET
    expect: str | UnsetType | None = UNSET
    key: str | None = None
    move_head: bool = True


@dataclass(slots=True)
class _Line:
    """The line that an append makes: where it starts, the turns placed on it, what it restored."""

    start: int | None
    caller: int | None
    placed: list[Placed] = field(default_factory=list[Placed])
    restored: bool = False
    superseded: bool = False

    @property
    def last(self) -> int | None:
        return self.placed[-1].turn if self.placed else self.start


def expectation(expect: str | UnsetType | None) -> Expectation:
    """Returns the gate's explicit type for what a request said about the head."""
    if isinstance(expect, UnsetType):
        return Unchecked()
    return Absent() if expect is None else Exactly(expect)


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
    session = _open(tx, order)
    if session.memory == "off":
        head = turn_id(tx.db, session.head)
        return Appended(turns=[], head=head, branch=None, forked=False, new=0)
    replayed = replay(tx, session, order.key, order.turns)
    if replayed is not None:
        return msgspec.json.decode(replayed, type=Appended)
    check_head(tx, session.id, expectation(order.expect))
    answer = _append(tx, session, order)
    kept = msgspec.structs.replace(answer, new=0)
    remember_key(tx, session, order.key, order.turns, msgspec.json.encode(kept))
    return answer


def _open(tx: Transaction, order: AppendOrder) -> SessionRow:
    known = find_session(tx.db, order.session)
    return known or open_session(tx, OpenSession(session=order.session))[0]


def _append(tx: Transaction, session: SessionRow, order: AppendOrder) -> Appended:
    namespace = namespace_of(tx, session)
    session = session_by_id(tx.db, session.id)
    turns = [turn for turn in order.turns if turn.kind != "partial"]
    start = _start(tx, session, order, turns)
    partials = [turn for turn in order.turns if turn.kind == "partial"]
    for partial in partials:
        _keep_partial(tx, session, start, partial)
    line = place_line(tx, session, namespace, turns, start, restore=True)
    if not line.placed:
        ids = [turn.id or "" for turn in partials]
        head = turn_id(tx.db, session.head)
        return Appended(turns=ids, head=head, branch=None, forked=False, new=0)
    branch, forked = settle_line(tx, session, line, move_head=order.move_head)
    return Appended(
        turns=[placed.id for placed in line.placed],
        head=turn_id(tx.db, session_by_id(tx.db, session.id).head),
        branch=branch_name(tx, branch),
        forked=forked,
        new=sum(placed.new for placed in line.placed),
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


def place_line(
    tx: Transaction,
    session: SessionRow,
    namespace: int,
    turns: Sequence[PreparedTurn],
    start: int | None,
    *,
    restore: bool,
) -> _Line:
    """Places `turns` one after the other from `start`; moves nothing yet."""
    line = _Line(start, None)
    if restore and start is not None:
        line.restored = bool(restore_path(tx, start))
    previous = start
    for turn in turns:
        caller = _caller(tx, session, turn, previous)
        if previous is None:
            line.caller = caller
        placed = place_turn(tx, session, namespace, turn, previous, caller=caller)
        if placed.new and turn.supersedes is not None:
            line.superseded = _supersede(tx, session, turn.supersedes, placed.turn)
        if placed.retired and restore:
            line.restored = bool(restore_path(tx, placed.turn)) or line.restored
        _drop_partial(tx, session, placed.id)
        line.placed.append(placed)
        previous = placed.turn
    return line


def _caller(
    tx: Transaction, session: SessionRow, turn: PreparedTurn, previous: int | None
) -> int | None:
    if turn.caller is not None:
        return resolve_caller(tx, CallerRef(session=turn.caller.session, turn=turn.caller.turn))
    first_root = previous is None and session.head is None and session.caller is not None
    return session.caller if first_root else None


def _supersede(tx: Transaction, session: SessionRow, old_id: str, new: int) -> bool:
    """Retires the turn that `new` replaces and moves the branches that ended in it."""
    old = find_turn(tx.db, session, old_id)
    if old is None:
        return False
    branches = tx.rows(
        f"SELECT id, session FROM branch WHERE tip = ? AND {LIVE_BRANCH} ORDER BY id", (old,)
    )
    for branch, owner in branches:
        head = session_by_id(tx.db, owner).head
        to = To(new, branch) if head == old else Keep()
        move(tx, owner, [TipMove(branch, new, "supersede")], to, cause="supersede")
    retire(tx, [old])
    return True


def settle_line(
    tx: Transaction,
    session: SessionRow,
    line: _Line,
    *,
    move_head: bool,
    cause: MoveCause | None = None,
) -> tuple[int, bool]:
    """Moves a branch's tip, and the head, to the end of a placed line; returns (branch, forked).

    From the deepest turn of the line that a live branch of this session already reaches: if that
    turn is a tip, its branch goes on; else a new branch begins. A line that is wholly there moves
    the head alone.
    """
    session = session_by_id(tx.db, session.id)
    reached, branch = _deepest_reached(tx, session, line)
    last = line.last
    head: Keep | To = Keep()
    takes_head = move_head and _takes_head(session, line, reached)
    if reached == last and branch is not None:
        if takes_head:
            head = To(last, branch)
        move(tx, session.id, [], head, cause=cause or "append")
        return branch, False
    going_on = _branch_at(tx, session, reached)
    forked = going_on is None and line.start is not None
    verb = cause or _cause(line, going_on is None)
    target = going_on if going_on is not None else begin_branch(tx, session.id, verb)
    if takes_head:
        head = To(last, target)
    move(tx, session.id, [TipMove(target, last, verb)], head, cause=verb)
    return target, forked


def _takes_head(session: SessionRow, line: _Line, reached: int | None) -> bool:
    """A spawn leaves the head where it is, and so does new wording far behind it."""
    if session.head is None:
        return True
    if line.superseded:
        return session.head == reached
    return line.caller is None


def _cause(line: _Line, begins: bool) -> MoveCause:
    if line.restored:
        return "restore"
    if line.superseded:
        return "supersede" if begins else "append"
    if not begins:
        return "append"
    if line.start is not None:
        return "fork"
    return "spawn" if line.caller is not None else "root"


def _deepest_reached(
    tx: Transaction, session: SessionRow, line: _Line
) -> tuple[int | None, int | None]:
    """Returns the last turn of the line that this session's live branches reach, and a branch."""
    for placed in reversed(line.placed):
        if placed.new and not line.superseded:
            continue
        branch = branch_reaching(tx, session, placed.turn)
        if branch is not None:
            return placed.turn, branch
    return line.start, None


def branch_reaching(tx: Transaction, session: SessionRow, turn: int) -> int | None:
    """Returns a live branch of the session that reaches `turn`: the head's, else the last moved."""
    rows = tx.rows(
        f"SELECT id, tip FROM branch WHERE session = ? AND tip >= ? AND {LIVE_BRANCH}"
        " ORDER BY id = ? DESC, tip = ? DESC, moved_ms DESC, id DESC",
        (session.id, turn, session.head_branch, turn),
    )
    for branch, tip in rows:
        if is_ancestor(tx.db, turn, tip):
            return int(branch)
    return None


def _branch_at(tx: Transaction, session: SessionRow, tip: int | None) -> int | None:
    """Returns the branch that an append at `tip` continues: the head's, else the last moved."""
    if tip is None:
        return None
    found = tx.value(
        f"SELECT id FROM branch WHERE session = ? AND tip = ? AND {LIVE_BRANCH}"
        " ORDER BY id = ? DESC, moved_ms DESC, id DESC LIMIT 1",
        (session.id, tip, session.head_branch),
    )
    return None if found is None else int(found)


def branch_name(tx: Transaction, branch: int) -> str:
    """Returns the public name of a branch's integer key."""
    return str(tx.value("SELECT name FROM branch WHERE id = ?", (branch,)))


def replay(
    tx: Transaction, session: SessionRow, key: str | None, turns: Sequence[PreparedTurn]
) -> bytes | None:
    """Returns the stored answer of an earlier request with this `key`, None for a new key.

    Raises:
        Conflict: if the key came before with other turns.
    """
    if key is None:
        return None
    known = tx.row(
        "SELECT digest, answer FROM request_key WHERE session = ? AND key = ?", (session.id, key)
    )
    if known is None:
        return None
    if known[0] != _request_digest(turns):
        raise Conflict(
            f"the key {key!r} was used before for other turns of session {session.name!r}; a key "
            "names one request: make a new one",
            key=key,
        )
    return bytes(known[1])


def remember_key(
    tx: Transaction,
    session: SessionRow,
    key: str | None,
    turns: Sequence[PreparedTurn],
    answer: bytes,
) -> None:
    """Keeps the encoded `answer` for a replay of the same request."""
    if key is None:
        return
    tx.execute(
        "INSERT INTO request_key (session, key, digest, answer, at_ms) VALUES (?, ?, ?, ?, ?)",
        (session.id, key, _request_digest(turns), answer, tx.at_ms),
    )


def _request_digest(turns: Sequence[PreparedTurn]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for turn in turns:
        digest.update((turn.id or "").encode("utf-8", "replace") + b"\x00" + turn.digest)
    return digest.digest()


def _keep_partial(
    tx: Transaction, session: SessionRow, predecessor: int | None, turn: PreparedTurn
) -> None:
    tx.execute(
        "INSERT INTO partial_turn (session, id, predecessor, role, text, at_ms)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET text = excluded.text,"
        " predecessor = excluded.predecessor, at_ms = excluded.at_ms",
        (session.id, turn.id or "", predecessor, turn.role, turn.text.encode(), tx.at_ms),
    )


def _drop_partial(tx: Transaction, session: SessionRow, turn: str) -> None:
    tx.execute("DELETE FROM partial_turn WHERE session = ? AND id IN (?, '')", (session.id, turn))
