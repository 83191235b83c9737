"""A reply that was asked for again and then left behind: nothing of it is worth a writer's time."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from turnmark_session_store.queries import json_keys, row_of, rows_of
from turnmark_session_store.walks import descendants


def is_retried_reply(db: apsw.Connection, turns: Sequence[int]) -> bool:
    """Tells whether a suffix is a reply that was asked for again and then left behind.

    Assistant's turns only, no spawn, and beside the first of them a live turn with a user's turn
    below it: the conversation went on there.
    """
    roles = rows_of(
        db,
        "SELECT DISTINCT role FROM turn JOIN json_each(?) ON turn.id = value",
        (json_keys(turns),),
    )
    first = row_of(db, "SELECT predecessor FROM turn WHERE id = ?", (turns[0],))
    if roles != [("assistant",)] or first is None or first[0] is None:
        return False
    siblings = rows_of(
        db,
        "SELECT id FROM turn WHERE predecessor = ? AND id <> ?"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = id)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = id)",
        (first[0], turns[0]),
    )
    return _goes_on(db, [sibling for (sibling,) in siblings])


def _goes_on(db: apsw.Connection, siblings: Sequence[int]) -> bool:
    below = set(descendants(db, siblings)).difference(siblings)
    found = row_of(
        db,
        "SELECT 1 FROM turn JOIN json_each(?) ON turn.id = value"
        " WHERE role = 'user' AND recordable"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = turn.id)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = turn.id) LIMIT 1",
        (json_keys(below),),
    )
    return found is not None
