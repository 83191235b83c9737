"""What can be asked of the session store: one struct per verb, in the shape of the socket's params.

`UNSET` means that the caller left the field out, `None` that it said null; where both mean
something, both are written down.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from turnmark_session_store.model import CallerRef, MemoryMode, TurnIn

Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Turns = Annotated[list[TurnIn], msgspec.Meta(min_length=1)]


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ForkPoint(_Request, frozen=True, kw_only=True):
    """The session that another was forked from; without `turn`, that session's head."""

    session: str
    turn: str | None = None


class OpenSession(_Request, frozen=True, kw_only=True):
    """`session.open`."""

    session: str
    agent: str | None = None
    title: str | None = None
    project: str | None = None
    caller: CallerRef | None = None
    forked_from: ForkPoint | None = None
    memory: MemoryMode | None = None


class AppendTurns(_Request, frozen=True, kw_only=True):
    """`turn.append`: `after` UNSET is after the head, None a new root; `expect` is the head."""

    session: str
    turns: Turns
    after: str | UnsetType | None = UNSET
    expect: str | UnsetType | None = UNSET
    key: str | None = None
    move_head: bool = True


class SyncTurns(_Request, frozen=True, kw_only=True):
    """`turn.sync`: the whole message array of an agent that keeps one."""

    session: str
    messages: Turns
    key: str | None = None


class Rewind(_Request, frozen=True, kw_only=True):
    """`session.rewind`: takes back what came after `to` on the head's branch."""

    session: str
    to: str
    expect: str | UnsetType | None = UNSET


class Checkout(_Request, frozen=True, kw_only=True):
    """`session.checkout`: puts the head on any live turn, a retired one with `restore`."""

    session: str
    tip: str
    expect: str | UnsetType | None = UNSET
    restore: bool = False


class Merge(_Request, frozen=True, kw_only=True):
    """`session.merge`: one turn whose parents are all of `tips`; the head's branch goes on."""

    session: str
    tips: list[str]
    turn: TurnIn


class Archive(_Request, frozen=True, kw_only=True):
    """`session.archive`: hides a branch, or all of them; ends nothing, re-arms nothing."""

    session: str
    branch: str | None = None


class SessionRef(_Request, frozen=True, kw_only=True):
    """`session.show`, `session.close`, `session.delete`."""

    session: str


class ListSessions(_Request, frozen=True, kw_only=True):
    """`session.list`."""

    agent: str | None = None
    project: str | None = None
    limit: Limit = 200
    cursor: str | None = None


class ListBranch(_Request, frozen=True, kw_only=True):
    """`session.branch`: root to `tip`, oldest first; without `tip`, to the head."""

    session: str
    tip: str | None = None
    limit: Limit = 200
    cursor: str | None = None


class ExportSession(_Request, frozen=True, kw_only=True):
    """`session.export`, paged by `cursor`."""

    session: str
    limit: Limit = 200
    cursor: str | None = None


class ImportLines(_Request, frozen=True, kw_only=True):
    """`session.import`: export lines, in uploads of several frames until `last`.

    `continued` says that the first of `lines` goes on with the last one of the frame before: a line
    may be longer than a frame.
    """

    lines: list[str]
    upload: str | None = None
    last: bool = False
    continued: bool = False
