"""What a workspace owes: per live tip and state for people, per conversation for the worker."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

import apsw
import msgspec

from turnmark_session_store.back_off import failing
from turnmark_session_store.last_tries import last_try
from turnmark_session_store.marks import DUE_AT_ONCE, parked
from turnmark_session_store.queries import json_keys, rows_of, value_of
from turnmark_session_store.times import to_rfc3339
from turnmark_session_store.walks import LIVE_BRANCH, ancestors, live_tips_after, unwritten

OwedState = Literal["waiting", "writing", "parked", "backlog", "removed", "failing"]
_STATE_OF_REASON: dict[str, OwedState] = {
    "failed": "parked",
    "backlog": "backlog",
    "removed": "removed",
}


class OwedTip(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One live tip's whole share in one state; shares of tips overlap where branches do.

    Of turns that failed, `cause`, `failed_at` and `failed_with` say why the last attempt did, when,
    and by which writer.
    """

    session: str
    branch: str
    tip: str
    head: bool
    n: int
    tokens: int
    oldest: str
    state: OwedState
    reason: str | None = None
    turns: list[str] | None = None
    cause: str | None = None
    failed_at: str | None = None
    failed_with: str | None = None


class Owed(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.owed`'s answer; `turns` and `tokens` count each turn once."""

    tips: list[OwedTip]
    turns: int
    tokens: int


class LiveTip(msgspec.Struct, frozen=True, kw_only=True):
    """A live branch as the worker sees it; integers are keys of the store."""

    branch: int
    branch_name: str
    session: int
    session_name: str
    tip: int
    is_head: bool
    idle_ms: int | None
    root: int


def live_branches(
    db: apsw.Connection, session: str | None = None, names: Iterable[str] | None = None
) -> list[LiveTip]:
    """Returns all live branches, or a session's, or those of `names`.

    A session's are together: its head's branch first, then by age.
    """
    rows = rows_of(
        db,
        "SELECT branch.id, branch.name, session.id, session.name, tip, session.head = tip,"
        " idle_ms, root FROM branch JOIN session ON session.id = branch.session"
        " JOIN turn ON turn.id = tip"
        f" WHERE {LIVE_BRANCH} AND (?1 IS NULL OR session.name = ?1)"
        " AND (?2 IS NULL OR branch.name IN (SELECT value FROM json_each(?2)))"
        " ORDER BY session.id, branch.id = session.head_branch DESC, branch.id",
        (session, None if names is None else json.dumps(sorted(names))),
    )
    return [
        LiveTip(
            branch=branch,
            branch_name=branch_name,
            session=session_id,
            session_name=session_name,
            tip=tip,
            is_head=bool(is_head),
            idle_ms=idle_ms,
            root=root,
        )
        for branch, branch_name, session_id, session_name, tip, is_head, idle_ms, root in rows
    ]


def owing_branches(
    db: apsw.Connection, workspace: int, session: str | None = None
) -> list[LiveTip]:
    """Returns the live branches that owe something; one walk rules the rest out at once.

    With thousands of conversations at rest this costs one query that finds nothing.
    """
    branches = live_branches(db, session)
    owing = [turn for turn, _ in unwritten(db, workspace, {live.tip for live in branches})]
    owing += [turn for turn, _, _ in parked(db, workspace)]
    if not owing:
        return []
    tips = set(live_tips_after(db, owing))
    return [live for live in branches if live.tip in tips]


class Dues(msgspec.Struct, frozen=True, kw_only=True):
    """What one tip owes: turns to write now (with tokens), and parked ones by reason."""

    due: list[tuple[int, int]]
    held: list[tuple[int, str, int]]


def dues_of(
    db: apsw.Connection,
    workspace: int,
    tip: int,
    all_parked: Sequence[tuple[int, str, int]] | None = None,
) -> Dues:
    """Returns what `tip` owes a workspace, each list oldest first.

    `all_parked` saves reading the parked turns again for each of many tips.
    """
    known = parked(db, workspace) if all_parked is None else all_parked
    mine: list[tuple[int, str, int]] = []
    if known and known[0][0] <= tip:
        below = set(ancestors(db, tip, known[0][0]))
        mine = [row for row in known if row[0] in below]
    due = unwritten(db, workspace, [tip])
    due += [(turn, tokens) for turn, reason, tokens in mine if reason in DUE_AT_ONCE]
    return Dues(
        due=sorted(set(due)),
        held=[row for row in mine if row[1] not in DUE_AT_ONCE],
    )


def owed(
    db: apsw.Connection, workspace: int, *, session: str | None = None, ids: bool = False
) -> Owed:
    """Returns what is owed by the live tips of all sessions, or of one."""
    writing = _writing(db, workspace)
    why_failing = failing(db, workspace)
    all_parked = parked(db, workspace)
    rows: list[OwedTip] = []
    distinct: dict[int, int] = {}
    seen: set[tuple[int, int]] = set()
    for live in owing_branches(db, workspace, session):
        if (live.session, live.tip) in seen:
            continue  # two branches of a session on one tip: one row, of the head's or the older
        seen.add((live.session, live.tip))
        dues = dues_of(db, workspace, live.tip, all_parked)
        shares: dict[tuple[OwedState, str | None], list[tuple[int, int]]] = defaultdict(list)
        for turn, tokens in dues.due:
            if turn in writing:
                shares["writing", None].append((turn, tokens))
            elif live.root in why_failing:
                shares["failing", why_failing[live.root]].append((turn, tokens))
            else:
                shares["waiting", None].append((turn, tokens))
        for turn, why, tokens in dues.held:
            shares[_STATE_OF_REASON.get(why, "parked"), why].append((turn, tokens))
        for (state, reason), turns in shares.items():
            distinct.update(turns)
            row = _row(db, live, state, reason, turns, ids=ids)
            rows.append(_tried(db, workspace, row, turns) if _has_failed(row) else row)
    return Owed(tips=rows, turns=len(distinct), tokens=sum(distinct.values()))


def _row(
    db: apsw.Connection,
    live: LiveTip,
    state: OwedState,
    reason: str | None,
    turns: Sequence[tuple[int, int]],
    *,
    ids: bool,
) -> OwedTip:
    oldest = value_of(db, "SELECT time_ms FROM turn WHERE id = ?", (turns[0][0],))
    keys = _keys(db, [turn for turn, _ in turns] if ids else [])
    tip = _keys(db, [live.tip])[0]
    return OwedTip(
        session=live.session_name,
        branch=live.branch_name,
        tip=tip,
        head=live.is_head,
        n=len(turns),
        tokens=sum(tokens for _, tokens in turns),
        oldest=to_rfc3339(oldest),
        state=state,
        reason=reason,
        turns=keys if ids else None,
    )


def _has_failed(row: OwedTip) -> bool:
    return row.state == "failing" or (row.state == "parked" and row.reason == "failed")


def _tried(
    db: apsw.Connection, workspace: int, row: OwedTip, turns: Sequence[tuple[int, int]]
) -> OwedTip:
    tried = last_try(db, workspace, [turn for turn, _ in turns])
    if tried is None:
        return row
    return msgspec.structs.replace(
        row, cause=tried.cause, failed_at=tried.at, failed_with=tried.writer
    )


def _keys(db: apsw.Connection, turns: Iterable[int]) -> list[str]:
    rows = rows_of(
        db,
        "SELECT turn.key FROM json_each(?) JOIN turn ON turn.id = value ORDER BY turn.id",
        (json_keys(turns),),
    )
    return [key for (key,) in rows]


def _writing(db: apsw.Connection, workspace: int) -> set[int]:
    rows = rows_of(
        db,
        "SELECT turn FROM batch_turn JOIN batch ON batch.id = batch"
        " WHERE workspace = ? AND closed_ms IS NULL",
        (workspace,),
    )
    return {turn for (turn,) in rows}


def owed_turns(db: apsw.Connection, workspace: int | None, session: str) -> int:
    """Returns how many distinct turns a session's live tips owe, in all states."""
    if workspace is None:
        return 0
    return owed(db, workspace, session=session).turns
