"""Idempotency keys: a request that comes again is answered as the first time, and does nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from turnmark_events.errors import Conflict
from turnmark_session_store.identity import PreparedTurn
from turnmark_session_store.sessions import SessionRow
from turnmark_session_store.transaction import Transaction

A = TypeVar("A", bound=msgspec.Struct)


def once(
    tx: Transaction,
    session: SessionRow,
    key: str | None,
    turns: Sequence[PreparedTurn],
    answers: type[A],
    act: Callable[[], A],
) -> A:
    """Returns what `act` answers, or what it answered when this `key` came first, with `new` 0.

    Raises:
        Conflict: if the key came before with other turns.
    """
    if key is None:
        return act()
    known = tx.row(
        "SELECT digest, answer FROM request_key WHERE session = ? AND key = ?", (session.id, key)
    )
    digest = _digest(turns)
    if known is None:
        answer = act()
        kept = msgspec.json.encode(msgspec.structs.replace(answer, new=0))
        tx.execute(
            "INSERT INTO request_key (session, key, digest, answer, at_ms) VALUES (?, ?, ?, ?, ?)",
            (session.id, key, digest, kept, tx.at_ms),
        )
        return answer
    if known[0] != digest:
        raise Conflict(
            f"the key {key!r} was used before for other turns of session {session.name!r}; a key "
            "names one request: make a new one",
            key=key,
        )
    return msgspec.json.decode(known[1], type=answers)


def _digest(turns: Sequence[PreparedTurn]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for turn in turns:
        digest.update((turn.id or "").encode("utf-8", "replace") + b"\x00" + turn.digest)
    return digest.digest()
