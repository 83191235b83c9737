"""What runs: embeds, in the background, what the index has and the file has not; answers recall.

Woken by writes of the index, never by a clock. After a wake it rests a moment, because installs
come in bursts and an agent's work goes first; then it looks what is new, in one thread of
low priority, a fraction of a second at a time. What is newest is embedded first. Vectors are
kept in slices of a few, so a kill costs no more than one slice, and a start compares digests and
goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.abc
import anyio.to_thread
import msgspec
import structlog

from turnmark_events.errors import TurnmarkError, Unavailable
from turnmark_memory.dense import DocRef
from turnmark_memory.embedding.documents import Document, of_block, of_turn
from turnmark_memory.embedding.embedder import Embedder
from turnmark_memory.embedding.quiet_thread import QuietThread, quiet_thread
from turnmark_memory.embedding.vector_file import (
    DamagedVectors,
    GenerationRow,
    Made,
    VectorFile,
)
from turnmark_memory.index import Index
from turnmark_memory.index_schema import Filters, Kind

if TYPE_CHECKING:  # it imports NumPy, which is there only with an embedder
    from turnmark_memory.embedding.space import Space

log = structlog.get_logger(__name__)

State = Literal["off", "waiting", "embedding", "current", "failed"]

_REST_SECONDS = 2.0
"""Longer than the installs of a burst lie apart; vectors that come this late harm nothing."""

_PAGE = 200
"""Documents looked at in one go: some milliseconds."""

_SLICE = 16
"""Vectors kept in one transaction: about a second's work."""

_STRETCH_SECONDS = 0.2
"""Time in the thread between two looks whether the daemon ends."""

_KINDS: tuple[Kind, ...] = ("block", "turn")
_CONCURRENT_QUESTIONS = 2
_EVERYTHING = Filters(history=True)
_INSTALL = "pip install 'turnmark[e5]'"


class MeaningStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is: `embedded` of `documents` have a vector; `reason` says why it failed.

    While `state` is `waiting` nothing is counted yet.
    """

    name: str | None
    state: State
    embedded: int
    documents: int
    reason: str | None


class _Reach:
    """How far one kind of documents was looked through: all rows from `low` up to `high` are."""

    def __init__(self, last_row: int) -> None:
        self.high = last_row
        self.low = last_row + 1


class Meaning:
    """The vectors of one workspace at work; `turnmark_memory.dense.Dense`.

    Without an embedder it only erases vectors of what is gone from the index. With another
    embedder than the vectors on disk were made by, they serve on through `before`, if it is still
    there, until all are made anew.
    """

    def __init__(
        self,
        index: Index,
        file: VectorFile,
        embedder: Embedder | None,
        *,
        before: Callable[[str], Embedder | None] = lambda _space: None,
        rest_seconds: float = _REST_SECONDS,
    ) -> None:
        self._index = index
        self._file = file
        self._embedder = embedder
        self._before = before
        self._rest_seconds = rest_seconds
        self._changed = anyio.Event()
        self._limiter = anyio.CapacityLimiter(_CONCURRENT_QUESTIONS)
        self._space: Space | None = None
        self._serving: Space | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._damaged = self._mending = False
        self._exchanges = self._swept = -1
        self._reached: dict[Kind, _Reach] = {}
        self._state: State = "off" if embedder is None else "waiting"
        self._reason: str | None = None
        self._embedded = self._documents = 0
        self._caught_up = anyio.Event()

    def status(self) -> MeaningStatus:
        """Returns how far it is; costs nothing."""
        return MeaningStatus(
            name=None if self._embedder is None else self._embedder.space,
            state=self._state,
            embedded=self._embedded,
            documents=self._documents,
            reason=self._reason,
        )

    async def scores(
        self, query: str, *, limit: int, also: Collection[DocRef]
    ) -> Mapping[DocRef, float]:
        """Returns how near documents are; see `dense.Dense`. Loads the model at the first."""
        work = partial(self._scores, query, limit=limit, also=also)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Embeds what comes into the index until cancelled, beginning with what is there."""
        if self._embedder is None and not self._file.count():
            task_status.started()
            return
        self._loop = asyncio.get_running_loop()
        self._changed.set()
        self._index.on_change(self._look_again)
        async with quiet_thread("turnmark-embedder") as thread:
            task_status.started()
            while True:
                await self._changed.wait()
                await anyio.sleep(self._rest_seconds)
                self._changed = anyio.Event()
                await self._catch_up(thread)

    async def wait_until_current(self) -> None:
        """Returns when all that was in the index at some moment from now on has its vector."""
        self._caught_up = anyio.Event()
        self._on_change()
        await self._caught_up.wait()

    def _look_again(self) -> None:
        """Wakes `run`; for any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended, and with it the need
                self._loop.call_soon_threadsafe(self._on_change)

    def _on_change(self) -> None:
        self._changed.set()

    async def _catch_up(self, thread: QuietThread) -> None:
        """Embeds what has no vector, erases vectors of what is gone; errors go to the status.

        After an error it waits for the next write: nothing else would change its cause.
        """
        try:
            if self._damaged:
                await thread.run(self._begin_anew)
            if self._embedder is not None:
                await self._embed_all(thread)
            await thread.run(self._sweep)
        except TurnmarkError as error:
            if isinstance(error, DamagedVectors) and not self._mending:
                log.warning("vectors_damaged", reason=error.message)
                self._damaged = self._mending = True
                self._on_change()
                return
            self._state, self._reason = "failed", error.message
            self._exchanges = -1  # what was under way is looked for again
            log.warning("embedding_failed", reason=error.message)
        else:
            self._mending = False
            self._state, self._reason = ("off" if self._embedder is None else "current"), None
        if not self._changed.is_set():
            self._caught_up.set()

    async def _embed_all(self, thread: QuietThread) -> None:
        if not self._documents:  # nobody is to read that there is nothing before it was counted
            await thread.run(self._count_first)
        while True:
            page = await thread.run(self._next_page)
            if page is None:
                break
            for start in range(0, len(page), _SLICE):
                self._state = "embedding"
                await self._embed(thread, page[start : start + _SLICE])
        await thread.run(self._finish)

    async def _embed(self, thread: QuietThread, documents: Sequence[Document]) -> None:
        space = self._begun()
        made: list[Made] = []
        while len(made) < len(documents):
            made += await thread.run(partial(_some, space, documents[len(made) :]))
        await thread.run(partial(self._keep, space, made))

    def _keep(self, space: Space, made: Sequence[Made]) -> None:
        """Keeps vectors, but for those of documents that were erased meanwhile."""
        self._file.put(space.generation.id, made)
        self._file.erase(self._gone([one.ref for one in made]))
        self._count(space)

    def _next_page(self) -> list[Document] | None:
        """Returns documents that need a vector, the newest first; None if all were looked at."""
        if self._index.exchanges != self._exchanges:
            self._exchanges = self._index.exchanges
            self._reached = {kind: _Reach(self._index.last_row(kind)) for kind in _KINDS}
        for kind in _KINDS:
            found = self._beyond(kind)
            if found:
                return self._without_vector(kind, found)
        return None

    def _beyond(self, kind: Kind) -> list[Document]:
        """Returns what was not looked at yet: what came in since, else the latest before."""
        reach = self._reached[kind]
        newer = self._rows(kind, reach.high, upwards=True)
        if newer:
            reach.high = newer[-1][0]
            return [document for _, document in newer]
        older = self._rows(kind, reach.low, upwards=False)
        if older:
            reach.low = older[-1][0]
        return [document for _, document in older]

    def _rows(self, kind: Kind, row: int, *, upwards: bool) -> list[tuple[int, Document]]:
        if kind == "turn":
            turns = self._index.turns_from(row, _PAGE, upwards=upwards)
            return [
                (at, of_turn(t.label, t.text, speaker=t.speaker_name, at=t.time)) for at, t in turns
            ]
        blocks = self._index.blocks_from(row, _PAGE, upwards=upwards)
        return [
            (at, of_block(b.block, b.text, topic=b.topic, heading=b.heading)) for at, b in blocks
        ]

    def _without_vector(self, kind: Kind, found: Sequence[Document]) -> list[Document]:
        space = self._begun()
        refs = [document.ref[1] for document in found]
        known = self._file.digests(space.generation.id, kind, refs)
        return [one for one in found if known.get(one.ref[1]) != one.digest]

    def _begun(self) -> Space:
        """Returns the space that is filled. Raises as `Space.begin`."""
        if self._space is None:
            if self._embedder is None:
                raise LookupError("embedder")
            self._space = space_of(self._file, self._embedder)
        return self._space

    def _finish(self) -> None:
        """Marks the vectors as whole, after which those of another embedder go."""
        if self._space is None:  # nothing to embed
            return
        self._file.complete(self._space.generation.id)
        self._serving = None
        self._space.load()
        self._count(self._space)

    def _count_first(self) -> None:
        self._documents = self._size()
        if self._documents:
            self._count(self._begun())

    def _count(self, space: Space) -> None:
        self._embedded = self._file.count(space.generation.id)
        self._documents = self._size()

    def _size(self) -> int:
        return self._index.size("turn") + self._index.size("block")

    def _sweep(self) -> None:
        """Erases the vectors of documents that are no longer in the index.

        Looks at all of them after a start or a rebuild, and when there are more than documents.
        """
        total = self._file.count()
        if self._swept == self._index.exchanges and total <= self._size():
            return
        self._swept = self._index.exchanges
        for generation in self._file.generations():
            slot = -1
            while found := self._file.refs_after(generation.id, slot, _PAGE):
                slot = found[-1][0]
                self._file.erase(self._gone([ref for _, ref in found]))
        if self._space is not None:
            self._count(self._space)

    def _gone(self, docs: Sequence[DocRef]) -> list[DocRef]:
        known: set[DocRef] = set()
        for kind in _KINDS:
            refs = [ref for k, ref in docs if k == kind]
            known.update((kind, one.ref) for one in self._index.found(kind, refs, _EVERYTHING))
        return [doc for doc in docs if doc not in known]

    def _begin_anew(self) -> None:
        self._file.discard()
        self._space = self._serving = None
        self._exchanges = -1
        self._damaged = False

    def _scores(
        self, query: str, *, limit: int, also: Collection[DocRef]
    ) -> Mapping[DocRef, float]:
        if self._embedder is None:
            raise Unavailable(f"no embedder is installed here; {_INSTALL}")
        try:
            serving = self._served(self._embedder)
            return {} if serving is None else serving.scores(query, limit=limit, also=also)
        except DamagedVectors as error:
            log.warning("vectors_damaged", reason=error.message)
            self._damaged = True
            self._look_again()
            return {}

    def _served(self, embedder: Embedder) -> Space | None:
        """Returns the vectors that answer: the whole ones of now, else whole ones of before."""
        generations = self._file.generations()
        if not generations:
            return None
        present = next((g for g in generations if g.space == embedder.space), None)
        for one in generations:
            by = embedder if one.space == embedder.space else self._before(one.space)
            if one.complete and by is not None:
                return self._as_space(one, by)
        return None if present is None else self._as_space(present, embedder)

    def _as_space(self, generation: GenerationRow, embedder: Embedder) -> Space:
        """Returns a generation's space, the one from before where it is the same."""
        for known in (self._serving, self._space):
            if known is not None and known.generation.id == generation.id:
                return known
        self._serving = space_of(self._file, embedder, generation)
        return self._serving


def _some(space: Space, documents: Sequence[Document]) -> list[Made]:
    """Returns the vectors of the first few: an end of the daemon waits for these and no more."""
    until = monotonic() + _STRETCH_SECONDS
    made: list[Made] = []
    for document in documents:
        made.append(space.make(document))
        if monotonic() > until:
            break
    return made


def space_of(
    file: VectorFile, embedder: Embedder, generation: GenerationRow | None = None
) -> Space:
    """Returns a generation's space, the embedder's own one without; imports NumPy."""
    from turnmark_memory.embedding.space import Space  # noqa: PLC0415  see TYPE_CHECKING above

    return Space.begin(file, embedder) if generation is None else Space(file, embedder, generation)
