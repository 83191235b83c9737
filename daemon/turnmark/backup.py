"""A backup: state and workspace as one directory, taken beside a running daemon.

The order makes it safe. First the database, one snapshot of a commit; then the workspace, whose
files are then of that commit's revision or newer. So marks never speak of topics that the backup
does not hold: what is newer in the files is at worst offered to memory again. Between two installs,
which is nearly always, both are of one revision: that is looked for, a few times.

What is derived (the index, the map of sources) is built anew from the rest. `backup_manifest.py`
says what a backup holds, `restore.py` puts one back. Everything here blocks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

import msgspec

from turnmark.backup_manifest import (
    DATABASE,
    FORMAT,
    MANIFEST,
    WORKSPACE,
    Manifest,
    Places,
    hold_places,
)
from turnmark.private_files import (
    DIR_MODE,
    FILE_MODE,
    copy_file,
    digest_of,
    disk_errors,
    sync_directory,
    sync_file,
    write_file,
)
from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.embedding.vector_file import NUMBERS_PATTERN
from turnmark_memory.inventory import revision_at
from turnmark_memory.workspace import PRIVATE, REVISION_FILE, STAGING
from turnmark_session_store.checkup import workspace_keys
from turnmark_session_store.database import open_reader
from turnmark_session_store.event_table import last_seq
from turnmark_session_store.place_lock import PlaceTaken
from turnmark_session_store.queries import value_of

# Derived, or of the process that runs; `bases.db` is good only beside the very files it was beside.
_LEFT_OUT = frozenset({"lock", "index.db", "sources.db", "bases.db", "vectors.db"})
_SQLITE_ENDINGS = ("-wal", "-shm", "-journal")

# An install is over in milliseconds; one that comes again and again is lived with after so many.
_TRIES = 20

Progress = Callable[[int, int], None]
"""Hears how many files of how many are copied."""


def back_up(
    places: Places, target: Path, progress: Progress = lambda _done, _all: None
) -> Manifest:
    """Writes a backup to `target`, which must not be there yet, or be an empty directory.

    A daemon may run and goes on meanwhile. Costs as much disk as database and memory together.

    Raises:
        Refused: if there is something at `target`, or nothing to back up.
        Unavailable: if the disk fails or is full; nothing is left at `target`.
    """
    if not (places.state / DATABASE).is_file():
        raise Refused(f"there is no {DATABASE} in {places.state}: nothing to back up")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise Refused(f"there is something at {target}; name a directory that is not there yet")
    target = target.absolute()
    unfinished = target.with_name(f".{target.name}.unfinished")
    with disk_errors(f"write the backup {target}"):
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=DIR_MODE, parents=True)
        try:
            manifest = _fill(places, unfinished, progress)
            if target.is_dir():
                target.rmdir()
            unfinished.rename(target)
            sync_directory(target.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return manifest


def _fill(places: Places, target: Path, progress: Progress) -> Manifest:
    """Copies until nothing was installed meanwhile, or it was tried often enough."""
    with ExitStack() as stack:
        runs = not _hold_if_free(stack, places)
        for left in range(_TRIES, -1, -1):
            revision, is_open = _copy_database(places, target / DATABASE)
            # An install that is under way would be finished on files that have gone on since.
            is_last = left == 0
            if runs and not is_last and (is_open or revision_at(places.workspace) != revision):
                continue
            shutil.rmtree(target / WORKSPACE, ignore_errors=True)
            _copy_workspace(places.workspace, target / WORKSPACE, progress, runs=runs)
            if not runs or is_last or revision_at(places.workspace) == revision:
                break
    manifest = _manifest(target)
    write_file(target / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    sync_directory(target)
    return manifest


def _copy_database(places: Places, target: Path) -> tuple[int, bool]:
    """Copies one snapshot of the database; returns its revision and whether it has an install.

    `VACUUM INTO` reads one commit, however much is written meanwhile, and leaves free pages out.
    """
    target.unlink(missing_ok=True)
    connection = open_reader(places.state / DATABASE)
    try:
        connection.execute("VACUUM INTO ?", (str(target),))
    finally:
        connection.close()
    target.chmod(FILE_MODE)
    copy = open_reader(target)
    try:
        found = value_of(copy, "PRAGMA quick_check(1)")
        if found != "ok":
            raise Unavailable(f"the copy of the database is not whole ({found}); nothing was kept")
        revision = value_of(copy, "SELECT coalesce(max(revision), 0) FROM workspace")
        is_open = value_of(copy, "SELECT 1 FROM install WHERE closed_ms IS NULL LIMIT 1")
    finally:
        copy.close()
    sync_file(target)
    return int(revision), is_open is not None


def _copy_workspace(source: Path, target: Path, progress: Progress, *, runs: bool) -> None:
    """Copies the files of a workspace: the revision first, then evidence, then all the rest."""
    target.mkdir(mode=DIR_MODE)
    if not source.is_dir():
        return
    files = sorted(_files_below(source, runs=runs), key=_rank)
    for done, name in enumerate(files):
        copy_file(source / name, target / name)
        progress(done + 1, len(files))
    for directory, _, _ in os.walk(target):
        sync_directory(Path(directory))


def _rank(name: str) -> tuple[int, str]:
    order = (REVISION_FILE, "sources/", "topics/")
    return next((i for i, begin in enumerate(order) if name.startswith(begin)), len(order)), name


def _files_below(root: Path, *, runs: bool) -> Iterator[str]:
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory, name)
            relative = path.relative_to(root).as_posix()
            if path.is_file() and not path.is_symlink() and not _left_out(relative, runs=runs):
                yield relative


def _left_out(name: str, *, runs: bool) -> bool:
    """Says whether a file is no part of a backup.

    What an install displaced a moment ago is, where no daemon is there to deal with it.
    """
    private = name.removeprefix(f"{PRIVATE}/")
    if private == name:
        return False
    bare = private
    for ending in _SQLITE_ENDINGS:
        bare = bare.removesuffix(ending)
    derived = bare in _LEFT_OUT or fnmatchcase(bare, NUMBERS_PATTERN)
    return derived or (runs and name.startswith(f"{STAGING}/"))


def _manifest(target: Path) -> Manifest:
    copy = open_reader(target / DATABASE)
    try:
        workspaces = list(workspace_keys(copy))
        return Manifest(
            format=FORMAT,
            version=version("turnmark"),
            at=datetime.now(UTC),
            workspace=workspaces[-1] if workspaces else None,
            revision=int(value_of(copy, "SELECT coalesce(max(revision), 0) FROM workspace")),
            turns=int(value_of(copy, "SELECT count(*) FROM turn")),
            seq=last_seq(copy),
            files={
                path.relative_to(target).as_posix(): digest_of(path)
                for path in sorted(target.rglob("*"))
                if path.is_file()
            },
        )
    finally:
        copy.close()


def _hold_if_free(stack: ExitStack, places: Places) -> bool:
    """Takes the places' locks, for as long as the stack lives, unless a daemon has them."""
    try:
        hold_places(stack, places)
    except PlaceTaken:
        return False
    return True
