"""Passes that would remove too much, held until a person approves or discards them (law 14).

One file each under `.turnmark/held/`, so that a held pass survives a restart and is copied with the
workspace. What was discarded is remembered by digest: the same edits are neither made nor held
again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from threading import RLock
from typing import Final

import msgspec
import structlog

from turnmark_events.errors import NotFound, Refused, Unavailable
from turnmark_memory.night_pass import Pass, Plan, digest_of
from turnmark_memory.rooted import Rooted, names_in
from turnmark_memory.workspace import PRIVATE, STAGING

log = structlog.get_logger(__name__)

HELD: Final = f"{PRIVATE}/held"
_DISCARDED: Final = f"{PRIVATE}/discarded.json"

_REMEMBERED: Final = 100_000
"""Digests of discarded edits that are kept, the newest: a few megabytes at most."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A held pass: it would remove `removes` of the `blocks` that there were."""

    name: str
    at: datetime
    removes: int
    blocks: int


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    held: Held
    work: Pass


class Holding:
    """The held passes of one workspace. Every function but `held` blocks; any thread may call."""

    def __init__(self, tree: Rooted) -> None:
        self._tree = tree
        self._lock = RLock()
        self._held: dict[str, Held] = {}

    def load(self) -> None:
        """Reads what is held; a file that can't be read is logged and left where it is.

        Raises:
            Unavailable: if the directory can't be read.
        """
        with self._lock:
            self._held = {}
            for name in self._names():
                kept = self._read(name)
                if kept is not None:
                    self._held[name] = kept.held

    @property
    def held(self) -> list[Held]:
        """What is held, the oldest first."""
        return sorted(self._held.values(), key=lambda one: (one.at, one.name))

    def hold(self, work: Pass, *, at: datetime, blocks: int) -> Held:
        """Holds a pass, durably.

        A pass of the same kind `same` takes the place of the one before: it was made of what
        memory holds now.

        Raises:
            Unavailable: if the disk fails.
        """
        with self._lock:
            known = self._held.get(work.name)
            if known is not None:
                return known
            held = Held(name=work.name, at=at, removes=work.removes, blocks=blocks)
            content = msgspec.json.encode(_Kept(held=held, work=work))
            self._tree.replace(_path(work.name), content + b"\n", staging=STAGING)
            if work.kind == "same":
                for name in [one for one in self._held if one.startswith("same-")]:
                    self._drop(name)
            self._held[work.name] = held
            return held

    def find(self, asked: bool | str) -> str:
        """Returns the name of the pass that is meant; `True` means the only one.

        Raises:
            NotFound: if no pass of that name is held, or none at all.
            Refused: if several are, and none is named.
        """
        names = sorted(self._held)
        if isinstance(asked, str):
            if asked in names:
                return asked
            held = f"held are {', '.join(names)}" if names else "none is"
            raise NotFound(f"no pass {asked!r} is held; {held}")
        if not names:
            raise NotFound("no pass is held; there is nothing to decide")
        if len(names) > 1:
            raise Refused(f"several passes are held, name one: {', '.join(names)}", passes=names)
        return names[0]

    def work_of(self, name: str) -> Pass:
        """Returns what a held pass would do.

        Raises:
            Unavailable: if its file can't be read; discard it, the next nights make it anew.
        """
        kept = self._read(name)
        if kept is None:
            raise Unavailable(
                f"{_path(name)} can't be read; discard the pass {name}, a later night makes it anew"
            )
        return kept.work

    def release(self, name: str) -> None:
        """Takes a pass off that was carried out.

        Raises:
            Unavailable: if the disk fails.
        """
        with self._lock:
            self._drop(name)

    def discard(self, name: str) -> None:
        """Takes a pass off and remembers that a person wanted none of its edits.

        Raises:
            Unavailable: if the disk fails.
        """
        with self._lock:
            kept = self._read(name)
            edits = [edit for plan in kept.work.plans for edit in plan.edits] if kept else []
            known = dict.fromkeys([*self._discarded(), *map(digest_of, edits)])
            content = msgspec.json.encode([*known][-_REMEMBERED:])
            self._tree.replace(_DISCARDED, content + b"\n", staging=STAGING)
            self._drop(name)

    def wanted(self, plans: Iterable[Plan]) -> tuple[Plan, ...]:
        """Returns the plans without the edits that a person has discarded before."""
        with self._lock:
            discarded = frozenset(self._discarded())
        return tuple(
            msgspec.structs.replace(
                plan, edits=tuple(one for one in plan.edits if digest_of(one) not in discarded)
            )
            for plan in plans
        )

    def scrub(self, names: Iterable[str]) -> None:
        """Drops the passes in which a label or block id of `names` stands: it was forgotten.

        Raises:
            Unavailable: if the disk fails.
        """
        wanted = [name.encode() for name in names]
        with self._lock:
            for name in self._names():
                content = self._tree.read(_path(name)) or b""
                if any(one in content for one in wanted):
                    self._drop(name)

    def _drop(self, name: str) -> None:
        self._tree.remove(_path(name))
        self._held.pop(name, None)

    def _names(self) -> list[str]:
        with self._tree.directory(HELD, create=True) as fd:
            names = names_in(fd)
        return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))

    def _read(self, name: str) -> _Kept | None:
        try:
            return msgspec.json.decode(self._tree.read(_path(name)) or b"", type=_Kept)
        except (Refused, Unavailable, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("held_pass_unreadable", name=name, reason=str(error))
            return None

    def _discarded(self) -> list[str]:
        try:
            return msgspec.json.decode(self._tree.read(_DISCARDED) or b"[]", type=list[str])
        except (Refused, Unavailable, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("discarded_passes_unreadable", reason=str(error))
            return []


def _path(name: str) -> str:
    return f"{HELD}/{name}.json"
