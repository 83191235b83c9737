"""The log that opencode's database keeps of each session: what was said and is gone since.

It holds a message and a part as often as they were written, and says when one was removed. Older
versions have none, and a later one may drop what is old.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec

from turnmark_session_store.transcripts.database_file import Database
from turnmark_session_store.transcripts.fields import mapping_at, string_at
from turnmark_session_store.transcripts.ids import is_plain_id
from turnmark_session_store.transcripts.opencode.chain import Removed
from turnmark_session_store.transcripts.opencode.info import fields_of
from turnmark_session_store.transcripts.opencode.records import Read, message_of

_REMOVED = "WHERE aggregate_id = ? AND type >= 'message.removed' AND type < 'message.removee'"
# Only what tells of these messages is fetched: a call's result stands in many a record.
_TOLD = (
    "WHERE aggregate_id = ? AND type >= 'message.' AND type < 'message/' AND EXISTS"
    " (SELECT 1 FROM json_each(?) AS gone WHERE instr(event.data, gone.value)) ORDER BY seq"
)


def removed_messages(db: Database, session: str, there: Collection[str]) -> list[Removed]:
    """Returns the messages that a session's log says were removed, as far as it has their words.

    A message that is `there` was not.
    """
    gone: dict[str, int] = {}
    for seq, data in db.table("event", ("seq", "data"), _REMOVED, (session,)):
        message = string_at(fields_of(data), "messageID")
        if message is not None and message not in there and isinstance(seq, int):
            gone[message] = seq
    if not gone:
        return []
    log = _Log(gone)
    names = msgspec.json.encode(list(gone)).decode()
    for seq, kind, data in db.table("event", ("seq", "type", "data"), _TOLD, (session, names)):
        if isinstance(seq, int) and isinstance(kind, str):
            log.take(seq, kind, fields_of(data))
    return log.removed(db.path.name)


class _LoggedMessage(NamedTuple):
    said_at: int
    info: Mapping[str, Any]


class _Log:
    """What the log of a session tells of messages that are gone; `gone` says when they went."""

    def __init__(self, gone: Mapping[str, int]) -> None:
        self._gone = gone
        self._messages: dict[str, _LoggedMessage] = {}
        self._parts: dict[str, dict[str, Mapping[str, Any]]] = {}

    def take(self, seq: int, kind: str, data: Mapping[str, Any]) -> None:
        """Takes the next record; what was written of a message after it went is none of it."""
        info, part = mapping_at(data, "info"), mapping_at(data, "part")
        message = string_at(info, "id") or string_at(part, "messageID") or data.get("messageID")
        if not isinstance(message, str) or seq > self._gone.get(message, -1):
            return
        if kind.startswith("message.updated"):
            known = self._messages.get(message)
            self._messages[message] = _LoggedMessage(known.said_at if known else seq, info)
        elif kind.startswith("message.part.updated"):
            self._parts.setdefault(message, {})[string_at(part, "id") or ""] = part
        elif kind.startswith("message.part.removed"):
            self._parts.get(message, {}).pop(str(data.get("partID")), None)

    def removed(self, file: str) -> list[Removed]:
        """Returns the messages whose words are known."""
        found: list[Removed] = []
        for key, logged in self._messages.items():
            parts = [part for _, part in sorted(self._parts.get(key, {}).items())]
            message = message_of(logged.info, parts, Read(key, file)) if is_plain_id(key) else None
            if message is not None:
                found.append(
                    Removed(message=message, said_at=logged.said_at, removed_at=self._gone[key])
                )
        return found
