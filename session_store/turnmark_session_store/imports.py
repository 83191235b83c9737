"""Importing a session from export lines: parsed whole, placed in slices, tips and head at the end.

Turns are placed without moving anything, so a crash in the middle leaves turns that nothing reaches
yet; the same import again finds them and goes on. Nothing that is retired or forgotten here comes
back through an import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from turnmark_events.errors import NotFound, Refused
from turnmark_session_store.append import branch_reaching
from turnmark_session_store.export import (
    BranchLine,
    EndLine,
    HeaderLine,
    TakenBackLine,
    TurnLine,
    line_decoder,
)
from turnmark_session_store.heads import Keep, TipMove, To, begin_branch, move
from turnmark_session_store.identity import PreparedTurn, prepare
from turnmark_session_store.marks import workspace_key, workspace_revision
from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import OpenSession
from turnmark_session_store.retirement import retire
from turnmark_session_store.sessions import (
    SessionRow,
    find_session,
    find_turn,
    get_session,
    get_turn,
    intern_namespace,
    open_session,
    resolve_caller,
)
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.turn_rows import place_turn
from turnmark_session_store.walks import LIVE_BRANCH, is_ancestor, parents_of, unwritten

SLICE_TURNS = 200
"""Turns placed in one transaction, so that an agent's append never waits long behind an import."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """`session.import`'s answer: how many turns the lines hold, and how many were new here."""

    session: str
    turns: int
    new: int


@dataclass(slots=True)
class ImportPlan:
    """An export, read and checked, its turns prepared; nothing of it is in the store yet."""

    header: HeaderLine
    turns: list[tuple[TurnLine, PreparedTurn]] = field(
        default_factory=list[tuple[TurnLine, PreparedTurn]]
    )
    taken_back: list[str] = field(default_factory=list[str])
    branches: list[BranchLine] = field(default_factory=list[BranchLine])
    end: EndLine | None = None
    created: bool = False
    new: int = 0


def parse_lines(lines: Sequence[str], *, count: Callable[[str], int], mask: bool) -> ImportPlan:
    """Returns the plan of an import.

    Raises:
        Refused: if a line is not an export line, or the export is not whole; names the line.
    """
    plan: ImportPlan | None = None
    for number, line in enumerate(lines, 1):
        try:
            found = line_decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Refused(f"line {number} is not an export line: {error}", line=number) from error
        if plan is None:
            if not isinstance(found, HeaderLine) or found.version != 1:
                raise Refused(
                    "line 1 is not the header of a turnmark export of version 1; export again with "
                    "`turnmark export SESSION`",
                    line=1,
                )
            plan = ImportPlan(found)
            continue
        _take(plan, found, number, count=count, mask=mask)
    if plan is None or plan.end is None:
        raise Refused("the export is not whole: its last line, of type end, is missing")
    if plan.end.turns != len(plan.turns):
        raise Refused(
            f"the export is not whole: it holds {len(plan.turns)} turns and its last line says "
            f"{plan.end.turns}"
        )
    return plan


def _take(
    plan: ImportPlan,
    found: object,
    number: int,
    *,
    count: Callable[[str], int],
    mask: bool,
) -> None:
    if plan.end is not None or isinstance(found, HeaderLine):
        raise Refused(f"line {number} comes after the end of the export", line=number)
    if isinstance(found, TurnLine):
        plan.turns.append((found, _prepare(found, count=count, mask=mask)))
    elif isinstance(found, TakenBackLine):
        plan.taken_back += found.turns
    elif isinstance(found, BranchLine):
        plan.branches.append(found)
    elif isinstance(found, EndLine):
        plan.end = found


def _prepare(line: TurnLine, *, count: Callable[[str], int], mask: bool) -> PreparedTurn:
    turn = TurnIn(
        id=line.id,
        role=line.role,
        kind=line.kind,
        text=line.text,
        speaker=line.speaker,
        time=line.time,
        supersedes=line.supersedes,
        metadata=line.metadata,
    )
    made = prepare(turn, count=count, mask=mask)
    if line.digest is None:
        return made
    try:
        digest = bytes.fromhex(line.digest)
    except ValueError as error:
        raise Refused(f"turn {line.id!r} has a digest that is not hex") from error
    recordable = made.recordable if line.recordable is None else line.recordable
    return msgspec.structs.replace(
        made,
        digest=digest,
        masked=made.masked or bool(line.masked),
        recordable=recordable,
        tokens=made.tokens or (count(made.text) if recordable else 0),
    )


def begin_import(tx: Transaction, plan: ImportPlan) -> None:
    """Opens the session that the plan is of, in the namespace that its header names."""
    header = plan.header
    known = find_session(tx.db, header.session)
    plan.created = known is None or (known.head is None and known.namespace is None)
    _open(tx, header)
    session = get_session(tx.db, header.session)
    if header.namespace is not None and session.namespace is None:
        namespace = intern_namespace(tx, header.namespace)
        tx.execute("UPDATE session SET namespace = ? WHERE id = ?", (namespace, session.id))


def _open(tx: Transaction, header: HeaderLine) -> None:
    asked = OpenSession(
        session=header.session,
        agent=header.agent,
        title=header.title,
        project=header.project,
        memory=header.memory,
    )
    open_session(tx, asked)
    pointers = msgspec.structs.replace(
        asked, forked_from=header.forked_from, caller=header.caller, title=None
    )
    try:
        open_session(tx, pointers)
    except NotFound:
        # A pointer may lead out of the set that was given; the turns say enough by themselves.
        return


def place_slice(tx: Transaction, plan: ImportPlan, start: int) -> int:
    """Places a slice of the plan's turns; returns where the next slice starts."""
    session = get_session(tx.db, plan.header.session)
    if session.memory == "off":
        return len(plan.turns)
    stop = min(start + SLICE_TURNS, len(plan.turns))
    for line, turn in plan.turns[start:stop]:
        _place(tx, plan, session, line, turn)
    return stop


def _place(
    tx: Transaction, plan: ImportPlan, session: SessionRow, line: TurnLine, turn: PreparedTurn
) -> None:
    namespace = _namespace(tx, session, line)
    predecessor = _parent(tx, namespace, line.predecessor)
    lost = line.lost_predecessor or (line.predecessor is not None and predecessor is None)
    merged = [parent for key in line.merged if (parent := _parent(tx, namespace, key)) is not None]
    owner = find_session(tx.db, line.session) if line.session else None
    placed = place_turn(
        tx,
        owner if owner is not None and owner.namespace == namespace else session,
        namespace,
        turn,
        predecessor,
        caller=_caller(tx, plan, line),
        merged=merged,
        lost_predecessor=lost,
    )
    if not placed.new:
        return
    plan.new += 1
    if line.state == "retired":
        retire(tx, [placed.turn])
    elif line.state == "forgotten":
        tx.execute(
            "INSERT INTO forgotten_turn (turn, at_ms) VALUES (?, ?)", (placed.turn, tx.at_ms)
        )
    _bring_marks(tx, placed.turn, line)


def _namespace(tx: Transaction, session: SessionRow, line: TurnLine) -> int:
    if line.namespace is not None:
        return intern_namespace(tx, line.namespace)
    if session.namespace is not None:
        return session.namespace
    return intern_namespace(tx, f"family:{session.name}")


def _parent(tx: Transaction, namespace: int, key: str | None) -> int | None:
    if key is None:
        return None
    found = tx.value("SELECT id FROM turn WHERE namespace = ? AND key = ?", (namespace, key))
    return None if found is None else int(found)


def _caller(tx: Transaction, plan: ImportPlan, line: TurnLine) -> int | None:
    caller = line.caller
    if caller is None and line.predecessor is None and not line.lost_predecessor:
        caller = plan.header.caller if plan.header.source == "reader" else None
    if caller is None:
        return None
    try:
        return resolve_caller(tx, caller)
    except NotFound:
        return None


def _bring_marks(tx: Transaction, turn: int, line: TurnLine) -> None:
    """Takes over the marks of workspaces that have reached the revision they rest on."""
    for name, mark in line.marks.items():
        if tx.value("SELECT id FROM workspace WHERE name = ?", (name,)) is None:
            continue
        workspace = workspace_key(tx, name)
        if mark.revision > workspace_revision(tx.db, workspace):
            continue
        if unwritten(tx.db, workspace, parents_of(tx.db, turn)):
            continue
        tx.execute(
            "INSERT OR IGNORE INTO mark (workspace, turn, outcome, reason, writer, revision, at_ms)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                workspace,
                turn,
                mark.outcome,
                mark.reason,
                mark.writer,
                mark.revision,
                tx.at_ms,
            ),
        )


def finish_import(tx: Transaction, plan: ImportPlan) -> Imported:
    """Makes the plan's branches, and the head where the session had none."""
    session = get_session(tx.db, plan.header.session)
    if session.memory != "off":
        _take_back(tx, session, plan)
        for line in plan.branches:
            _bring_branch(tx, session, line, plan)
        _bring_head(tx, get_session(tx.db, session.name), plan)
    return Imported(session=session.name, turns=len(plan.turns), new=plan.new)


def _take_back(tx: Transaction, session: SessionRow, plan: ImportPlan) -> None:
    """Retires what the agent's record took back, unless a client has restored it since."""
    turns = [found for key in plan.taken_back if (found := find_turn(tx.db, session, key))]
    for turn in sorted(turns, reverse=True):
        branches = tx.rows(
            f"SELECT id FROM branch WHERE tip = ? AND session = ? AND {LIVE_BRANCH}",
            (turn, session.id),
        )
        parents = parents_of(tx.db, turn)
        for (branch,) in branches:
            to = parents[0] if parents else None
            tip = TipMove(branch, to, "rewind", ends_as=None if parents else "retired")
            head: Keep | To = Keep()
            if session.head == turn:
                head = To(to, branch if parents else None)
            move(tx, session.id, [tip], head, cause="rewind")
            session = get_session(tx.db, session.name)
    retire(tx, turns)


def _bring_branch(tx: Transaction, session: SessionRow, line: BranchLine, plan: ImportPlan) -> None:
    if line.tip is None:
        return
    tip = get_turn(tx.db, session, line.tip)
    if line.state == "live" and _retired(tx, tip):
        return
    if plan.header.source == "reader" and _advance(tx, session, tip):
        return
    known = line.branch is not None and tx.row(
        "SELECT 1 FROM branch WHERE name = ?", (line.branch,)
    )
    if known or (line.state != "live" and not plan.created):
        return
    if line.state == "live" and not plan.created and branch_reaching(tx, session, tip) is not None:
        return
    branch = begin_branch(tx, session.id, "import")
    if line.branch is not None:
        tx.execute(
            "UPDATE branch SET name = ?, title = coalesce(?, title) WHERE id = ?",
            (line.branch, line.name, branch),
        )
    ends = None if line.state == "live" else line.state
    move(tx, session.id, [TipMove(branch, tip, "import", ends_as=ends)], Keep(), cause="import")
    if line.archived:
        tx.execute("UPDATE branch SET archived = 1 WHERE id = ?", (branch,))


def _advance(tx: Transaction, session: SessionRow, tip: int) -> bool:
    """Lets the branch that the tip continues go on to it; tells whether one reaches it now."""
    if branch_reaching(tx, session, tip) is not None:
        return True
    rows = tx.rows(
        f"SELECT id, tip FROM branch WHERE session = ? AND tip < ? AND {LIVE_BRANCH}"
        " ORDER BY tip DESC",
        (session.id, tip),
    )
    for branch, old in rows:
        if is_ancestor(tx.db, old, tip):
            head: Keep | To = To(tip, branch) if session.head == old else Keep()
            move(tx, session.id, [TipMove(branch, tip, "import")], head, cause="import")
            return True
    return False


def _retired(tx: Transaction, turn: int) -> bool:
    return tx.row("SELECT 1 FROM retired_turn WHERE turn = ?", (turn,)) is not None


def _bring_head(tx: Transaction, session: SessionRow, plan: ImportPlan) -> None:
    key = plan.end.head if plan.end is not None else None
    if session.head is not None or key is None:
        return
    turn = get_turn(tx.db, session, key)
    branch = branch_reaching(tx, session, turn)
    if branch is not None:
        move(tx, session.id, [], To(turn, branch), cause="import")
