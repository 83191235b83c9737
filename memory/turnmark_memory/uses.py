"""Use counts: how often a block was shown in a context or opened, by local day.

A use is noted in memory alone, so recall never waits for it; `run` appends what was noted to
`.turnmark/uses.jsonl`, a line at a time. A process that is killed loses the uses of its last
moment, a power cut those of the last seconds: they weigh little, and nothing rests on them but the
order of the core page. The file is not part of the derived index. A copy of it taken at any moment
is whole but for its last line, which is passed over.

Uses are kept by the id under which they were noted. After a merge that id is an alias, which the
reader resolves.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from threading import Lock
from typing import Final

import anyio
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import Refused, Unavailable
from turnmark_memory import durable
from turnmark_memory.rooted import Rooted
from turnmark_memory.workspace import PRIVATE, STAGING

log = structlog.get_logger(__name__)

USES_FILE: Final = f"{PRIVATE}/uses.jsonl"

HALF_LIFE_DAYS: Final = 30
"""After this a use, as a source, weighs half: what mattered last quarter still does a little."""

DAILY_LIMIT: Final = 3
"""Uses of a block that count in a day: one long conversation must not outweigh weeks."""

_EXACT_DAYS: Final = 60
"""Days that are kept apart; what is older is folded into one weight per block."""

_LEAST_WEIGHT: Final = 2.0**-10
"""A folded weight below this (ten half-lives, most of a year) is dropped."""


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Uses of one day, or what older days weigh on that day."""

    day: date
    uses: dict[str, int] = {}
    weights: dict[str, float] = {}


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[_Line] = msgspec.json.Decoder(_Line)


def _local_day() -> date:
    return datetime.now().astimezone().date()


class Uses:
    """The use counts of one workspace. `note` may be called on the event loop; it never blocks."""

    def __init__(self, tree: Rooted, *, today: Callable[[], date] = _local_day) -> None:
        self._tree = tree
        self._today = today
        self._noted: defaultdict[date, Counter[str]] = defaultdict(Counter)
        self._wake = anyio.Event()
        self._buffer = Lock()  # held to add or to swap, never over the disk
        self._file = Lock()

    def note(self, blocks: Iterable[str]) -> None:
        """Counts one use of each of `blocks`, by id or alias."""
        names = [block.removeprefix("^") for block in blocks]
        if names:
            with self._buffer:
                self._noted[self._today()].update(names)
            self._wake.set()

    async def run(self) -> None:
        """Writes what is noted until cancelled; sleeps while there is nothing."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            await anyio.to_thread.run_sync(self.write)

    def write(self) -> None:
        """Appends what was noted to the file; blocks. What the disk refuses is kept for later."""
        with self._buffer:
            noted, self._noted = self._noted, defaultdict(Counter)
        lines = [_encoder.encode(_Line(day=day, uses=dict(uses))) for day, uses in noted.items()]
        if not lines:
            return
        try:
            with self._file:
                self._append(b"".join(line + b"\n" for line in lines))
        except (OSError, Refused, Unavailable) as error:
            with self._buffer:
                for day, uses in noted.items():
                    self._noted[day].update(uses)
            log.warning("uses_not_written", reason=str(error))

    def _append(self, content: bytes) -> None:
        fd = self._tree.open(USES_FILE, os.O_RDWR | os.O_APPEND, create=True)
        try:
            size = os.fstat(fd).st_size
            # A line that a kill cut short must not swallow the next one.
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            durable.write_all(fd, b"\n" + content if torn else content)
        finally:
            os.close(fd)

    def weights(self, on: date) -> dict[str, float]:
        """Returns what each block's uses weigh on a day: one of that day is 1; blocks.

        All of it decays alike, so that the order of blocks stays while nothing happens.

        Raises:
            Unavailable: if the file can't be read.
        """
        self.write()
        with self._file:
            return _weighed(self._read(), on)

    def fold(self, on: date) -> None:
        """Folds days that are long past into one weight per block; blocks.

        Raises:
            Unavailable: if the disk fails; nothing is lost.
        """
        self.write()
        with self._file:
            lines = self._read()
            if not lines:
                return
            content = b"".join(_encoder.encode(line) + b"\n" for line in _folded(lines, on))
            if content != self._tree.read(USES_FILE):
                self._tree.replace(USES_FILE, content, staging=STAGING)

    def _read(self) -> list[_Line]:
        found: list[_Line] = []
        for line in (self._tree.read(USES_FILE) or b"").splitlines():
            try:
                found.append(_decoder.decode(line))
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue  # a line that was cut short, or is nobody's
        return found


def _folded(lines: Sequence[_Line], on: date) -> list[_Line]:
    """Returns the lines with what is long past in one; as they are if nothing is new in it."""
    merged = _by_day(lines)
    weights = [line for line in merged if line.weights]
    days = [line for line in merged if line.uses]
    past = [line for line in days if (on - line.day).days > _EXACT_DAYS]
    if past or len(weights) > 1:
        weighed = sorted(_weighed([*weights, *past], on).items())
        kept = {block: weight for block, weight in weighed if weight >= _LEAST_WEIGHT}
        weights = [_Line(day=on, weights=kept)] if kept else []
    return [*weights, *(line for line in days if line not in past)]


def _by_day(lines: Iterable[_Line]) -> list[_Line]:
    """Returns one line a day, and those of weights as they are."""
    uses: defaultdict[date, Counter[str]] = defaultdict(Counter)
    weights: list[_Line] = []
    for line in lines:
        uses[line.day].update(line.uses)
        if line.weights:
            weights.append(_Line(day=line.day, weights=line.weights))
    days = [_Line(day=day, uses=dict(sorted(uses[day].items()))) for day in sorted(uses)]
    return [*weights, *(line for line in days if line.uses)]


def _weighed(lines: Iterable[_Line], on: date) -> dict[str, float]:
    weights: defaultdict[str, float] = defaultdict(float)
    for line in _by_day(lines):
        share = decayed(line.day, on)
        for block, times in line.uses.items():
            weights[block] += min(times, DAILY_LIMIT) * share
        for block, weight in line.weights.items():
            weights[block] += weight * share
    return dict(weights)


def decayed(day: date, on: date) -> float:
    """Returns what something of `day` weighs `on` a later day; what lies ahead weighs 1."""
    return float(2.0 ** (-max(0, (on - day).days) / HALF_LIFE_DAYS))


def resolved(weights: Mapping[str, float], now: Callable[[str], str | None]) -> dict[str, float]:
    """Returns the weights by the ids that blocks have `now`; those of blocks that are gone fall."""
    found: defaultdict[str, float] = defaultdict(float)
    for name, weight in sorted(weights.items()):
        block = now(name)
        if block is not None:
            found[block] += weight
    return dict(found)
