"""What a backup is: its places, its manifest, and how one tells that it is whole.

<backup>/backup.json      written last: what it holds, with the digest of every file
<backup>/sessions.db      the session store
<backup>/workspace/…      the Markdown memory, without what is derived or only for a moment
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

import msgspec

from turnmark.private_files import digest_of
from turnmark_events.errors import Refused
from turnmark_memory.workspace import PRIVATE
from turnmark_session_store.database import open_reader
from turnmark_session_store.place_lock import hold_lock
from turnmark_session_store.queries import value_of
from turnmark_session_store.schema import SCHEMA_VERSION

DATABASE = "sessions.db"
MANIFEST = "backup.json"
WORKSPACE = "workspace"
LOCK = "lock"
FORMAT = 1


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """The directories that are backed up, or restored to."""

    state: Path
    workspace: Path


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
    if manifest.format != FORMAT:
        raise Refused(
            f"{source} was made by turnmark {manifest.version} in format {manifest.format}; "
            "restore it with that version",
            path=str(source),
        )
    return manifest


def check_files(source: Path, manifest: Manifest) -> None:
    """Passes if every file is there as it was written, and this version can read the database.

    Raises:
        Refused: if one is missing or damaged, or a newer version wrote them.
    """
    for name, digest in manifest.files.items():
        path = source / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise Refused(f"{source} names a file outside of itself: {name}", path=str(source))
        if path.is_symlink() or not path.is_file() or digest_of(path) != digest:
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


def hold_places(stack: ExitStack, places: Places) -> None:
    """Takes the locks of those places that are there, for as long as the stack lives.

    Raises:
        PlaceTaken: if a daemon has one of them.
    """
    for directory in (places.state, places.workspace / PRIVATE):
        if directory.is_dir():
            stack.enter_context(hold_lock(directory / LOCK))
