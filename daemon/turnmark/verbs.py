"""The socket's methods as Python methods: one list of them for both clients.

`Answer` is what a call gives: the result itself for the blocking client, an awaitable of it for
the other. Results are the plain dictionaries of the socket; `recall` gives the list of hits.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

Answer = TypeVar("Answer")
Progress = Callable[[float, float | None, str | None], None]
Turn = Mapping[str, Any] | msgspec.Struct
Params = dict[str, Any]

# Lines of one import frame, or characters of a part of one: well under the frame's 16 MiB, whatever
# escaping adds (at most six bytes for one).
IMPORT_CHUNK_BYTES = 2 << 20
_KEY_BYTES = 12


class Hits(list[Any]):
    """The hits of a recall, best first; `tokens` is what their text costs."""

    def __init__(self, hits: Iterable[Any], tokens: int) -> None:
        super().__init__(hits)
        self.tokens = tokens


class Verbs(ABC, Generic[Answer]):
    """What one can ask of a memory. Parameters that are left out are not sent.

    Every method raises the daemon's errors as `turnmark_events.errors`; `ConnectionLost` if the
    daemon goes away meanwhile.
    """

    @abstractmethod
    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        progress: Progress | None = None,
        shape: Callable[[Any], Any] | None = None,
    ) -> Answer:
        """Calls a method of the socket; `progress(done, total, message)` hears how far it is."""

    def hello(self) -> Answer:
        """Asks who answers: version, protocol, workspace, pid."""
        return self.call("hello", {"protocol": 1})

    def append(
        self,
        session: str,
        *,
        role: Literal["user", "assistant", "system", "tool"],
        text: str | Sequence[Mapping[str, Any]],
        id: str | None = None,  # noqa: A002 - the name on the wire
        kind: str | None = None,
        speaker: Mapping[str, str] | None = None,
        time: str | None = None,
        caller: Mapping[str, str] | None = None,
        supersedes: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        after: str | UnsetType | None = UNSET,
        expect: str | UnsetType | None = UNSET,
        key: str | None = None,
        move_head: bool = True,
    ) -> Answer:
        """Appends one turn, durable when this returns; see `append_turns`."""
        turn = _given(
            role=role,
            text=text,
            id=id,
            kind=kind,
            speaker=speaker,
            time=time,
            caller=caller,
            supersedes=supersedes,
            metadata=metadata,
        )
        return self.append_turns(
            session, [turn], after=after, expect=expect, key=key, move_head=move_head
        )

    def append_turns(
        self,
        session: str,
        turns: Sequence[Turn],
        *,
        after: str | UnsetType | None = UNSET,
        expect: str | UnsetType | None = UNSET,
        key: str | None = None,
        move_head: bool = True,
    ) -> Answer:
        """Appends turns in one transaction, after the head unless `after` says where.

        `after` None makes a new root; `expect` fails the append with `Stale` if the head is
        another. A random `key` is sent where none is given; give your own to repeat a call.
        """
        params = _given(session=session, turns=list(turns), key=key or new_key())
        params |= _told(after=after, expect=expect)
        return self.call("turn.append", params | ({} if move_head else {"move_head": False}))

    def sync(self, session: str, messages: Sequence[Turn], *, key: str | None = None) -> Answer:
        """Brings a session up to a whole message array; forks where the array departs."""
        params = _given(session=session, messages=list(messages), key=key or new_key())
        return self.call("turn.sync", params)

    def open(
        self,
        session: str,
        *,
        agent: str | None = None,
        title: str | None = None,
        project: str | None = None,
        caller: Mapping[str, str] | None = None,
        forked_from: Mapping[str, str] | None = None,
        memory: Literal["on", "local", "off"] | None = None,
    ) -> Answer:
        """Opens a session, or says what it is; changes what is given."""
        params = _given(
            session=session,
            agent=agent,
            title=title,
            project=project,
            caller=caller,
            forked_from=forked_from,
            memory=memory,
        )
        return self.call("session.open", params)

    def sessions(
        self,
        *,
        agent: str | None = None,
        project: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Answer:
        """Lists sessions, one page; `next` of the answer is the `cursor` of the next."""
        params = _given(agent=agent, project=project, limit=limit, cursor=cursor)
        return self.call("session.list", params)

    def show_session(self, session: str) -> Answer:
        """Shows a session with its branches and what they owe."""
        return self.call("session.show", {"session": session})

    def branch(
        self,
        session: str,
        tip: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Answer:
        """Lists the turns from the root to `tip`, else to the head, one page, oldest first."""
        params = _given(session=session, tip=tip, limit=limit, cursor=cursor)
        return self.call("session.branch", params)

    def rewind(self, session: str, to: str, *, expect: str | UnsetType | None = UNSET) -> Answer:
        """Takes back what came after `to` on the head's branch, in memory too."""
        return self.call("session.rewind", {"session": session, "to": to, **_told(expect=expect)})

    def checkout(
        self,
        session: str,
        tip: str,
        *,
        expect: str | UnsetType | None = UNSET,
        restore: bool = False,
    ) -> Answer:
        """Puts the head on any live turn, on a retired one with `restore`."""
        params = {"session": session, "tip": tip, **_told(expect=expect)}
        return self.call("session.checkout", params | ({"restore": True} if restore else {}))

    def merge(self, session: str, tips: Sequence[str], turn: Turn) -> Answer:
        """Joins branches in one turn; the head's branch goes on."""
        return self.call("session.merge", {"session": session, "tips": list(tips), "turn": turn})

    def archive(self, session: str, branch: str | None = None) -> Answer:
        """Hides a branch, or all of a session; memory keeps what it owes."""
        return self.call("session.archive", _given(session=session, branch=branch))

    def close_session(self, session: str) -> Answer:
        """Says that a session is over: what it owes is written soon."""
        return self.call("session.close", {"session": session})

    def delete(self, session: str) -> Answer:
        """Deletes a session and erases the turns that no other session reaches."""
        return self.call("session.delete", {"session": session})

    def recall(
        self,
        query: str,
        *,
        k: int | None = None,
        session: str | None = None,
        tip: str | None = None,
        kinds: Sequence[Literal["block", "turn"]] | None = None,
        topic: str | None = None,
        speaker: str | None = None,
        since: str | None = None,
        until: str | None = None,
        project: str | None = None,
        history: bool | None = None,
        budget_tokens: int | None = None,
        mode: Literal["hybrid", "lexical", "dense", "select"] | None = None,
    ) -> Answer:
        """Searches memory: `Hits`, best first, empty where nothing is related."""
        params = _given(
            query=query,
            k=k,
            session=session,
            tip=tip,
            kinds=kinds,
            topic=topic,
            speaker=speaker,
            since=since,
            until=until,
            project=project,
            history=history,
            budget_tokens=budget_tokens,
            mode=mode,
        )
        return self.call("memory.recall", params, shape=_hits)

    def context(
        self,
        session: str | None = None,
        query: str | None = None,
        *,
        budget_tokens: int | None = None,
    ) -> Answer:
        """Packs core page and hits into a fenced text for a prompt."""
        params = _given(session=session, query=query, budget_tokens=budget_tokens)
        return self.call("memory.context", params)

    def core(self) -> Answer:
        """Shows the core page and what it left out."""
        return self.call("memory.core")

    def topics(self, *, limit: int | None = None, cursor: str | None = None) -> Answer:
        """Lists the topics, one page."""
        return self.call("memory.topics", _given(limit=limit, cursor=cursor))

    def show(self, ref: str) -> Answer:
        """Shows a block, a source, a turn or a topic with its provenance."""
        return self.call("memory.show", {"ref": ref})

    def remember(
        self,
        text: str,
        *,
        topic: str | None = None,
        session: str | None = None,
        turn: str | None = None,
        pin: bool | None = None,
    ) -> Answer:
        """Writes one block now."""
        params = _given(text=text, topic=topic, session=session, turn=turn, pin=pin)
        return self.call("memory.remember", params)

    def owed(
        self,
        session: str | None = None,
        *,
        ids: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Answer:
        """Says which turns memory still owes, by tip."""
        params = _given(session=session, ids=ids, limit=limit, cursor=cursor)
        return self.call("memory.owed", params)

    def flush(
        self,
        session: str | None = None,
        *,
        backlog: bool | None = None,
        removed: bool | None = None,
        rewrite: str | None = None,
        since: str | None = None,
        dry_run: bool | None = None,
        wait: bool | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Writes what is owed now, however little; takes as long as its writer."""
        params = _given(
            session=session,
            backlog=backlog,
            removed=removed,
            rewrite=rewrite,
            since=since,
            dry_run=dry_run,
            wait=wait,
        )
        return self.call("memory.flush", params, progress=progress)

    def organize(
        self,
        *,
        wait: bool | None = None,
        uncited: Any = None,
        dry_run: bool | None = None,
        approve: Any = None,
        discard: Any = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Does now what the night does, or decides about a pass that is held."""
        params = _given(
            wait=wait, uncited=uncited, dry_run=dry_run, approve=approve, discard=discard
        )
        return self.call("memory.organize", params, progress=progress)

    def history(self, *, limit: int | None = None, cursor: str | None = None) -> Answer:
        """Lists the revisions of the memory, one page."""
        return self.call("memory.history", _given(limit=limit, cursor=cursor))

    def undo(self, revision: int, *, force: bool | None = None) -> Answer:
        """Takes back exactly one revision."""
        return self.call("memory.undo", _given(revision=revision, force=force))

    def edit(self, edits: Sequence[Turn], *, expect: int | None = None) -> Answer:
        """Applies edits of blocks, all or none; `expect` is the revision they rest on."""
        return self.call("memory.edit", _given(edits=list(edits), expect=expect))

    def forget(
        self,
        *,
        block: str | None = None,
        turn: str | None = None,
        session: str | None = None,
        speaker: str | None = None,
        query: str | None = None,
        evidence: bool | None = None,
        everywhere: bool | None = None,
        dry_run: bool | None = None,
        confirm: str | None = None,
    ) -> Answer:
        """Says what would be erased; erases with `dry_run=False` and the `confirm` of that."""
        params = _given(
            block=block,
            turn=turn,
            session=session,
            speaker=speaker,
            query=query,
            evidence=evidence,
            everywhere=everywhere,
            dry_run=dry_run,
            confirm=confirm,
        )
        return self.call("memory.forget", params)

    def status(self) -> Answer:
        """Says how the daemon is and what there is to do."""
        return self.call("status")


def new_key() -> str:
    """Returns a fresh idempotency key."""
    return f"k-{os.urandom(_KEY_BYTES).hex()}"


def chunks(lines: Iterable[str]) -> Iterator[Params]:
    """Yields the params of each frame of an import; a line that is too long for one is parted."""
    held: list[str] = []
    size, goes_on = 0, Params()
    for line in lines:
        for place in range(0, len(line) or 1, IMPORT_CHUNK_BYTES):
            part = line[place : place + IMPORT_CHUNK_BYTES]
            if held and (place or size + len(part.encode()) > IMPORT_CHUNK_BYTES):
                yield {"lines": held, "last": False, **goes_on}
                held, size, goes_on = [], 0, {"continued": True} if place else {}
            held.append(part)
            size += len(part.encode())
    yield {"lines": held, "last": True, **goes_on}


def take_page(page: Params, held: list[str]) -> None:
    """Adds a page of an export to what is held; its first line may go on with the last one."""
    lines = page["lines"]
    if page.get("continued"):
        held[-1] += lines.pop(0)
    held += lines


def _hits(result: Any) -> Hits:
    return Hits(result["hits"], result["tokens"])


def _given(**params: Any) -> Params:
    return {name: value for name, value in params.items() if value is not None}


def _told(**params: Any) -> Params:
    return {name: value for name, value in params.items() if value is not UNSET}
