"""A session as lines of JSON: everything it reaches, enough to recreate it elsewhere.

The first line names the session, then one line a turn (parents before children), one a branch, and
a last line with the head. Readers of other agents' transcripts are turned into the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import apsw
import msgspec

from turnmark_session_store.model import (
    CallerRef,
    Kind,
    MarkOut,
    MemoryMode,
    Role,
    Speaker,
    TurnState,
)
from turnmark_session_store.paging import check_limit, cursor_of, no_cursor, place_of
from turnmark_session_store.queries import json_keys, row_of, rows_of
from turnmark_session_store.requests import ExportSession, ForkPoint
from turnmark_session_store.sessions import SessionRow, get_session, session_by_id, turn_id
from turnmark_session_store.turn_views import fitting, show_turns
from turnmark_session_store.walks import turns_of_session

# What is longer goes out in parts. As JSON in a frame it takes at most four times as many bytes.
_PART_CHARACTERS = 2 << 20


class _Line(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    pass


class HeaderLine(_Line, frozen=True, kw_only=True, tag="turnmark-export"):
    """The first line; `source` says whether turnmark or a reader of transcripts wrote it."""

    version: int
    session: str
    agent: str | None = None
    title: str | None = None
    project: str | None = None
    namespace: str | None = None
    memory: MemoryMode | None = None
    forked_from: ForkPoint | None = None
    caller: CallerRef | None = None
    source: Literal["export", "reader"] = "export"


class TurnLine(_Line, frozen=True, kw_only=True, tag="turn"):
    """One turn. What only turnmark knows (digest, state, marks, …) is left out by readers."""

    id: str
    role: Role
    kind: Kind = "turn"
    text: str = ""
    predecessor: str | None = None
    merged: list[str] = msgspec.field(default_factory=list[str])
    speaker: Speaker | None = None
    time: str | None = None
    caller: CallerRef | None = None
    supersedes: str | None = None
    metadata: dict[str, Any] | None = None
    lost_predecessor: bool = False
    namespace: str | None = None
    session: str | None = None
    digest: str | None = None
    state: TurnState = "live"
    recordable: bool | None = None
    masked: bool | None = None
    marks: dict[str, MarkOut] = msgspec.field(default_factory=dict[str, MarkOut])


class TakenBackLine(_Line, frozen=True, kw_only=True, tag="taken_back"):
    """Turns of which the agent's own record says that they were taken back."""

    turns: list[str]


class BranchLine(_Line, frozen=True, kw_only=True, tag="branch"):
    """One branch; a reader gives only its tip."""

    tip: str | None
    branch: str | None = None
    name: str | None = None
    state: Literal["live", "merged", "retired", "deleted"] = "live"
    archived: bool = False


class EndLine(_Line, frozen=True, kw_only=True, tag="end"):
    """The last line: without it an export is not whole; `branch` is the one that the head is on."""

    head: str | None
    turns: int
    branch: str | None = None


ExportLine = HeaderLine | TurnLine | TakenBackLine | BranchLine | EndLine
line_encoder = msgspec.json.Encoder()
line_decoder: msgspec.json.Decoder[ExportLine] = msgspec.json.Decoder(ExportLine)


class ExportPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`session.export`'s answer; `continued` as in `ImportLines`, of the page before."""

    lines: list[str]
    next: str | None = None
    continued: bool = False


def export_session(db: apsw.Connection, asked: ExportSession) -> ExportPage:
    """Returns the next lines of a session's export.

    Raises:
        NotFound: if the session is unknown.
        Refused: if `limit` or `cursor` is none.
    """
    limit, (start, offset) = check_limit(asked.limit), place_of(asked.cursor)
    session = get_session(db, asked.session)
    turns = turns_of_session(db, session.id)
    branches = rows_of(
        db,
        "SELECT name, title, tip, state, archived FROM branch WHERE session = ?"
        " AND tip IS NOT NULL ORDER BY id",
        (session.id,),
    )
    total = 1 + len(turns) + len(branches) + 1
    stop = min(start + limit, total)
    asked_for = turns[max(start - 1, 0) : max(stop - 1, 0)]
    page = fitting(db, asked_for)
    if len(page) < len(asked_for):
        stop = max(start, 1) + len(page)
    lines: list[ExportLine] = []
    if start == 0:
        lines.append(_header(db, session))
    lines += _turn_lines(db, page)
    first = 1 + len(turns)
    for row in branches[max(start - first, 0) : max(stop - first, 0)]:
        lines.append(_branch_line(db, row))
    if stop == total:
        lines.append(_end(db, session, len(turns)))
    encoded = [line_encoder.encode(line).decode() for line in lines]
    following = cursor_of(stop) if stop < total else None
    return _parted(ExportPage(lines=encoded, next=following), start, offset)


def _parted(page: ExportPage, start: int, offset: int) -> ExportPage:
    """Returns the page from `offset` of its first line on, and of the first long one a part."""
    lines, following = page.lines, page.next
    if offset:
        if not lines or offset >= len(lines[0]):
            raise no_cursor()
        lines[0] = lines[0][offset:]
    for number, line in enumerate(lines):
        if len(line) > _PART_CHARACTERS:
            given = _PART_CHARACTERS + (0 if number else offset)
            lines = [*lines[:number], line[:_PART_CHARACTERS]]
            following = cursor_of(start + number, given)
            break
    return ExportPage(lines=lines, next=following, continued=offset > 0)


def _header(db: apsw.Connection, session: SessionRow) -> HeaderLine:
    title = row_of(db, "SELECT title FROM session_words WHERE session = ?", (session.id,))
    forked_from = None
    if session.forked_from is not None:
        origin = session_by_id(db, session.forked_from)
        forked_from = ForkPoint(session=origin.name, turn=turn_id(db, session.forked_turn))
    return HeaderLine(
        version=1,
        session=session.name,
        agent=session.agent,
        title=title[0] if title else None,
        project=session.project,
        namespace=_namespace_name(db, session.namespace),
        memory="on" if session.memory == "on" else "local" if session.memory == "local" else "off",
        forked_from=forked_from,
        caller=_caller(db, session.caller),
    )


def _end(db: apsw.Connection, session: SessionRow, turns: int) -> EndLine:
    branch = row_of(db, "SELECT name FROM branch WHERE id = ?", (session.head_branch,))
    return EndLine(
        head=turn_id(db, session.head), turns=turns, branch=branch[0] if branch else None
    )


def _namespace_name(db: apsw.Connection, namespace: int | None) -> str | None:
    row = row_of(db, "SELECT name FROM namespace WHERE id = ?", (namespace,))
    return None if row is None else str(row[0])


def _caller(db: apsw.Connection, turn: int | None) -> CallerRef | None:
    row = row_of(
        db,
        "SELECT session.name, key FROM turn JOIN session ON session.id = session WHERE turn.id = ?",
        (turn,),
    )
    return None if row is None else CallerRef(session=row[0], turn=row[1])


def _turn_lines(db: apsw.Connection, turns: Sequence[int]) -> list[ExportLine]:
    shapes = {
        turn: rest
        for turn, *rest in rows_of(
            db,
            "SELECT turn.id, namespace.name, digest, lost_predecessor, recordable FROM json_each(?)"
            " JOIN turn ON turn.id = value JOIN namespace ON namespace.id = namespace",
            (json_keys(turns),),
        )
    }
    lines: list[ExportLine] = []
    for shown in show_turns(db, turns, reached=False):
        namespace, digest, lost, recordable = shapes[shown.seq]
        lines.append(
            TurnLine(
                id=shown.id,
                role=shown.role,
                kind=shown.kind,
                text=shown.text,
                predecessor=shown.predecessor,
                merged=shown.merged,
                speaker=shown.speaker,
                time=shown.time,
                caller=shown.caller,
                supersedes=shown.supersedes,
                metadata=shown.metadata,
                lost_predecessor=bool(lost),
                namespace=namespace,
                session=shown.session,
                digest=digest.hex(),
                state=shown.state,
                recordable=bool(recordable),
                masked=shown.masked,
                marks=shown.marks,
            )
        )
    return lines


def _branch_line(db: apsw.Connection, row: tuple[Any, ...]) -> BranchLine:
    name, title, tip, state, archived = row
    return BranchLine(
        tip=turn_id(db, tip), branch=name, name=title, state=state, archived=bool(archived)
    )
