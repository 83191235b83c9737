"""Writing a turn's rows: its shape once and for ever, its words beside it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from turnmark_events.errors import Conflict
from turnmark_session_store.identity import PreparedTurn, hashed_id
from turnmark_session_store.names import is_family
from turnmark_session_store.recordable import RECORDABLE_VERSION
from turnmark_session_store.sessions import SessionRow
from turnmark_session_store.transaction import Transaction

_COLUMNS = (
    "predecessor, namespace, key, session, caller, supersedes, role, kind, recordable, predicate,"
    " digest, tokens, masked, lost_predecessor, time_ms, created_ms"
)
_VALUES = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16"
_INSERT = (
    f"INSERT INTO turn (root, {_COLUMNS}) VALUES ((SELECT root FROM turn WHERE id = ?1), {_VALUES})"
)
_INSERT_ROOT = (
    f"INSERT INTO turn (id, root, {_COLUMNS}) SELECT n, n, {_VALUES}"
    " FROM (SELECT coalesce(max(id), 0) + 1 AS n FROM turn)"
)
"""A root is its own root, so its key is chosen beforehand; SQLite chooses the others, the same way:
one more than the greatest."""


class Placed(msgspec.Struct, frozen=True):
    """Where a turn ended up: its integer key, its id, and what was found there."""

    turn: int
    id: str
    new: bool
    retired: bool = False
    forgotten: bool = False


def place_turn(
    tx: Transaction,
    session: SessionRow,
    namespace: int,
    turn: PreparedTurn,
    predecessor: int | None,
    *,
    caller: int | None = None,
    merged: Sequence[int] = (),
    lost_predecessor: bool = False,
) -> Placed:
    """Returns the turn of that key, written now unless it is there already.

    Raises:
        Conflict: if a turn of the same id is there with other content.
    """
    key = key_of(tx, session, namespace, turn, predecessor, caller, merged)
    known = tx.row(
        "SELECT id, digest, id IN (SELECT turn FROM retired_turn),"
        " id IN (SELECT turn FROM forgotten_turn) FROM turn WHERE namespace = ? AND key = ?",
        (namespace, key),
    )
    if known is None:
        made = _insert(
            tx, session, namespace, key, turn, predecessor, caller, merged, lost_predecessor
        )
        tx.knows(made, key)
        return Placed(made, key, new=True)
    found, digest, retired, forgotten = known
    if not forgotten and digest != turn.digest:
        raise Conflict(
            f"turn {key!r} is already here with other content; a turn never changes. Give the new "
            f"words an id of their own (with supersedes: {key!r} if they replace it)",
            turn=key,
        )
    return Placed(found, key, new=False, retired=bool(retired), forgotten=bool(forgotten))


def key_of(
    tx: Transaction,
    session: SessionRow,
    namespace: int,
    turn: PreparedTurn,
    predecessor: int | None,
    caller: int | None,
    merged: Sequence[int] = (),
) -> str:
    """Returns the turn's own id, or the hash that stands for it at this place."""
    if turn.id is not None:
        return turn.id
    name = session.namespace_name if namespace == session.namespace else None
    if name is None:
        name = str(tx.value("SELECT name FROM namespace WHERE id = ?", (namespace,)))
    origin = ""
    if predecessor is None:
        called_by = tx.turn_id(caller) or ""
        family = "" if is_family(name) else session.name
        origin = f"{called_by}\n{family}"
    elif merged:
        origin = "\n".join(sorted(str(tx.turn_id(parent)) for parent in merged))
    return hashed_id(
        namespace=name,
        predecessor=tx.turn_id(predecessor),
        origin=origin,
        digest=turn.digest,
    )


def _insert(
    tx: Transaction,
    session: SessionRow,
    namespace: int,
    key: str,
    turn: PreparedTurn,
    predecessor: int | None,
    caller: int | None,
    merged: Sequence[int],
    lost_predecessor: bool,
) -> int:
    spawned_prompt = caller is not None and predecessor is None and turn.role == "user"
    supersedes = _superseded(tx, namespace, turn.supersedes)
    made = tx.insert(
        _INSERT if predecessor is not None else _INSERT_ROOT,
        (
            predecessor,
            namespace,
            key,
            session.id,
            caller,
            supersedes,
            turn.role,
            turn.kind,
            turn.recordable and not spawned_prompt,
            RECORDABLE_VERSION,
            turn.digest,
            turn.tokens,
            turn.masked,
            lost_predecessor,
            tx.at_ms if turn.time_ms is None else turn.time_ms,
            tx.at_ms,
        ),
    )
    tx.execute(
        "INSERT INTO turn_words (turn, text, speaker_id, speaker_name, metadata)"
        " VALUES (?, ?, ?, ?, ?)",
        (
            made,
            turn.text.encode("utf-8", "replace"),
            turn.speaker_id,
            turn.speaker_name,
            turn.metadata,
        ),
    )
    for parent in merged:
        tx.execute("INSERT INTO merge_parent (turn, parent) VALUES (?, ?)", (made, parent))
    return made


def _superseded(tx: Transaction, namespace: int, turn: str | None) -> int | None:
    if turn is None:
        return None
    found = tx.value("SELECT id FROM turn WHERE namespace = ? AND key = ?", (namespace, turn))
    return None if found is None else int(found)
