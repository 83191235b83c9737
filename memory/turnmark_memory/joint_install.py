"""Answers that are ready at the same time share one install: a revision costs more than a block.

Whoever comes first installs for all, after waiting a little for those that are about to come.
"""

from __future__ import annotations

import anyio

from turnmark_events.errors import TurnmarkError
from turnmark_memory.compose import Done
from turnmark_memory.install import BatchWork, Installer

_LINGER_SECONDS = 1.0
"""A finished answer waits for neighbours while one comes at least this often, ..."""

_LONGEST_LINGER_SECONDS = 20.0
"""... but no longer than this in all."""

_GROUP_LIMIT = 256


class _Entry:
    """A batch's work, waiting for an install."""

    def __init__(self, work: BatchWork) -> None:
        self.work = work
        self.done: Done | None = None
        self.error: TurnmarkError | None = None

    @property
    def is_done(self) -> bool:
        """Tells whether an install took it up, for good or ill."""
        return self.done is not None or self.error is not None


class JointInstall:
    """The way from answers of batches to installs; lives on the event loop."""

    def __init__(self, installer: Installer, *, linger_seconds: float = _LINGER_SECONDS) -> None:
        self._installer = installer
        self._linger_seconds = linger_seconds
        self._leading = anyio.Lock()
        self._ready: list[_Entry] = []
        self._expected = 0
        self._arrived = anyio.Event()

    def expect(self, batches: int) -> None:
        """Says that so many batches are on their way: an install may wait for them.

        Each has to `join`, or `stay_away`.
        """
        self._expected += batches

    def stay_away(self) -> None:
        """Says that a batch that was expected has nothing to install."""
        self._arrive()

    async def join(self, work: BatchWork) -> Done:
        """Returns what became of a batch's work, once an install took it up.

        Raises:
            Refused: if a topic's file can't be used; nothing was changed.
            InstallUnfinished: if the disk fails behind the journal; the install will be finished.
            Unavailable: if the disk fails before that; nothing was changed.
        """
        entry = _Entry(work)
        self._ready.append(entry)
        self._arrive()
        async with self._leading:
            if not entry.is_done:
                await self._linger()
            while not entry.is_done:
                await self._install_ready()
        if entry.error is not None:
            raise entry.error
        return entry.done or Done(blocks=())

    def _arrive(self) -> None:
        self._expected -= 1
        self._arrived.set()
        self._arrived = anyio.Event()

    async def _linger(self) -> None:
        """Waits for neighbours that are about to have an answer too; a slow writer's are not."""
        with anyio.move_on_after(_LONGEST_LINGER_SECONDS):
            while self._expected > 0 and len(self._ready) < _GROUP_LIMIT:
                with anyio.move_on_after(self._linger_seconds) as pause:
                    await self._arrived.wait()
                if pause.cancelled_caught:
                    return

    async def _install_ready(self) -> None:
        group, self._ready = self._ready[:_GROUP_LIMIT], self._ready[_GROUP_LIMIT:]
        try:
            installed = await self._installer.install(
                [entry.work for entry in group], cause=_wrote(len(group))
            )
        except TurnmarkError as error:
            for entry in group:
                entry.error = error
            return
        for entry, done in zip(group, installed.composed.done, strict=True):
            entry.done = done


def _wrote(batches: int) -> str:
    return "wrote 1 batch" if batches == 1 else f"wrote {batches} batches"
