"""`doctor` without its printing: looks at state and workspace, beside a daemon or without one."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import apsw

from turnmark_events.errors import Refused
from turnmark_memory.checkup import check_workspace
from turnmark_memory.inventory import revision_at, take_inventory
from turnmark_memory.mending import mend
from turnmark_memory.rights import check_rights
from turnmark_session_store.checkup import check_store
from turnmark_session_store.database import open_reader, open_writer
from turnmark_session_store.findings import Finding
from turnmark_session_store.place_lock import hold_lock
from turnmark_session_store.times import now_ms

DATABASE = "sessions.db"
_LOCK = "lock"

# A daemon at work installs between two reads; a fault that stays through so many looks is one.
_LOOKS = 4

Count = Callable[[str], int]


def examine(
    state: Path, workspace: Path, *, core_tokens: int, count: Count, answers: bool = False
) -> list[Finding]:
    """Returns one finding per check. Reads everything that is stored; writes nothing.

    Beside a running daemon it looks again while something was installed in between; `answers` says
    that one is known to run.
    """
    database = state / DATABASE
    if not database.is_file():
        return [_nothing_there(state)]
    runs = answers or is_held(state / _LOCK)
    rights = check_rights((state, workspace), owner=os.getuid())
    findings: list[Finding] = []
    for _ in range(_LOOKS):
        before = revision_at(workspace)
        findings = _look_once(database, workspace, runs=runs, core_tokens=core_tokens, count=count)
        is_well = all(finding.level == "ok" for finding in findings)
        if is_well or not runs or revision_at(workspace) == before:
            break
    return [*findings, rights]


def repair(state: Path, workspace: Path, *, core_tokens: int, count: Count) -> list[str]:
    """Repairs what can be; returns a line for each thing that was done.

    Raises:
        PlaceTaken: if a daemon runs there.
        Refused: if there is nothing to repair.
        Unavailable: if the database can't be opened, or the disk fails.
    """
    if not (state / DATABASE).is_file():
        raise Refused(f"there is no {DATABASE} in {state}: nothing to repair")
    with ExitStack() as stack:
        stack.enter_context(hold_lock(state / _LOCK))
        database = open_writer(state / DATABASE)
        stack.callback(database.close)
        return mend(database, workspace, (state, workspace), core_tokens=core_tokens, count=count)


def is_held(lock: Path) -> bool:
    """Says whether a process holds the lock, by the kernel's list; takes nothing to find out.

    Some file systems (btrfs, overlays) are listed under other numbers: there it says False.
    """
    try:
        found = lock.stat()
        lines = Path("/proc/locks").read_text("ascii", "replace").splitlines()
    except OSError:
        return False
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    return any(" FLOCK " in line and place in line.split() for line in lines)


def _look_once(
    database: Path, workspace: Path, *, runs: bool, core_tokens: int, count: Count
) -> list[Finding]:
    seen = take_inventory(workspace)
    try:
        db = open_reader(database)
        try:
            db.execute("BEGIN")
            findings = check_store(db, runs=runs, at_ms=now_ms())
            if findings[0].level == "bad":
                return findings
            return findings + check_workspace(
                db, seen, runs=runs, core_tokens=core_tokens, count=count
            )
        finally:
            db.close()
    except apsw.Error as error:
        text = (
            f"the database {database} can't be read ({error}). Restore it from a backup, or save "
            f"what is readable with: sqlite3 {database} .recover"
        )
        return [Finding(check="file", level="bad", text=text)]


def _nothing_there(state: Path) -> Finding:
    text = f"there is no {DATABASE} in {state}: no daemon has run here yet"
    return Finding(check="file", level="warn", text=text)
