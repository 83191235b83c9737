"""What `doctor --repair` does: what is derived is made anew, what was lost is offered again.

The caller holds the state's lock and gives the one connection that writes. Nothing here deletes
evidence; a file that can't be read is kept aside.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from turnmark_memory.checkup import check_index
from turnmark_memory.inventory import rendered_core, take_inventory
from turnmark_memory.losses import kept_without_source, lost_blocks
from turnmark_memory.rights import too_open
from turnmark_memory.whereabouts import WORKSPACE_FILE, id_at, places_of
from turnmark_memory.workspace import CORE_PAGE, INDEX_FILE, STAGING, Workspace
from turnmark_session_store.batches import turns_of
from turnmark_session_store.checkup import free_claims, park_lost, workspace_keys
from turnmark_session_store.times import now_ms
from turnmark_session_store.transaction import Transaction

_NOBODY = 0o077


def mend(
    db: apsw.Connection,
    root: Path,
    directories: Iterable[Path],
    *,
    core_tokens: int,
    count: Callable[[str], int],
) -> list[str]:
    """Repairs what can be repaired; returns a line for each thing that was done.

    Raises:
        PlaceTaken: if a daemon has the workspace.
        Unavailable: if the disk fails.
    """
    done = [f"took the rights of others from {path}" for path in _close(directories)]
    done += _identify(db, root)
    freed = parked = 0
    with db:
        tx = Transaction(db, now_ms(), 0)
        freed = free_claims(tx)
        parked = sum(
            park_lost(tx, key, _lost(db, root) if name == id_at(root) else ())
            for name, key in workspace_keys(db).items()
        )
    done += [f"freed {freed} claims and batches of dead processes"] if freed else []
    done += [f"parked {parked} turns as lost: they are offered again"] if parked else []
    if id_at(root) is not None:
        done += _rebuild(root, core_tokens=core_tokens, count=count)
    return done


def _close(directories: Iterable[Path]) -> list[Path]:
    closed: list[Path] = []
    for path in too_open(directories, owner=os.getuid()):
        if path.stat().st_uid == os.getuid():
            path.chmod(path.stat().st_mode & ~_NOBODY & 0o7777)
            closed.append(path)
    return closed


def _identify(db: apsw.Connection, root: Path) -> list[str]:
    """Gives a workspace whose identity can't be read the one that the store knows for the place."""
    path = root / WORKSPACE_FILE
    if not path.exists() or id_at(root) is not None:
        return []
    names = list(workspace_keys(db))
    known = [name for name in names if root.resolve() in places_of(db, name)]
    kept = path.with_name(f"{path.name}.unreadable-{secrets.token_hex(4)}")
    path.rename(kept)
    chosen = known or (names if len(names) == 1 else [])
    if not chosen:
        return [f"kept {kept.name} aside; the next start gives the workspace an id of its own"]
    identity = {"workspace": chosen[0], "created_at": datetime.now(UTC)}
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.encode(identity) + b"\n")
    return [f"gave the workspace its id {chosen[0]} again; what was there is in {kept.name}"]


def _lost(db: apsw.Connection, root: Path) -> list[int]:
    """Returns the turns that memory says it keeps and does not."""
    seen = take_inventory(root)
    turns = {turn for turn, _ in kept_without_source(db, seen)}
    for batch in lost_blocks(db, seen):
        turns.update(turns_of(db, batch))
    return sorted(turns)


def _rebuild(root: Path, *, core_tokens: int, count: Callable[[str], int]) -> list[str]:
    """Renders the core page, and takes an index away that differs: the next start builds it."""
    done: list[str] = []
    with Workspace.open(root) as workspace:
        seen = take_inventory(root)
        page = rendered_core(seen, core_tokens=core_tokens, count=count)
        if workspace.tree.read(CORE_PAGE) != page:
            workspace.tree.replace(CORE_PAGE, page, staging=STAGING)
            done.append("rendered the core page anew")
        if check_index(seen).level == "bad":
            for ending in ("", "-wal", "-shm"):
                Path(f"{root / INDEX_FILE}{ending}").unlink(missing_ok=True)
            done.append("took the index away: the next start builds it from the files")
    return done
