"""People's edits as they come: taken in when a file event tells of them, numbered when it is quiet.

A file event is a hint where to look, as any event is. What can't be taken in now (somebody is still
writing, or the disk fails) is looked at again a little later. Ids and marks are written into a file
with its next install, or when nobody has saved it for ten minutes: an editor that is open on it
would otherwise ask its user again and again whether to load the file anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.install import Installer
from turnmark_memory.workspace import TOPICS
from turnmark_session_store.deadline import DeadlineTimer, Wake

log = structlog.get_logger(__name__)

QUIET = timedelta(minutes=10)
"""Nobody has saved a file for this long: whoever had it open has probably turned away."""

_RETRY = timedelta(seconds=2)
"""A save in place takes milliseconds; one that takes longer than an intake waits is a slow one."""

_LATER = timedelta(minutes=1)


class QuietEdits:
    """Looks at topic files when told to, and later again where that is needed."""

    def __init__(self, installer: Installer, root: Path, *, quiet: timedelta = QUIET) -> None:
        self._installer = installer
        self._folder = root / TOPICS
        self._quiet = quiet
        self._again: set[str] = set()
        self._again_at: datetime | None = None
        self._everything = False
        self._not_before: datetime | None = None
        self._timer: DeadlineTimer | None = None

    async def files_changed(self, paths: Iterable[str]) -> None:
        """Takes in what people did to the files at these absolute paths; others are passed over.

        Never raises for what can be the world's fault: it is tried again, and logged.
        """
        topics, folders = self._sorted(paths)
        if topics:
            await self._take_in(topics)
        for folder in folders:
            await self._take_in_folder(folder)

    async def rescan(self) -> None:
        """Takes in what people did anywhere; reads every topic. Errors as for `files_changed`."""
        try:
            self._look_again(await self._installer.rescan())
        except TurnmarkError as error:
            self._put_off(error)
            self._everything = True

    async def run(self) -> None:
        """Runs until cancelled: sleeps until a file has been quiet, or has to be looked at again.

        After a suspend, or when the clock was set, everything is looked at: events may be lost.
        """
        with DeadlineTimer(lambda: datetime.now(UTC)) as timer:
            self._timer = timer
            try:
                await self._bring_near()
                while True:
                    wake = await timer.wait_until(await self._next())
                    if wake is Wake.CLOCK_SET:
                        await self._bring_near()
                        await self.rescan()
                    elif wake is Wake.DUE:
                        await self._due()
            finally:
                self._timer = None

    async def _bring_near(self) -> None:
        """Takes off what a clock set that was ahead: nothing is due later than it could be now."""
        now = datetime.now(UTC)
        self._again_at = self._again_at and min(self._again_at, now + _LATER)
        self._not_before = self._not_before and min(self._not_before, now + _LATER)
        try:
            await self._installer.bring_near(now)
        except TurnmarkError as error:
            log.warning("ids_not_written", reason=error.message)

    async def _next(self) -> datetime | None:
        oldest = await self._installer.oldest_unwritten()
        due = None if oldest is None else oldest + self._quiet
        if due is not None and self._not_before is not None:
            due = max(due, self._not_before)
        times = [at for at in (due, self._again_at) if at is not None]
        return min(times, default=None)

    async def _due(self) -> None:
        now = datetime.now(UTC)
        if self._again_at is not None and self._again_at <= now:
            again, everything = self._again, self._everything
            self._again, self._again_at, self._everything = set(), None, False
            await (self.rescan() if everything else self._take_in(again))
        try:
            await self._installer.write_ids(now - self._quiet)
        except TurnmarkError as error:
            log.warning("ids_not_written", reason=error.message)
        # A file that can't be written now must not keep this loop awake.
        self._not_before = datetime.now(UTC) + _LATER

    async def _take_in(self, topics: Iterable[str]) -> None:
        names = list(topics)
        try:
            self._look_again(await self._installer.take_in(names))
        except TurnmarkError as error:
            self._put_off(error)
            self._again.update(names)
        self._rouse()

    async def _take_in_folder(self, folder: str) -> None:
        try:
            self._look_again(await self._installer.rescan_folder(folder))
        except TurnmarkError as error:
            self._put_off(error)
            self._everything = True
        self._rouse()

    def _look_again(self, topics: Iterable[str]) -> None:
        self._again.update(topics)
        if self._again:
            self._again_at = datetime.now(UTC) + _RETRY

    def _put_off(self, error: TurnmarkError) -> None:
        log.warning("edit_put_off", reason=error.message)
        self._again_at = datetime.now(UTC) + _LATER

    def _rouse(self) -> None:
        if self._timer is not None:
            self._timer.set_changed()

    def _sorted(self, paths: Iterable[str]) -> tuple[list[str], list[str]]:
        """Returns the topics and the folders of topics that `paths` name."""
        topics: dict[str, None] = {}
        folders: dict[str, None] = {}
        for path in paths:
            try:
                parts = Path(path).relative_to(self._folder).parts
            except ValueError:
                continue
            if any(part.startswith(".") for part in parts):
                continue
            name = "/".join(parts)
            if name.endswith(".md"):
                topics[name.removesuffix(".md")] = None
            else:
                folders[name] = None
        return list(topics), list(folders)
