"""Every event of turnmark, as one tagged union of frozen structs.

An event says what *has happened*; it carries ids and numbers, never text. `seq` is its place in
the one total order (the row number of the store's `event` table), `at` the time of its commit as
RFC 3339 in UTC.
"""

from __future__ import annotations

from typing import Literal

import msgspec

MoveCause = Literal[
    "append",
    "fork",
    "root",
    "spawn",
    "rewind",
    "checkout",
    "restore",
    "merge",
    "supersede",
    "import",
    "delete",
    "archive",
]
Outcome = Literal["kept", "nothing", "parked"]


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    seq: int
    at: str


class TipMoved(_Event, frozen=True, kw_only=True, tag="TipMoved"):
    """A branch's tip or the session's head moved. Published by the gate; the worker looks.

    `old` and `new` are tips (None: the branch began or ended); `head_old` and `head_new` are the
    transaction's, equal on all its rows. Where only the head moved, `old == new`.
    """

    session: str
    branch: str
    old: str | None
    new: str | None
    head_old: str | None
    head_new: str | None
    cause: MoveCause


class TipIdle(_Event, frozen=True, kw_only=True, tag="TipIdle"):
    """A live tip has not moved since `since` for the configured time. Published by the idle clock.

    Fires once per move of a branch, whether or not anything is owed there.
    """

    session: str
    branch: str
    tip: str
    since: str


class TurnsWritten(_Event, frozen=True, kw_only=True, tag="TurnsWritten"):
    """A batch was settled: its turns carry marks of `workspace`. Published by the store.

    `turns` are the batch's recordable turns in topological order, ids of `session`'s namespace.
    """

    workspace: str
    session: str
    branch: str
    tip: str
    turns: tuple[str, ...]
    outcome: Outcome
    blocks: tuple[str, ...]
    revision: int
    reason: str | None = None


class CoreRebuilt(_Event, frozen=True, kw_only=True, tag="CoreRebuilt"):
    """`core.md` was rendered anew; `left_out` blocks did not fit the budget."""

    workspace: str
    tokens: int
    left_out: tuple[str, ...]


class NightDone(_Event, frozen=True, kw_only=True, tag="NightDone"):
    """The night of local `date` (YYYY-MM-DD) is complete; `held` passes wait for a person."""

    workspace: str
    date: str
    revision: int
    held: tuple[str, ...]


class Forgotten(_Event, frozen=True, kw_only=True, tag="Forgotten"):
    """`turns` turns were erased on request."""

    turns: int


class Lagged(_Event, frozen=True, kw_only=True, tag="Lagged"):
    """The subscriber fell behind after `last` and now reads on from the table. Never stored."""

    last: int


Event = TipMoved | TipIdle | TurnsWritten | CoreRebuilt | NightDone | Forgotten | Lagged

EVENT_NAMES: tuple[str, ...] = (
    "TipMoved",
    "TipIdle",
    "TurnsWritten",
    "CoreRebuilt",
    "NightDone",
    "Forgotten",
    "Lagged",
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """Returns the event as one line of JSON without a newline."""
    return _encoder.encode(event)


def decode_event(line: bytes) -> Event:
    """Returns the event that `encode_event` wrote.

    Raises:
        msgspec.ValidationError: if `line` is JSON but no event of this version.
        msgspec.DecodeError: if `line` is not JSON.
    """
    return _decoder.decode(line)
