"""Where a workspace has been opened: its id at two places would be one memory written twice.

The store keeps the places of each workspace. A copy that was opened beside its original is noticed
by the id in both; a workspace that was moved is not, because nothing is left where it was.
"""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from turnmark_memory.workspace import PRIVATE
from turnmark_session_store.queries import value_of

WORKSPACE_FILE = f"{PRIVATE}/workspace.json"
_KEY = "workspace_places:"


class _Identity(msgspec.Struct, frozen=True, kw_only=True):
    workspace: str


def places_of(db: apsw.Connection, workspace: str) -> list[Path]:
    """Returns the places where this store has seen the workspace, in the order first seen."""
    found = value_of(db, "SELECT value FROM meta WHERE key = ?", (_KEY + workspace,))
    return [] if found is None else [Path(path) for path in msgspec.json.decode(found)]


def set_places(db: apsw.Connection, workspace: str, places: list[Path]) -> None:
    """Notes the places of a workspace, in place of those noted before."""
    content = msgspec.json.encode([str(place) for place in places])
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY + workspace, content))


def note_place(db: apsw.Connection, workspace: str, root: Path) -> list[Path]:
    """Notes that the workspace is open at `root`; returns the other places that hold its id too.

    Places that hold it no longer are dropped.
    """
    here = root.resolve()
    known = places_of(db, workspace)
    others = [place for place in known if place != here and id_at(place) == workspace]
    if known != [here, *others]:
        set_places(db, workspace, [here, *others])
    return others


def id_at(root: Path) -> str | None:
    """Returns the id of the workspace at `root`, None where none can be read."""
    try:
        return msgspec.json.decode((root / WORKSPACE_FILE).read_bytes(), type=_Identity).workspace
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
