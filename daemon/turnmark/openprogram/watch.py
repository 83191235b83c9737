"""Hears of OpenProgram's sessions as they are written, and tells their tail.

Only the directories are watched in which a name tells something: those of sessions and of their
nodes. While there are none, the nearest directory above that is there.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.to_thread
import structlog
from anyio.abc import TaskStatus

from turnmark.directory_watch import DirectoryWatch
from turnmark_events.errors import Unavailable
from turnmark_session_store.transcripts.openprogram.homes import LOCATIONS
from turnmark_session_store.transcripts.openprogram.tail import OpenProgramTail

log = structlog.get_logger(__name__)

_FILES = (".json", ".tmp")


async def watch_openprogram(
    tail: OpenProgramTail, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Watches for a tail until cancelled.

    Where the system tells nothing, the tail looks at start and before each night only.
    """
    try:
        watch = DirectoryWatch()
    except Unavailable as error:
        log.warning("openprogram_not_watched", reason=error.message)
        task_status.started()
        return
    with watch:
        await _arm(watch, tail)
        task_status.started()
        while True:
            changes = await watch.wait()
            tail.changed(changes.paths)
            moved = changes.lost or any(path.name == LOCATIONS for path in changes.paths)
            if moved:
                tail.rescan()
            if moved or not all(path.suffix in _FILES for path in changes.paths):
                await _arm(watch, tail)


async def _arm(watch: DirectoryWatch, tail: OpenProgramTail) -> None:
    """Follows the directories there are now, until a look finds no new ones."""
    while True:
        new = watch.follow(await anyio.to_thread.run_sync(_directories, tail))
        tail.changed(new)
        if not new:
            return


def _directories(tail: OpenProgramTail) -> list[Path]:
    try:
        there = tail.directories()
    except OSError as error:
        log.warning("openprogram_not_watched", reason=str(error))
        there = list(tail.places)
    (sessions,) = tail.places
    above = next((one for one in (sessions, *sessions.parents) if one.is_dir()), Path("/"))
    return [above, *there]
