"""The file half of an install: new topics go in, and no edit of a person is lost on the way.

Files are exchanged one by one (`file_exchange.py`). Everything needed to go on after a crash is on
disk before the first exchange: a manifest of the install, and slots whose names say what was staged
in them. Running the same install again rolls it forward: files that hold their new content are
skipped, foreign bytes left in slots are merged again.

Blocks; runs in a worker thread. One install per workspace at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec
import structlog

from turnmark_events.errors import Refused
from turnmark_memory import durable
from turnmark_memory.durable import digest_of
from turnmark_memory.file_exchange import (
    Checkpoint,
    Exchanged,
    FileExchange,
    Merge,
    StagedFile,
    digest_or_none,
)
from turnmark_memory.rooted import names_in, open_regular, parts_of, read_whole
from turnmark_memory.slots import Slots, is_torn_slot
from turnmark_memory.workspace import PRIVATE, SOURCES, STAGING, RevisionStamp, Workspace

log = structlog.get_logger(__name__)


_MANIFEST_SUFFIX = ".manifest"


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    files: tuple[StagedFile, ...]


def exchange(
    workspace: Workspace,
    files: Sequence[StagedFile],
    merge: Merge,
    *,
    stamp: RevisionStamp | None = None,
    checkpoint: Checkpoint = lambda _: None,
) -> list[Exchanged]:
    """Puts `files` in place one by one, then the revision `stamp`; durable when it returns.

    Call it again with the same arguments after a crash at any point. `checkpoint` is called
    between steps with their names; a test raises from it.

    Raises:
        Refused: if a path leaves the workspace or leads to something else than a regular file;
            files before it are in place, and a repetition after a repair goes on.
        Unavailable: if the disk fails, or somebody saves without pause; as above.
        ValueError: if two of `files` have one path.
    """
    _check_paths(files)
    install = _install_name(files, stamp)
    with (
        durable.disk_errors("install into the workspace"),
        workspace.tree.directory(STAGING, create=True) as staging_fd,
    ):
        _write_manifest(staging_fd, install, files)
        checkpoint("manifest")
        results: list[Exchanged] = []
        for index, file in enumerate(files):
            slots = Slots(staging_fd, install, index)
            results.append(FileExchange(workspace, file, slots, merge, checkpoint).run())
            checkpoint("file")
        os.fsync(staging_fd)
    if stamp is not None:
        workspace.write_revision(stamp)
        checkpoint("revision")
    return results


def close_exchange(
    workspace: Workspace, merge: Merge, *, checkpoint: Checkpoint = lambda _: None
) -> list[Exchanged]:
    """Merges late writes into displaced files, and clears the staging directory.

    To be called when an install is committed, and at a start after unfinished installs were
    repeated. Returns the files that got a late write, and those that are `held` open still: these
    stay in staging, and the next call looks again.

    Raises:
        Unavailable: if the disk fails; nothing foreign was removed.
    """
    results: list[Exchanged] = []
    with (
        durable.disk_errors("close an install"),
        workspace.tree.directory(STAGING, create=True) as staging_fd,
    ):
        for install, manifest in _manifests(staging_fd):
            found = [
                FileExchange(
                    workspace, file, Slots(staging_fd, install, index), merge, checkpoint
                ).close()
                for index, file in enumerate(manifest.files)
            ]
            late = [result for result in found if result is not None]
            results.extend(late)
            if not any(result.held for result in late):
                os.unlink(install + _MANIFEST_SUFFIX, dir_fd=staging_fd)
        _drop_torn(staging_fd)
        os.fsync(staging_fd)
    return results


def _check_paths(files: Sequence[StagedFile]) -> None:
    if len({file.path for file in files}) < len(files):
        raise ValueError("an install names a file twice")
    for path in (file.path for file in files):
        parts = parts_of(path)
        if not parts or parts[0] in (PRIVATE, SOURCES):
            raise Refused(f"{path!r} is no file that an install may write.", path=path)


def _install_name(files: Sequence[StagedFile], stamp: RevisionStamp | None) -> str:
    """Returns 16 hex digits that are equal for a repetition, and only then."""
    told = [(file.path, file.base, digest_or_none(file.content)) for file in files]
    revision = None if stamp is None else stamp.revision
    return digest_of(msgspec.json.encode((told, revision)))[:16]


def _write_manifest(staging_fd: int, install: str, files: Sequence[StagedFile]) -> None:
    # `close_exchange` may come in another process, after a crash: the bases must be on disk.
    manifest = msgspec.json.encode(_Manifest(files=tuple(files)))
    durable.stage(staging_fd, install + _MANIFEST_SUFFIX, manifest)
    os.fsync(staging_fd)


def _manifests(staging_fd: int) -> Iterator[tuple[str, _Manifest]]:
    for name in sorted(names_in(staging_fd)):
        if not name.endswith(_MANIFEST_SUFFIX):
            continue
        fd = open_regular(staging_fd, name, os.O_RDONLY, name)
        try:
            manifest = msgspec.json.decode(read_whole(fd, name), type=_Manifest)
        except msgspec.MsgspecError as error:
            # Written whole or not at all, so this is damage from outside; its slots stay.
            log.warning("manifest_unreadable", name=name, reason=str(error))
            continue
        finally:
            os.close(fd)
        yield name.removesuffix(_MANIFEST_SUFFIX), manifest


def _drop_torn(staging_fd: int) -> None:
    for name in names_in(staging_fd):
        if is_torn_slot(name):
            os.unlink(name, dir_fd=staging_fd)
