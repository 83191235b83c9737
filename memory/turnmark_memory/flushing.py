"""Flushes: what one would write, what it writes, and what is left of its scope afterwards."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import msgspec

from turnmark_events.errors import Refused
from turnmark_memory.demand import Failure
from turnmark_memory.planning import Bounds, Look, left_of, owed_now, plan
from turnmark_memory.requests import FlushRequest
from turnmark_memory.rewriting import Offered, since_ms, uncited, written_by
from turnmark_memory.shelf import Shelf
from turnmark_memory.worker import Worker
from turnmark_session_store import SessionStore
from turnmark_session_store.marks import offer_again
from turnmark_session_store.requests import SessionRef

Progress = Callable[[float, float | None, str | None], None]
"""Hears (done, total, message) while a call runs."""

_NOTHING_AGAIN = Offered(turns=())


class FlushAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`memory.flush`'s answer; `left` counts the scope's turns that are not dealt with.

    A plan's `batches` are the fewest that there can be: the turns fill so many, or lie in so many
    conversations. Forks and a writer's failures may part them further; turns and tokens are exact.
    """

    batches: int
    turns: int
    tokens: int
    blocks: int
    left: int
    failures: list[Failure]


class Flushing:
    """Serves `memory.flush`, and what else offers turns again to the present `writer`.

    `spares_local` says that turns of local sessions have a writer of their own.
    """

    def __init__(
        self,
        store: SessionStore,
        shelf: Shelf,
        worker: Worker,
        workspace_key: int,
        *,
        writer: str,
        trigger_tokens: int,
        spares_local: bool,
    ) -> None:
        self._store = store
        self._shelf = shelf
        self._worker = worker
        self._writer = writer
        self._workspace = workspace_key
        self._trigger_tokens = trigger_tokens
        self._spares_local = spares_local

    async def flush(self, asked: FlushRequest, progress: Progress) -> FlushAnswer:
        """Writes what is owed in a scope, one attempt a batch; or says what it would write.

        With `rewrite` the turns that such a writer settled are offered again and written with the
        rest. `progress` hears of turns done and turns in all.

        Raises:
            NotFound: if the session is unknown.
            Refused: if `since` is no time, or is given without `rewrite`.
            Unavailable: if the disk keeps the worker from looking.
        """
        if asked.session is not None:
            await self._store.show_session(SessionRef(session=asked.session), None)
        again = await self._again(asked)
        if not asked.dry_run:
            await self._offer(again)
        look, before = await self.snapshot(look_of(asked), again)
        if asked.dry_run:
            return before
        if not asked.wait:
            self._worker.flush_later(look)
            return before
        done = await self._worker.flush(
            look, lambda turns: progress(turns, max(turns, before.turns), "turns written")
        )
        within = look.within or frozenset()
        return FlushAnswer(
            batches=done.batches,
            turns=done.turns,
            tokens=done.tokens,
            blocks=done.blocks,
            left=await self._store.read(lambda db: left_of(db, self._workspace, within)),
            failures=done.failures,
        )

    async def _again(self, asked: FlushRequest) -> Offered:
        """Returns the turns that a rewriting offers again."""
        if asked.rewrite is None:
            if asked.since is not None:
                raise Refused("`since` bounds a rewriting; name the writer to rewrite with it")
            return _NOTHING_AGAIN
        kind, since = asked.rewrite, since_ms(asked.since)

        def read(db: apsw.Connection) -> Offered:
            return written_by(
                db,
                self._workspace,
                kind,
                since_ms=since,
                session=asked.session,
                spares_local=self._spares_local,
            )

        return await self._store.read(read)

    async def uncited(self) -> Offered:
        """Returns the settled turns that another writer judged and no block rests on; reads all."""

        def read(db: apsw.Connection) -> Offered:
            return uncited(
                db,
                self._workspace,
                self._shelf,
                writer=self._writer,
                spares_local=self._spares_local,
            )

        return await self._store.read(read)

    async def cost_of_uncited(self) -> tuple[int, int]:
        """Returns how many turns `offer_uncited` would offer again, and their tokens."""
        found = (await self.uncited()).turns
        return len(found), sum(tokens for _, tokens in found)

    async def offer_uncited(self) -> Offered:
        """Offers the `uncited` turns to the present writer; returns them.

        They are owed from now on; the worker writes them soon, and a flush waits for it.
        """
        offered = await self.uncited()
        await self._offer(offered)
        self._worker.look_everywhere()
        return offered

    async def _offer(self, offered: Offered) -> None:
        keys = offered.keys
        if keys:
            await self._store.write(
                lambda tx: offer_again(tx, self._workspace, keys, "rewrite"), background=True
            )

    async def snapshot(
        self, look: Look, again: Offered = _NOTHING_AGAIN
    ) -> tuple[Look, FlushAnswer]:
        """Returns the look bounded to what is owed in it now, and what a flush of it would do.

        Turns that are only offered `again` count as owed, whether they are already or not.
        """
        trigger_tokens = self._trigger_tokens

        def read(db: apsw.Connection) -> tuple[Look, FlushAnswer]:
            owed = {**owed_now(db, self._workspace, look), **dict(again.turns)}
            answer = _planned(db, self._workspace, look, owed, trigger_tokens=trigger_tokens)
            return msgspec.structs.replace(look, within=frozenset(owed)), answer

        return await self._store.read(read)


def look_of(asked: FlushRequest) -> Look:
    """Returns where a flush looks: everything in its scope, whole, back-off or not."""
    reasons = {"failed"}
    if asked.backlog:
        reasons.add("backlog")
    if asked.removed:
        reasons.add("removed")
    return Look(
        moved=None, whole=None, session=asked.session, reasons=frozenset(reasons), at_once=True
    )


def _planned(
    db: apsw.Connection,
    workspace: int,
    look: Look,
    owed: dict[int, int],
    *,
    trigger_tokens: int,
) -> FlushAnswer:
    """Returns the plan of a flush that is done now, of the turns `owed` in it: all of them left."""
    total = sum(owed.values())
    first = plan(db, workspace, look, Bounds(trigger_tokens=trigger_tokens), at_ms=0).batches
    return FlushAnswer(
        batches=max(len(first), -(-total // trigger_tokens)) if owed else 0,
        turns=len(owed),
        tokens=total,
        blocks=0,
        left=len(owed),
        failures=[],
    )
