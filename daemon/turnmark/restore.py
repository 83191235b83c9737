"""Putting a backup in place of what is there: filled beside it, locked, then renamed."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from turnmark.backup_manifest import (
    DATABASE,
    LOCK,
    WORKSPACE,
    Manifest,
    Places,
    check_files,
    hold_places,
    read_manifest,
)
from turnmark.private_files import DIR_MODE, copy_file, disk_errors, make_private, sync_directory
from turnmark_events.errors import Refused
from turnmark_memory.whereabouts import set_places
from turnmark_memory.workspace import PRIVATE
from turnmark_session_store.checkup import workspace_keys
from turnmark_session_store.database import open_writer
from turnmark_session_store.place_lock import hold_lock


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did: `aside` is where it put what was there before."""

    manifest: Manifest
    aside: tuple[Path, ...]


def restore(source: Path, places: Places, *, force: bool = False) -> Restored:
    """Puts a backup in place; no daemon may run there.

    With `force` what is there is kept beside, under a name that ends in `.before-restore-…`.

    Raises:
        PlaceTaken: if a daemon runs there.
        Refused: if `source` is no whole backup of this or an older version, or the places are not
            empty and `force` is not given; nothing was changed.
        Unavailable: if the disk fails.
    """
    manifest = read_manifest(source)
    check_files(source, manifest)
    with disk_errors("restore the backup"), ExitStack() as stack:
        hold_places(stack, places)
        _check_empty(places, force=force)
        fresh = Places(state=_beside(places.state), workspace=_beside(places.workspace))
        try:
            _copy_back(source, manifest, fresh, places, stack)
            aside = _put_in_place(fresh, places)
        finally:
            shutil.rmtree(fresh.state, ignore_errors=True)
            shutil.rmtree(fresh.workspace, ignore_errors=True)
    return Restored(manifest=manifest, aside=aside)


def _check_empty(places: Places, *, force: bool) -> None:
    filled = [path for path in (places.state, places.workspace) if _is_filled(path)]
    if filled and not force:
        there = " and ".join(str(path) for path in filled)
        raise Refused(
            f"there is something in {there}; with --force it is moved aside first",
            places=[str(path) for path in filled],
        )


def _copy_back(
    source: Path, manifest: Manifest, fresh: Places, places: Places, stack: ExitStack
) -> None:
    """Fills the new directories, each locked before it gets its name."""
    for path in (fresh.state, fresh.workspace):
        shutil.rmtree(path, ignore_errors=True)
        make_private(path)
    (fresh.workspace / PRIVATE).mkdir(mode=DIR_MODE)
    stack.enter_context(hold_lock(fresh.state / LOCK))
    stack.enter_context(hold_lock(fresh.workspace / PRIVATE / LOCK))
    for name in manifest.files:
        home = fresh.state if name == DATABASE else fresh.workspace
        copy_file(source / name, home / name.removeprefix(f"{WORKSPACE}/"))
    database = open_writer(fresh.state / DATABASE)
    try:
        with database:
            for workspace in workspace_keys(database):
                # What is restored here is meant to be here, also where the original still is.
                set_places(database, workspace, [places.workspace.resolve()])
    finally:
        database.close()


def _put_in_place(fresh: Places, places: Places) -> tuple[Path, ...]:
    """Gives the new directories their names; returns where what was there before is now."""
    ending = f".before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    aside = [_aside(path, ending) for path in (places.state, places.workspace)]
    fresh.workspace.rename(places.workspace)
    fresh.state.rename(places.state)
    sync_directory(places.workspace.parent)
    sync_directory(places.state.parent)
    return tuple(kept for kept in aside if kept is not None)


def _is_filled(path: Path) -> bool:
    """Says whether a directory holds more than locks and the name of a socket."""
    if path.is_dir() and not path.is_symlink():
        idle = {LOCK, "socket.path"}
        return any(p.is_file() and p.name not in idle for p in path.rglob("*"))
    return path.exists() or path.is_symlink()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.restoring")


def _aside(path: Path, ending: str) -> Path | None:
    """Moves what is at `path` aside; returns where to, None where nothing worth keeping was."""
    if not path.exists():
        make_private(path.parent)
        return None
    if not _is_filled(path):
        shutil.rmtree(path)
        return None
    kept = path.with_name(path.name + ending)
    path.rename(kept)
    return kept
