"""The socket's table: each method's params, and which part of turnmark answers it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from turnmark.config import Rules
from turnmark.rpc.dispatch import Call, Method
from turnmark.rpc.subscriptions import subscription_methods
from turnmark.status import Status, status_of
from turnmark_events.bus import Bus
from turnmark_memory import Memory
from turnmark_memory.requests import (
    AdoptRequest,
    ContextRequest,
    CoreRequest,
    EditRequest,
    FlushRequest,
    ForgetRequest,
    HistoryRequest,
    OrganizeRequest,
    OwedRequest,
    RecallRequest,
    RememberRequest,
    ShowRequest,
    TopicsRequest,
    UndoRequest,
)
from turnmark_session_store import SessionStore
from turnmark_session_store.requests import (
    AppendTurns,
    Archive,
    Checkout,
    ExportSession,
    ImportLines,
    ListBranch,
    ListSessions,
    Merge,
    OpenSession,
    Rewind,
    SessionRef,
    SyncTurns,
)
from turnmark_session_store.sessions import find_session, get_session, get_turn

PROTOCOL = 1
_LARGE_ANSWER_BYTES = 16 * 1024 * 1024
"""For answers that hold whole turns, or as many rows as there are. Pages keep well below what a
request may have where they can; but what could be sent in can be read back."""

P = TypeVar("P", bound=msgspec.Struct)
Plain = Callable[[P], Awaitable[Any]]
Asked = TypeVar("Asked", RecallRequest, ContextRequest)


class Hello(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`hello`."""

    client: str | None = None
    protocol: int | None = None


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A method without params."""


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """`hello`'s answer; `state` is the daemon's state directory, by its full path."""

    server: str
    version: str
    protocol: int
    workspace: str
    pid: int
    state: str


class _Named(msgspec.Struct, frozen=True, kw_only=True):
    """What a header says of its session."""

    session: str | None = None
    agent: str | None = None
    project: str | None = None


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The empty answer."""


class Api:
    """Answers what a method table can't: where rules, store and memory meet."""

    def __init__(
        self,
        store: SessionStore,
        memory: Memory,
        rules: Rules,
        inspect: Callable[[], Mapping[str, Any]],
        *,
        state: Path,
    ) -> None:
        self._store = store
        self._memory = memory
        self._rules = rules
        self._inspect = inspect
        self._state = state
        self._ruled: set[str] = set()

    async def hello(self, asked: Hello, _call: Call) -> Welcome:
        """Says who answers."""
        del asked
        return Welcome(
            server="turnmark",
            version=version("turnmark"),
            protocol=PROTOCOL,
            workspace=self._memory.workspace,
            pid=os.getpid(),
            state=str(self._state),
        )

    async def open_session(self, asked: OpenSession, _call: Call) -> Any:
        """Opens a session, under the configuration's rules where the caller says nothing."""
        if asked.memory is None and self._rules.rules:
            mode = self._rules.memory_for(asked.agent, asked.project, asked.session)
            if mode != "on":
                asked = msgspec.structs.replace(asked, memory=mode)
        return await self._store.open_session(asked)

    async def append(self, asked: AppendTurns, call: Call) -> Any:
        """Appends turns; the next write to the session may queue up behind it at once."""
        await self._rule(asked.session)
        return await self._store.append(asked, call.queued)

    async def sync(self, asked: SyncTurns, call: Call) -> Any:
        """Syncs a message array."""
        await self._rule(asked.session)
        return await self._store.sync(asked, call.queued)

    async def import_lines(self, asked: ImportLines, call: Call) -> Any:
        """Imports a session, telling the caller how far it is; what costs much is held."""
        named = self._named_in(asked)
        if asked.last and named.session is not None:
            await self._rule(named.session, named.agent, named.project)
        return await self._store.import_lines(
            asked,
            lambda done, total: call.progress(done, total, "turns placed"),
            self._memory.hold_imported,
        )

    def session_of_import(self, asked: ImportLines) -> str | None:
        """Returns the session that an upload is of, as its first line says."""
        return self._named_in(asked).session

    def _named_in(self, asked: ImportLines) -> _Named:
        known = None if asked.upload is None else self._store.header_of(asked.upload)
        first = known or next(iter(asked.lines), "")
        try:
            return msgspec.json.decode(first, type=_Named)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return _Named()

    async def _rule(
        self, session: str, agent: str | None = None, project: str | None = None
    ) -> None:
        """Opens a session that a rule speaks of before the first turn comes to it."""
        if not self._rules.rules or session in self._ruled:
            return
        if await self._store.read(lambda db: find_session(db, session)) is None:
            mode = self._rules.memory_for(agent, project, session)
            if mode != "on":
                opened = OpenSession(session=session, agent=agent, project=project, memory=mode)
                await self._store.open_session(opened)
        self._ruled.add(session)

    async def archive(self, asked: Archive, _call: Call) -> Done:
        """Hides a branch or all of them."""
        await self._store.archive(asked)
        return Done()

    async def close_session(self, asked: SessionRef, _call: Call) -> Done:
        """Closes a session; what it owes is written beside."""
        await self._store.close_session(asked)
        await self._memory.session_closed(asked.session)
        return Done()

    async def delete_session(self, asked: SessionRef, _call: Call) -> Done:
        """Deletes a session from the store and everything that only it said from memory."""
        deleted = await self._store.delete_session(asked)
        await self._memory.forgotten(deleted.turns)
        return Done()

    async def list_sessions(self, asked: ListSessions, _call: Call) -> Any:
        """Lists sessions with what they owe."""
        return await self._store.list_sessions(asked, self._memory.key)

    async def show_session(self, asked: SessionRef, _call: Call) -> Any:
        """Shows a session with its branches."""
        return await self._store.show_session(asked, self._memory.key)

    async def recall(self, asked: RecallRequest, _call: Call) -> Any:
        """Recalls; a rule may keep a project's readers to their project.

        Raises:
            NotFound: if `tip` is no turn of `session`, whatever is found.
        """
        if asked.tip is not None and asked.session is not None:
            reader, tip = asked.session, asked.tip
            await self._store.read(lambda db: get_turn(db, get_session(db, reader), tip))
        return await self._memory.recall(await self._within_project(asked))

    async def context(self, asked: ContextRequest, _call: Call) -> Any:
        """Packs core and hits; a rule may keep a project's readers to their project."""
        return await self._memory.context(await self._within_project(asked))

    async def _within_project(self, asked: Asked) -> Asked:
        if asked.session is None or asked.project is not None or not self._rules.rules:
            return asked
        name = asked.session
        session = await self._store.read(lambda db: find_session(db, name))
        if session is None or session.project is None:
            return asked
        if self._rules.recall_for(session.agent, session.project, session.name) == "all":
            return asked
        return msgspec.structs.replace(asked, project=session.project)

    async def flush(self, asked: FlushRequest, call: Call) -> Any:
        """Flushes, telling the caller how far it is."""
        return await self._memory.flush(asked, progress=call.progress)

    async def organize(self, asked: OrganizeRequest, call: Call) -> Any:
        """Does what the night does, telling the caller how far it is."""
        return await self._memory.organize(asked, progress=call.progress)

    async def status(self, asked: Nothing, _call: Call) -> Status:
        """Says whether all is well."""
        del asked
        return await status_of(self._store, self._memory, self._inspect())


def method_table(api: Api, store: SessionStore, memory: Memory, bus: Bus) -> dict[str, Method[Any]]:
    """Returns every method of the socket."""
    writes: dict[str, Method[Any]] = {
        "session.open": Method(params=OpenSession, call=api.open_session, ordered=True),
        "session.rewind": _write(Rewind, store.rewind),
        "session.checkout": _write(Checkout, store.checkout),
        "session.merge": _write(Merge, store.merge),
        "session.archive": Method(params=Archive, call=api.archive, ordered=True),
        "session.close": Method(params=SessionRef, call=api.close_session, ordered=True),
        "session.delete": Method(params=SessionRef, call=api.delete_session, ordered=True),
        "session.import": Method(
            params=ImportLines,
            call=api.import_lines,
            ordered=True,
            session_of=api.session_of_import,
        ),
        "turn.append": Method(params=AppendTurns, call=api.append, ordered=True),
        "turn.sync": Method(params=SyncTurns, call=api.sync, ordered=True),
    }
    reads: dict[str, Method[Any]] = {
        "hello": Method(params=Hello, call=api.hello),
        "session.list": _long(ListSessions, api.list_sessions),
        "session.show": _long(SessionRef, api.show_session),
        "session.branch": _large(ListBranch, store.list_branch),
        "session.export": _large(ExportSession, store.export_session),
        "status": Method(params=Nothing, call=api.status),
    }
    memories: dict[str, Method[Any]] = {
        "memory.owed": _large(OwedRequest, memory.owed),
        "memory.flush": Method(params=FlushRequest, call=api.flush),
        "memory.recall": _long(RecallRequest, api.recall),
        "memory.context": _long(ContextRequest, api.context),
        "memory.core": _large(CoreRequest, memory.core),
        "memory.topics": _large(TopicsRequest, memory.topics),
        "memory.show": _large(ShowRequest, memory.show),
        "memory.forget": _large(ForgetRequest, memory.forget),
        "memory.edit": _large(EditRequest, memory.edit),
        "memory.remember": _large(RememberRequest, memory.remember),
        "memory.adopt": _large(AdoptRequest, memory.adopt),
        "memory.history": _large(HistoryRequest, memory.history),
        "memory.undo": _large(UndoRequest, memory.undo),
        "memory.organize": Method(params=OrganizeRequest, call=api.organize),
    }
    return {**reads, **writes, **memories, **subscription_methods(bus)}


def _plain(answer: Plain[P]) -> Callable[[P, Call], Awaitable[Any]]:
    async def call(asked: P, _call: Call) -> Any:
        return await answer(asked)

    return call


def _write(params: type[P], answer: Plain[P]) -> Method[Any]:
    return Method(params=params, call=_plain(answer), ordered=True)


def _large(params: type[P], answer: Plain[P]) -> Method[Any]:
    return _long(params, _plain(answer))


def _long(params: type[P], answer: Callable[[P, Call], Awaitable[Any]]) -> Method[Any]:
    return Method(params=params, call=answer, answer_limit_bytes=_LARGE_ANSWER_BYTES)
