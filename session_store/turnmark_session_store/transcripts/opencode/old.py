"""The tables of opencode's first version: one database for each project, in `.opencode` there.

A row of `messages` holds its parts. Ids are UUIDs and of no copy.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.fields import mappings_in, string_at
from turnmark_session_store.transcripts.ids import is_plain_id
from turnmark_session_store.transcripts.opencode.chain import SessionRecord
from turnmark_session_store.transcripts.opencode.info import (
    RANK_OLD,
    SessionRow,
    parse_json,
    record_of,
)
from turnmark_session_store.transcripts.opencode.records import (
    Message,
    Read,
    message_of_old_row,
    moment_of,
)
from turnmark_session_store.transcripts.reader import ReadWarning

TABLE: Final = "sessions"
_COLUMNS = ("id", "parent_session_id", "title", "created_at", "updated_at")
_MESSAGE_COLUMNS = ("id", "role", "parts", "model", "created_at", "updated_at", "finished_at")
# The program asked its model for a title in a session of its own.
_TITLES = "title-"


def old_rows(db: Database) -> list[SessionRow]:
    """Returns the sessions of the first version's tables, none where these are not there."""
    if not is_old(db):
        return []
    rows = db.table("sessions", (*_COLUMNS, "summary_message_id"))
    return [row for row in map(_session, rows) if row is not None]


def is_old(db: Database) -> bool:
    """Returns whether a database has the first version's tables; another program's has too."""
    return {"session_id", "parts"} <= db.columns_of("messages")


def _session(row: tuple[Any, ...]) -> SessionRow | None:
    fields: dict[str, Any] = dict(zip(_COLUMNS, row, strict=False))
    name = fields["id"]
    if not is_plain_id(name):
        return None
    return SessionRow(
        id=name,
        table=TABLE,
        parent=string_at(fields, "parent_session_id"),
        directory=None,
        title=string_at(fields, "title"),
        revert=None,
        created_ms=moment_of(fields["created_at"]) or 0,
        updated_ms=moment_of(fields["updated_at"]) or 0,
        fork=(None, None),
        state=row,
    )


def read_old(db: Database, row: SessionRow) -> SessionRecord:
    """Returns a session of the first version with its messages."""
    warnings: list[ReadWarning] = []
    messages: list[Message] = []
    for number, values in enumerate(
        db.table(
            "messages",
            _MESSAGE_COLUMNS,
            "WHERE session_id = ? ORDER BY created_at, rowid",
            (row.id,),
        )
    ):
        fields: dict[str, Any] = dict(zip(_MESSAGE_COLUMNS, values, strict=True))
        text = fields["parts"]
        listed = parse_json(f'{{"parts":{text}}}' if isinstance(text, str) else None)
        if isinstance(listed, str):
            warnings.append(ReadWarning(file=str(db.path), line=0, reason=listed))
            continue
        name = fields["id"]
        message = message_of_old_row(
            {**fields, "rowid": number},
            mappings_in(listed.get("parts")),
            Read(str(name), db.path.name),
            summarises=name == row.state[-1],
        )
        if message is not None and is_plain_id(name):
            messages.append(message)
    # The program lies in `.opencode` in the project.
    record = record_of(
        row,
        rank=RANK_OLD,
        messages=messages,
        by_program=row.id.startswith(_TITLES),
        warnings=warnings,
    )
    return msgspec.structs.replace(record, project=str(db.path.parent.parent))
