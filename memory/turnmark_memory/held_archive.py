"""Held turns are evidence too: what is parked as backlog is archived and searchable at once.

Only writing it is held. A slice at a time, so that years of transcripts don't keep the worker.
"""

from __future__ import annotations

from typing import Final

import apsw
import structlog

from turnmark_events.errors import TurnmarkError
from turnmark_memory.archiving import Archiving
from turnmark_session_store import SessionStore
from turnmark_session_store.queries import row_of, rows_of, value_of

log = structlog.get_logger(__name__)

_SLICE_TURNS: Final = 1_000
_HELD: Final = "workspace = ? AND outcome = 'parked' AND reason = 'backlog'"


class HeldArchive:
    """Archives the turns that are held, once each; the first look of a process goes over all."""

    def __init__(self, store: SessionStore, archiving: Archiving, workspace: int) -> None:
        self._store = store
        self._archiving = archiving
        self._workspace = workspace
        self._signature: object = None
        self._after: tuple[int, int] = (0, 0)
        self._known = 0

    async def look(self) -> bool:
        """Archives a slice of what is not archived yet; tells whether there is more.

        Costs a count where nothing was parked since the last look.

        Raises:
            Unavailable: if the disk fails.
        """
        signature = await self._store.read(lambda db: _signature(db, self._workspace))
        if signature == self._signature:
            return False
        found = await self._store.read(self._next_slice)
        if not found:
            self._signature = signature
            return False
        for problem in await self._archiving.archive(list(_by_session(found).values())):
            if isinstance(problem, TurnmarkError):
                log.warning("held_turns_not_archived", reason=problem.message)
        self._after = (found[-1][1], found[-1][0])
        self._known = await self._store.read(self._count_known)
        return True

    def _next_slice(self, db: apsw.Connection) -> list[tuple[int, int, int]]:
        """Returns what comes next; all from the beginning, where something was parked behind it.

        So it is where the clock was set back. What is archived already costs a look.
        """
        known = self._count_known(db)
        after = self._after if known <= self._known else (0, 0)
        self._known = known
        return _next_slice(db, self._workspace, after)

    def _count_known(self, db: apsw.Connection) -> int:
        """Returns how many of the turns that are held now were parked before the last one."""
        return int(
            value_of(
                db,
                f"SELECT count(*) FROM mark WHERE {_HELD} AND (at_ms, turn) <= (?, ?)",
                (self._workspace, *self._after),
            )
        )


def _by_session(found: list[tuple[int, int, int]]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for turn, _, session in found:
        groups.setdefault(session, []).append(turn)
    return groups


def _signature(db: apsw.Connection, workspace: int) -> object:
    """Returns what changes whenever turns are parked as backlog, whatever the clock says."""
    told = f"SELECT count(*), sum(turn), sum(at_ms % 1000000007) FROM mark WHERE {_HELD}"
    return row_of(db, told, (workspace,))


def _next_slice(
    db: apsw.Connection, workspace: int, after: tuple[int, int]
) -> list[tuple[int, int, int]]:
    """Returns (turn, when parked, session) of the next held turns, in the order of parking."""
    return rows_of(
        db,
        "SELECT turn, mark.at_ms, turn.session FROM mark JOIN turn ON turn.id = mark.turn"
        f" WHERE {_HELD} AND (mark.at_ms, turn) > (?, ?) ORDER BY mark.at_ms, turn LIMIT ?",
        (workspace, *after, _SLICE_TURNS),
    )
