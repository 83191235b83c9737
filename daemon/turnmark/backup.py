"""A backup: state and workspace as one directory, taken beside a running daemon, put back later.

The order makes it safe. First the database, one snapshot of a commit; then the workspace, whose
files are then of that commit's revision or newer. So marks never speak of topics that the backup
does not hold: what is newer in the files is at worst offered to memory again. Between two installs,
which is nearly always, both are of one revision: that is looked for, a few times.

    <backup>/backup.json      written last: what it holds, with the digest of every file
    <backup>/sessions.db      the session store
    <backup>/workspace/…      the Markdown memory, without what is derived or only for a moment

What is derived (the index, the map of sources) is built anew from the rest. Everything here blocks.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

import apsw
import msgspec

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.embedding.vector_file import NUMBERS_PATTERN
from turnmark_memory.whereabouts import set_places
from turnmark_memory.workspace import PRIVATE, REVISION_FILE, STAGING, RevisionStamp
from turnmark_session_store.checkup import workspace_keys
from turnmark_session_store.database import open_reader, open_writer
from turnmark_session_store.event_table import last_seq
from turnmark_session_store.place_lock import PlaceLock, PlaceTaken, hold_lock
from turnmark_session_store.queries import value_of
from turnmark_session_store.schema import SCHEMA_VERSION

DATABASE = "sessions.db"
MANIFEST = "backup.json"
_WORKSPACE = "workspace"
_LOCK = "lock"
_FORMAT = 1

# Derived, or of the process that runs; `bases.db` is good only beside the very files it was beside.
_LEFT_OUT = frozenset({"lock", "index.db", "sources.db", "bases.db", "vectors.db"})
_SQLITE_ENDINGS = ("-wal", "-shm", "-journal")

# An install is over in milliseconds; one that comes again and again is lived with after so many.
_TRIES = 20
_CHUNK_BYTES = 1 << 20
_FILE_MODE = 0o600
_DIR_MODE = 0o700

Progress = Callable[[int, int], None]
"""Hears how many files of how many are copied."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup holds; `files` are digests by path, `revision` is that of the database."""

    format: int
    version: str
    at: datetime
    workspace: str | None
    revision: int
    turns: int
    seq: int
    files: dict[str, str]


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The directories that are backed up, or restored to."""

    state: Path
    workspace: Path


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did: `aside` is where it put what was there before."""

    manifest: Manifest
    aside: tuple[Path, ...]


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
    with _disk_errors(f"write the backup {target}"):
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=_DIR_MODE, parents=True)
        try:
            manifest = _fill(places, unfinished, progress)
            if target.is_dir():
                target.rmdir()
            unfinished.rename(target)
            _sync_directory(target.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return manifest


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
    _check_files(source, manifest)
    ending = f".before-restore-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    with _disk_errors("restore the backup"), ExitStack() as stack:
        _hold_places(stack, places)
        filled = [path for path in (places.state, places.workspace) if _is_filled(path)]
        if filled and not force:
            there = " and ".join(str(path) for path in filled)
            raise Refused(
                f"there is something in {there}; with --force it is moved aside first",
                places=[str(path) for path in filled],
            )
        fresh = Places(state=_beside(places.state), workspace=_beside(places.workspace))
        try:
            _copy_back(source, fresh, places, stack)
            aside = [
                kept for path in (places.state, places.workspace) if (kept := _aside(path, ending))
            ]
            fresh.workspace.rename(places.workspace)
            fresh.state.rename(places.state)
        finally:
            shutil.rmtree(fresh.state, ignore_errors=True)
            shutil.rmtree(fresh.workspace, ignore_errors=True)
        _sync_directory(places.workspace.parent)
        _sync_directory(places.state.parent)
    return Restored(manifest=manifest, aside=tuple(aside))


def read_manifest(source: Path) -> Manifest:
    """Returns what a backup says that it holds.

    Raises:
        Refused: if it is no whole backup, or one of a newer version.
    """
    if not source.exists():
        raise Refused(f"there is no {source}; check the path", path=str(source))
    try:
        manifest = msgspec.json.decode((source / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refused(
            f"{source} is no whole backup: its {MANIFEST} can't be read ({error})",
            path=str(source),
        ) from error
    if manifest.format != _FORMAT:
        raise Refused(
            f"{source} was made by turnmark {manifest.version} in format {manifest.format}; "
            "restore it with that version",
            path=str(source),
        )
    return manifest


def _fill(places: Places, target: Path, progress: Progress) -> Manifest:
    """Copies until nothing was installed meanwhile, or it was tried often enough."""
    with ExitStack() as stack:
        runs = not _hold_if_free(stack, places)
        for left in range(_TRIES, -1, -1):
            revision, is_open = _copy_database(places, target / DATABASE)
            # An install that is under way would be finished on files that have gone on since.
            is_last = left == 0
            if runs and not is_last and (is_open or _revision_of(places.workspace) != revision):
                continue
            shutil.rmtree(target / _WORKSPACE, ignore_errors=True)
            _copy_workspace(places.workspace, target / _WORKSPACE, progress, runs=runs)
            if not runs or is_last or _revision_of(places.workspace) == revision:
                break
    manifest = _manifest(target)
    _write(target / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    _sync_directory(target)
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
    target.chmod(_FILE_MODE)
    copy = open_reader(target)
    try:
        found = value_of(copy, "PRAGMA quick_check(1)")
        if found != "ok":
            raise Unavailable(f"the copy of the database is not whole ({found}); nothing was kept")
        revision = value_of(copy, "SELECT coalesce(max(revision), 0) FROM workspace")
        is_open = value_of(copy, "SELECT 1 FROM install WHERE closed_ms IS NULL LIMIT 1")
    finally:
        copy.close()
    _sync_file(target)
    return int(revision), is_open is not None


def _copy_workspace(source: Path, target: Path, progress: Progress, *, runs: bool) -> None:
    """Copies the files of a workspace: the revision first, then evidence, then all the rest."""
    target.mkdir(mode=_DIR_MODE)
    if not source.is_dir():
        return
    files = sorted(_files_below(source, runs=runs), key=_rank)
    for done, name in enumerate(files):
        _copy_file(source / name, target / name)
        progress(done + 1, len(files))
    for directory, _, _ in os.walk(target):
        _sync_directory(Path(directory))


def _make_private(path: Path) -> None:
    """Makes a directory and what is missing above it, all private: `mkdir` minds only the last."""
    if not path.is_dir():
        _make_private(path.parent)
        path.mkdir(mode=_DIR_MODE)


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


def _copy_file(source: Path, target: Path) -> None:
    """Copies one file whole: one that was exchanged while it was read is read again."""
    _make_private(target.parent)
    for _ in range(_TRIES):
        try:
            with source.open("rb") as file, target.open("wb") as copy:
                os.fchmod(copy.fileno(), _FILE_MODE)
                inode = os.fstat(file.fileno()).st_ino
                shutil.copyfileobj(file, copy, _CHUNK_BYTES)
                copy.flush()
                os.fsync(copy.fileno())
            if source.stat().st_ino == inode:
                return
        except FileNotFoundError:
            if not source.exists():
                target.unlink(missing_ok=True)  # taken away meanwhile: it is no part of this state
                return


def _manifest(target: Path) -> Manifest:
    copy = open_reader(target / DATABASE)
    try:
        workspaces = list(workspace_keys(copy))
        return Manifest(
            format=_FORMAT,
            version=version("turnmark"),
            at=datetime.now(UTC),
            workspace=workspaces[-1] if workspaces else None,
            revision=int(value_of(copy, "SELECT coalesce(max(revision), 0) FROM workspace")),
            turns=int(value_of(copy, "SELECT count(*) FROM turn")),
            seq=last_seq(copy),
            files={
                path.relative_to(target).as_posix(): _digest(path)
                for path in sorted(target.rglob("*"))
                if path.is_file()
            },
        )
    finally:
        copy.close()


def _check_files(source: Path, manifest: Manifest) -> None:
    for name, digest in manifest.files.items():
        path = source / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise Refused(f"{source} names a file outside of itself: {name}", path=str(source))
        if path.is_symlink() or not path.is_file() or _digest(path) != digest:
            raise Refused(
                f"{name} of the backup {source} is missing or damaged; nothing was changed",
                path=str(path),
            )
    copy = open_reader(source / DATABASE)
    try:
        schema = value_of(copy, "PRAGMA user_version")
    finally:
        copy.close()
    if int(schema) > SCHEMA_VERSION:
        raise Refused(f"{source} was made by a newer turnmark ({manifest.version}); install it")


def _copy_back(source: Path, fresh: Places, places: Places, stack: ExitStack) -> None:
    """Fills the new directories, each locked before it gets its name."""
    for path in (fresh.state, fresh.workspace):
        shutil.rmtree(path, ignore_errors=True)
        _make_private(path)
    (fresh.workspace / PRIVATE).mkdir(mode=_DIR_MODE)
    stack.enter_context(hold_lock(fresh.state / _LOCK))
    stack.enter_context(hold_lock(fresh.workspace / PRIVATE / _LOCK))
    for name in read_manifest(source).files:
        home = fresh.state if name == DATABASE else fresh.workspace
        _copy_file(source / name, home / name.removeprefix(f"{_WORKSPACE}/"))
    database = open_writer(fresh.state / DATABASE)
    try:
        with database:
            for workspace in workspace_keys(database):
                # What is restored here is meant to be here, also where the original still is.
                set_places(database, workspace, [places.workspace.resolve()])
    finally:
        database.close()


def _hold_if_free(stack: ExitStack, places: Places) -> bool:
    """Takes the places' locks, for as long as the stack lives, unless a daemon has them."""
    try:
        _hold_places(stack, places)
    except PlaceTaken:
        return False
    return True


def _hold_places(stack: ExitStack, places: Places) -> None:
    for directory in (places.state, places.workspace / PRIVATE):
        if directory.is_dir():
            lock: PlaceLock = hold_lock(directory / _LOCK)
            stack.enter_context(lock)


def _is_filled(path: Path) -> bool:
    """Says whether a directory holds more than locks and the name of a socket."""
    if path.is_dir() and not path.is_symlink():
        idle = {_LOCK, "socket.path"}
        return any(p.is_file() and p.name not in idle for p in path.rglob("*"))
    return path.exists() or path.is_symlink()


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.restoring")


def _aside(path: Path, ending: str) -> Path | None:
    """Moves what is at `path` aside; returns where to, None where nothing worth keeping was."""
    if not path.exists():
        _make_private(path.parent)
        return None
    if not _is_filled(path):
        shutil.rmtree(path)
        return None
    kept = path.with_name(path.name + ending)
    path.rename(kept)
    return kept


def _revision_of(workspace: Path) -> int:
    try:
        content = (workspace / REVISION_FILE).read_bytes()
        return msgspec.json.decode(content, type=RevisionStamp).revision
    except (OSError, msgspec.MsgspecError):
        return 0


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        total = blake2b(digest_size=32)
        while chunk := file.read(_CHUNK_BYTES):
            total.update(chunk)
        return total.hexdigest()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        os.fchmod(file.fileno(), _FILE_MODE)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _disk_errors(doing: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise Unavailable(f"could not {doing}: {error.strerror or error}{where}") from error
    except apsw.Error as error:
        raise Unavailable(f"could not {doing}: {error}") from error
