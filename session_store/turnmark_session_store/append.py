"""Appending turns: the verb behind `turn.append`, imports and the walk's new end of `turn.sync`.

An append never fails for concurrency. Where it can't continue a tip it forks, and says so; only an
expectation that the caller wrote down can fail it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

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
    in_namespace,
    namespace_of,
    open_session,
    resolve_caller,
    session_by_id,
)
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.turn_rows import Placed, key_of, place_turn
from turnmark_session_store.walks import LIVE_BRANCH, is_ancestor

_LOOK = (
    "SELECT (SELECT key FROM turn WHERE id = ?1),"
    " EXISTS (SELECT 1 FROM retired_turn WHERE turn = ?1)"
    " OR EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = ?1),"
    " EXISTS (SELECT 1 FROM partial_turn WHERE session = ?2),"
    f" (SELECT id FROM branch WHERE id = ?3 AND tip = ?1 AND {LIVE_BRANCH})"
)
"""All that a line needs to know about its start, in one statement."""


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


class Line(msgspec.Struct):
    """The line that an append makes: where it starts, the turns placed on it, what that changed.

    `continues` is the head's branch where its tip is the start: the branch that goes on.

    `leaves_head` says that its first turn named a caller: a spawn beside the conversation.
    `superseded` pairs each turn that was replaced with the one that replaced it.
    """

    start: int | None
    continues: int | None = None
    placed: list[Placed] = []
    spawned: bool = False
    leaves_head: bool = False
    restored: bool = False
    superseded: dict[int, int] = {}

    @property
    def last(self) -> int | None:
        """The turn that the line ends with."""
        return self.placed[-1].turn if self.placed else self.start

    @property
    def new(self) -> int:
        """How many of its turns were written now."""
        return sum(placed.new for placed in self.placed)


class Settled(msgspec.Struct, frozen=True):
    """Where a line ended: its branch, whether that began by a fork, and the session's head."""

    branch: int
    forked: bool
    head: int | None


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
        head = tx.turn_id(session.head)
        return Appended(turns=[], head=head, branch=None, forked=False, new=0)
    replayed = replay(tx, session, order.key, order.turns)
    if replayed is not None:
        return msgspec.json.decode(replayed, type=Appended)
    check_head(tx, session.id, expectation(order.expect))
    answer = _append(tx, session, order)
    if order.key is not None:
        kept = msgspec.structs.replace(answer, new=0)
        remember_key(tx, session, order.key, order.turns, msgspec.json.encode(kept))
    return answer


def _open(tx: Transaction, order: AppendOrder) -> SessionRow:
    known = find_session(tx.cursor, order.session)
    return known or open_session(tx, OpenSession(session=order.session))[0]


def _append(tx: Transaction, session: SessionRow, order: AppendOrder) -> Appended:
    session = in_namespace(tx, session)
    turns = [turn for turn in order.turns if turn.kind != "partial"]
    line = place_line(tx, session, turns, _start(tx, session, order, turns), restore=True)
    keep_partials(tx, session, line.last, order.turns)
    if not line.placed:
        branch = None if session.head_branch is None else branch_name(tx, session.head_branch)
        ids = [turn.id or "" for turn in order.turns]
        return Appended(
            turns=ids, head=tx.turn_id(session.head), branch=branch, forked=False, new=0
        )
    settled = settle_line(tx, session, line, move_head=order.move_head)
    placed = iter(line.placed)
    return Appended(
        turns=[
            (turn.id or "") if turn.kind == "partial" else next(placed).id for turn in order.turns
        ],
        head=tx.turn_id(settled.head),
        branch=branch_name(tx, settled.branch),
        forked=settled.forked,
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


def place_line(
    tx: Transaction,
    session: SessionRow,
    turns: Sequence[PreparedTurn],
    start: int | None,
    *,
    restore: bool,
) -> Line:
    """Places `turns` one after the other from `start`; moves nothing yet.

    Raises:
        Conflict: if an id is there with other content.
        NotFound: if a turn's `caller` or `supersedes` is not here.
    """
    line = Line(start)
    gone, has_partials, line.continues = _look(tx, session, start)
    if restore and gone and start is not None:
        line.restored = bool(restore_path(tx, start))
    previous = start
    for turn in turns:
        caller = _caller(tx, session, turn, previous)
        if previous is None:
            line.spawned, line.leaves_head = caller is not None, turn.caller is not None
        replaced = None if turn.supersedes is None else get_turn(tx.db, session, turn.supersedes)
        placed = place_turn(tx, session, namespace_of(tx, session), turn, previous, caller=caller)
        if placed.new and replaced is not None:
            line.superseded[replaced] = placed.turn
        if has_partials:
            _drop_partial(tx, session, placed.id)
        line.placed.append(placed)
        previous = placed.turn
    back = [placed.turn for placed in line.placed if placed.retired or placed.forgotten]
    if restore and back:
        line.restored = bool(restore_path(tx, *back)) or line.restored
    return line


def _look(tx: Transaction, session: SessionRow, start: int | None) -> tuple[bool, bool, int | None]:
    """Returns whether `start` is gone, whether the session has partials, and `Line.continues`."""
    key, gone, has_partials, continues = tx.row(_LOOK, (start, session.id, session.head_branch))
    if start is not None:
        tx.knows(start, key)
    return bool(gone), bool(has_partials), continues


def _caller(
    tx: Transaction, session: SessionRow, turn: PreparedTurn, previous: int | None
) -> int | None:
    """Returns the turn that spawned `turn`: its own, or the session's for the first root."""
    if turn.caller is not None:
        return resolve_caller(tx, CallerRef(session=turn.caller.session, turn=turn.caller.turn))
    if previous is not None or session.caller is None:
        return None
    first = tx.row(
        "SELECT key FROM turn WHERE session = ? AND predecessor IS NULL ORDER BY id LIMIT 1",
        (session.id,),
    )
    if first is None:
        return session.caller
    key = key_of(tx, session, namespace_of(tx, session), turn, None, session.caller)
    return session.caller if key == first[0] else None


def settle_line(
    tx: Transaction,
    session: SessionRow,
    line: Line,
    *,
    move_head: bool,
    spawns_too: bool = False,
) -> Settled:
    """Moves a branch's tip, and the head, to the end of a placed line.

    From the deepest turn of the line that a live branch of this session already reaches: if that
    turn is a tip, its branch goes on; else a new branch begins. A line that is wholly there moves
    the head alone. A spawn leaves the head where it is unless `spawns_too`.
    """
    if line.superseded:
        return _settle_superseding(tx, session, line, move_head=move_head)
    takes_head = move_head and (session.head is None or spawns_too or not line.leaves_head)
    reached, branch = _deepest_reached(tx, session, line)
    if branch is not None and reached == line.last:
        head = To(reached, branch) if takes_head else Keep()
        move(tx, session.id, [], head, cause="append")
        return Settled(branch, forked=False, head=reached if takes_head else session.head)
    continues = line.continues if reached == line.start else None
    going_on = continues or _branch_at(tx, session, reached)
    return _move_to_end(tx, session, line, reached, going_on, takes_head=takes_head)


def _move_to_end(
    tx: Transaction,
    session: SessionRow,
    line: Line,
    reached: int | None,
    going_on: int | None,
    *,
    takes_head: bool,
) -> Settled:
    cause = _cause(line, reached, begins=going_on is None)
    branch = begin_branch(tx, session.id, cause) if going_on is None else going_on
    head = To(line.last, branch) if takes_head else Keep()
    move(tx, session.id, [TipMove(branch, line.last, cause)], head, cause=cause)
    return Settled(
        branch,
        forked=going_on is None and reached is not None,
        head=line.last if takes_head else session.head,
    )


def _settle_superseding(
    tx: Transaction, session: SessionRow, line: Line, *, move_head: bool
) -> Settled:
    """Retires what the line replaces; branches that ended there move to its end in one go.

    The head follows where it stood on a replaced turn; new wording far behind it leaves it alone.
    Another session's branch goes to the replacing turn and no further.
    """
    retire(tx, line.superseded)
    supersede_elsewhere(tx, session, line.superseded)
    takes_head = session.head in line.superseded or (move_head and session.head is None)
    ended = [branch for old in line.superseded for branch in _branches_at(tx, session, old)]
    if not ended:
        reached, _ = _deepest_reached(tx, session, line)
        going_on = _branch_at(tx, session, reached)
        return _move_to_end(tx, session, line, reached, going_on, takes_head=takes_head)
    moves = [TipMove(branch, line.last, "supersede") for branch in ended]
    head = To(line.last, ended[0]) if takes_head else Keep()
    move(tx, session.id, moves, head, cause="supersede")
    return Settled(ended[0], forked=False, head=line.last if takes_head else session.head)


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
            branches = _branches_at(tx, other, old)
            head = To(new, branches[0]) if other.head == old else Keep()
            moves = [TipMove(branch, new, "supersede") for branch in branches]
            move(tx, owner, moves, head, cause="supersede")


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


def branch_reaching(tx: Transaction, session: SessionRow, turn: int) -> int | None:
    """Returns a live branch of the session that reaches `turn`: the head's, else the last moved."""
    rows = tx.rows(
        f"SELECT id, tip FROM branch WHERE session = ? AND tip >= ? AND {LIVE_BRANCH}"
        " ORDER BY id = ? DESC, tip = ? DESC, move DESC",
        (session.id, turn, session.head_branch, turn),
    )
    for branch, tip in rows:
        if is_ancestor(tx.db, turn, tip):
            return int(branch)
    return None


def _branch_at(tx: Transaction, session: SessionRow, tip: int | None) -> int | None:
    """Returns the branch that an append at `tip` continues: the head's, else the last moved."""
    branches = [] if tip is None else _branches_at(tx, session, tip)
    return branches[0] if branches else None


def _branches_at(tx: Transaction, session: SessionRow, tip: int) -> list[int]:
    # By tip, which few branches share: a session may have thousands.
    rows = tx.rows(
        "SELECT move, id FROM branch INDEXED BY branch_by_tip"
        f" WHERE tip = ? AND session = ? AND {LIVE_BRANCH}",
        (tip, session.id),
    )
    rows.sort(key=lambda row: (row[1] == session.head_branch, row[0]), reverse=True)
    return [branch for _, branch in rows]


def branch_name(tx: Transaction, branch: int) -> str:
    """Returns the public name of a branch's integer key."""
    return tx.branch_name(branch)


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


def keep_partials(
    tx: Transaction, session: SessionRow, after: int | None, turns: Sequence[PreparedTurn]
) -> None:
    """Keeps the partial ones of `turns` for display; one whose turn is there already is late."""
    for turn in turns:
        if turn.kind != "partial" or find_turn(tx.db, session, turn.id) is not None:
            continue
        tx.execute(
            "INSERT INTO partial_turn (session, id, predecessor, role, text, at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET text = excluded.text,"
            " predecessor = excluded.predecessor, at_ms = excluded.at_ms",
            (session.id, turn.id or "", after, turn.role, turn.text.encode(), tx.at_ms),
        )


def _drop_partial(tx: Transaction, session: SessionRow, turn: str) -> None:
    tx.execute("DELETE FROM partial_turn WHERE session = ? AND id IN (?, '')", (session.id, turn))
