"""The file half of an install: new topics go in, and no edit of a person is lost on the way.

For each file the new content is staged, flushed and *exchanged* with what is there; only then is
the displaced file looked at. If it is not the expected base, a person saved meanwhile: their bytes
are merged in and the result is exchanged again, until what comes out is known. A displaced file
stays in the staging directory until `close_exchange`, because an editor that opened it before the
exchange may still be writing into it; those late bytes are merged in as well.

Everything needed to go on after a crash is on disk before the first exchange: a manifest of the
install, and slots whose names say what was staged in them. So a slot with other content than its
name says, than the base, or than what was already merged, is a person's. Running the same install
again rolls it forward: files that hold their new content are skipped, foreign bytes left in slots
are merged again. Therefore a merge must bear repetition:
`merge(b, t, merge(b, t, o)) == merge(b, t, o)`.

Blocks; runs in a worker thread. One install per workspace at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory import durable
from turnmark_memory.durable import digest_of
from turnmark_memory.rooted import names_in, open_regular, parts_of, read_whole, refuse_odd
from turnmark_memory.slots import Slot, Slots, TargetHeldOpen, is_torn_slot, settled_read
from turnmark_memory.workspace import PRIVATE, SOURCES, STAGING, RevisionStamp, Workspace

log = structlog.get_logger(__name__)

Checkpoint = Callable[[str], None]

# Somebody who saves a hundred times during one exchange is a program gone wild.
_ROUNDS_LIMIT = 100
_MANIFEST_SUFFIX = ".manifest"


class StagedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of an install.

    `path` is relative to the workspace. `base` is `digest_of(base_content)`, both None where the
    file must not exist yet; `content` is None to take the file away.
    """

    path: str
    base: str | None
    base_content: bytes | None
    content: bytes | None


class MergeInput(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a person changed while an install was on its way to it.

    `base` is what the install rests on, `theirs` what the person saved (None: they removed the
    file), `ours` what the install put there (None: it takes the file away).
    """

    path: str
    base: bytes | None
    theirs: bytes | None
    ours: bytes | None


Merge = Callable[[MergeInput], bytes]


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file.

    `content` is what was put in place (None: no file, or nothing new was put). `held` says that
    somebody had the file that was there open for writing: nothing is lost, the file stays in
    staging, and `close_exchange` has to look again.
    """

    path: str
    outcome: Literal["installed", "merged", "already"]
    content: bytes | None
    digest: str | None
    held: bool = False


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
            results.append(_FileExchange(workspace, file, slots, merge, checkpoint).run())
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
                _FileExchange(
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


class _FileExchange:
    """One file on its way into the workspace.

    `_known` are digests of contents that hold nothing which is not in what we put in place; None
    stands for "no file".
    """

    def __init__(
        self,
        workspace: Workspace,
        file: StagedFile,
        slots: Slots,
        merge: Merge,
        checkpoint: Checkpoint,
    ) -> None:
        self._tree = workspace.tree
        self._file = file
        self._slots = slots
        self._merge = merge
        self._checkpoint = checkpoint
        self._known: set[str | None] = {file.base, _digest(file.content)} | slots.known()
        self._merged: list[tuple[Slot, str]] = []

    def run(self) -> Exchanged:
        """Installs the file, or what is left to do of it after a crash."""
        try:
            return self._run()
        except TargetHeldOpen:
            log.warning("file_held_open", path=self._file.path)
            return self._result("already", None, held=True)

    def _run(self) -> Exchanged:
        self._slots.heal()
        with self._tree.parent(self._file.path, create=True) as (dir_fd, name):
            refuse_odd(dir_fd, name, self._file.path)
            if not self._slots.exchanged():
                if self._holds_ours(dir_fd, name):
                    os.fsync(dir_fd)
                    return self._result("already", self._file.content)
                return self._put(dir_fd, name, self._file.content)
            leftovers = self._slots.foreign(self._known)
            if not leftovers:
                # What differs from ours was saved when ours was in place: it is an ordinary edit.
                os.fsync(dir_fd)
                return self._result("already", self._now(dir_fd, name))
            return self._rescue(dir_fd, name, leftovers)

    def close(self) -> Exchanged | None:
        """Merges what was written late, and removes the slots; None if there was nothing."""
        self._slots.heal()
        result: Exchanged | None = None
        with self._tree.parent(self._file.path, create=True) as (dir_fd, name):
            try:
                late = self._slots.foreign(self._known)
                if late:
                    log.info("late_write_merged", path=self._file.path)
                    result = self._rescue(dir_fd, name, late)
            except TargetHeldOpen:
                log.warning("displaced_file_held_open", path=self._file.path)
                return self._result("merged", None, held=True)
            if result is not None and result.held:
                return result
            if not self._slots.clear(self._known):
                return self._result("merged", None, held=True)
        return result

    def _rescue(self, dir_fd: int, name: str, slots: list[tuple[Slot, bytes]]) -> Exchanged:
        now = self._now(dir_fd, name)
        self._known.add(_digest(now))
        content = now
        for slot, theirs in slots:
            content = self._merge_in(slot, theirs, content)
        if content == now:
            return self._placed(dir_fd, "merged", content)
        return self._put(dir_fd, name, content, outcome="merged")

    def _put(
        self,
        dir_fd: int,
        name: str,
        content: bytes | None,
        outcome: Literal["installed", "merged"] = "installed",
    ) -> Exchanged:
        before_removal: bytes | None = None
        for _ in range(_ROUNDS_LIMIT):
            self._known.add(_digest(content))
            slot = self._swap(dir_fd, name, content)
            try:
                displaced = self._slots.read(slot) if slot is not None else None
            except TargetHeldOpen:
                return self._placed(dir_fd, outcome, content, held=True)
            except Refused:
                if slot is not None:
                    self._slots.put_back(slot, dir_fd, name)
                raise
            if _digest(displaced) in self._known:
                return self._placed(dir_fd, outcome, content)
            outcome = "merged"
            log.info("persons_edit_merged", path=self._file.path)
            if displaced is None:
                before_removal = content
                # An editor that moves the file away before it writes looks the same for a moment.
                # Should the base come back, it is news.
                self._known.discard(self._file.base)
            elif before_removal is not None:
                # It was no removal: what was dropped because of it is needed again.
                content, before_removal = before_removal, None
            content = self._merge_in(slot, displaced, content)
        raise Unavailable(
            f"{self._file.path} is being saved without pause; the install goes on when it rests.",
            path=self._file.path,
        )

    def _placed(
        self,
        dir_fd: int,
        outcome: Literal["installed", "merged"],
        content: bytes | None,
        *,
        held: bool = False,
    ) -> Exchanged:
        os.fsync(dir_fd)
        self._checkpoint("flushed")
        for slot, digest in self._merged:
            self._slots.mark_merged(slot, digest)
        self._merged.clear()
        return self._result(outcome, content, held=held)

    def _merge_in(
        self, slot: Slot | None, theirs: bytes | None, ours: bytes | None
    ) -> bytes | None:
        digest = _digest(theirs)
        self._known.add(digest)
        if slot is not None and digest is not None:
            self._merged.append((slot, digest))
        wanted = MergeInput(
            path=self._file.path, base=self._file.base_content, theirs=theirs, ours=ours
        )
        merged = self._merge(wanted)
        self._checkpoint("merged")
        # A file in which nothing is left is no file, if one of the two sides took it away.
        return merged if merged or (theirs is not None and ours is not None) else None

    def _swap(self, dir_fd: int, name: str, content: bytes | None) -> Slot | None:
        """Puts `content` at `name`; returns the slot that what was there is in, None: nothing."""
        if content is None:
            return self._slots.take(dir_fd, name)
        slot = self._slots.stage(content)
        self._checkpoint("staged")
        while True:
            try:
                self._slots.swap(slot, dir_fd, name)
            except FileNotFoundError:
                if None not in self._known and self._slots.wait_until_there(dir_fd, name):
                    continue
                try:
                    self._slots.give(slot, dir_fd, name)
                except FileExistsError:
                    continue
                self._checkpoint("created")
                return None
            self._checkpoint("exchanged")
            return slot

    def _holds_ours(self, dir_fd: int, name: str) -> bool:
        try:
            return _digest(self._now(dir_fd, name)) == _digest(self._file.content)
        except TargetHeldOpen:
            return False

    def _now(self, dir_fd: int, name: str) -> bytes | None:
        try:
            return settled_read(dir_fd, name, self._file.path)
        except FileNotFoundError:
            return None

    def _result(
        self,
        outcome: Literal["installed", "merged", "already"],
        content: bytes | None,
        *,
        held: bool = False,
    ) -> Exchanged:
        return Exchanged(
            path=self._file.path,
            outcome=outcome,
            content=content,
            digest=_digest(content),
            held=held,
        )


def _digest(content: bytes | None) -> str | None:
    return None if content is None else digest_of(content)


def _check_paths(files: Sequence[StagedFile]) -> None:
    if len({file.path for file in files}) < len(files):
        raise ValueError("an install names a file twice")
    for path in (file.path for file in files):
        parts = parts_of(path)
        if not parts or parts[0] in (PRIVATE, SOURCES):
            raise Refused(f"{path!r} is no file that an install may write.", path=path)


def _install_name(files: Sequence[StagedFile], stamp: RevisionStamp | None) -> str:
    """Returns 16 hex digits that are equal for a repetition, and only then."""
    told = [(file.path, file.base, _digest(file.content)) for file in files]
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
