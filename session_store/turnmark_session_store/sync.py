"""Syncing a whole message array: matched down from the root, then appended where it departs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from turnmark_events.errors import Refused
from turnmark_session_store.checkout import put_head
from turnmark_session_store.idempotency import once
from turnmark_session_store.identity import HASHED, PreparedTurn
from turnmark_session_store.line import place_line
from turnmark_session_store.line_end import move_to_end
from turnmark_session_store.partials import keep_partials
from turnmark_session_store.sessions import (
    SessionRow,
    find_or_open,
    in_namespace,
    resolve_caller,
    session_by_id,
)
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.walks import is_ancestor


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """`turn.sync`'s answer: `forked_after` is null where nothing forked."""

    head: str | None
    new: int
    forked_after: str | None


@dataclass(frozen=True, slots=True)
class _Matched:
    """How many messages matched, and the turn that the last of them is."""

    count: int
    last: int | None


def sync(
    tx: Transaction, session_name: str, messages: Sequence[PreparedTurn], key: str | None
) -> Synced:
    """Brings a session's head to the end of `messages`; retires nothing.

    A message matches a child by id, else by role, kind, speaker and text; `system` rows on either
    side are skipped in matching. What is left after the last match is appended there.

    Raises:
        Refused: if `messages` is empty.
        Conflict: if an id is there with other content, or `key` came before with other messages.
    """
    if not messages:
        raise Refused("messages is empty; give the whole array")
    session = find_or_open(tx, session_name)
    if session.memory == "off":
        return Synced(head=tx.turn_id(session.head), new=0, forked_after=None)

    def act() -> Synced:
        return _sync(tx, in_namespace(tx, session), messages)

    return once(tx, session, key, messages, Synced, act)


def _sync(tx: Transaction, session: SessionRow, messages: Sequence[PreparedTurn]) -> Synced:
    turns = [message for message in messages if message.kind != "partial"]
    matched = _match(tx, session, turns)
    rest = turns[matched.count :]
    if rest:
        line = place_line(tx, session, rest, matched.last)
        keep_partials(tx, session, line.last, messages)
        end = move_to_end(tx, session, line, move_head=True, spawns_too=True)
        return Synced(
            head=tx.turn_id(end.head),
            new=line.new,
            forked_after=tx.turn_id(matched.last) if end.forked else None,
        )
    keep_partials(tx, session, matched.last, messages)
    if matched.last is None:
        return Synced(head=tx.turn_id(session.head), new=0, forked_after=None)
    put_head(tx, session, matched.last)
    return Synced(head=tx.turn_id(matched.last), new=0, forked_after=None)


def _match(tx: Transaction, session: SessionRow, messages: Sequence[PreparedTurn]) -> _Matched:
    """Walks down from the roots, message by message, as far as children match."""
    matched = _Matched(0, None)
    for position, message in enumerate(messages):
        child = _child(tx, session, matched.last, message)
        if child is not None:
            matched = _Matched(position + 1, child)
        elif message.role != "system":
            break
    return matched


def _child(
    tx: Transaction, session: SessionRow, parent: int | None, message: PreparedTurn
) -> int | None:
    """Returns the turn after `parent` that `message` is, looking through `system` rows."""
    nearest = _children(tx, session, parent, message)
    found: list[int] = []
    while nearest:
        turn, key, digest, role = nearest.pop(0)
        if _is_same(message, key, digest):
            found.append(turn)
        elif role == "system":
            nearest.extend(_children(tx, session, turn, message))
    return _preferred(tx, session, found)


def _is_same(message: PreparedTurn, key: str, digest: bytes) -> bool:
    """By id; by content where the message or the turn has no id of its own."""
    if message.id is None or (key.startswith(HASHED) and key != message.id):
        return digest == message.digest
    return key == message.id


def _children(
    tx: Transaction, session: SessionRow, parent: int | None, message: PreparedTurn
) -> list[tuple[int, str, bytes, str]]:
    columns = "SELECT id, key, digest, role FROM turn"
    if parent is not None:
        return tx.rows(f"{columns} WHERE predecessor = ? ORDER BY id", (parent,))
    caller = session.caller if message.caller is None else resolve_caller(tx, message.caller)
    return tx.rows(
        f"{columns} WHERE session IN (SELECT value FROM json_each(?)) AND namespace = ?"
        " AND predecessor IS NULL AND (caller IS NULL OR caller = ?) ORDER BY id",
        (str(_lineage(tx, session)), session.namespace, caller),
    )


def _lineage(tx: Transaction, session: SessionRow) -> list[int]:
    """Returns the session and those that it was forked from, whose roots its array begins with."""
    lineage = [session.id]
    while session.forked_from is not None and session.forked_from not in lineage:
        lineage.append(session.forked_from)
        session = session_by_id(tx.db, session.forked_from)
    return lineage


def _preferred(tx: Transaction, session: SessionRow, turns: Sequence[int]) -> int | None:
    """Returns the turn below the head where several match, else the oldest that stands."""
    head = session.head
    if len(turns) > 1 and head is not None:
        for turn in turns:
            if is_ancestor(tx.db, turn, head):
                return turn
    for turn in turns:
        if len(turns) == 1 or not tx.row("SELECT 1 FROM retired_turn WHERE turn = ?", (turn,)):
            return turn
    return turns[0] if turns else None
