"""A memory at work: a real store, bus, idle clock and workspace, and a writer that does as told.

Everything lies in a scratch directory in memory where there is one. Times are real but idleness is
said by the test: `silence` moves deadlines to now instead of waiting for them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.abc
import apsw

from turnmark_events.bus import Bus
from turnmark_events.types import Event, TurnsWritten
from turnmark_memory.memory import Memory, MemorySettings
from turnmark_memory.model import Add, Answer, Batch, Edits, Evidence, Nothing
from turnmark_memory.models.model import Model
from turnmark_memory.organizing import Organized
from turnmark_memory.requests import FlushRequest, OrganizeRequest, OwedRequest
from turnmark_memory.writers.writer import Writer, WriterFailed
from turnmark_session_store import SessionStore
from turnmark_session_store.append import Appended
from turnmark_session_store.idle import IdleClock, fire_due
from turnmark_session_store.model import TurnIn
from turnmark_session_store.requests import AppendTurns, SessionRef

LONG_MS = 3_600_000
TRIGGER_TOKENS = 16_000


def user(words: str, id: str | None = None, **more: Any) -> TurnIn:  # noqa: A002  the field's name
    """Returns a user's turn."""
    return TurnIn(role="user", text=words, id=id, **more)


def assistant(words: str, id: str | None = None, **more: Any) -> TurnIn:  # noqa: A002
    """Returns an assistant's turn."""
    return TurnIn(role="assistant", text=words, id=id, **more)


def said(*ids: str) -> list[TurnIn]:
    """Returns users' turns of these ids, each with words of its own."""
    return [user(f"fact {one}", one) for one in ids]


def numbered(prefix: str, count: int) -> list[str]:
    """Returns `count` ids that sort as they are numbered."""
    return [f"{prefix}{number:03}" for number in range(1, count + 1)]


def keep_each(batch: Batch) -> Answer:
    """Answers with one block per turn, its words as they are."""
    return Edits(edits=tuple(keep(turn) for turn in batch.turns))


def keep(turn: Evidence, topic: str = "subjects/facts") -> Add:
    """Returns an edit that keeps a turn's words."""
    return Add(topic=topic, text=" ".join(turn.text.split()), cites=(turn.label,))


class Scribe:
    """A writer that does as it is told; it remembers each batch that it was asked to write."""

    def __init__(
        self, answer: Callable[[Batch], Answer] = keep_each, name: str = "scribe/1"
    ) -> None:
        self.name = name
        self.answer = answer
        self.before: Callable[[Batch], Awaitable[None]] | None = None
        self.batches: list[Batch] = []
        self.asked = anyio.Event()

    async def write(self, batch: Batch) -> Answer:
        """Answers by `answer`, after `before` has let it."""
        self.batches.append(batch)
        self.asked.set()
        self.asked = anyio.Event()
        if self.before is not None:
            await self.before(batch)
        return self.answer(batch)

    @property
    def offered(self) -> list[list[str]]:
        """The ids of the turns of each batch."""
        return [[turn.id for turn in batch.turns] for batch in self.batches]

    @property
    def offered_ids(self) -> list[str]:
        """The ids of the turns of all batches, in the order offered."""
        return [turn for turns in self.offered for turn in turns]

    async def wait_asked(self, times: int) -> None:
        """Returns once it was asked so often."""
        with anyio.fail_after(60):
            while len(self.batches) < times:
                await self.asked.wait()


class Poisoned:
    """Keeps each turn, and fails where one of the poisoned is among them."""

    def __init__(self, *poison: str) -> None:
        self.poison = set(poison)

    def __call__(self, batch: Batch) -> Answer:
        if any(turn.id in self.poison for turn in batch.turns):
            raise WriterFailed("malformed")
        return keep_each(batch)


class Hold:
    """Keeps a writer waiting until it is let go."""

    def __init__(self) -> None:
        self.began = anyio.Event()
        self.end = anyio.Event()

    async def __call__(self, batch: Batch) -> None:
        self.began.set()
        await self.end.wait()


class AtWork:
    """A store with a memory beside it; `open` starts both, `restart` ends and starts them anew."""

    def __init__(
        self,
        place: Path,
        writer: Writer | None = None,
        *,
        trigger_tokens: int = TRIGGER_TOKENS,
        core_tokens: int = 2_000,
        idle_ms: int = LONG_MS,
        first_backoff_ms: int | None = None,
        tidier: Model | None = None,
        selector: Model | None = None,
        deliver: Callable[[Sequence[Event]], Sequence[Event]] | None = None,
    ) -> None:
        self.place = place
        self.scribe = Scribe()
        self.writer: Writer = writer or self.scribe
        self.settings = MemorySettings(
            trigger_tokens=trigger_tokens, core_tokens=core_tokens, nightly=None
        )
        self.tidier = tidier
        self.selector = selector
        self.idle_ms = idle_ms
        self.first_backoff_ms = first_backoff_ms
        self.deliver = deliver
        self.events: list[Event] = []
        self.store: SessionStore
        self.memory: Memory
        self.bus: Bus
        self._heard = anyio.Event()
        self._stack = AsyncExitStack()

    @property
    def root(self) -> Path:
        """The workspace."""
        return self.place / "memory"

    async def start(self, *, run: bool = True) -> Self:
        """Opens store and memory; with `run` the worker and the idle clock go on beside."""
        self.store = SessionStore.open(
            self.place / "sessions.db", count=tokens, idle_ms=self.idle_ms
        )
        self._stack = AsyncExitStack()
        self._stack.push_async_callback(self.store.aclose)
        try:
            self.memory = await Memory.open(
                self.store,
                self.root,
                self.writer,
                self.settings,
                count=tokens,
                counter="words",
                tidier=self.tidier,
                selector=self.selector,
            )
        except BaseException:
            await self._stack.aclose()
            raise
        self._stack.callback(self.memory.close)
        if self.first_backoff_ms is not None:
            self.memory.worker._endings.first_backoff_ms = self.first_backoff_ms
        if run:
            await self.run()
        return self

    async def run(self) -> None:
        """Starts the worker and the idle clock, until `stop`."""
        tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(tasks.cancel_scope.cancel)
        await self.run_in(tasks)

    async def run_in(self, tasks: anyio.abc.TaskGroup) -> None:
        """Starts the worker and the idle clock among the tasks of somebody who ends them."""
        self.bus = Bus(replay=self.store.events_after, last_seq=await self.store.last_seq())
        clock = IdleClock(self.store)

        def publish(events: Sequence[Event]) -> None:
            self.events += events
            self._heard.set()
            self._heard = anyio.Event()
            if self.deliver is None:
                self.bus.publish(events)
            else:  # the bus would drop what is out of order: the worker hears it directly
                for event in self.deliver(events):
                    self.memory.worker.heard(event)
            clock.saw(events)

        self.store.publish = publish
        await tasks.start(self.memory.run, self.bus)
        tasks.start_soon(clock.run)

    async def stop(self) -> None:
        """Ends everything in order."""
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def restart(self, *, run: bool = True) -> None:
        """Ends everything and opens it again."""
        await self.stop()
        await self.start(run=run)

    async def append(self, session: str, turns: Sequence[TurnIn], **more: Any) -> Appended:
        """Appends turns."""
        return await self.store.append(AppendTurns(session=session, turns=list(turns), **more))

    async def say(self, session: str, *ids: str, **more: Any) -> Appended:
        """Appends users' turns of these ids."""
        return await self.append(session, said(*ids), **more)

    async def flush(self, **asked: Any) -> Any:
        """Flushes and returns the answer."""
        with anyio.fail_after(60):
            return await self.memory.flush(FlushRequest(**asked))

    async def organize(self, **asked: Any) -> Organized:
        """Runs a night, or decides about what it held, and returns the answer."""
        with anyio.fail_after(60):
            return await self.memory.organize(OrganizeRequest(**asked))

    async def silence(self, *branches: str) -> None:
        """Lets all branches, or these, have fallen silent just now."""

        def run(tx: Any) -> None:
            names = json.dumps(branches)
            tx.execute(
                "UPDATE branch SET idle_ms = ? WHERE idle_ms IS NOT NULL AND tip IS NOT NULL AND"
                " (? = '[]' OR name IN (SELECT value FROM json_each(?)))",
                (tx.at_ms - 1, names, names),
            )

        await self.store.write(run)
        await self.store.write(fire_due)

    async def wait_for(self, is_true: Callable[[], bool]) -> None:
        """Returns once something holds that an event announces."""
        with anyio.fail_after(60):
            while not is_true():
                await self._heard.wait()

    async def wait_written(self, *ids: str) -> None:
        """Returns once these turns are settled."""
        await self.wait_for(lambda: self.written_ids().issuperset(ids))

    def written(self) -> list[TurnsWritten]:
        """Returns every `TurnsWritten` so far."""
        return [event for event in self.events if isinstance(event, TurnsWritten)]

    def written_ids(self) -> set[str]:
        """Returns the ids of all turns in them."""
        return {turn for event in self.written() for turn in event.turns}

    async def quiet(self) -> None:
        """Returns once the worker has looked at all it heard of and nothing is under way."""
        with anyio.fail_after(60):
            await anyio.wait_all_tasks_blocked()
            while not self.memory.worker.is_at_rest:
                await self.store.write(lambda _: None)
                await anyio.wait_all_tasks_blocked()

    async def marks(self, workspace: str | None = None) -> dict[str, tuple[str, str | None]]:
        """Returns (outcome, reason) by turn id."""
        name = workspace or self.memory.workspace
        rows = await self.rows(
            "SELECT key, outcome, reason FROM mark JOIN turn ON turn.id = mark.turn"
            " JOIN workspace ON workspace.id = mark.workspace WHERE workspace.name = ?",
            (name,),
        )
        return {key: (outcome, reason) for key, outcome, reason in rows}

    async def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Returns the rows of a query on the store."""

        def run(db: apsw.Connection) -> list[Any]:
            return list(db.execute(sql, values))

        return await self.store.read(run)

    def topic(self, name: str = "subjects/facts") -> str:
        """Returns the text of a topic, empty where there is none."""
        file = self.root / "topics" / f"{name}.md"
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def facts(self, name: str = "subjects/facts") -> list[str]:
        """Returns the ids of the turns whose words stand in a topic, in its order."""
        lines = (line for line in self.topic(name).splitlines() if line.startswith("fact "))
        return [line.removeprefix("fact ").split(".", 1)[0].split("[", 1)[0] for line in lines]

    def source_ids(self) -> list[str]:
        """Returns the ids of all archived turns."""
        files = sorted((self.root / "sources").rglob("*.jsonl"))
        lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
        return [found["id"] for line in lines if "id" in (found := json.loads(line))]

    async def owed_count(self) -> int:
        """Returns how many turns are owed in any state."""
        return (await self.memory.owed(OwedRequest())).turns

    async def close_session(self, session: str) -> None:
        """Closes a session as the daemon does."""
        await self.store.close_session(SessionRef(session=session))
        await self.memory.session_closed(session)


def tokens(text: str) -> int:
    """Counts words, each Chinese sign one: stable and quick."""
    return sum(1 + sum(1 for sign in word if sign > "\u2e80") for word in text.split())


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory in memory where there is one."""
    shared = Path("/dev/shm")
    base = shared if os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="turnmark-memory-", dir=base) as made:
        yield Path(made)


@asynccontextmanager
async def at_work(
    writer: Writer | None = None, *, run: bool = True, place: Path | None = None, **more: Any
) -> AsyncGenerator[AtWork, None]:
    """Gives a memory at work in a scratch place, and ends it."""
    with scratch() as made:
        work = AtWork(place or made, writer, **more)
        await work.start(run=run)
        try:
            yield work
        finally:
            await work.stop()


NOTHING = Nothing(reason="nothing worth keeping")
