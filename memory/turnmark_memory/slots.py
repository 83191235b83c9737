"""The slots of one file of an install: staged content before the exchange, the displaced after it.

A slot is a file in the staging directory. Its name says which install, file and round it belongs
to, the digest of what was staged in it, and, once a person's bytes in it were merged, their
digest: `<install>.<index>.<round>.<staged>[.<merged>]`. So after a crash content alone tells what
is still to do; no second record has to agree with it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import signal
import time

import msgspec

from turnmark_memory import durable
from turnmark_memory.durable import digest_of
from turnmark_memory.rooted import names_in, open_regular, read_whole

# The file had to go away, nothing was staged.
_TAKEN = "taken"
_NAME = re.compile(
    r"(?P<install>[0-9a-f]{16})\.(?P<index>\d{1,6})\.(?P<round>\d{1,6})"
    r"\.(?P<staged>[0-9a-f]{64}|taken)(?:\.(?P<merged>[0-9a-f]{64}))?"
)
_TORN_NAME = re.compile(_NAME.pattern + re.escape(durable.TORN_SUFFIX))

# How long a save may take that had begun before the exchange; longer ones are looked at later.
_SAVE_SECONDS = 2.0
# vim moves the file away and writes a new one: this long its absence may be a save.
_ABSENCE_SECONDS = 0.1
_STEP_SECONDS = 0.002

# fcntl.h; Python's fcntl doesn't have it.
_F_SETSIG = 10


class TargetHeldOpen(Exception):
    """Somebody has the file open for writing, so what is in it may be half of a save."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """One slot; its fields are its name."""

    install: str
    index: int
    round: int
    staged: str
    merged: str | None = None

    @property
    def name(self) -> str:
        """The file's name in the staging directory."""
        plain = f"{self.install}.{self.index}.{self.round}.{self.staged}"
        return plain if self.merged is None else f"{plain}.{self.merged}"


class Slots:
    """The slots of the file number `index` of `install`. Names are read anew at each call."""

    def __init__(self, staging_fd: int, install: str, index: int) -> None:
        self._fd = staging_fd
        self._install = install
        self._index = index

    def heal(self) -> None:
        """Completes what a crash within a single step left (see `durable.heal_exchange`)."""
        for name in names_in(self._fd):
            if name.endswith(durable.FALLBACK_SUFFIX):
                durable.heal_exchange(self._fd, name.removesuffix(durable.FALLBACK_SUFFIX))

    def known(self) -> set[str]:
        """Returns the digests of all that was staged here or merged from here."""
        slots = self._all()
        return {slot.staged for slot in slots} | {slot.merged for slot in slots if slot.merged}

    def exchanged(self) -> bool:
        """Tells whether an exchange has happened: some slot holds what was not staged in it."""
        return any(self._read_now(slot) != slot.staged for slot in self._all())

    def foreign(self, known: set[str | None]) -> list[tuple[Slot, bytes]]:
        """Returns the slots whose content isn't `known`, oldest first, with that content.

        Raises:
            TargetHeldOpen: if one of them is being written to.
        """
        found = [(slot, self.read(slot)) for slot in self._all()]
        return [(slot, content) for slot, content in found if digest_of(content) not in known]

    def stage(self, content: bytes) -> Slot:
        """Puts `content` into a new slot, durably."""
        slot = self._next(digest_of(content))
        durable.stage(self._fd, slot.name, content)
        os.fsync(self._fd)
        return slot

    def swap(self, slot: Slot, dir_fd: int, name: str) -> None:
        """Exchanges the slot with `name`; FileNotFoundError if there is no `name`."""
        durable.exchange_names(self._fd, slot.name, dir_fd, name)

    def give(self, slot: Slot, dir_fd: int, name: str) -> None:
        """Moves the slot's file to `name`; FileExistsError if there is a `name`."""
        durable.rename_new(self._fd, slot.name, dir_fd, name)

    def take(self, dir_fd: int, name: str) -> Slot | None:
        """Moves `name` into a new slot; None if there is no `name`."""
        slot = self._next(_TAKEN)
        try:
            durable.rename_new(dir_fd, name, self._fd, slot.name)
        except FileNotFoundError:
            return None
        return slot

    def put_back(self, slot: Slot, dir_fd: int, name: str) -> None:
        """Undoes `swap` or `take`: what was displaced is at `name` again."""
        if slot.staged == _TAKEN:
            self.give(slot, dir_fd, name)
        else:
            self.swap(slot, dir_fd, name)

    def read(self, slot: Slot) -> bytes:
        """Returns the slot's content once nobody writes to it any more.

        Raises:
            TargetHeldOpen: if somebody still does after a while.
            Refused: if what was displaced is no regular file.
        """
        return settled_read(self._fd, slot.name, slot.name)

    def mark_merged(self, slot: Slot, digest: str) -> None:
        """Notes in the slot's name that its content `digest` is merged into what is in place."""
        marked = Slot(
            install=slot.install,
            index=slot.index,
            round=slot.round,
            staged=slot.staged,
            merged=digest,
        )
        # Not flushed: after a power cut the bytes are merged once more, which changes nothing.
        with contextlib.suppress(FileNotFoundError):
            os.rename(slot.name, marked.name, src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def clear(self, known: set[str | None]) -> bool:
        """Removes the slots whose content is `known`; false if one had to stay."""
        known = known | self.known()
        complete = True
        for slot in self._all():
            try:
                removable = digest_of(self.read(slot)) in known
            except TargetHeldOpen:
                removable = False
            if removable:
                os.unlink(slot.name, dir_fd=self._fd)
            complete = complete and removable
        return complete

    @staticmethod
    def wait_until_there(dir_fd: int, name: str) -> bool:
        """Waits a moment for a file that an editor may just be replacing; false if none came."""
        deadline = time.monotonic() + _ABSENCE_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
                return True
            time.sleep(_STEP_SECONDS)
        return False

    def _all(self) -> list[Slot]:
        found = (parse_slot(name) for name in names_in(self._fd))
        mine = [slot for slot in found if slot is not None and self._is_mine(slot)]
        return sorted(mine, key=lambda slot: slot.round)

    def _is_mine(self, slot: Slot) -> bool:
        return slot.install == self._install and slot.index == self._index

    def _next(self, staged: str) -> Slot:
        used = [slot.round for slot in self._all()]
        return Slot(
            install=self._install, index=self._index, round=max(used, default=-1) + 1, staged=staged
        )

    def _read_now(self, slot: Slot) -> str:
        fd = open_regular(self._fd, slot.name, os.O_RDONLY, slot.name)
        try:
            return digest_of(read_whole(fd, slot.name))
        finally:
            os.close(fd)


def parse_slot(name: str) -> Slot | None:
    """Returns the slot with this file name, None if it is no slot's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return Slot(
        install=match["install"],
        index=int(match["index"]),
        round=int(match["round"]),
        staged=match["staged"],
        merged=match["merged"],
    )


def is_torn_slot(name: str) -> bool:
    """Tells whether `name` is a slot that a crash left half written."""
    return _TORN_NAME.fullmatch(name) is not None


def settled_read(dir_fd: int, name: str, path: str) -> bytes:
    """Returns a file's bytes when nobody has it open for writing.

    A save in place truncates first: read in between, a person's file looks empty, and a merge
    would take their paragraphs for removed. So a writer is waited for, with short steps and for
    `_SAVE_SECONDS` at most; nobody pays this but an install that meets a save.

    Raises:
        FileNotFoundError: if there is no such file.
        TargetHeldOpen: if it is still open for writing after that time.
        Refused: if it is no regular file of ours.
    """
    fd = open_regular(dir_fd, name, os.O_RDONLY, path)
    try:
        deadline = time.monotonic() + _SAVE_SECONDS
        while _has_writer(fd):
            if time.monotonic() > deadline:
                raise TargetHeldOpen(path)
            time.sleep(_STEP_SECONDS)
        return read_whole(fd, path)
    finally:
        os.close(fd)


def _has_writer(fd: int) -> bool:
    # A read lease is granted only while nobody has the file open for writing. It is given back
    # at once; should somebody open the file within these microseconds, the kernel sends a signal,
    # by default one that kills (SIGIO), hence SIGURG, which is ignored by default.
    # Where leases are unknown (network file systems) the answer is no, and the second look of
    # `close_exchange` is all there is.
    try:
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False
