"""Syncing a whole message array: matched down from the root, then appended where it departs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from turnmark_events.errors import Refused
from turnmark_session_store.append import place_line, remember_key, replay, settle_line
from turnmark_session_store.checkout import put_head
from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.requests import OpenSession
from turnmark_session_store.sessions import (
    SessionRow,
    find_session,
    namespace_of,
    open_session,
    session_by_id,
    turn_id,
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
    session = find_session(tx.db, session_name)
    if session is None:
        session = open_session(tx, OpenSession(session=session_name))[0]
    if session.memory == "off":
        return Synced(head=turn_id(tx.db, session.head), new=0, forked_after=None)
    replayed = replay(tx, session, key, messages)
    if replayed is not None:
        return msgspec.json.decode(replayed, type=Synced)
    answer = _sync(tx, session, messages)
    kept = msgspec.structs.replace(answer, new=0)
    remember_key(tx, session, key, messages, msgspec.json.encode(kept))
    return answer


def _sync(tx: Transaction, session: SessionRow, messages: Sequence[PreparedTurn]) -> Synced:
    namespace = namespace_of(tx, session)
    session = session_by_id(tx.db, session.id)
    matched = _match(tx, session, namespace, messages)
    rest = messages[matched.count :]
    new, forked = 0, False
    if rest:
        line = place_line(tx, session, namespace, rest, matched.last, restore=True)
        _, forked = settle_line(tx, session, line, move_head=True)
        new = sum(placed.new for placed in line.placed)
    elif matched.last is not None:
        put_head(tx, session, matched.last)
    return Synced(
        head=turn_id(tx.db, session_by_id(tx.db, session.id).head),
        new=new,
        forked_after=turn_id(tx.db, matched.last) if forked else None,
    )


def _match(
    tx: Transaction, session: SessionRow, namespace: int, messages: Sequence[PreparedTurn]
) -> _Matched:
    """Walks down from the roots, message by message, as far as children match."""
    matched = _Matched(0, None)
    for position, message in enumerate(messages):
        child = _child(tx, session, namespace, matched.last, message)
        if child is not None:
            matched = _Matched(position + 1, child)
        elif message.role != "system":
            break
    return matched


def _child(
    tx: Transaction,
    session: SessionRow,
    namespace: int,
    parent: int | None,
    message: PreparedTurn,
) -> int | None:
    """Returns the turn after `parent` that `message` is, looking through `system` rows."""
    nearest = _children(tx, session, namespace, parent)
    found: list[int] = []
    while nearest:
        turn, key, digest, role = nearest.pop(0)
        if (key == message.id) if message.id is not None else (digest == message.digest):
            found.append(turn)
        elif role == "system":
            nearest.extend(_children(tx, session, namespace, turn))
    return _preferred(tx, session, found)


def _children(
    tx: Transaction, session: SessionRow, namespace: int, parent: int | None
) -> list[tuple[int, str, bytes, str]]:
    columns = "SELECT id, key, digest, role FROM turn"
    if parent is not None:
        return tx.rows(f"{columns} WHERE predecessor = ? ORDER BY id", (parent,))
    return tx.rows(
        f"{columns} WHERE session IN (SELECT value FROM json_each(?)) AND namespace = ?"
        " AND predecessor IS NULL AND caller IS NULL ORDER BY id",
        (str(_lineage(tx, session)), namespace),
    )


def _lineage(tx: Transaction, session: SessionRow) -> list[int]:
    """Returns the session and those that it was forked from, whose roots its array begins with."""
    lineage = [session.id]
    while session.forked_from is not None and session.forked_from not in lineage:
        lineage.append(session.forked_from)
        session = session_by_id(tx.db, session.forked_from)
    return lineage


def _preferred(tx: Transaction, session: SessionRow, turns: Sequence[int]) -> int | None:
    """Returns the turn below the head where several match, else the oldest."""
    head = session.head
    if len(turns) > 1 and head is not None:
        for turn in turns:
            if is_ancestor(tx.db, turn, head):
                return turn
    return turns[0] if turns else None
