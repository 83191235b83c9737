"""Branches noted for a look: by events, by how they stand, and again after a look that failed."""

from __future__ import annotations

from datetime import UTC, datetime

from turnmark_events.types import TipIdle, TipMoved
from turnmark_memory.noted import Noted
from turnmark_session_store.owed import LiveTip

AT = "2026-05-01T10:00:00.000Z"


def _live(branch: str, idle_ms: int | None) -> LiveTip:
    return LiveTip(
        branch=1,
        branch_name=branch,
        session=1,
        session_name="s",
        tip=1,
        is_head=True,
        idle_ms=idle_ms,
        root=1,
    )


def test_silence_asks_for_the_whole_branch_and_a_move_does_not() -> None:
    """Events name the branch; other events say nothing."""
    noted = Noted()
    moved = TipMoved(
        seq=1,
        at=AT,
        session="s",
        branch="br-a",
        old=None,
        new="a",
        head_old=None,
        head_new="a",
        cause="root",
    )
    noted.hear(moved)
    noted.hear(TipIdle(seq=2, at=AT, session="s", branch="br-b", tip="b", since=AT))
    assert (noted.moved, noted.whole) == ({"br-a"}, {"br-b"})


def test_a_branch_that_waits_for_no_deadline_has_fallen_silent() -> None:
    """Its silence was said already, perhaps to a process that is gone."""
    noted = Noted()
    noted.add(_live("br-a", int(datetime.now(UTC).timestamp())))
    noted.add(_live("br-b", None))
    assert (noted.moved, noted.whole) == ({"br-a"}, {"br-b"})


def test_what_is_taken_is_noted_no_more_until_it_is_put_back() -> None:
    """All of it, or what has to wait; what was noted meanwhile stays."""
    noted = Noted()
    noted.moved |= {"a", "b"}
    noted.whole |= {"c"}
    taken = noted.take()
    assert not noted
    assert taken
    noted.moved.add("d")
    noted.put_back(taken, only={"b", "c", "x"})
    assert (noted.moved, noted.whole) == ({"b", "d"}, {"c"})
    noted.put_back(taken)
    assert noted.moved == {"a", "b", "d"}
