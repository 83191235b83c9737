"""Who may read state and memory: their owner, and nobody else."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from turnmark_memory.workspace import PRIVATE
from turnmark_session_store.findings import Finding, finding, ok

_PRIVATE_BITS = 0o077


def check_rights(directories: Iterable[Path], *, owner: int) -> Finding:
    """State and memory are their owner's alone."""
    open_to_others = list(too_open(directories, owner=owner))
    if open_to_others:
        return finding(
            "rights",
            "warn",
            f"{len(open_to_others):,} files or directories are open to other users",
            repair="takes the rights of others away",
            examples=(map(str, open_to_others)),
        )
    return ok("rights", "state and memory are open to their owner alone")


def too_open(directories: Iterable[Path], *, owner: int) -> Iterator[Path]:
    """Yields what others may read or write, or own, of the directories and of what is theirs.

    Topics are looked at by their directory alone: behind a closed one their own rights are nobody's
    business, and editors set them as they like.
    """
    for directory in directories:
        for path in (directory, *directory.glob("*.db*"), *directory.glob(f"{PRIVATE}/*.db*")):
            try:
                found = path.lstat()
            except FileNotFoundError:
                continue
            if not stat.S_ISLNK(found.st_mode) and (
                found.st_mode & _PRIVATE_BITS or found.st_uid != owner
            ):
                yield path
