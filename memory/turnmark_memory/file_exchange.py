"""One file on its way into the workspace: exchanged with what is there, which is then looked at.

The new content is staged, flushed and *exchanged* with what is there; only then is the displaced
file looked at. If it is not the expected base, a person saved meanwhile: their bytes are merged in
and the result is exchanged again, until what comes out is known. A displaced file stays in its slot
until `close`, because an editor that opened it before the exchange may still be writing into it;
those late bytes are merged in as well.

A slot's name says what was staged in it. So a slot with other content than its name says, than the
base, or than what was already merged, is a person's: that is all that going on after a crash needs
to know. Therefore a merge must bear repetition: `merge(b, t, merge(b, t, o)) == merge(b, t, o)`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

import msgspec
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.durable import digest_of
from turnmark_memory.rooted import refuse_odd
from turnmark_memory.slots import Slot, Slots, TargetHeldOpen, settled_read
from turnmark_memory.workspace import Workspace

log = structlog.get_logger(__name__)

Checkpoint = Callable[[str], None]

# Somebody who saves a hundred times during one exchange is a program gone wild.
_ROUNDS_LIMIT = 100


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


class FileExchange:
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
        self._known: set[str | None] = {file.base, digest_or_none(file.content)} | slots.known()
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
        self._known.add(digest_or_none(now))
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
            self._known.add(digest_or_none(content))
            slot = self._swap(dir_fd, name, content)
            try:
                displaced = self._slots.read(slot) if slot is not None else None
            except TargetHeldOpen:
                return self._placed(dir_fd, outcome, content, held=True)
            except Refused:
                if slot is not None:
                    self._slots.put_back(slot, dir_fd, name)
                raise
            if digest_or_none(displaced) in self._known:
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
        digest = digest_or_none(theirs)
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
            return digest_or_none(self._now(dir_fd, name)) == digest_or_none(self._file.content)
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
            digest=digest_or_none(content),
            held=held,
        )


def digest_or_none(content: bytes | None) -> str | None:
    """Returns the digest of a file's content, None for no file."""
    return None if content is None else digest_of(content)
