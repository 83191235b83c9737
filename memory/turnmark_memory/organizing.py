"""The night on request and by the clock: finish what is owed, run the passes, say what was done.

One at a time. A stop at any moment leaves what is installed, and the next run goes on: nothing in
it is done twice. The date is noted last, with the event, in one transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import Refused, TurnmarkError
from turnmark_events.types import NightDone
from turnmark_memory.core_page import CoreAnswer
from turnmark_memory.holding import Held, Holding
from turnmark_memory.install import Installer
from turnmark_memory.night import next_due
from turnmark_memory.night_report import NightReport, lines, newest_report, write_report
from turnmark_memory.night_work import Findings, NightWork
from turnmark_memory.questions import Progress
from turnmark_memory.requests import OrganizeRequest
from turnmark_memory.shelf import Shelf
from turnmark_session_store import SessionStore
from turnmark_session_store.failpoints import failpoint
from turnmark_session_store.marks import workspace_revision
from turnmark_session_store.queries import value_of
from turnmark_session_store.transaction import Transaction

log = structlog.get_logger(__name__)


class HeldAnswer(msgspec.Struct, frozen=True, kw_only=True, rename={"name": "pass"}):
    """A held pass as it is answered: it would remove `removes` of the `blocks` that there were."""

    name: str
    removes: int
    blocks: int


class UncitedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What would be offered to the writer again."""

    turns: int
    tokens: int


class Organized(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`memory.organize`'s answer: `changed` counts the blocks that were changed.

    `held` is the pass that waits the longest for a person. `report` says it all in sentences.
    `uncited` is what a dry run of offering turns again says of them.
    """

    date: str
    changed: int
    core: CoreAnswer
    owed: int
    held: HeldAnswer | None = None
    report: tuple[str, ...] = ()
    uncited: UncitedAnswer | None = None


class Organizing:
    """Runs nights on one workspace and decides about what they hold.

    `finish_owed` writes what is owed, `core` and `owed` say how things are; `offer_uncited` offers
    kept turns again that no block cites, None where nothing can; `cost_of_uncited` says how many
    turns and tokens that would be.
    """

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        installer: Installer,
        workspace: int,
        work: NightWork,
        *,
        finish_owed: Callable[[Progress], Awaitable[None]],
        core: Callable[[], CoreAnswer],
        owed: Callable[[], Awaitable[int]],
        offer_uncited: Callable[[], Awaitable[object]] | None = None,
        cost_of_uncited: Callable[[], Awaitable[tuple[int, int]]] | None = None,
    ) -> None:
        self._store = store
        self._tree = shelf.workspace.tree
        self._name = str(shelf.workspace.id)
        self._holding: Holding = shelf.holding
        self._installer = installer
        self._workspace = workspace
        self._work = work
        self._finish_owed = finish_owed
        self._core = core
        self._owed = owed
        self._offer_uncited = offer_uncited
        self._cost_of_uncited = cost_of_uncited
        self._serial = anyio.Lock()
        self._report: str | None = None

    async def load(self, nightly: time | None) -> None:
        """Reads what is held and where the last report is.

        A new workspace begins with the next night (`nightly` None: with none): it has missed none.
        """
        await anyio.to_thread.run_sync(self._holding.load)
        self._report = await anyio.to_thread.run_sync(newest_report, self._tree)
        if nightly is not None and await self.last_night() is None:
            day, due = next_due(datetime.now(UTC), None, nightly)
            begun = day if due <= datetime.now(UTC) else day - timedelta(days=1)
            await self._store.write(lambda tx: self._set_last_night(tx, begun))

    async def organize(
        self, asked: OrganizeRequest, progress: Progress, tasks: anyio.abc.TaskGroup | None
    ) -> Organized:
        """Runs the night now, for today's date, or decides about what is held.

        Without `wait` it answers how things are now, and the night goes on among `tasks`.

        Raises:
            NotFound: if no such pass is held.
            Refused: if both `approve` and `discard` are given, several passes are held and none is
                named, or a dry run is asked of anything but `uncited`.
            Unavailable: if the disk fails.
        """
        day = datetime.now().astimezone().date()
        if asked.dry_run:
            return await self._dry_run(asked, day)
        if asked.approve or asked.discard:
            return await self._decide(asked, day)
        if asked.uncited and self._offer_uncited is None:
            raise Refused("turns without a block can't be offered again here; leave uncited out")
        if asked.wait or tasks is None:
            return await self.night(day, progress, uncited=asked.uncited)
        tasks.start_soon(self._later, day, asked.uncited)
        return await self._answer(day, 0)

    async def _dry_run(self, asked: OrganizeRequest, day: date) -> Organized:
        if not asked.uncited or asked.approve or asked.discard or self._cost_of_uncited is None:
            raise Refused("a dry run says what `uncited` would offer again; ask for that alone")
        turns, tokens = await self._cost_of_uncited()
        told = UncitedAnswer(turns=turns, tokens=tokens)
        return msgspec.structs.replace(await self._answer(day, 0), uncited=told)

    async def _decide(self, asked: OrganizeRequest, day: date) -> Organized:
        if asked.approve and asked.discard:
            raise Refused("give approve or discard, not both")
        async with self._serial:
            name = self._holding.find(asked.approve or asked.discard)
            if asked.discard:
                await anyio.to_thread.run_sync(self._holding.discard, name)
                return await self._answer(day, 0, (f"Discarded {name}; nothing was changed.",))
            findings = await self._work.approve(name, day)
            report = await self._reported(day, findings)
        return await self._answer(day, report.changed, tuple(lines(report)))

    async def _later(self, day: date, uncited: bool) -> None:
        try:
            await self.night(day, uncited=uncited)
        except TurnmarkError as error:
            log.warning("organize_failed", date=day.isoformat(), reason=error.message)

    async def night(
        self,
        day: date,
        progress: Progress = lambda _done, _total, _what: None,
        *,
        uncited: bool = False,
    ) -> Organized:
        """Runs the night of a local date and notes that it was done.

        Raises:
            Unavailable: if the disk fails; run it again, what is done is not done twice.
        """
        async with self._serial:
            if uncited and self._offer_uncited is not None:
                await self._offer_uncited()
            told: list[float] = [0]
            await self._finish_owed(onward(told, progress))
            failpoint("night.flushed")
            findings = await self._work.run(day, onward(told, progress))
            await self._installer.rebuild_timeline(whole=True)
            await self._installer.rebuild_core()
            failpoint("night.rendered")
            report = await self._reported(day, findings)
            self._report = await anyio.to_thread.run_sync(write_report, self._tree, report)
            failpoint("night.reported")
            await self._store.write(lambda tx: self._say(tx, day))
            failpoint("night.said")
        return await self._answer(day, report.changed, tuple(lines(report)))

    def _say(self, tx: Transaction, day: date) -> None:
        self._set_last_night(tx, day)
        facts: dict[str, Any] = {
            "workspace": self._name,
            "date": day.isoformat(),
            "revision": workspace_revision(tx.db, self._workspace),
            "held": [one.name for one in self._holding.held],
        }
        tx.record(NightDone, facts)

    def _set_last_night(self, tx: Transaction, day: date) -> None:
        tx.execute(
            "UPDATE workspace SET last_night = ? WHERE id = ?", (day.isoformat(), self._workspace)
        )

    async def _reported(self, day: date, findings: Findings) -> NightReport:
        core = self._core()
        model = self._work.model
        return NightReport(
            date=day,
            carried=tuple(findings.carried),
            model=None if model is None else model.name,
            asked=findings.asked,
            failed=findings.failed,
            rejected=findings.rejected,
            waiting=findings.waiting,
            problems=tuple(findings.problems),
            core_tokens=core.tokens,
            core_blocks=len(core.blocks),
            left_out=core.left_out,
            owed=await self._owed(),
            held=tuple(self._holding.held),
        )

    async def _answer(self, day: date, changed: int, report: tuple[str, ...] = ()) -> Organized:
        held = next(iter(self._holding.held), None)
        return Organized(
            date=day.isoformat(),
            changed=changed,
            core=self._core(),
            owed=await self._owed(),
            held=None if held is None else _answered(held),
            report=report,
        )

    async def last_night(self) -> date | None:
        """Returns the date of the night that was done last."""
        found = await self._store.read(
            lambda db: value_of(
                db, "SELECT last_night FROM workspace WHERE id = ?", (self._workspace,)
            )
        )
        return None if found is None else date.fromisoformat(found)

    def statistics(self) -> dict[str, Any]:
        """Returns what `status` says of the nights: `held` passes, and the path of a report."""
        return {"held": self._holding.held, "report": self._report}


def onward(told: list[float], progress: Progress) -> Progress:
    """Returns a progress that goes on from what was told before: it never steps back."""
    before = max(told)

    def say(done: float, total: float | None, what: str | None) -> None:
        told.append(before + done)
        progress(before + done, None if total is None else before + total, what)

    return say


def _answered(held: Held) -> HeldAnswer:
    return HeldAnswer(name=held.name, removes=held.removes, blocks=held.blocks)
