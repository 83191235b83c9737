"""Planning: which turns go into which batch. Marks decide; events only said where to look."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import apsw
import msgspec

from turnmark_memory.locality import local_turns
from turnmark_memory.retried_reply import is_retried_reply
from turnmark_session_store.back_off import back_offs, roots_due_again
from turnmark_session_store.marks import parked
from turnmark_session_store.owed import LiveTip, dues_of, live_branches, owing_branches
from turnmark_session_store.queries import json_keys, row_of, rows_of


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at: `whole` branches are written whole, the others only in full batches.

    `None` for either means all branches. `reasons` are those for which parked turns are offered
    again. With `at_once` a conversation that failed is tried now, not after its back-off. `within`
    bounds the look to what was owed at one moment; None does not.
    """

    moved: frozenset[str] | None = frozenset()
    whole: frozenset[str] | None = frozenset()
    session: str | None = None
    reasons: frozenset[str] = frozenset()
    at_once: bool = False
    within: frozenset[int] | None = None


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A batch to claim: the oldest turns that a live tip owes, in topological order.

    `goes_on` says that more of the tip is to be written whole after it, `whole` that the tip is.
    `local` turns may not leave this machine; a batch holds such turns alone or none.
    """

    live: LiveTip
    roots: frozenset[int]
    turns: tuple[int, ...]
    tokens: int
    goes_on: bool = False
    whole: bool = False
    parked: bool = False
    retried_reply: bool = False
    local: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Batches to claim now, and the branches that have to wait until a batch is done.

    `waiting` owe something, but their conversation is under way, or is in `batches`, or there are
    more of them than were asked for: then it is `cut`.
    """

    batches: list[Planned]
    waiting: frozenset[str]
    cut: bool = False


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much a plan may hold; None bounds nothing.

    `trigger_tokens` make a full batch. Of the batches at most `remote` go to a writer that is not
    on this machine. `local_apart` keeps the turns of local sessions in batches of their own; a
    writer on this machine needs no such thing.
    """

    trigger_tokens: int
    batches: int | None = None
    remote: int | None = None
    local_apart: bool = False


def plan(
    db: apsw.Connection,
    workspace: int,
    look: Look,
    bounds: Bounds,
    *,
    at_ms: int,
    busy_roots: Collection[int] = frozenset(),
    failed_roots: Collection[int] = frozenset(),
    tried: Collection[int] = frozenset(),
) -> Plan:
    """Returns at most one batch per root of the DAG; the head's branch of a session comes first.

    Conversations that are under way (`busy_roots`) wait; those in back-off and `failed_roots` are
    passed over, and so are parked turns that were `tried`. What the bounds leave no room for waits.
    """
    planner = _Planner(db, workspace, look, bounds, tried)
    taken = set(busy_roots)
    found: list[Planned] = []
    waiting: set[str] = set()
    cut = False
    remote = 0
    for live, roots in _owing(db, workspace, look):
        if not roots.isdisjoint(failed_roots) or planner.in_back_off(roots, at_ms):
            continue
        full = bounds.batches is not None and len(found) >= bounds.batches
        if full or not roots.isdisjoint(taken):
            cut |= full
            waiting.add(live.branch_name)
            continue
        batch = planner.batch(live, roots)
        if batch is None:
            continue
        if not batch.local and bounds.remote is not None and remote >= bounds.remote:
            waiting.add(live.branch_name)
            continue
        remote += not batch.local
        taken |= roots
        found.append(batch)
    return Plan(batches=found, waiting=frozenset(waiting), cut=cut)


class _Planner:
    """Makes the batches of one plan; reads once what is the same for all of them."""

    def __init__(
        self,
        db: apsw.Connection,
        workspace: int,
        look: Look,
        bounds: Bounds,
        tried: Collection[int],
    ) -> None:
        self._db = db
        self._workspace = workspace
        self._look = look
        self._bounds = bounds
        self._parked = [row for row in parked(db, workspace) if row[0] not in tried]
        self._back_offs = back_offs(db, workspace)

    def in_back_off(self, roots: Iterable[int], at_ms: int) -> bool:
        if self._look.at_once:
            return False
        known = (self._back_offs.get(root) for root in roots)
        return any(one is not None and one.not_before_ms > at_ms for one in known)

    def batch(self, live: LiveTip, roots: frozenset[int]) -> Planned | None:
        """Returns the oldest turns that a tip owes now, None where there is nothing to write."""
        whole = self._look.whole is None or live.branch_name in self._look.whole
        due, alone = self._due(live, whole=whole)
        if not due:
            return None
        chosen = _oldest(due, self._bounds.trigger_tokens)[: self._limit_turns(roots)]
        local = False
        if self._bounds.local_apart:
            chosen, local = _of_one_kind(self._db, chosen)
        turns = tuple(turn for turn, _ in chosen)
        is_last = len(turns) == len(due)
        return Planned(
            live=live,
            roots=roots,
            turns=turns,
            tokens=sum(tokens for _, tokens in chosen),
            goes_on=whole and not is_last,
            whole=whole,
            parked=alone,
            retried_reply=whole and is_last and is_retried_reply(self._db, turns),
            local=local,
        )

    def _limit_turns(self, roots: Iterable[int]) -> int | None:
        known = (self._back_offs[root].limit_turns for root in roots if root in self._back_offs)
        return min((limit for limit in known if limit is not None), default=None)

    def _due(self, live: LiveTip, *, whole: bool) -> tuple[list[tuple[int, int]], bool]:
        """Returns what a tip owes now, and whether that is a turn that failed alone.

        Such a turn is tried again alone, after everything else is written.
        """
        dues = dues_of(self._db, self._workspace, live.tip, self._parked)
        again = [(turn, tokens) for turn, why, tokens in dues.held if why in self._look.reasons]
        failed = {turn for turn, why, _ in dues.held if why == "failed"}
        due = sorted({*dues.due, *(one for one in again if one[0] not in failed)})
        due = _within(due, self._look)
        if due and (whole or sum(tokens for _, tokens in due) >= self._bounds.trigger_tokens):
            return due, False
        return _within([one for one in again if one[0] in failed], self._look)[:1], True


def _owing(
    db: apsw.Connection, workspace: int, look: Look
) -> Iterator[tuple[LiveTip, frozenset[int]]]:
    """Yields the branches to look at, each with its roots; ones that owe nothing may be among them.

    Where the look names branches only they are read: an append must not cost the whole store.
    """
    if look.moved is None or look.whole is None:
        found = owing_branches(db, workspace, look.session)
    elif look.moved or look.whole:
        found = live_branches(db, look.session, look.moved | look.whole)
    else:
        return
    joined = _Joined(db)
    for live in found:
        yield live, joined.with_root(live.root)


class _Joined:
    """Roots that merges have joined; a conversation is all of them together."""

    def __init__(self, db: apsw.Connection) -> None:
        self._groups: dict[int, frozenset[int]] = {}
        for one, other in rows_of(
            db,
            "SELECT DISTINCT below.root, above.root FROM merge_parent"
            " JOIN turn AS below ON below.id = merge_parent.turn"
            " JOIN turn AS above ON above.id = merge_parent.parent WHERE below.root <> above.root",
        ):
            group = self.with_root(one) | self.with_root(other)
            self._groups.update(dict.fromkeys(group, group))

    def with_root(self, root: int) -> frozenset[int]:
        return self._groups.get(root) or frozenset((root,))


def _of_one_kind(
    db: apsw.Connection, chosen: list[tuple[int, int]]
) -> tuple[list[tuple[int, int]], bool]:
    """Returns the oldest turns up to where local ones begin or end, and whether they are local."""
    local = local_turns(db, [turn for turn, _ in chosen])
    is_local = chosen[0][0] in local
    stop = (at for at, (turn, _) in enumerate(chosen) if (turn in local) is not is_local)
    return chosen[: next(stop, None)], is_local


def _within(due: Sequence[tuple[int, int]], look: Look) -> list[tuple[int, int]]:
    """Returns what is due up to the newest turn that the look is about.

    Older turns that became due since come along: a batch is settled oldest first.
    """
    if look.within is None:
        return list(due)
    newest = max((turn for turn, _ in due if turn in look.within), default=0)
    return [one for one in due if one[0] <= newest]


def _oldest(due: Sequence[tuple[int, int]], trigger_tokens: int) -> list[tuple[int, int]]:
    """Returns the oldest turns that together reach the trigger, or all of them."""
    total = 0
    for position, (_, tokens) in enumerate(due):
        total += tokens
        if total >= trigger_tokens:
            return list(due[: position + 1])
    return list(due)


def owed_now(db: apsw.Connection, workspace: int, look: Look) -> dict[int, int]:
    """Returns the turns (with tokens) that a whole look would write now, under way or not."""
    all_parked = parked(db, workspace)
    found: dict[int, int] = {}
    for live in owing_branches(db, workspace, look.session):
        dues = dues_of(db, workspace, live.tip, all_parked)
        found.update(dues.due)
        found.update((turn, tokens) for turn, why, tokens in dues.held if why in look.reasons)
    return found


def left_of(db: apsw.Connection, workspace: int, turns: Iterable[int]) -> int:
    """Returns how many of `turns` are neither settled nor taken back meanwhile."""
    found = row_of(
        db,
        "SELECT count(*) FROM json_each(?1) WHERE NOT EXISTS (SELECT 1 FROM mark"
        " WHERE workspace = ?2 AND mark.turn = value AND outcome <> 'parked')"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE retired_turn.turn = value)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE forgotten_turn.turn = value)",
        (json_keys(turns), workspace),
    )
    return int(found[0])


def released(db: apsw.Connection, workspace: int, at_ms: int) -> list[LiveTip]:
    """Returns the branches of the conversations whose back-off is over by `at_ms`."""
    roots = roots_due_again(db, workspace, at_ms)
    if not roots:
        return []
    joined = _Joined(db)
    return [
        live
        for live in owing_branches(db, workspace)
        if not roots.isdisjoint(joined.with_root(live.root))
    ]
