"""The night's passes: join what says the same, tidy with a model, arrange the core page.

Each pass is one ordinary install: journalled, so that a stop in the middle leaves the pages of
yesterday or those of the pass, and one revision, so that it can be undone. What would remove too
much is held instead (law 14). A model that fails leaves everything else done.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import Refused
from turnmark_memory.apply import Applied, Sources
from turnmark_memory.arrivals import AUTOMATIC_LIMIT
from turnmark_memory.compose import Composed, Work, compose
from turnmark_memory.fallen import taken_back_refs
from turnmark_memory.install import Installer
from turnmark_memory.loop_calls import call_loop
from turnmark_memory.model import Edit, Merge
from turnmark_memory.models.model import Model
from turnmark_memory.night_pass import (
    Pass,
    Plan,
    blocks_of,
    carried_out,
    counted,
    is_too_much,
    standing,
)
from turnmark_memory.night_report import Carried
from turnmark_memory.promotion import arrangement, ordered
from turnmark_memory.questions import Progress, Questions, not_taken_back
from turnmark_memory.sameness import Resting, merges
from turnmark_memory.shelf import Shelf
from turnmark_memory.survey import (
    Survey,
    same_groups,
    saved_by_person,
    standings,
    survey,
)
from turnmark_memory.uses import Uses, resolved
from turnmark_memory.windows import Tidied
from turnmark_session_store import SessionStore
from turnmark_session_store.failpoints import failpoint

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Findings:
    """What a night's passes come to, as far as they are."""

    carried: list[Carried] = field(default_factory=list[Carried])
    problems: list[str] = field(default_factory=list[str])
    asked: int = 0
    failed: int = 0
    rejected: int = 0
    waiting: int = 0

    @contextmanager
    def naming_what_is_refused(self) -> Generator[None]:
        """Lets the night go on where a file that can't be used stops a pass."""
        try:
            yield
        except Refused as error:
            log.warning("pass_refused", reason=error.message)
            self.problems.append(f"Left undone: {error.message}")


class NightWork:
    """Carries out the passes on one workspace; the owner sees to it that one night runs at once."""

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        installer: Installer,
        *,
        uses: Uses,
        count: Callable[[str], int],
        model: Model | None = None,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._installer = installer
        self._uses = uses
        self._holding = shelf.holding
        self._count = count
        self._tidied = Tidied(shelf.workspace.tree)
        self.model = model

    async def run(self, day: date, progress: Progress) -> Findings:
        """Runs every pass; one that the disk or a file keeps from being done is named.

        Raises:
            Unavailable: if the disk fails; run it again, what is done is not done twice.
        """
        findings = Findings()
        with findings.naming_what_is_refused():
            await self._join(day, findings)
        failpoint("night.joined")
        if self.model is not None:
            with findings.naming_what_is_refused():
                await self._tidy(self.model, day, findings, progress)
        failpoint("night.tidied")
        with findings.naming_what_is_refused():
            await self._arrange(day, findings)
        failpoint("night.arranged")
        await anyio.to_thread.run_sync(self._uses.fold, day)
        return findings

    async def approve(self, name: str, day: date) -> Findings:
        """Carries out a held pass, as far as its blocks are still as it saw them.

        It stays held where a file kept a part of it from being done.

        Raises:
            Unavailable: if it can't be read, or the disk fails; it stays held.
        """
        findings = Findings()
        work = await anyio.to_thread.run_sync(self._holding.work_of, name)
        await self._install(work.plans, f"approved {name}", day, findings)
        failpoint("night.approved")
        if not findings.problems:
            await anyio.to_thread.run_sync(self._holding.release, name)
        return findings

    async def _join(self, day: date, findings: Findings) -> None:
        """Joins what says the same, puts links right, says what topics are about."""
        found = await anyio.to_thread.run_sync(survey, self._shelf)
        groups = await anyio.to_thread.run_sync(same_groups, self._shelf, found)
        groups = [await not_taken_back(self._store, group) for group in groups]
        wanted = await self._store.read(lambda db: merges(db, groups))
        shown = {block.shown.block: block for group in groups for block in group}
        plans = [_joining(edit, shown) for edit in wanted]
        others = [Plan(abouts=found.missing_abouts()), Plan(links=found.linking)]
        await self._carry_or_hold(
            Pass(kind="same", plans=tuple(plans)), others, found, day, findings
        )

    async def _tidy(self, model: Model, day: date, findings: Findings, progress: Progress) -> None:
        questions = Questions(self._store, self._shelf, model, self._tidied, self._count)
        await questions.ask(progress)
        failpoint("night.answered")
        findings.asked = questions.asked
        findings.failed = len(questions.failed) + questions.unanswered
        findings.rejected, findings.waiting = questions.rejected, questions.waiting
        before = len(findings.carried)
        work = Pass(kind="tidy", plans=tuple(questions.plans))
        await self._carry_or_hold(work, [], questions.found, day, findings)
        changed = {name for one in findings.carried[before:] for name in one.blocks}
        await questions.note(day, changed)

    async def _arrange(self, day: date, findings: Findings) -> None:
        """Puts the automatic part of the core page in order, as one revision if it changes."""

        def order() -> tuple[tuple[str, str], ...]:
            found = survey(self._shelf)
            weights = resolved(self._uses.weights(day), self._now)
            return ordered(standings(found), weights, day, AUTOMATIC_LIMIT)

        embeds = await anyio.to_thread.run_sync(order)
        cause = f"night of {day.isoformat()}: arranged the core page"
        work = Work(name=cause, carry_out=lambda sources: arrangement(sources, embeds))
        await self._carry([work], cause, findings, list)

    def _now(self, name: str) -> str | None:
        block = self._shelf.index.block(name)
        return None if block is None else block.block

    async def _carry_or_hold(
        self, work: Pass, others: Sequence[Plan], found: Survey, day: date, findings: Findings
    ) -> None:
        """Installs a pass, or holds it and installs only what `others` ask for."""
        wanted = await anyio.to_thread.run_sync(self._holding.wanted, work.plans)
        work = msgspec.structs.replace(work, plans=wanted)
        plans = [*wanted, *others]
        if is_too_much(work.removes, found.size):
            at = datetime.now(UTC)
            held = await anyio.to_thread.run_sync(
                lambda: self._holding.hold(work, at=at, blocks=found.size)
            )
            log.warning("pass_held", name=held.name, removes=held.removes, blocks=held.blocks)
            plans = [*others]
        what = "joined what says the same" if work.kind == "same" else "tidied"
        await self._install(plans, f"night of {day.isoformat()}: {what}", day, findings)

    async def _install(
        self, plans: Sequence[Plan], cause: str, day: date, findings: Findings
    ) -> None:
        """Installs plans in one revision; none is made where nothing changes."""
        plans = [plan for plan in plans if plan.edits or plan.abouts or plan.links]
        if not plans:
            return
        done: dict[int, tuple[Edit, ...]] = {}
        topics = {about.topic for plan in plans for about in plan.abouts}
        topics |= {block.topic for plan in plans for block in plan.shown}
        saved = await anyio.to_thread.run_sync(saved_by_person, self._shelf, topics)

        def carry(number: int, plan: Plan) -> Callable[[Sources], Applied]:
            def carry_out(sources: Sources) -> Applied:
                done[number] = standing(plan, sources)
                if self._fallen(plan.seen):
                    done[number] = ()
                    return Applied(topics={}, blocks=(), changes=())
                return carried_out(plan, done[number], sources, day, saved)

            return carry_out

        works = [
            Work(name=f"{cause}/{number}", carry_out=carry(number, plan))
            for number, plan in enumerate(plans)
        ]
        await self._carry(works, cause, findings, lambda: [e for es in done.values() for e in es])

    def _fallen(self, labels: Sequence[str]) -> bool:
        """Tells whether a turn behind one of `labels` was taken back; in a worker thread."""
        if not labels:
            return False
        turns = (self._shelf.index.turn(label) for label in labels)
        refs = [(turn.namespace, turn.id) for turn in turns if turn is not None]
        if len(refs) < len(labels):
            return True  # it was forgotten

        async def ask() -> bool:
            return bool(await self._store.read(lambda db: taken_back_refs(db, refs)))

        return call_loop(ask)

    async def _carry(
        self,
        works: Sequence[Work],
        cause: str,
        findings: Findings,
        edits: Callable[[], Iterable[Edit]],
    ) -> None:
        def make(revision: int) -> Composed:
            at = datetime.now(UTC)
            return compose(self._shelf, works, revision=revision, cause=cause, at=at, turns=None)

        installed = await self._installer.carry_out(make)
        composed = installed.composed
        for done in composed.done:
            if done.problem is not None:
                log.warning("plan_not_carried_out", cause=cause, reason=done.problem)
                findings.problems.append(f"Left undone: {done.problem}")
        if composed.files:
            findings.carried.append(
                Carried(
                    revision=installed.revision,
                    cause=cause,
                    edits=counted(edits()),
                    topics=composed.topics,
                    blocks=composed.record.blocks,
                )
            )


def _joining(edit: Merge, shown: dict[str, Resting]) -> Plan:
    blocks = [shown[name].shown for name in blocks_of(edit)]
    return Plan(
        edits=(edit,),
        shown=tuple(blocks),
        seen=tuple(dict.fromkeys(label for block in blocks for label in block.cites)),
    )
