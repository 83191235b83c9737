"""Store and worker against a model: random verbs, writers, lost events, crashes, restarts.

Real SQLite and real files; the model is the store's (`session_store/model.py`), which knows what is
live and what is retired. Whenever the machine settles, all that the laws promise must be so.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import anyio.lowlevel
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from laws.soundness import blocks_of, store_faults, workspace_faults
from memory.at_work import AtWork, Scribe, scratch, tokens
from session_store.model import Model
from turnmark_events.types import Event
from turnmark_memory.model import Add, Answer, Batch, Edits, Nothing
from turnmark_memory.requests import OwedRequest
from turnmark_memory.topic_format import parse
from turnmark_memory.writers.writer import WriterFailed
from turnmark_session_store import failpoints
from turnmark_session_store.model import CallerRef, TurnIn
from turnmark_session_store.requests import (
    AppendTurns,
    Checkout,
    ForkPoint,
    Merge,
    OpenSession,
    Rewind,
    SessionRef,
    SyncTurns,
)

T = TypeVar("T")
INDEX = st.integers(min_value=0, max_value=10_000)
STEPS = (
    "batch.claimed",
    "batch.archived",
    "batch.written",
    "install.before_journal",
    "install.journalled",
    "install.recorded",
    "install.manifest",
    "install.staged",
    "install.exchanged",
    "install.file",
    "install.revision",
    "install.in_place",
    "install.settled",
    "install.cleared",
    "install.indexed",
    "core.rendered",
    "core.replaced",
    "start.taken_over",
    "start.rolled_forward",
)
TRIGGER_TOKENS = 24
SECONDS = 150.0
"""Longer than any wait of `AtWork`, which says better what it waited for."""


class Crash(Exception):
    """The process ends here."""


class Died(Exception):
    """The life that was asked for something has ended."""


class Life:
    """One process's worth of a memory at work, in a task of its own that a crash ends."""

    def __init__(self, work: AtWork) -> None:
        self._work = work
        self._asked: asyncio.Queue[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]]
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Starts it.

        Raises:
            Died: if it crashed on the way.
        """
        self._asked = asyncio.Queue()
        self._task = asyncio.create_task(self._live())
        await self.ask(anyio.lowlevel.checkpoint)

    async def _live(self) -> None:
        try:
            await self._work.start()
            while True:
                verb, answer = await self._asked.get()
                try:
                    answer.set_result(await verb())
                except Exception as error:  # noqa: BLE001  it is the caller's
                    if not answer.done():
                        answer.set_exception(error)
        finally:
            await self._work.stop()

    async def ask(self, verb: Callable[[], Awaitable[T]]) -> T:
        """Runs one verb inside the life.

        Raises:
            Died: if the life ends first.
        """
        assert self._task is not None
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.put_nowait((verb, answer))
        async with asyncio.timeout(SECONDS):
            await asyncio.wait({answer, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done() and not self._task.done():
            return answer.result()
        answer.cancel()
        await self._bury()
        raise Died

    async def end(self) -> None:
        """Ends it in order."""
        assert self._task is not None
        self._task.cancel()
        await self._bury()

    async def _bury(self) -> None:
        assert self._task is not None
        try:
            await self._task
        except (asyncio.CancelledError, Crash):
            return
        except BaseExceptionGroup as group:
            _, others = group.split((Crash, asyncio.CancelledError))
            if others is not None:
                raise others from group


class MemoryMachine(RuleBasedStateMachine):
    """Two families of sessions, `s` and `北`, forks of them, and sub-agents."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.runner = self.stack.enter_context(asyncio.Runner())
        self.scribe = Scribe(self.write)
        self.work = AtWork(
            self.stack.enter_context(scratch()),
            self.scribe,
            trigger_tokens=TRIGGER_TOKENS,
            deliver=self.deliver,
        )
        self.life = Life(self.work)
        self.model = Model()
        self.families: dict[str, str] = {}
        self.homes: dict[str, str] = {}
        self.mood = "keep"
        self.news = "once"
        self.made = 0

    def write(self, batch: Batch) -> Answer:
        """One block a turn, so that a turn that is written twice is seen; or as the mood is."""
        if self.mood == "fails":
            raise WriterFailed("timeout")
        if self.mood == "nothing":
            return Nothing(reason="nothing worth keeping")
        cites = ("s-000000000000",) if self.mood == "rejected" else ()
        known = {(block.text, label) for block in batch.blocks for label in block.cites}
        adds = tuple(
            Add(topic="subjects/facts", text=turn.text, cites=cites or (turn.label,))
            for turn in batch.turns
            if (turn.text, turn.label) not in known
        )
        return Edits(edits=adds) if adds else Nothing(reason="memory holds it already")

    def deliver(self, events: Sequence[Event]) -> Sequence[Event]:
        """The bus as a liar: nothing arrives, or everything twice, or backwards."""
        match self.news:
            case "lost":
                return []
            case "twice":
                return [*events, *events]
            case "backwards":
                return events[::-1]
            case _:
                return events

    def run(self, verb: Callable[[], Awaitable[T]]) -> T:
        """Runs one verb in the present life."""
        return self.runner.run(self.life.ask(verb))

    def begin_anew(self) -> None:
        """Starts the next life, however often it takes."""
        while True:
            try:
                self.runner.run(self.life.begin())
            except Died:
                continue
            return

    def teardown(self) -> None:
        """Settles once more, unless something failed, and ends everything."""
        failpoints.hook = None
        try:
            if self.made and sys.exc_info()[0] is None:
                self.settle()
        finally:
            self.runner.run(self.life.end())
            self.stack.close()

    @initialize()
    def begin(self) -> None:
        """Two conversations."""
        self.begin_anew()
        for name in ("s", "北"):
            self.families[name] = name
            self.append_to(name, None, 2)

    # Choosing.

    def pick(self, index: int, among: Any) -> Any:
        """Returns one of several, in an order that does not depend on hashing."""
        ordered = sorted(among)
        return ordered[index % len(ordered)]

    def reach(self, name: str) -> set[str]:
        """Returns what the live branches of a session reach."""
        return self.model.ancestors(*(one.tip for one in self.model.sessions[name].branches))

    def family(self, name: str) -> set[str]:
        """Returns the turns of a session's family that nobody forgot."""
        mine = self.families[name]
        return {key for key, home in self.homes.items() if home == mine} - self.model.forgotten

    def new(self, name: str) -> TurnIn:
        """Returns a new turn for a session: every fourth is the assistant's, some are a tool's."""
        key = f"t{self.made:04}"
        self.made += 1
        self.homes[key] = self.families[name]
        self.model.recordable.add(key)
        return self.turn(key)

    def turn(self, key: str) -> TurnIn:
        """Returns a turn by its id."""
        number = int(key[1:])
        role = "assistant" if number % 4 == 1 else "user"
        words = "事实" if number % 3 == 0 else "fact"
        return TurnIn(role=role, text=f"{words} {key}", id=key)

    def append_to(self, name: str, after: str | None, count: int) -> None:
        """Appends new turns, and tells the model."""
        turns = [self.new(name) for _ in range(count)]
        asked = AppendTurns(session=name, turns=turns, after=after)
        self.run(lambda: self.work.store.append(asked))
        self.model.append(name, [turn.id or "" for turn in turns], after)

    def goes_on(self, index: int, count: int) -> None:
        """Appends new turns after a head."""
        name = self.pick(index, self.model.sessions)
        self.append_to(name, self.model.sessions[name].head, count)

    # The agents' verbs.

    @rule(index=INDEX, count=st.integers(1, 6))
    def says_more(self, index: int, count: int) -> None:
        """Appends after the head."""
        self.goes_on(index, count)

    @rule(index=INDEX, where=INDEX, count=st.integers(1, 2))
    def forks(self, index: int, where: int, count: int) -> None:
        """Appends after any turn of the family, live or retired."""
        name = self.pick(index, self.model.sessions)
        self.append_to(name, self.pick(where, self.family(name)), count)

    @rule(index=INDEX, where=INDEX)
    def syncs(self, index: int, where: int) -> None:
        """Sends a whole line again, with one more turn."""
        name = self.pick(index, self.model.sessions)
        line = [self.pick(where, self.reach(name))]
        while self.model.parents[line[0]]:
            line.insert(0, self.model.parents[line[0]][0])
        if self.model.forgotten.intersection(line):
            return
        new = self.new(name)
        asked = SyncTurns(session=name, messages=[*map(self.turn, line), new])
        self.run(lambda: self.work.store.sync(asked))
        self.model.append(name, [new.id or ""], line[-1])

    @rule(index=INDEX, where=INDEX)
    def rewinds(self, index: int, where: int) -> None:
        """Takes back what came after a turn above the head."""
        name = self.pick(index, self.model.sessions)
        head = self.model.sessions[name].head
        above = self.model.ancestors(head or "") - self.model.forgotten
        if not above:
            return
        to = self.pick(where, above)
        self.run(lambda: self.work.store.rewind(Rewind(session=name, to=to)))
        self.model.rewind(name, to)

    @rule(index=INDEX, where=INDEX)
    def restores(self, index: int, where: int) -> None:
        """Puts the head on any turn of the family that the session may have."""
        name = self.pick(index, self.model.sessions)
        retired = self.model.retired() & self.family(name)
        among = (self.reach(name) | retired) - self.model.forgotten
        if not among:
            return
        tip = self.pick(where, among)
        asked = Checkout(session=name, tip=tip, restore=tip in retired)
        self.run(lambda: self.work.store.checkout(asked))
        self.model.checkout(name, tip)

    @rule(index=INDEX, one=INDEX, two=INDEX)
    def merges(self, index: int, one: int, two: int) -> None:
        """Joins two tips of a session."""
        name = self.pick(index, self.model.sessions)
        tips = {branch.tip for branch in self.model.sessions[name].branches}
        if len(tips) < 2:
            return
        first = self.pick(one, tips)
        second = self.pick(two, tips - {first})
        turn = self.new(name)
        asked = Merge(session=name, tips=[first, second], turn=turn)
        self.run(lambda: self.work.store.merge(asked))
        self.model.merge(name, [first, second], turn.id or "")

    @precondition(lambda self: len(self.model.sessions) < 6)
    @rule(index=INDEX, where=INDEX)
    def opens_a_fork(self, index: int, where: int) -> None:
        """Opens a session of its own at a live turn of another."""
        origin = self.pick(index, self.model.sessions)
        turn = self.pick(where, self.reach(origin))
        if turn in self.model.forgotten:
            return
        name = f"fork-{self.made}-{len(self.families)}"
        self.families[name] = self.families[origin]
        point = ForkPoint(session=origin, turn=turn)
        asked = OpenSession(session=name, forked_from=point)
        self.run(lambda: self.work.store.open_session(asked))
        self.model.fork(name, origin, turn)

    @precondition(lambda self: len(self.model.sessions) < 6)
    @rule(index=INDEX, where=INDEX, count=st.integers(1, 3))
    def spawns(self, index: int, where: int, count: int) -> None:
        """A sub-agent's session: its first turn has a caller and no predecessor."""
        caller = self.pick(index, self.model.sessions)
        turn = self.pick(where, self.reach(caller))
        name = f"sub-{self.made}-{len(self.families)}"
        self.families[name] = name
        ref = CallerRef(session=caller, turn=turn)
        turns = [self.new(name) for _ in range(count)]
        first = TurnIn(role=turns[0].role, text=turns[0].text, id=turns[0].id, caller=ref)
        asked = AppendTurns(session=name, turns=[first, *turns[1:]])
        if first.role == "user":
            self.model.recordable.discard(first.id or "")
        self.run(lambda: self.work.store.append(asked))
        self.model.append(name, [one.id or "" for one in turns], None)

    @precondition(lambda self: len(self.model.sessions) > 2)
    @rule(index=INDEX)
    def deletes(self, index: int) -> None:
        """Ends a session and forgets what only it said, as the daemon does."""
        name = self.pick(index, self.model.sessions)

        async def delete() -> None:
            deleted = await self.work.store.delete_session(SessionRef(session=name))
            await self.work.memory.forgotten(deleted.turns)

        self.run(delete)
        self.model.delete(name)

    # The world's whims.

    @rule(mood=st.sampled_from(["keep", "keep", "nothing", "fails", "rejected"]))
    def the_writer_is(self, mood: str) -> None:
        """From now on it keeps, says nothing, fails, or gives answers that can't be used."""
        self.mood = mood

    @rule(news=st.sampled_from(["once", "lost", "twice", "backwards"]))
    def events_arrive(self, news: str) -> None:
        """From now on once, never, twice, or in the wrong order."""
        self.news = news

    @rule()
    def all_fall_silent(self) -> None:
        """The idle deadline of every branch is over; nobody waits for what that brings about."""
        self.run(self.work.silence)

    @rule()
    def the_worker_comes_to_rest(self) -> None:
        """Whatever it has been told of is done."""
        self.run(self.work.quiet)

    @rule()
    def somebody_flushes(self) -> None:
        """In whatever mood the writer is: one attempt a batch."""
        self.run(self.work.flush)

    @rule()
    def the_process_restarts(self) -> None:
        """Everything is closed in order, and opened again."""
        self.runner.run(self.life.end())
        self.begin_anew()

    @rule(index=INDEX, visit=st.sampled_from([1, 1, 2]), again=st.booleans(), keeps=st.booleans())
    def the_process_dies(self, index: int, visit: int, again: bool, keeps: bool) -> None:
        """It ends between two steps of the way; perhaps at the same place in the recovery."""
        step = STEPS[index % len(STEPS)]
        left = [visit, 1] if again else [visit]
        if keeps:  # else there may be nothing on its way
            self.mood = "keep"
            self.goes_on(index, 2)

        def hook(name: str) -> None:
            if name == step and left:
                left[0] -= 1
                if left[0] == 0:
                    left.pop(0)
                    raise Crash(step)

        failpoints.hook = hook
        try:
            try:
                self.run(self.work.flush)
                self.runner.run(self.life.end())
            except Died:
                pass
            self.begin_anew()
        finally:
            failpoints.hook = None
        if keeps:  # before another install could put in order what this one left
            self.settle()

    # What must be so.

    @invariant()
    def what_is_live_is_the_models(self) -> None:
        """Tips are where the model has them, and what is owed follows from them and the marks."""
        if not self.made:
            return

        async def look() -> tuple[set[str], set[str], dict[str, tuple[str, str | None]]]:
            tips = await self.work.rows(
                "SELECT key FROM branch JOIN turn ON turn.id = tip WHERE state = 'live'"
            )
            owed = await self.work.memory.owed(OwedRequest(ids=True, limit=1_000))
            ids = {turn for row in owed.tips for turn in row.turns or ()}
            assert owed.turns == len(ids)
            return {tip for (tip,) in tips}, ids, await self.work.marks()

        if not self.work.memory.worker.is_at_rest:
            return
        tips, owed, marks = self.run(look)
        assert tips == set(self.model.tips())
        self.model.marks = {turn: outcome for turn, (outcome, _) in marks.items()}
        assert owed == self.model.owed()
        assert self.model.is_closed()

    @rule()
    def settle(self) -> None:
        """With a writer that keeps, one flush leaves nothing owed and nothing wrong."""
        self.mood = "keep"
        answer = self.run(self.work.flush)
        assert (answer.left, answer.failures) == (0, [])
        self.run(self.work.quiet)
        assert self.run(self.work.owed_count) == 0
        database = self.work.place / "sessions.db"
        assert store_faults(database) == []
        assert workspace_faults(self.work.root, tokens) == []
        self.check_blocks(self.run(self.work.marks))

    def check_blocks(self, marks: dict[str, tuple[str, str | None]]) -> None:
        """What counts and was kept stands exactly once; what was taken back stands nowhere."""
        files = (self.work.root / "topics").rglob("*.md")
        topics = [parse(file.read_bytes()) for file in files if file.name != "core.md"]
        stands = Counter(block.text.split()[1].rstrip(".") for block in blocks_of(topics))
        for key in self.homes:
            if key not in self.model.recordable or not self.model.counts(key):
                assert stands[key] == 0, f"{key} was taken back and stands"
            elif marks[key][0] == "kept":
                assert stands[key] == 1, f"{key} was kept and stands {stands[key]} times"
            else:
                assert stands[key] <= 1


CI = settings(
    max_examples=40,
    phases=(Phase.generate,),
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    print_blob=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
"""About 2,000 steps, the same at every run; a failure prints how to repeat it."""

MemoryMachine.TestCase.settings = CI
# A loop that spins swallows what a signal raises in it: only another thread ends it.
TestMemory = pytest.mark.timeout(1_800, method="thread")(MemoryMachine.TestCase)


@pytest.mark.soak
def test_goes_on_for_a_long_time() -> None:
    """New examples of longer lives as long as time is left."""
    end = time.monotonic() + float(os.environ.get("TURNMARK_SOAK_SECONDS", "60"))
    longer = settings(CI, max_examples=20, stateful_step_count=80, derandomize=False)
    while time.monotonic() < end:
        run_state_machine_as_test(MemoryMachine, settings=longer)
