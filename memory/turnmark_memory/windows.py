"""Windows: the part of a topic that a model is asked about at once, whatever the topic's length.

A window is known by what it shows. One that is as it was when it was tidied last is not asked about
again, so a memory in which nothing happens costs nothing, however many nights pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from hashlib import blake2b
from typing import Final

import msgspec
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory.model import ShownBlock
from turnmark_memory.rooted import Rooted
from turnmark_memory.sameness import Resting
from turnmark_memory.workspace import PRIVATE, STAGING

log = structlog.get_logger(__name__)

TIDIED_FILE: Final = f"{PRIVATE}/tidied.json"

WINDOW_TOKENS: Final = 4_000
"""Words shown in one question: some hundred blocks, which even a small model reads whole."""

WINDOW_BLOCKS: Final = 80
"""Blocks shown in one question: each costs ids, dates and cites besides its words."""

_LEAST_BLOCKS: Final = 2
"""With a single block there is nothing to join, and a topic of one is not tidied for its sake."""


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Blocks of one topic in its order; `is_first` is the window that also says what it is about.

    `about` is what the topic is about now, None where a person said it.
    """

    topic: str
    blocks: tuple[Resting, ...]
    about: str | None
    is_first: bool

    @property
    def digest(self) -> str:
        """What the window shows, in 32 hex digits."""
        return digest_of(self.topic, [block.shown for block in self.blocks])


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A window that a model was asked about: `failed` are the nights in a row without an answer."""

    topic: str
    day: date
    failed: int = 0


class _Tidied(msgspec.Struct, frozen=True, kw_only=True):
    windows: dict[str, Attempt] = {}


def digest_of(topic: str, shown: Iterable[ShownBlock]) -> str:
    """Returns the digest of a window that shows these blocks of a topic."""
    lines = [topic, *(f"{block.block} {block.hash} {block.heading or ''}" for block in shown)]
    seen = "\x00".join(lines).encode("utf-8", "surrogatepass")
    return blake2b(seen, digest_size=16).hexdigest()


def windows_of(
    topic: str, blocks: Sequence[Resting], about: str | None, count: Callable[[str], int]
) -> list[Window]:
    """Returns a topic's windows; each holds as many blocks as fit, at least one."""
    groups: list[list[Resting]] = []
    room = 0
    for block in blocks:
        tokens = count(block.shown.text)
        if not groups or tokens > room or len(groups[-1]) == WINDOW_BLOCKS:
            groups.append([])
            room = WINDOW_TOKENS
        groups[-1].append(block)
        room -= tokens
    return [
        Window(topic=topic, blocks=tuple(group), about=about, is_first=place == 0)
        for place, group in enumerate(groups)
        if len(group) >= _LEAST_BLOCKS
    ]


class Tidied:
    """Which windows were tidied, and which brought no answer; one small file.

    Losing it costs questions, nothing else. Every function blocks.
    """

    def __init__(self, tree: Rooted) -> None:
        self._tree = tree
        self._state = self._read()

    def due(self, windows: Iterable[Window]) -> list[Window]:
        """Returns the windows to ask about: those that were not tried yet, then the oldest try."""

        def turn(window: Window) -> tuple[int, int, str, str]:
            tried = self._state.windows.get(window.digest)
            if tried is None:
                return 0, 0, window.topic, window.digest
            return tried.failed, tried.day.toordinal(), window.topic, window.digest

        waiting = (one for one in windows if not self._is_done(one.digest))
        return sorted(waiting, key=turn)

    def _is_done(self, digest: str) -> bool:
        tried = self._state.windows.get(digest)
        return tried is not None and tried.failed == 0

    def note(
        self,
        day: date,
        *,
        done: Iterable[tuple[str, str]] = (),
        failed: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Notes (topic, digest) of windows that were tidied, or brought no answer.

        Raises:
            Unavailable: if the disk fails; the windows are asked about again.
        """
        windows = dict(self._state.windows)
        for topic, digest in failed:
            before = windows.get(digest)
            times = 1 if before is None else before.failed + 1
            windows[digest] = Attempt(topic=topic, day=day, failed=times)
        for topic, digest in done:
            windows[digest] = Attempt(topic=topic, day=day)
        self._state = _Tidied(windows=windows)
        self._write()

    def save(self) -> None:
        """Writes what is noted, as it is: what comes of a question can be noted as well then.

        Raises:
            Unavailable: if the disk fails.
        """
        self._write()

    def keep(self, digests: Iterable[str]) -> None:
        """Forgets windows that are not there any more; writes only if there are any.

        Raises:
            Unavailable: if the disk fails.
        """
        there = set(digests)
        before = self._state
        self._state = _Tidied(
            windows={one: tried for one, tried in before.windows.items() if one in there}
        )
        if self._state != before:
            self._write()

    def _read(self) -> _Tidied:
        try:
            content = self._tree.read(TIDIED_FILE)
            return msgspec.json.decode(content, type=_Tidied) if content else _Tidied()
        except (Refused, Unavailable, msgspec.MsgspecError, UnicodeDecodeError) as error:
            log.warning("tidied_discarded", reason=str(error))
            return _Tidied()

    def _write(self) -> None:
        self._tree.replace(TIDIED_FILE, msgspec.json.encode(self._state) + b"\n", staging=STAGING)
