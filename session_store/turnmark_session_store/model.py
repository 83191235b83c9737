"""Turns as they come in and as they go out: the structs that cross the store's border."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Role = Literal["user", "assistant", "system", "tool"]
Kind = Literal["turn", "tool", "runtime", "summary", "error", "partial"]
MemoryMode = Literal["on", "local", "off"]
MarkOutcome = Literal["kept", "nothing", "parked"]
TurnState = Literal["live", "retired", "forgotten"]


class Speaker(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Who spoke, from the agent's structured field; `id` is stable, `name` is for people."""

    id: str | None = None
    name: str | None = None


class CallerRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The turn that spawned another: its id, read in the namespace of `session`."""

    session: str
    turn: str


class ContentPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a message in MCP's shape; only parts of type `text` count."""

    type: str
    text: str | None = None


class TurnIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One turn as a client or a reader gives it.

    Without `id` the key is a hash of its place and words. `time` is RFC 3339; None means now.
    `metadata` is kept as it is, with the words, and never looked into.
    """

    role: Role
    text: str | list[ContentPart]
    id: str | None = None
    kind: Kind = "turn"
    speaker: Speaker | None = None
    time: str | None = None
    caller: CallerRef | None = None
    supersedes: str | None = None
    metadata: dict[str, Any] | None = None


class MarkOut(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one workspace did with a turn, the writer that did it and the revision it rests on.

    Of a turn that failed, `cause` and `failed_at` say why and when it did last.
    """

    outcome: MarkOutcome
    writer: str
    revision: int
    reason: str | None = None
    cause: str | None = None
    failed_at: str | None = None


class TurnOut(msgspec.Struct, frozen=True, kw_only=True):
    """One turn as the store knows it; ids are read in the namespace of `session`."""

    id: str
    role: Role
    kind: Kind
    text: str
    speaker: Speaker | None
    time: str
    caller: CallerRef | None
    supersedes: str | None
    metadata: dict[str, Any] | None
    session: str
    sessions: list[str]
    branch: str | None
    predecessor: str | None
    merged: list[str]
    seq: int
    state: TurnState
    recordable: bool
    masked: bool
    marks: dict[str, MarkOut]
