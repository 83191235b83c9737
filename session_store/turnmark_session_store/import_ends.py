"""The end of an import: branches, take-backs and the head, all moved by one call of the gate.

An export moves no head or tip that is here; a reader's lines continue the branches of a file that
grew. What an agent's record takes back, or replaces, is taken back once: a client that restores it
has the last word, however often the file is read again.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from turnmark_events.types import MoveCause
from turnmark_session_store.export import BranchLine
from turnmark_session_store.heads import Keep, TipMove, To, begin_branch, move
from turnmark_session_store.imports import ImportPlan
from turnmark_session_store.line_end import supersede_elsewhere
from turnmark_session_store.retirement import retire
from turnmark_session_store.sessions import (
    SessionRow,
    find_turn,
    get_session,
    get_turn,
    session_by_id,
)
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import LIVE_BRANCH, ancestors, is_ancestor, live_tips_after


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """`session.import`'s answer: how many turns the lines hold, and how many were new here."""

    session: str
    turns: int
    new: int


def finish_import(tx: Transaction, plan: ImportPlan) -> Imported:
    """Makes or continues the plan's branches, and sets the head where that is due."""
    session = get_session(tx.db, plan.header.session)
    if session.memory != "off":
        ends = _Ends(tx, session)
        gone = _take_back(tx, ends, plan)
        replaced = _supersede(tx, ends, plan)
        for line in plan.branches:
            _bring_branch(tx, ends, line, plan)
        _bring_head(ends, plan)
        ends.move()
        if gone:
            _take_back_elsewhere(tx, session, gone)
        retire(tx, replaced)
        supersede_elsewhere(tx, session, replaced)
        retire(tx, [turn for turn in gone if not live_tips_after(tx.db, [turn])])
    return Imported(session=session.name, turns=len(plan.turns), new=plan.new)


class _Ends:
    """The session's live tips and its head, as they will be; nothing moves before `move`."""

    def __init__(self, tx: Transaction, session: SessionRow) -> None:
        self.tx = tx
        self.session = session
        self.head, self.branch = session.head, session.head_branch
        rows = tx.rows(
            f"SELECT id, tip FROM branch WHERE session = ? AND {LIVE_BRANCH} ORDER BY move DESC",
            (session.id,),
        )
        self.tips: dict[int, int] = dict(rows)
        self._moves: dict[int, TipMove] = {}
        self._archived: list[int] = []

    def reaching(self, turn: int) -> int | None:
        """Returns a branch that will reach `turn`: the head's before others."""
        here = self.at(turn)
        if here:
            return self.branch if self.branch in here else here[0]
        for branch, tip in sorted(self.tips.items(), key=lambda item: item[0] != self.branch):
            if is_ancestor(self.tx.db, turn, tip):
                return branch
        return None

    def waiting(self) -> list[tuple[int, int]]:
        """Returns (branch, tip) of those that nothing moved yet, the newest tip first."""
        stand = [(branch, tip) for branch, tip in self.tips.items() if branch not in self._moves]
        return sorted(stand, key=lambda item: -item[1])

    def named(self, name: str | None, turn: int) -> int | None:
        """Returns the branch of that name if it will reach `turn`."""
        found = self.tx.value("SELECT id FROM branch WHERE name = ?", (name,))
        reaches = found in self.tips and is_ancestor(self.tx.db, turn, self.tips[found])
        return int(found) if reaches else None

    def led_aside(self) -> list[tuple[int, int]]:
        """Returns (branch, tip) of those that go where a taking back or a replacing leads them."""
        aside = [m for m in self._moves.values() if m.cause in ("rewind", "supersede") and m.new]
        return [(move.branch, self.tips[move.branch]) for move in aside]

    def at(self, turn: int) -> list[int]:
        """Returns the branches that will end at `turn`."""
        return [branch for branch, tip in self.tips.items() if tip == turn]

    def go(self, branch: int, tip: int, cause: MoveCause) -> None:
        """Lets a branch go to `tip`; the head goes along if it stands where the branch ended."""
        if self.head == self.tips.get(branch) and self.branch == branch:
            self.head = tip
        self.tips[branch] = tip
        self._moves[branch] = TipMove(branch, tip, cause)

    def end(self, branch: int) -> None:
        """Ends a branch of which nothing stands any more."""
        if self.branch == branch:
            self.head = self.branch = None
        del self.tips[branch]
        self._moves[branch] = TipMove(branch, None, "rewind", ends_as="retired")

    def begin(self, tip: int, line: BranchLine, *, name: str | None) -> None:
        """Begins the branch of `line`, under `name` or one of its own."""
        branch = begin_branch(
            self.tx, self.session.id, "import", name=name, title=line.name if name else None
        )
        ends = None if line.state == "live" else line.state
        self._moves[branch] = TipMove(branch, tip, "import", ends_as=ends)
        if ends is None:
            self.tips[branch] = tip
        if line.archived:
            self._archived.append(branch)

    def move(self) -> None:
        """Moves all of it by one call of the gate."""
        changed = (self.head, self.branch) != (self.session.head, self.session.head_branch)
        head = To(self.head, self.branch) if changed else Keep()
        if changed or self._moves:
            moves = list(self._moves.values())
            move(self.tx, self.session.id, moves, head, cause="import")
        for branch in self._archived:
            self.tx.execute("UPDATE branch SET archived = 1 WHERE id = ?", (branch,))


def _take_back(tx: Transaction, ends: _Ends, plan: ImportPlan) -> set[int]:
    """Lets branches go back before what the agent's record takes back; returns those turns."""
    found = (find_turn(tx.db, ends.session, key) for key in plan.taken_back)
    gone = _first_time(tx, (turn for turn in found if turn is not None))
    _go_back(tx, ends, gone)
    return gone


def _go_back(tx: Transaction, ends: _Ends, gone: set[int]) -> None:
    for turn in sorted(gone, reverse=True):
        for branch in ends.at(turn):
            stands = _standing_before(tx, turn, gone)
            if stands is None:
                ends.end(branch)
            else:
                ends.go(branch, stands, "rewind")


def _take_back_elsewhere(tx: Transaction, session: SessionRow, gone: set[int]) -> None:
    """Lets other sessions' branches that end in what was taken back go back as well (law 13).

    A fork copies the turns of its origin, and perhaps not yet the record that takes one back.
    """
    for (owner,) in tx.rows(
        "SELECT DISTINCT session FROM branch WHERE tip IN (SELECT value FROM json_each(?))"
        f" AND session <> ? AND {LIVE_BRANCH}",
        (msgspec.json.encode(sorted(gone)).decode(), session.id),
    ):
        ends = _Ends(tx, session_by_id(tx.db, owner))
        _go_back(tx, ends, gone)
        ends.move()


def _standing_before(tx: Transaction, turn: int, gone: set[int]) -> int | None:
    previous: int | None = turn
    while previous is not None and previous in gone:
        previous = tx.value("SELECT predecessor FROM turn WHERE id = ?", (previous,))
    return previous


def _supersede(tx: Transaction, ends: _Ends, plan: ImportPlan) -> dict[int, int]:
    """Lets branches go from a replaced turn to the one that replaces it; returns both."""
    replaced: dict[int, int] = {}
    if not plan.from_reader:
        return replaced
    for line, turn in plan.turns:
        if turn.supersedes is None:
            continue
        old = find_turn(tx.db, ends.session, turn.supersedes)
        new = find_turn(tx.db, ends.session, line.id)
        if old is None or new is None or not _first_time(tx, [old]):
            continue
        replaced[old] = new
        for branch in ends.at(old):
            ends.go(branch, new, "supersede")
        if ends.head == old:
            ends.head, ends.branch = new, ends.reaching(new)
    return replaced


def _first_time(tx: Transaction, turns: Iterable[int]) -> set[int]:
    """Returns those of `turns` that no record took back before; from now on one has."""
    found: set[int] = set()
    for turn in turns:
        tx.execute("INSERT OR IGNORE INTO taken_back_turn (turn) VALUES (?)", (turn,))
        if tx.db.changes():
            found.add(turn)
    return found


def _bring_branch(tx: Transaction, ends: _Ends, line: BranchLine, plan: ImportPlan) -> None:
    if line.tip is None:
        return
    tip = get_turn(tx.db, ends.session, line.tip)
    known = line.branch is not None and tx.row(
        "SELECT 1 FROM branch WHERE name = ?", (line.branch,)
    )
    if line.state != "live":
        if plan.created and not known:
            ends.begin(tip, line, name=line.branch)
        return
    if tx.row("SELECT 1 FROM retired_turn WHERE turn = ?", (tip,)):
        return
    if line.branch is not None and not known:
        ends.begin(tip, line, name=line.branch)
    elif ends.reaching(tip) is None and not (plan.from_reader and _continue(tx, ends, tip)):
        ends.begin(tip, line, name=None)


def _continue(tx: Transaction, ends: _Ends, tip: int) -> bool:
    """Lets the branch that `tip` continues go on to it, if there is one."""
    stand = [*ends.waiting(), *ends.led_aside()]
    line = set(ancestors(tx.db, tip, min((old for _, old in stand), default=tip)))
    for branch, old in stand:
        if old in line and old != tip:
            ends.go(branch, tip, "import")
            return True
    return False


def _bring_head(ends: _Ends, plan: ImportPlan) -> None:
    """Sets the head where there is none, or where a reader found that the agent went on."""
    end = plan.end
    if end is None or end.head is None:
        return
    if ends.head is not None and not (plan.from_reader and (plan.new or plan.head_moved)):
        return
    turn = get_turn(ends.tx.db, ends.session, end.head)
    branch = ends.named(end.branch, turn) or ends.reaching(turn)
    if branch is not None:
        ends.head, ends.branch = turn, branch
