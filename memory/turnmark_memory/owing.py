"""What is owed, as a page of `memory.owed`."""

from __future__ import annotations

import apsw
import msgspec

from turnmark_memory.requests import OwedRequest
from turnmark_session_store.owed import OwedTip, owed
from turnmark_session_store.paging import cursor_of, position_of
from turnmark_session_store.sessions import get_session


class OwedPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`memory.owed`'s answer; `turns` and `tokens` count each turn once, over all pages."""

    tips: list[OwedTip]
    turns: int
    tokens: int
    next: str | None = None


def owed_page(
    db: apsw.Connection, workspace: int, asked: OwedRequest, *, resting: str | None = None
) -> OwedPage:
    """Returns the asked page of what the live tips owe.

    `resting` is why the writer's endpoint is left alone now: what waits, waits for that.

    Raises:
        NotFound: if the session is unknown.
        Refused: if the cursor is none of ours.
    """
    if asked.session is not None:
        get_session(db, asked.session)
    start = position_of(asked.cursor)
    found = owed(db, workspace, session=asked.session, ids=asked.ids)
    stop = start + asked.limit
    return OwedPage(
        tips=[_because(row, resting) for row in found.tips[start:stop]],
        turns=found.turns,
        tokens=found.tokens,
        next=cursor_of(stop) if stop < len(found.tips) else None,
    )


def _because(row: OwedTip, resting: str | None) -> OwedTip:
    if resting is None or row.state != "waiting":
        return row
    return msgspec.structs.replace(row, reason=resting)
