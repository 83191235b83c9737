"""Importing a session from export lines: parsed whole, placed in slices, tips and head at the end.

Turns are placed without moving anything, so a crash in the middle leaves turns that nothing reaches
yet; the same import again finds them and goes on. Nothing that is retired or forgotten here comes
back through an import. What moves at the end is in `import_ends.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import apsw
import msgspec

from turnmark_events.errors import Conflict, NotFound, Refused
from turnmark_session_store.export import (
    BranchLine,
    EndLine,
    ExportLine,
    HeaderLine,
    TakenBackLine,
    TurnLine,
    line_decoder,
)
from turnmark_session_store.identity import DIGEST_BYTES, PreparedTurn, prepare
from turnmark_session_store.marks import workspace_key, workspace_revision
from turnmark_session_store.model import TurnIn
from turnmark_session_store.names import FAMILY, is_family
from turnmark_session_store.queries import row_of, value_of
from turnmark_session_store.requests import OpenSession
from turnmark_session_store.retirement import retire
from turnmark_session_store.sessions import (
    SessionRow,
    find_session,
    get_session,
    intern_namespace,
    namespace_of,
    open_session,
    resolve_caller,
)
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.turn_rows import place_turn
from turnmark_session_store.walks import parents_of, unwritten

SLICE_TURNS = 200
"""Turns placed in one transaction, so that an agent's append never waits long behind an import."""


@dataclass(slots=True)
class ImportPlan:
    """An export, read and checked, its turns prepared; nothing of it is in the store yet.

    Of a turn's line text and metadata are left out.

    `created` tells whether the session was unknown: only then are its ended branches recreated.
    `head_moved` says that a reader saw the agent go elsewhere, although nothing new was said.
    `begun_ms` is when its first turn could be placed.
    """

    header: HeaderLine
    turns: list[tuple[TurnLine, PreparedTurn]] = field(
        default_factory=list[tuple[TurnLine, PreparedTurn]]
    )
    taken_back: list[str] = field(default_factory=list[str])
    branches: list[BranchLine] = field(default_factory=list[BranchLine])
    end: EndLine | None = None
    ids: set[str] = field(default_factory=set[str])
    created: bool = False
    new: int = 0
    head_moved: bool = False
    begun_ms: int = 0

    @property
    def from_reader(self) -> bool:
        """Whether a reader of transcripts wrote it; what it continues may be here already."""
        return self.header.source == "reader"

    @property
    def guesses_family(self) -> bool:
        """Whether a reader says which family its session is of: the store may know it better.

        It follows pointers, and the file that one of them names may be gone by the next reading.
        """
        return self.from_reader and is_family(self.header.namespace)


def parse_lines(lines: list[str], *, count: Callable[[str], int], mask: bool) -> ImportPlan:
    """Returns the plan of an import; empties `lines`, which are as long as it is, on the way.

    Raises:
        Refused: if a line is not an export line, or the export is not whole; names the line.
    """
    plan: ImportPlan | None = None
    number = 0
    lines.reverse()
    while lines:
        number += 1
        line = lines.pop()
        try:
            found = line_decoder.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise Refused(f"line {number} is not an export line: {error}", line=number) from error
        if plan is None:
            plan = ImportPlan(_header(found))
            continue
        try:
            _take(plan, found, count=count, mask=mask)
        except Refused as error:
            raise Refused(f"line {number}: {error.message}", line=number) from error
    return _whole(plan, number)


def _header(found: ExportLine) -> HeaderLine:
    if not isinstance(found, HeaderLine) or found.version != 1:
        raise Refused(
            "line 1 is not the header of a turnmark export of version 1; export again with "
            "`turnmark export SESSION`",
            line=1,
        )
    return found


def _whole(plan: ImportPlan | None, lines: int) -> ImportPlan:
    if plan is None or plan.end is None:
        raise Refused(
            f"the export is not whole: it stops after line {lines}, and its last line, of type "
            "end, is missing; export again",
            line=lines + 1,
        )
    if plan.end.turns != len(plan.turns):
        raise Refused(
            f"the export is not whole: it holds {len(plan.turns)} turns and its last line says "
            f"{plan.end.turns}; export again",
            line=lines,
        )
    return plan


def _take(plan: ImportPlan, found: ExportLine, *, count: Callable[[str], int], mask: bool) -> None:
    if plan.end is not None or isinstance(found, HeaderLine):
        raise Refused("it stands outside of the export")
    if isinstance(found, TurnLine):
        _known(plan, *found.merged, *([found.predecessor] if found.predecessor else ()))
        turn = _prepare(found, count=count, mask=mask)
        # The turn has both, packed: as objects they take more room than all the rest.
        plan.turns.append((msgspec.structs.replace(found, text="", metadata=None), turn))
        plan.ids.add(found.id)
    elif isinstance(found, TakenBackLine):
        plan.taken_back += found.turns
    elif isinstance(found, BranchLine):
        _known(plan, *([found.tip] if found.tip else ()))
        plan.branches.append(found)
    else:
        _known(plan, *([found.head] if found.head else ()))
        plan.end = found


def _known(plan: ImportPlan, *ids: str) -> None:
    """A whole export holds every turn that it points at, and before that."""
    for key in ids:
        if key not in plan.ids and not plan.from_reader:
            raise Refused(f"it points at turn {key!r}, which no line before it holds")


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
    digest = _digest(line)
    if not line.masked and line.state != "forgotten" and digest != made.digest:
        raise Refused(f"the text of turn {line.id!r} is not the one that its digest is of")
    recordable = made.recordable if line.recordable is None else line.recordable
    return msgspec.structs.replace(
        made,
        digest=digest,
        masked=made.masked or bool(line.masked),
        recordable=recordable,
        tokens=made.tokens or (count(made.text) if recordable else 0),
    )


def _digest(line: TurnLine) -> bytes:
    try:
        digest = bytes.fromhex(line.digest or "")
    except ValueError:
        digest = b""
    if len(digest) != DIGEST_BYTES:
        raise Refused(f"the digest of turn {line.id!r} is not {2 * DIGEST_BYTES} hex digits")
    return digest


def check_plan(db: apsw.Connection, plan: ImportPlan) -> None:
    """Passes if nothing of the plan is here with other content; reads, and changes nothing.

    Raises:
        Conflict: if a turn is here with other content, or the session in another namespace.
    """
    session = find_session(db, plan.header.session)
    name = plan.header.namespace
    if session is not None and session.namespace is not None:
        known = str(value_of(db, "SELECT name FROM namespace WHERE id = ?", (session.namespace,)))
        if name is not None and known != name and not plan.guesses_family:
            raise Conflict(
                f"session {session.name!r} is here with turns of namespace {known!r}, these lines "
                f"are of {name!r}; import them under another session's name",
                session=session.name,
            )
        name = known
    for line, turn in plan.turns:
        row = row_of(
            db,
            "SELECT digest, turn.id IN (SELECT turn FROM forgotten_turn) FROM turn"
            " JOIN namespace ON namespace.id = namespace WHERE name = ? AND key = ?",
            (line.namespace or name or f"{FAMILY}{plan.header.session}", line.id),
        )
        if row is not None and not row[1] and row[0] != turn.digest:
            raise Conflict(
                f"turn {line.id!r} is already here with other content; nothing was imported",
                turn=line.id,
            )


def begin_import(tx: Transaction, plan: ImportPlan) -> None:
    """Opens the session that the plan is of, in the namespace that its header names.

    A family that is only guessed gives way to that of the session that this one was forked from. Of
    a session that is known, memory mode and, unless a reader found a new one, title stay.
    """
    header = plan.header
    plan.begun_ms = tx.at_ms
    known = find_session(tx.db, header.session)
    open_session(
        tx,
        OpenSession(
            session=header.session,
            agent=header.agent,
            title=header.title if known is None or plan.from_reader else None,
            project=header.project,
            memory=header.memory if known is None else None,
        ),
    )
    fork = OpenSession(session=header.session, forked_from=header.forked_from)
    if plan.guesses_family:
        _point(tx, fork)
    session = get_session(tx.db, header.session)
    plan.created = not tx.row(
        "SELECT 1 FROM branch WHERE session = ? AND state <> 'deleted'", (session.id,)
    )
    if header.namespace is not None and session.namespace is None:
        namespace = intern_namespace(tx, header.namespace)
        tx.execute("UPDATE session SET namespace = ? WHERE id = ?", (namespace, session.id))
    _point(tx, fork)
    _point(tx, OpenSession(session=header.session, caller=header.caller))


def _point(tx: Transaction, pointer: OpenSession) -> None:
    try:
        open_session(tx, pointer)
    except (NotFound, Refused, Conflict):
        # A pointer may lead out of the set that was given, to what was taken back since, or to
        # another family's session of that name; the turns say enough by themselves.
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
    if line.kind == "partial":
        return
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
        tx.execute("DELETE FROM turn_words WHERE turn = ?", (placed.turn,))
    _bring_marks(tx, placed.turn, line)


def _namespace(tx: Transaction, session: SessionRow, line: TurnLine) -> int:
    if line.namespace is not None:
        return intern_namespace(tx, line.namespace)
    return namespace_of(tx, session)


def _parent(tx: Transaction, namespace: int, key: str | None) -> int | None:
    if key is None:
        return None
    found = tx.value("SELECT id FROM turn WHERE namespace = ? AND key = ?", (namespace, key))
    return None if found is None else int(found)


def _caller(tx: Transaction, plan: ImportPlan, line: TurnLine) -> int | None:
    caller = line.caller
    if caller is None and line.predecessor is None and not line.lost_predecessor:
        caller = plan.header.caller if plan.from_reader else None
    if caller is None:
        return None
    try:
        return resolve_caller(tx, caller)
    except NotFound:
        return None


def _bring_marks(tx: Transaction, turn: int, line: TurnLine) -> None:
    """Takes over the marks of workspaces that have reached the revision they rest on."""
    if not tx.value("SELECT recordable FROM turn WHERE id = ?", (turn,)):
        return
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
