"""Walks over the DAG: ancestry, what is live, and what a workspace still owes.

An integer key is always greater than those of its parents, so descending keys are a topological
order and every walk can stop as soon as it has passed the key that it looks for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import apsw

from turnmark_session_store.queries import json_keys, row_of, rows_of, value_of

_PARENTS = (
    "SELECT predecessor FROM turn WHERE id = ?1 AND predecessor IS NOT NULL"
    " UNION SELECT parent FROM merge_parent WHERE turn = ?1"
)

_UNWRITTEN = """
WITH RECURSIVE walk (id) AS (
    SELECT value FROM json_each(:tips)
    WHERE NOT EXISTS (SELECT 1 FROM mark WHERE workspace = :workspace AND turn = value)
    UNION
    SELECT predecessor FROM walk JOIN turn USING (id)
    WHERE predecessor IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM mark WHERE workspace = :workspace AND turn = predecessor)
    UNION
    SELECT parent FROM walk JOIN merge_parent ON merge_parent.turn = walk.id
    WHERE NOT EXISTS (SELECT 1 FROM mark WHERE workspace = :workspace AND turn = parent)
)
SELECT id, tokens FROM walk JOIN turn USING (id)
WHERE recordable
    AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = id)
    AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = id)
ORDER BY id
"""

_ANCESTORS = """
WITH RECURSIVE walk (id) AS (
    SELECT :tip
    UNION
    SELECT predecessor FROM walk JOIN turn USING (id)
    WHERE predecessor IS NOT NULL AND predecessor >= :down_to
    UNION
    SELECT parent FROM walk JOIN merge_parent ON merge_parent.turn = walk.id
    WHERE parent >= :down_to
)
SELECT id FROM walk ORDER BY id
"""

_DESCENDANTS = """
WITH RECURSIVE below (id_below) AS (
    SELECT value FROM json_each(?)
    UNION
    SELECT turn.id FROM below JOIN turn ON turn.predecessor = below.id_below
    UNION
    SELECT turn FROM below JOIN merge_parent ON merge_parent.parent = below.id_below
)
SELECT id_below FROM below
"""

LIVE_BRANCH = "branch.state = 'live' AND branch.tip IS NOT NULL"


def unwritten(db: apsw.Connection, workspace: int, tips: Iterable[int]) -> list[tuple[int, int]]:
    """Returns (turn, tokens) of the unwritten suffixes of `tips`, each turn once, oldest first.

    Each path is walked back over all parents to its first settled turn; retired, forgotten and
    unrecordable turns are passed through. Costs time by the suffix, not by the store.
    """
    return rows_of(db, _UNWRITTEN, {"tips": json_keys(tips), "workspace": workspace})


def parents_of(db: apsw.Connection, turn: int) -> list[int]:
    """Returns all parents of a turn: its predecessor and what it merged."""
    return [parent for (parent,) in rows_of(db, _PARENTS, (turn,))]


def ancestors(db: apsw.Connection, tip: int, down_to: int = 0) -> list[int]:
    """Returns `tip` and its ancestors over all parents with keys >= `down_to`, oldest first."""
    return [turn for (turn,) in rows_of(db, _ANCESTORS, {"tip": tip, "down_to": down_to})]


def line_of(db: apsw.Connection, tip: int) -> list[int]:
    """Returns the line from the root to `tip` over predecessors only, oldest first."""
    rows = rows_of(
        db,
        "WITH RECURSIVE walk (id) AS (SELECT ? UNION ALL"
        " SELECT predecessor FROM walk JOIN turn USING (id) WHERE predecessor IS NOT NULL)"
        " SELECT id FROM walk ORDER BY id",
        (tip,),
    )
    return [turn for (turn,) in rows]


def is_ancestor(db: apsw.Connection, turn: int, tip: int) -> bool:
    """Tells whether `turn` is `tip` or an ancestor of it; walks no deeper than `turn`."""
    if turn == tip:
        return True
    if turn > tip:
        return False
    found = row_of(
        db,
        f"SELECT 1 FROM ({_ANCESTORS}) WHERE id = :turn",
        {"tip": tip, "down_to": turn, "turn": turn},
    )
    return found is not None


def descendants(db: apsw.Connection, turns: Iterable[int]) -> list[int]:
    """Returns `turns` and all that come after them, oldest first."""
    rows = rows_of(db, f"{_DESCENDANTS} ORDER BY id_below", (json_keys(turns),))
    return [turn for (turn,) in rows]


def only_reached_from(
    db: apsw.Connection, start: Sequence[int], others: Iterable[int]
) -> list[int]:
    """Returns the ancestors-or-selves of `start` that no turn of `others` reaches, oldest first.

    Paints both sides downwards by descending key and stops when nothing is left that only `start`
    reaches, so it looks at little more than what it returns.
    """
    others = list(others)
    if not others:
        return sorted(_ancestors_of_all(db, start))
    reached_by_others: dict[int, bool] = dict.fromkeys(start, False)
    for turn in others:
        reached_by_others[turn] = True
    queue = [-turn for turn in reached_by_others]
    heapq.heapify(queue)
    pending = sum(1 for shared in reached_by_others.values() if not shared)
    found: list[int] = []
    while pending:
        turn = -heapq.heappop(queue)
        shared = reached_by_others[turn]
        if not shared:
            found.append(turn)
            pending -= 1
        for parent in parents_of(db, turn):
            known = reached_by_others.get(parent)
            if known is None:
                reached_by_others[parent] = shared
                heapq.heappush(queue, -parent)
                pending += not shared
            elif shared and not known:
                reached_by_others[parent] = True
                pending -= 1
    return found[::-1]


def _ancestors_of_all(db: apsw.Connection, tips: Iterable[int]) -> set[int]:
    rows = rows_of(
        db,
        "WITH RECURSIVE walk (id) AS (SELECT value FROM json_each(?) UNION"
        " SELECT predecessor FROM walk JOIN turn USING (id) WHERE predecessor IS NOT NULL UNION"
        " SELECT parent FROM walk JOIN merge_parent ON merge_parent.turn = walk.id)"
        " SELECT id FROM walk",
        (json_keys(tips),),
    )
    return {turn for (turn,) in rows}


def live_tips_after(
    db: apsw.Connection, turns: Iterable[int], *, other_than: int | None = None
) -> list[int]:
    """Returns the live tips of all sessions that are one of `turns` or come after one.

    These are all that can reach any of `turns`. Costs time by what comes after them. Branches of
    the session `other_than` are left out.
    """
    rows = rows_of(
        db,
        f"SELECT DISTINCT tip FROM ({_DESCENDANTS}) JOIN branch ON tip = id_below"
        f" WHERE {LIVE_BRANCH} AND branch.session IS NOT ? ORDER BY tip",
        (json_keys(turns), other_than),
    )
    return [tip for (tip,) in rows]


def turns_of_session(db: apsw.Connection, session: int) -> list[int]:
    """Returns every turn that the session's branches reach or that was first said in it.

    Without those that were forgotten and that nothing reaches, as of a deleted session that began
    anew under its name.
    """
    rows = rows_of(
        db,
        "WITH RECURSIVE walk (id) AS (SELECT tip FROM branch WHERE session = ?1 AND tip IS NOT NULL"
        " UNION SELECT id FROM turn WHERE session = ?1"
        " AND id NOT IN (SELECT turn FROM forgotten_turn)"
        " UNION SELECT predecessor FROM walk JOIN turn USING (id) WHERE predecessor IS NOT NULL"
        " UNION SELECT parent FROM walk JOIN merge_parent ON merge_parent.turn = walk.id)"
        " SELECT id FROM walk ORDER BY id",
        (session,),
    )
    return [turn for (turn,) in rows]


def live_tip_count(db: apsw.Connection) -> int:
    """Returns how many live tips there are."""
    return int(value_of(db, f"SELECT count(DISTINCT tip) FROM branch WHERE {LIVE_BRANCH}"))


def roots_below(db: apsw.Connection, turn: int) -> set[int]:
    """Returns the roots that `turn` descends from: one, or several where branches were merged."""
    if not row_of(db, "SELECT 1 FROM merge_parent LIMIT 1"):
        rows = rows_of(db, "SELECT root FROM turn WHERE id = ?", (turn,))
    else:
        rows = rows_of(
            db,
            f"SELECT DISTINCT root FROM ({_ANCESTORS}) JOIN turn USING (id)",
            {"tip": turn, "down_to": 0},
        )
    return {root for (root,) in rows}
