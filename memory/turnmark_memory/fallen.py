"""Turns that were taken back or forgotten, as the store tells of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw
import msgspec

from turnmark_memory.relations import TurnRef, keys_of
from turnmark_session_store.queries import json_keys, row_of, rows_of


class Fallen(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was taken back or forgotten, and when."""

    turn: int
    at_ms: int
    ref: TurnRef
    forgotten: bool


def all_fallen(db: apsw.Connection) -> list[Fallen]:
    """Returns every turn that was taken back and was in a batch at some time.

    Its mark would say too little: a turn taken back while its batch was being installed has none.
    """
    rows = rows_of(
        db,
        "SELECT gone.turn, at_ms, namespace.name, turn.key, is_forgotten FROM"
        " (SELECT turn, at_ms, 0 AS is_forgotten FROM retired_turn UNION ALL"
        " SELECT turn, at_ms, 1 FROM forgotten_turn) AS gone JOIN turn ON turn.id = gone.turn"
        " JOIN namespace ON namespace.id = turn.namespace"
        " WHERE EXISTS (SELECT 1 FROM batch_turn WHERE batch_turn.turn = gone.turn)",
    )
    return [
        Fallen(turn=turn, at_ms=at_ms, ref=(namespace, key), forgotten=bool(is_forgotten))
        for turn, at_ms, namespace, key, is_forgotten in rows
    ]


def signature_of(db: apsw.Connection) -> object:
    """Returns what changes with everything that is taken back, restored or forgotten.

    Of the turns themselves: after a clock was set back the newest time says nothing.
    """
    return row_of(
        db,
        "SELECT count(*), sum(turn), sum(at_ms % 1000000007),"
        " sum(turn * (at_ms % 1000003) % 1000000007),"  # a sum must not overflow
        " (SELECT count(*) FROM forgotten_turn) FROM retired_turn",
    )


def taken_back(db: apsw.Connection, turns: Iterable[int]) -> set[int]:
    """Returns those of `turns` that were taken back or forgotten."""
    rows = rows_of(
        db,
        "SELECT value FROM json_each(?) WHERE"
        " EXISTS (SELECT 1 FROM retired_turn WHERE turn = value)"
        " OR EXISTS (SELECT 1 FROM forgotten_turn WHERE turn = value)",
        (json_keys(turns),),
    )
    return {turn for (turn,) in rows}


def taken_back_refs(db: apsw.Connection, refs: Sequence[TurnRef]) -> set[TurnRef]:
    """Returns those of `refs` whose turn was taken back or forgotten."""
    keys = dict(zip(refs, keys_of(db, refs), strict=True))
    gone = taken_back(db, (key for key in keys.values() if key is not None))
    return {ref for ref, key in keys.items() if key in gone}


def forgotten_refs(db: apsw.Connection, refs: Sequence[TurnRef]) -> set[TurnRef]:
    """Returns those of `refs` whose turn was forgotten."""
    keys = dict(zip(refs, keys_of(db, refs), strict=True))
    rows = rows_of(
        db,
        "SELECT turn FROM forgotten_turn JOIN json_each(?) ON turn = value",
        (json_keys(key for key in keys.values() if key is not None),),
    )
    gone = {turn for (turn,) in rows}
    return {ref for ref, key in keys.items() if key in gone}
