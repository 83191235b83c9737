"""A stage for the store's tests: short verbs, all that was said, raw SQL on the real file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import apsw
from msgspec import UNSET, UnsetType

from turnmark_events.types import Event, TipMoved
from turnmark_session_store import SessionStore
from turnmark_session_store.append import Appended
from turnmark_session_store.batches import BatchResult, claim, close_batch
from turnmark_session_store.checkout import HeadIs, Merged, Rewound
from turnmark_session_store.database import open_reader
from turnmark_session_store.erase import Deleted
from turnmark_session_store.import_ends import Imported
from turnmark_session_store.marks import ParkReason, park, settle, workspace_key
from turnmark_session_store.model import CallerRef, MarkOutcome, TurnIn, TurnOut
from turnmark_session_store.opening import Opened
from turnmark_session_store.owed import Owed, owed
from turnmark_session_store.requests import (
    AppendTurns,
    Archive,
    Checkout,
    ExportSession,
    ForkPoint,
    ImportLines,
    ListBranch,
    Merge,
    OpenSession,
    Rewind,
    SessionRef,
    SyncTurns,
)
from turnmark_session_store.sync import Synced
from turnmark_session_store.transaction import Transaction
from turnmark_session_store.views import BranchRow, SessionShown

T = TypeVar("T")
WORKSPACE = "w-0123456789abcdef"
IDLE_MS = 1_000


def user(words: str, id: str | None = None, **more: Any) -> TurnIn:  # noqa: A002  the field's name
    """Returns a user's turn."""
    return TurnIn(role="user", text=words, id=id, **more)


def assistant(words: str, id: str | None = None, **more: Any) -> TurnIn:  # noqa: A002
    """Returns an assistant's turn."""
    return TurnIn(role="assistant", text=words, id=id, **more)


def turns(*ids: str) -> list[TurnIn]:
    """Returns turns of these ids, each saying its id."""
    return [user(f"words of {one}", one) for one in ids]


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory in memory where there is one: thousands of commits, none waits for a disk."""
    shared = Path("/dev/shm")
    base = shared if shared.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="turnmark-test-", dir=base) as made:
        yield Path(made)


class Clock:
    """A clock that goes on by a millisecond at each look, or stands where a test puts it."""

    def __init__(self, at_ms: int = 1_800_000_000_000) -> None:
        self.at_ms = at_ms

    def __call__(self) -> int:
        self.at_ms += 1
        return self.at_ms


class Stage:
    """An open store, its events in order, and its verbs without the structs around them."""

    def __init__(
        self,
        path: Path,
        *,
        mask: Literal["store", "exits"] = "store",
        clock: Clock | None = None,
        idle_ms: int = IDLE_MS,
    ) -> None:
        self.path = path
        self.clock = clock or Clock()
        self.mask = mask
        self.idle_ms = idle_ms
        self.events: list[Event] = []
        self.store: SessionStore
        self._reader: apsw.Connection | None = None

    async def __aenter__(self) -> Self:
        self.store = SessionStore.open(
            self.path, count=len, idle_ms=self.idle_ms, mask=self.mask, clock=self.clock
        )
        self.store.publish = self.events.extend
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        await self.store.aclose()

    async def restart(self) -> None:
        """Closes the store and opens it again on the same file."""
        await self.__aexit__()
        await self.__aenter__()

    # What was said.

    def moves(self, since: int = 0) -> list[TipMoved]:
        """Returns the moves after event number `since`."""
        found = [event for event in self.events if isinstance(event, TipMoved)]
        return [event for event in found if event.seq > since]

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return self.events[-1].seq if self.events else 0

    async def said(self, verb: Any) -> list[tuple[str, str | None, str | None]]:
        """Runs a verb and returns (cause, old, new) of the moves that it said."""
        before = self.seq
        await verb
        return [(move.cause, move.old, move.new) for move in self.moves(before)]

    # Verbs.

    async def open(
        self,
        session: str = "s",
        *,
        caller: tuple[str, str] | None = None,
        forked_from: tuple[str, str | None] | None = None,
        **more: Any,
    ) -> Opened:
        """Runs `session.open`."""
        return await self.store.open_session(
            OpenSession(
                session=session,
                caller=CallerRef(session=caller[0], turn=caller[1]) if caller else None,
                forked_from=ForkPoint(session=forked_from[0], turn=forked_from[1])
                if forked_from
                else None,
                **more,
            )
        )

    async def append(
        self,
        *given: TurnIn | str,
        session: str = "s",
        after: str | UnsetType | None = UNSET,
        expect: str | UnsetType | None = UNSET,
        key: str | None = None,
        move_head: bool = True,
    ) -> Appended:
        """Runs `turn.append`; a string stands for a turn of that id."""
        made = [turns(one)[0] if isinstance(one, str) else one for one in given]
        return await self.store.append(
            AppendTurns(
                session=session,
                turns=made,
                after=after,
                expect=expect,
                key=key,
                move_head=move_head,
            )
        )

    async def sync(self, *messages: TurnIn, session: str = "s", key: str | None = None) -> Synced:
        """Runs `turn.sync`."""
        return await self.store.sync(SyncTurns(session=session, messages=list(messages), key=key))

    async def rewind(self, to: str, session: str = "s", **more: Any) -> Rewound:
        """Runs `session.rewind`."""
        return await self.store.rewind(Rewind(session=session, to=to, **more))

    async def checkout(self, tip: str, session: str = "s", **more: Any) -> HeadIs:
        """Runs `session.checkout`."""
        return await self.store.checkout(Checkout(session=session, tip=tip, **more))

    async def merge(self, tips: Sequence[str], turn: TurnIn, session: str = "s") -> Merged:
        """Runs `session.merge`."""
        return await self.store.merge(Merge(session=session, tips=list(tips), turn=turn))

    async def archive(self, branch: str | None = None, session: str = "s") -> None:
        """Runs `session.archive`."""
        await self.store.archive(Archive(session=session, branch=branch))

    async def delete(self, session: str = "s") -> Deleted:
        """Runs `session.delete`."""
        return await self.store.delete_session(SessionRef(session=session))

    async def export(self, session: str = "s", page: int = 1_000) -> list[str]:
        """Runs `session.export` to its end."""
        lines: list[str] = []
        cursor: str | None = None
        while True:
            asked = ExportSession(session=session, limit=page, cursor=cursor)
            answer = await self.store.export_session(asked)
            if answer.continued:
                lines[-1] += answer.lines.pop(0)
            lines += answer.lines
            cursor = answer.next
            if cursor is None:
                return lines

    async def bring(self, lines: Sequence[str]) -> Imported:
        """Runs `session.import` in one frame."""
        found = await self.store.import_lines(ImportLines(lines=list(lines), last=True))
        assert isinstance(found, Imported)
        return found

    # Marks.

    async def write(self, function: Any) -> Any:
        """Runs a function in a transaction."""
        return await self.store.write(function)

    async def workspace(self, name: str = WORKSPACE) -> int:
        """Returns the key of a workspace."""
        return await self.store.write(lambda tx: workspace_key(tx, name))

    async def settle(
        self, *ids: str, session: str = "s", outcome: MarkOutcome = "kept", workspace: int = 1
    ) -> list[str]:
        """Settles turns; returns the ids of those settled."""

        def run(tx: Transaction) -> list[int]:
            keys = [_key(tx.db, session, one) for one in ids]
            return settle(tx, workspace, keys, outcome=outcome, writer="builtin", revision=1)

        return self.ids(await self.store.write(run))

    async def park(
        self, *ids: str, reason: ParkReason, session: str = "s", workspace: int = 1
    ) -> None:
        """Parks turns."""
        await self.store.write(
            lambda tx: park(tx, workspace, [_key(tx.db, session, one) for one in ids], reason)
        )

    async def batch(self, *ids: str, session: str = "s", workspace: int = 1) -> int:
        """Claims a batch of turns, whose tip is the last of them."""

        def run(tx: Transaction) -> int:
            keys = [_key(tx.db, session, one) for one in ids]
            owner = tx.value("SELECT id FROM session WHERE name = ?", (session,))
            branch = tx.value("SELECT id FROM branch WHERE session = ? LIMIT 1", (owner,))
            return claim(
                tx,
                workspace,
                keys,
                session=owner,
                branch=branch,
                tip=keys[-1],
                owner="test",
                writer="builtin",
            )

        return await self.store.write(run)

    async def close_batch(self, batch: int, outcome: MarkOutcome = "kept") -> list[str]:
        """Closes a batch; returns the ids of the turns settled."""
        result = BatchResult(batch=batch, outcome=outcome, blocks=["b-00000001"])
        return self.ids(await self.store.write(lambda tx: close_batch(tx, result)))

    async def owed(self, session: str | None = None, workspace: int = 1) -> Owed:
        """Returns what is owed, with ids."""
        return await self.store.read(lambda db: owed(db, workspace, session=session, ids=True))

    async def owes(self, state: str | None = None, workspace: int = 1) -> set[str]:
        """Returns the ids of the turns owed, in all states or in one."""
        found = await self.owed(workspace=workspace)
        rows = [row for row in found.tips if state in (None, row.state)]
        return {one for row in rows for one in row.turns or []}

    # What is there.

    async def show(self, session: str = "s") -> SessionShown:
        """Returns `session.show`."""
        return await self.store.show_session(SessionRef(session=session), None)

    async def head(self, session: str = "s") -> str | None:
        """Returns the session's head."""
        return (await self.show(session)).head

    async def branches(self, session: str = "s") -> list[BranchRow]:
        """Returns the session's branches, oldest first."""
        return (await self.show(session)).branches

    async def tips(self, session: str = "s") -> list[str | None]:
        """Returns the tips of the session's live branches, oldest branch first."""
        return [row.tip for row in await self.branches(session) if row.state in _LIVE]

    async def line(self, session: str = "s", tip: str | None = None) -> list[TurnOut]:
        """Returns root to tip."""
        asked = ListBranch(session=session, tip=tip, limit=1_000)
        return (await self.store.list_branch(asked)).turns

    async def path_to(self, session: str = "s", tip: str | None = None) -> list[str]:
        """Returns the ids from root to tip."""
        return [turn.id for turn in await self.line(session, tip)]

    def sql(self, query: str, parameters: Any = ()) -> list[Any]:
        """Runs a query on a connection of its own and returns the rows."""
        if self._reader is None:
            self._reader = open_reader(self.path)
        return list(self._reader.execute(query, parameters))

    def ids(self, keys: Sequence[int]) -> list[str]:
        """Returns the ids of integer keys."""
        known = dict(self.sql("SELECT id, key FROM turn"))
        return [known[key] for key in keys]

    def key(self, turn: str, session: str = "s") -> int:
        """Returns the integer key of a turn."""
        found = self.sql(_KEY, (session, turn))
        assert found, f"no turn {turn}"
        return int(found[0][0])

    def retired(self) -> set[str]:
        """Returns the ids of the retired turns."""
        return {key for (key,) in self.sql("SELECT key FROM turn JOIN retired_turn ON turn = id")}

    def marks(self, workspace: int = 1) -> dict[str, tuple[str, str | None]]:
        """Returns outcome and reason of the marked turns."""
        rows = self.sql(
            "SELECT key, outcome, reason FROM mark JOIN turn ON id = turn WHERE workspace = ?",
            (workspace,),
        )
        return {key: (outcome, reason) for key, outcome, reason in rows}


_LIVE = ("live", "archived")


_KEY = (
    "SELECT turn.id FROM turn JOIN session ON session.namespace = turn.namespace"
    " WHERE name = ? AND key = ?"
)


def _key(db: apsw.Connection, session: str, turn: str) -> int:
    found = list(db.execute(_KEY, (session, turn)))
    assert found, f"no turn {turn}"
    return int(found[0][0])
