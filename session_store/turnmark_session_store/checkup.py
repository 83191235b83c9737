"""What can be proved of the store by looking: each check reads, and returns one finding.

The checks ask the database as it stands, on any connection; nothing here opens, locks or writes,
apart from the repairs at the end, which take a transaction. A repair never deletes evidence and
never invents an event: it frees what a dead process held, and offers turns again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from turnmark_session_store.batches import take_over
from turnmark_session_store.findings import Finding, finding, ok
from turnmark_session_store.marks import park
from turnmark_session_store.owed import owed
from turnmark_session_store.queries import row_of, rows_of, value_of
from turnmark_session_store.schema import APPLICATION_ID, SCHEMA_VERSION
from turnmark_session_store.times import to_rfc3339
from turnmark_session_store.transaction import Transaction

LONG_OWED_MS = 3 * 86_400_000
"""Three nights: each of them writes what is owed, so what is older is not being written."""

# Above a gigabyte the full check of indexes takes minutes; the structure is checked all the same.
_INTEGRITY_LIMIT_BYTES = 1 << 30


def check_store(db: apsw.Connection, *, runs: bool, at_ms: int) -> list[Finding]:
    """Returns what all checks of the database found; `runs` says that a daemon works with it."""
    checks: tuple[Callable[[], Finding], ...] = (
        lambda: check_file(db),
        lambda: check_words(db),
        lambda: check_events(db),
        lambda: check_tips(db),
        lambda: check_marks(db),
        lambda: check_claims(db, runs=runs),
        lambda: check_owed(db, at_ms=at_ms),
    )
    return [check() for check in checks]


def check_file(db: apsw.Connection) -> Finding:
    """The file is whole: structure, indexes, references, and it is of this version."""
    size = int(value_of(db, "PRAGMA page_count")) * int(value_of(db, "PRAGMA page_size"))
    pragma = "integrity_check" if size <= _INTEGRITY_LIMIT_BYTES else "quick_check"
    problems = [str(row[0]) for row in rows_of(db, f"PRAGMA {pragma}(20)") if row[0] != "ok"]
    problems += [
        f"row {row} of {table} points at a {parent} that is not there"
        for table, row, parent, _ in rows_of(db, "PRAGMA foreign_key_check")
    ]
    if value_of(db, "PRAGMA application_id") != APPLICATION_ID:
        problems.append("it does not say that it is turnmark's")
    version = int(value_of(db, "PRAGMA user_version"))
    if version > SCHEMA_VERSION:
        problems.append(f"it has schema {version}, this turnmark knows {SCHEMA_VERSION}")
    if problems:
        return finding(
            "file",
            "bad",
            f"the database is damaged: {problems[0]}. Restore it from a backup, or save what is "
            "readable with: sqlite3 sessions.db .recover",
            problems,
        )
    return ok("file", f"the database is whole: {size:,} bytes, schema {version}")


def check_words(db: apsw.Connection) -> Finding:
    """Each turn has its words, unless it was forgotten; a forgotten one has none."""
    turns = int(value_of(db, "SELECT count(*) FROM turn"))
    lost = _keys(
        db,
        "WHERE NOT EXISTS (SELECT 1 FROM turn_words WHERE turn = turn.id)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = turn.id)",
    )
    if lost:
        return finding("words", "bad", f"{len(lost):,} turns have lost their words", lost)
    left = _keys(
        db,
        "JOIN turn_words ON turn_words.turn = turn.id"
        " JOIN forgotten_turn ON forgotten_turn.turn = turn.id",
    )
    if left:
        return finding(
            "words",
            "warn",
            f"the words of {len(left):,} forgotten turns are still to be erased",
            repair="nothing: the daemon erases them when it starts",
            examples=left,
        )
    return ok("words", f"{turns:,} turns have their words, or were forgotten")


def check_events(db: apsw.Connection) -> Finding:
    """Each branch's moves, and each session's heads, follow one another without a gap (law 2)."""
    first, last, rows = row_of(db, "SELECT min(seq), max(seq), count(*) FROM event")
    problems: list[str] = []
    if rows and last - first + 1 != rows:
        problems.append(f"{last - first + 1 - rows:,} rows between {first} and {last} are missing")
    problems += _broken_tips(db, is_whole=first == 1)
    problems += _broken_heads(db, is_whole=first == 1)
    if problems:
        return finding(
            "events", "bad", f"{len(problems):,} breaks in the events: {problems[0]}", problems
        )
    return ok("events", f"{rows:,} events follow one another on every branch and head")


def _broken_tips(db: apsw.Connection, *, is_whole: bool) -> list[str]:
    found = rows_of(
        db,
        "SELECT seq, branch.name, old, before, is_first FROM (SELECT seq, branch, old,"
        " lag(new) OVER w AS before, lag(seq) OVER w IS NULL AS is_first FROM event"
        " WHERE type = 'TipMoved' AND branch > 0 WINDOW w AS (PARTITION BY branch ORDER BY seq))"
        " AS moved JOIN branch ON branch.id = moved.branch"
        " WHERE old IS NOT before AND (NOT is_first OR ?) ORDER BY seq",
        (is_whole,),
    )
    return [
        f"event {seq} moves {branch} from turn {old}, the one before it had left it at {before}"
        for seq, branch, old, before, _ in found
    ]


def _broken_heads(db: apsw.Connection, *, is_whole: bool) -> list[str]:
    """Rows of one transaction have its heads; else each begins where the last one ended."""
    found = rows_of(
        db,
        "SELECT seq, session.name, head_old, before FROM (SELECT seq, session, at_ms, head_old,"
        " head_new, lag(head_new) OVER w AS before, lag(head_old) OVER w AS before_old,"
        " lag(at_ms) OVER w AS before_ms, lag(seq) OVER w IS NULL AS is_first FROM event"
        " WHERE type = 'TipMoved' WINDOW w AS (PARTITION BY session ORDER BY seq)) AS moved"
        " JOIN session ON session.id = moved.session"
        " WHERE head_old IS NOT before AND (NOT is_first OR ?)"
        " AND NOT (head_old IS before_old AND head_new IS before AND at_ms IS before_ms)"
        " ORDER BY seq",
        (is_whole,),
    )
    return [
        f"event {seq} moves the head of {session} from turn {old}, the one before it had left it "
        f"at {before}"
        for seq, session, old, before in found
    ]


def check_tips(db: apsw.Connection) -> Finding:
    """Each tip and head is where its last event put it."""
    tips = rows_of(
        db,
        "SELECT branch.name, tip, event.new FROM branch JOIN event ON event.seq ="
        " (SELECT max(seq) FROM event AS e WHERE e.branch = branch.id AND e.type = 'TipMoved')"
        " WHERE tip IS NOT event.new",
    )
    heads = rows_of(
        db,
        "SELECT session.name, head, event.head_new FROM session JOIN event ON event.seq ="
        " (SELECT max(seq) FROM event AS e WHERE e.session = session.id AND e.type = 'TipMoved')"
        " WHERE head IS NOT event.head_new",
    )
    problems = [
        f"the tip of {name} is turn {at}, its last event says {new}" for name, at, new in tips
    ]
    problems += [
        f"the head of {name} is turn {at}, its last event says {new}" for name, at, new in heads
    ]
    if problems:
        return finding(
            "tips",
            "bad",
            f"{len(problems):,} tips or heads were moved without an event: {problems[0]}",
            problems,
        )
    branches = value_of(db, "SELECT count(*) FROM branch WHERE state = 'live'")
    sessions = value_of(db, "SELECT count(*) FROM session WHERE deleted_ms IS NULL")
    return ok("tips", f"{branches:,} tips of {sessions:,} sessions are where their events say")


_UNMARKED_ABOVE = """
WITH RECURSIVE settled (turn) AS NOT MATERIALIZED (
    SELECT turn FROM mark WHERE workspace = :workspace
),
walk (id) AS (
    SELECT predecessor FROM settled JOIN turn ON turn.id = settled.turn
    WHERE predecessor IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM settled WHERE turn = predecessor)
    UNION
    SELECT parent FROM settled JOIN merge_parent ON merge_parent.turn = settled.turn
    WHERE NOT EXISTS (SELECT 1 FROM settled WHERE turn = parent)
    UNION
    SELECT predecessor FROM walk JOIN turn USING (id)
    WHERE predecessor IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM settled WHERE turn = predecessor)
    UNION
    SELECT parent FROM walk JOIN merge_parent ON merge_parent.turn = walk.id
    WHERE NOT EXISTS (SELECT 1 FROM settled WHERE turn = parent)
)
SELECT turn.id, key FROM walk JOIN turn USING (id)
WHERE recordable
    AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = turn.id)
    AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = turn.id)
ORDER BY turn.id
"""


def check_marks(db: apsw.Connection) -> Finding:
    """Above a settled turn every recordable turn is settled, for every workspace (law 7)."""
    open_turns = [key for workspace in _workspaces(db) for _, key in unmarked_above(db, workspace)]
    if open_turns:
        return finding(
            "marks",
            "bad",
            f"{len(open_turns):,} turns stand unsettled above settled ones, where no "
            "walk finds them",
            repair="parks them as `lost`: they are offered again",
            examples=open_turns,
        )
    counted = dict(rows_of(db, "SELECT outcome, count(*) FROM mark GROUP BY outcome"))
    figures = ", ".join(
        f"{counted.get(name, 0):,} {name}" for name in ("kept", "nothing", "parked")
    )
    return ok("marks", f"settled turns are closed under ancestors: {figures}")


def unmarked_above(db: apsw.Connection, workspace: int) -> list[tuple[int, str]]:
    """Returns (turn, id) of what counts, is unmarked, and stands above a mark; oldest first."""
    return rows_of(db, _UNMARKED_ABOVE, {"workspace": workspace})


def check_claims(db: apsw.Connection, *, runs: bool) -> Finding:
    """Nothing is left of a process that died: claims, open batches, journalled installs."""
    batches = value_of(db, "SELECT count(*) FROM batch WHERE closed_ms IS NULL AND install IS NULL")
    installs = value_of(db, "SELECT count(*) FROM install WHERE closed_ms IS NULL")
    stray = rows_of(
        db,
        "SELECT root FROM claim JOIN batch ON batch.id = claim.batch WHERE closed_ms IS NOT NULL",
    )
    if stray:
        return finding(
            "claims",
            "bad",
            f"{len(stray):,} conversations are claimed by batches that are over: nothing of "
            "them is written",
            repair="frees them",
            examples=(f"root turn {root}" for (root,) in stray),
        )
    figures = f"{batches:,} open batches, {installs:,} installs under way"
    if not runs and (batches or installs):
        return finding(
            "claims",
            "warn",
            f"a process died at work: {figures}; the next start frees and finishes them",
            repair="frees the batches; installs are finished by the next start",
        )
    return ok("claims", f"nothing is left of a dead process: {figures}")


def check_owed(db: apsw.Connection, *, at_ms: int) -> Finding:
    """Nothing has been owed for long without being parked for a reason that a person gave."""
    long: list[str] = []
    turns = failed = 0
    for workspace in _workspaces(db):
        found = owed(db, workspace)
        turns += found.turns
        failed += sum(row.n for row in found.tips if row.state in {"parked", "failing"})
        before = to_rfc3339(at_ms - LONG_OWED_MS)
        long += [
            f"{row.n} turns of {row.session} since {row.oldest}"
            for row in found.tips
            if row.state in {"waiting", "writing", "failing"} and _since(db, row.tip) < before
        ]
    if long or failed:
        return finding(
            "owed",
            "warn",
            f"{turns:,} turns are owed, on {len(long):,} branches for more than three days, "
            f"{failed:,} failed; `turnmark owed` lists them",
            repair="nothing: `turnmark flush` tries them now",
            examples=long,
        )
    return ok("owed", f"{turns:,} turns are owed, none for long")


def _since(db: apsw.Connection, tip: str) -> str:
    """Returns when a tip was stored: a turn may be old, and imported a moment ago."""
    found = value_of(db, "SELECT max(created_ms) FROM turn WHERE key = ?", (tip,))
    return to_rfc3339(int(found))


def free_claims(tx: Transaction) -> int:
    """Ends what a dead process had under way; installs stay, to be finished by the next start.

    Returns how many claims and batches that were.
    """
    before = _under_way(tx)
    for workspace in _workspaces(tx.db):
        take_over(tx, workspace)
    tx.execute(
        "DELETE FROM claim WHERE batch IN (SELECT id FROM batch WHERE closed_ms IS NOT NULL)"
    )
    return before - _under_way(tx)


def _under_way(tx: Transaction) -> int:
    return int(
        tx.value(
            "SELECT (SELECT count(*) FROM claim)"
            " + (SELECT count(*) FROM batch WHERE closed_ms IS NULL)"
        )
    )


def park_lost(tx: Transaction, workspace: int, turns: Sequence[int] = ()) -> int:
    """Parks as `lost` what stands unmarked above marks, and `turns`; returns how many."""
    above = [turn for turn, _ in unmarked_above(tx.db, workspace)]
    return len(park(tx, workspace, {*above, *turns}, "lost"))


def workspace_keys(db: apsw.Connection) -> dict[str, int]:
    """Returns the workspaces that the store knows: integer keys by `w-` id."""
    return dict(rows_of(db, "SELECT name, id FROM workspace ORDER BY id"))


def _workspaces(db: apsw.Connection) -> list[int]:
    return list(workspace_keys(db).values())


def _keys(db: apsw.Connection, where: str) -> list[str]:
    return [str(key) for (key,) in rows_of(db, f"SELECT key FROM turn {where} ORDER BY turn.id")]
