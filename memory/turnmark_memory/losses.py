"""What a workspace has lost: turns and blocks that it holds by the marks, and not in its files."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from turnmark_memory.inventory import Inventory, indexed_blocks
from turnmark_memory.whereabouts import id_at
from turnmark_session_store.checkup import workspace_keys
from turnmark_session_store.queries import rows_of, value_of

Key = tuple[str, str]
"""A turn's namespace and id."""


def kept_without_source(db: apsw.Connection, seen: Inventory) -> list[tuple[int, Key]]:
    """Returns the kept turns (integer key, and namespace with id) that are not archived."""
    archived = {(line.turn.namespace, line.turn.id) for line in seen.sources}
    rows = rows_of(
        db,
        "SELECT turn.id, namespace.name, turn.key FROM mark JOIN turn ON turn.id = mark.turn"
        " JOIN namespace ON namespace.id = turn.namespace"
        " WHERE mark.workspace = ? AND outcome = 'kept'"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = turn.id)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = turn.id) ORDER BY turn.id",
        (key_of(db, seen.root),),
    )
    return [(turn, (space, key)) for turn, space, key in rows if (space, key) not in archived]


def lost_blocks(db: apsw.Connection, seen: Inventory) -> dict[int, list[str]]:
    """Returns, by batch, the blocks that are nowhere, of batches whose turns still count as kept.

    One that the index still has was taken out by hand since the daemon last looked: that is the
    person's word, and the daemon's to follow.
    """
    there = indexed_blocks(seen.root).keys() | {
        name
        for found in seen.topics.values()
        for block in found.blocks()
        for name in (block.id, *block.aliases)
    }
    rows = rows_of(
        db,
        "SELECT id, blocks FROM batch WHERE workspace = ? AND outcome = 'kept'"
        " AND blocks IS NOT NULL AND closed_ms IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM batch_turn JOIN mark"
        " ON mark.turn = batch_turn.turn AND mark.workspace = batch.workspace"
        " WHERE batch_turn.batch = batch.id AND mark.outcome = 'kept'"
        " AND NOT EXISTS (SELECT 1 FROM retired_turn WHERE turn = batch_turn.turn)"
        " AND NOT EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = batch_turn.turn)) ORDER BY id",
        (key_of(db, seen.root),),
    )
    lost: dict[int, list[str]] = {}
    for batch, blocks in rows:
        names: list[str] = msgspec.json.decode(blocks)
        gone = [name for name in names if name not in there and name not in seen.retired]
        if gone:
            lost[batch] = gone
    return lost


def revision_known(db: apsw.Connection, root: Path) -> int:
    """Returns the revision that the store's marks for this workspace rest on."""
    found = value_of(db, "SELECT revision FROM workspace WHERE id = ?", (key_of(db, root),))
    return 0 if found is None else int(found)


def key_of(db: apsw.Connection, root: Path) -> int:
    """Returns the store's key of the workspace at `root`, 0 where it knows none."""
    return workspace_keys(db).get(id_at(root) or "", 0)
