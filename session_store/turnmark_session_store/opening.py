"""Opening a session: the verb behind `session.open`."""

from __future__ import annotations

import msgspec

from turnmark_session_store.heads import TipMove, To, begin_branch, move
from turnmark_session_store.requests import OpenSession
from turnmark_session_store.sessions import open_session
from turnmark_session_store.transaction import Transaction


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """`session.open`'s answer."""

    session: str
    head: str | None
    created: bool


def open_at_its_head(tx: Transaction, asked: OpenSession) -> Opened:
    """Opens a session; one that is forked here stands on its fork point, on a branch of its own.

    Raises:
        NotFound, Refused, Conflict: as `sessions.open_session`.
    """
    session, created = open_session(tx, asked)
    head = session.head
    if head is None and asked.forked_from is not None and session.forked_turn is not None:
        head = session.forked_turn
        branch = begin_branch(tx, session.id, "fork")
        move(tx, session.id, [TipMove(branch, head, "fork")], To(head, branch), cause="fork")
    return Opened(session=session.name, head=tx.turn_id(head), created=created)
