"""Planning: which turns go into which batch. Marks decide; events only said where to look."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import apsw
import msgspec

from turnmark_session_store.marks import parked
from turnmark_session_store.owed import LiveTip, dues_of, owing_branches
from turnmark_session_store.queries import row_of, rows_of
from turnmark_session_store.walks import descendants, roots_below


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at: `whole` branches are written whole, the others only in full batches.

    `None` for either means all branches. `reasons` are those for which parked turns are offered
    again. With `at_once` a conversation that failed is tried now, not after its back-off.
    """

    moved: frozenset[str] | None = frozenset()
    whole: frozenset[str] | None = frozenset()
    session: str | None = None
    reasons: frozenset[str] = frozenset()
    at_once: bool = False


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A batch to claim: the oldest turns that a live tip owes, in topological order."""

    live: LiveTip
    roots: frozenset[int]
    turns: tuple[int, ...]
    tokens: int
    retried_reply: bool = False


def plan(
    db: apsw.Connection,
    workspace: int,
    look: Look,
    *,
    trigger_tokens: int,
    at_ms: int,
    busy_roots: Collection[int],
) -> list[Planned]:
    """Returns at most one batch per root of the DAG; the head's branch of a session comes first.

    Conversations that are under way (`busy_roots`) or in back-off are passed over.
    """
    all_parked = parked(db, workspace)
    taken = set(busy_roots)
    failures = _failures(db, workspace)
    found: list[Planned] = []
    for live in owing_branches(db, workspace, look.session):
        whole = look.whole is None or live.branch_name in look.whole
        if not whole and look.moved is not None and live.branch_name not in look.moved:
            continue
        roots = roots_below(db, live.tip)
        if not roots.isdisjoint(taken):
            continue
        failure = failures.get(live.root)
        if failure is not None and not look.at_once and failure[1] > at_ms:
            continue
        limit = None if failure is None else failure[0]
        batch = _batch(db, workspace, live, look, all_parked, whole, trigger_tokens, limit)
        if batch is not None:
            taken |= roots
            found.append(batch)
    return found


def _batch(
    db: apsw.Connection,
    workspace: int,
    live: LiveTip,
    look: Look,
    all_parked: Sequence[tuple[int, str, int]],
    whole: bool,
    trigger_tokens: int,
    limit: int | None,
) -> Planned | None:
    dues = dues_of(db, workspace, live.tip, all_parked)
    again = [(turn, tokens) for turn, reason, tokens in dues.held if reason in look.reasons]
    failed = {turn for turn, reason, _ in dues.held if reason == "failed"}
    due = sorted({*dues.due, *(one for one in again if one[0] not in failed)})
    if not due:
        # A turn that failed alone is tried again alone, after everything else is written.
        due = [one for one in again if one[0] in failed][:1]
    if not due or (not whole and sum(tokens for _, tokens in due) < trigger_tokens):
        return None
    chosen = _oldest(due, trigger_tokens)[:limit]
    turns = tuple(turn for turn, _ in chosen)
    return Planned(
        live=live,
        roots=frozenset(roots_below(db, live.tip)),
        turns=turns,
        tokens=sum(tokens for _, tokens in chosen),
        retried_reply=whole and len(turns) == len(due) and _is_retried_reply(db, turns),
    )


def _oldest(due: Sequence[tuple[int, int]], trigger_tokens: int) -> list[tuple[int, int]]:
    """Returns the oldest turns that together reach the trigger, or all of them."""
    total = 0
    for position, (_, tokens) in enumerate(due):
        total += tokens
        if total >= trigger_tokens:
            return list(due[: position + 1])
    return list(due)


def _is_retried_reply(db: apsw.Connection, turns: Sequence[int]) -> bool:
    """Tells whether a suffix is a reply that was asked for again and then left behind.

    Assistant's turns only, no spawn, and beside the first of them a live turn with a user's turn
    below it: the conversation went on there.
    """
    roles = rows_of(
        db,
        "SELECT DISTINCT role FROM turn JOIN json_each(?) ON turn.id = value",
        ("[" + ",".join(map(str, turns)) + "]",),
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


def _goes_on(db: apsw.Connection, siblings: Iterable[int]) -> bool:
    below = descendants(db, siblings)
    found = row_of(
        db,
        "SELECT 1 FROM turn JOIN json_each(?) ON turn.id = value"
        " WHERE role = 'user' AND recordable"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = turn.id) LIMIT 1",
        ("[" + ",".join(map(str, below)) + "]",),
    )
    return found is not None


def _failures(db: apsw.Connection, workspace: int) -> dict[int, tuple[int | None, int]]:
    rows = rows_of(
        db,
        "SELECT root, limit_turns, not_before_ms FROM failure WHERE workspace = ?",
        (workspace,),
    )
    return {root: (limit, not_before_ms) for root, limit, not_before_ms in rows}


def next_retry_ms(db: apsw.Connection, workspace: int) -> int | None:
    """Returns when the next conversation comes out of its back-off, None where none is in it."""
    found = row_of(
        db,
        "SELECT min(not_before_ms) FROM failure WHERE workspace = ? AND failures > 0",
        (workspace,),
    )
    return None if found is None else found[0]


def branches_of_roots(db: apsw.Connection, workspace: int, at_ms: int) -> frozenset[str]:
    """Returns the branches of the conversations whose back-off is over by `at_ms`."""
    rows = rows_of(
        db,
        "SELECT branch.name FROM failure JOIN turn ON turn.root = failure.root"
        " JOIN branch ON branch.tip = turn.id"
        " WHERE workspace = ? AND failures > 0 AND not_before_ms <= ?",
        (workspace, at_ms),
    )
    return frozenset(name for (name,) in rows)
