"""Events over the socket of a real daemon: what each says, filters, resuming, who falls behind."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest

from daemon.api_shapes import EVENTS
from daemon.served import Daemon, Wire, fresh, has_shape, serving

CAUSES = {
    *("append", "fork", "root", "spawn", "rewind", "checkout", "restore"),
    *("merge", "supersede", "import", "delete", "archive"),
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for all of these tests."""
    with serving('[memory]\nnightly = "off"\n') as running:
        yield running


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[Wire]:
    """A connection that writes."""
    with daemon.wire() as connection:
        yield connection


@pytest.fixture
def ear(daemon: Daemon) -> Iterator[Wire]:
    """A connection that listens."""
    with daemon.wire() as connection:
        yield connection


@pytest.fixture
def session() -> str:
    """A session's name that nobody used."""
    return fresh("会话")


def check(event: dict[str, Any]) -> dict[str, Any]:
    """The event, once its shape is what INTERFACE fixes."""
    has_shape(event, {"type": tuple(EVENTS), "seq": int, "at": str, **EVENTS[event["type"]]})
    assert datetime.fromisoformat(event["at"]).tzinfo == UTC
    return event


def moves(ear: Wire) -> list[dict[str, Any]]:
    """The moves that came since the last look."""
    return [check(event) for event in ear.drained()]


def brief(event: dict[str, Any]) -> tuple[Any, ...]:
    """What a move says, without its place."""
    names = ("cause", "old", "new", "head_old", "head_new")
    return tuple(event[name] for name in names)


def test_a_subscription_says_where_it_starts(daemon: Daemon, session: str) -> None:
    """The answer names the subscription and the last seq; then every event comes with its name."""
    with daemon.wire() as wire:
        answer = wire.call("events.subscribe")
        assert set(answer) == {"subscription", "seq"}
        has_shape(answer, {"subscription": str, "seq": int})
        wire.append(session, "a")
        wire.call("hello")
        (note,) = [note for note in wire.notes if note["method"] == "event"]
        assert set(note["params"]) == {"subscription", "event"}
        assert note["params"]["subscription"] == answer["subscription"]
        assert note["params"]["event"]["seq"] == answer["seq"] + 1
        assert wire.call("events.unsubscribe", subscription=answer["subscription"]) == {}
        wire.notes.clear()
        wire.append(session, "b")
        assert wire.drained() == []
        error = wire.error("events.unsubscribe", subscription=answer["subscription"])
        assert error["data"]["kind"] == "not_found"


def test_says_every_kind_of_move(wire: Wire, ear: Wire, session: str) -> None:
    """Every verb has its cause, its old and new, and the head before and after."""
    ear.call("events.subscribe", types=["TipMoved"], session=session)
    seen: set[str] = set()

    def said() -> list[tuple[Any, ...]]:
        found = moves(ear)
        seen.update(event["cause"] for event in found)
        assert all(event["session"] == session for event in found)
        return [brief(event) for event in found]

    wire.append(session, "a", "b")
    assert said() == [("root", None, "b", None, "b")]
    wire.append(session, "c")
    assert said() == [("append", "b", "c", "b", "c")]
    wire.append(session, "f", after="a")
    assert said() == [("fork", None, "f", "c", "f")]
    spawned = {"id": "s", "role": "user", "text": "s", "caller": {"session": session, "turn": "f"}}
    wire.call("turn.append", session=session, turns=[spawned])
    assert said() == [("spawn", None, "s", "f", "f")]
    wire.call("session.checkout", session=session, tip="c")
    assert said() == [("checkout", "c", "c", "f", "c")]
    wire.call("session.checkout", session=session, tip="b")
    assert said() == [("checkout", "c", "c", "c", "b")]
    wire.call("session.checkout", session=session, tip="c")
    wire.call("session.rewind", session=session, to="b")
    assert said()[-1] == ("rewind", "c", "b", "c", "b")
    wire.call("session.checkout", session=session, tip="c", restore=True)
    assert said() == [("restore", None, "c", "b", "c")]
    new = {"id": "c~2", "role": "user", "text": "c2", "supersedes": "c"}
    wire.call("turn.append", session=session, turns=[new])
    assert said() == [("supersede", "c", "c~2", "c", "c~2")]
    turn = {"id": "m", "role": "user", "text": "m"}
    wire.call("session.merge", session=session, tips=["c~2", "f"], turn=turn)
    assert sorted(said()) == [
        ("merge", "c~2", "m", "c~2", "m"),
        ("merge", "f", "m", "c~2", "m"),
    ]
    branch = wire.call("session.branch", session=session, tip="m")["turns"][-1]["branch"]
    wire.call("session.archive", session=session, branch=branch)
    assert said() == [("archive", "m", "m", "m", "m")]
    lines = wire.call("session.export", session=session)["lines"]
    wire.call("session.delete", session=session)
    gone = said()
    assert {one[0] for one in gone} == {"delete"}
    assert {(one[2], one[3], one[4]) for one in gone} == {(None, "m", None)}
    wire.call("session.import", lines=lines, last=True)
    assert {one[0] for one in said()} == {"import"}
    assert seen == CAUSES


def test_a_fork_by_open_is_a_move(wire: Wire, ear: Wire, session: str) -> None:
    """`session.open {forked_from}` makes a branch, null to that turn, and takes the head there."""
    wire.append(session, "a", "b")
    child = fresh()
    ear.call("events.subscribe", session=child)
    wire.call("session.open", session=child, forked_from={"session": session})
    assert [brief(event) for event in moves(ear)] == [("fork", None, "b", None, "b")]


def test_what_changes_nothing_says_nothing(wire: Wire, ear: Wire, session: str) -> None:
    """A replay, an append of what is there, a checkout of the head and a refusal are no events."""
    wire.append(session, "a", "b", key="k")
    ear.call("events.subscribe", session=session)
    wire.append(session, "a", "b", key="k")
    wire.append(session, "b")
    wire.call("session.checkout", session=session, tip="b")
    wire.error("session.rewind", session=session, to="zz")
    wire.call("session.open", session=session, title="标题")
    wire.call("session.close", session=fresh_opened(wire))
    assert ear.drained() == []


def fresh_opened(wire: Wire) -> str:
    """An empty session."""
    name = fresh()
    wire.call("session.open", session=name)
    return name


def test_filters_by_type_and_session(wire: Wire, ear: Wire, session: str) -> None:
    """Only what was asked for comes; an unknown type is refused with those that there are."""
    other = fresh()
    ear.call("events.subscribe", types=["TurnsWritten", "Forgotten"])
    ear.call("events.subscribe", session=other)
    wire.append(session, "My name is Dana.")
    wire.call("memory.flush", session=session)
    wire.append(other, "x")
    found = [event["type"] for event in ear.drained()]
    assert sorted(found) == ["TipMoved", "TurnsWritten"]
    for types in (["TipMoved", "Tipmoved"], []):
        error = ear.error("events.subscribe", types=types)
        assert error["data"]["kind"] == "refused"
        assert "TurnsWritten" in error["message"]
    for since in (-1, 1 << 63, "0", 1.5):
        assert ear.error("events.subscribe", since=since)["code"] == -32602
    assert ear.error("events.subscribe", since=1 << 62)["data"]["kind"] == "refused"
    assert ear.error("events.subscribe", policy="disconnect")["code"] == -32602


def test_resumes_by_seq_without_gap_or_double(daemon: Daemon, wire: Wire, session: str) -> None:
    """`since` is exclusive; 0 is the oldest kept; a reconnect reads on where the last one ended."""
    with daemon.wire() as first:
        start = first.call("events.subscribe", session=session)["seq"]
        wire.append(session, *"ab")
        seen = first.events(1)
    wire.append(session, "c")
    with daemon.wire() as second:
        answer = second.call("events.subscribe", session=session, since=seen[-1]["seq"])
        assert answer["seq"] == seen[-1]["seq"]
        wire.append(session, "d")
        seen += second.events(2)
        assert second.drained() == []
    with daemon.wire() as third:
        third.call("events.subscribe", session=session, since=start)
        assert third.events(3) == seen
        third.call("events.subscribe", since=0)
        replayed = third.events(seen[-1]["seq"])
        assert [event["seq"] for event in replayed] == list(range(1, seen[-1]["seq"] + 1))
    assert [event["new"] for event in seen] == ["b", "c", "d"]


def test_a_resumed_stream_goes_over_into_the_live_one(daemon: Daemon, session: str) -> None:
    """While appends go on, a subscription from 0 sees each seq once, in order."""
    count = 150
    with daemon.wire() as wire, daemon.wire() as ear:
        ear.call("events.subscribe", session=session, since=0)
        for number in range(count):
            turns = [{"id": str(number), "role": "user", "text": "字"}]
            wire.request("turn.append", {"session": session, "turns": turns})
        found = ear.events(count)
        assert [event["new"] for event in found] == [str(number) for number in range(count)]
        assert [event["old"] for event in found[1:]] == [event["new"] for event in found[:-1]]
        for _ in range(count):
            assert "result" in wire.frame()


def test_turns_written_lists_the_batch(wire: Wire, ear: Wire, session: str) -> None:
    """Exactly the batch's recordable turns, in topological order, with tip, outcome and blocks."""
    ear.call("events.subscribe", types=["TurnsWritten"], session=session)
    turns = [
        {"id": "1", "role": "user", "text": "My name is Dana and I live in Porto."},
        {"id": "2", "role": "tool", "text": "not memory's"},
        {"id": "3", "role": "assistant", "text": "Noted."},
        {"id": "4", "role": "system", "text": "nor this"},
        {"id": "5", "role": "user", "text": "我决定以后用 Python 写后端。"},
    ]
    branch = wire.call("turn.append", session=session, turns=turns)["branch"]
    wire.call("memory.flush", session=session)
    (event,) = [check(event) for event in ear.drained()]
    assert event["turns"] == ["1", "3", "5"]
    assert (event["branch"], event["tip"]) == (branch, "5")
    assert event["outcome"] == "kept"
    assert event["blocks"]
    assert event["workspace"] == wire.call("hello")["workspace"]
    marks = [
        turn["marks"].get(event["workspace"])
        for turn in wire.call("session.branch", session=session)["turns"]
    ]
    assert [mark is not None for mark in marks] == [True, False, True, False, True]
    assert marks[0]["revision"] == event["revision"]
    for block in event["blocks"]:
        assert wire.call("memory.show", ref=block)["kind"] == "block"


def test_nothing_worth_keeping_is_an_outcome(wire: Wire, ear: Wire, session: str) -> None:
    """A batch without anything to keep is settled as `nothing` with a reason, and no block."""
    ear.call("events.subscribe", types=["TurnsWritten"], session=session)
    wire.append(session, "ok")
    answer = wire.call("memory.flush", session=session)
    assert (answer["left"], answer["blocks"], answer["failures"]) == (0, 0, [])
    (event,) = [check(event) for event in ear.drained()]
    assert (event["outcome"], event["blocks"], event["turns"]) == ("nothing", [], ["ok"])
    assert event["reason"]


def test_marking_is_not_activity(wire: Wire, ear: Wire, session: str) -> None:
    """A flush moves no head, no `updated_at`, no idle clock, and emits no move."""
    wire.append(session, "I work at the harbour.")
    before = wire.call("session.show", session=session)
    ear.call("events.subscribe", types=["TipMoved", "TipIdle"])
    wire.call("memory.flush", session=session)
    after = wire.call("session.show", session=session)
    assert ear.drained() == []
    for found in (before, after):
        for row in found["branches"]:
            row.pop("owed_turns")
            row.pop("owed_tokens")
    assert before == after


def test_says_core_night_and_forgetting(wire: Wire, ear: Wire, session: str) -> None:
    """`CoreRebuilt` after an install, `NightDone` by organize, `Forgotten` by a deletion."""
    ear.call("events.subscribe", types=["CoreRebuilt", "NightDone", "Forgotten"])
    wire.append(session, "I always drink green tea.", "I also like 乌龙茶.")
    wire.call("memory.flush", session=session)
    assert {check(event)["type"] for event in ear.drained()} <= {"CoreRebuilt"}
    answer = wire.call("memory.organize")
    night = [check(event) for event in ear.drained() if event["type"] == "NightDone"]
    assert [event["date"] for event in night] == [answer["date"]]
    assert night[0]["held"] == []
    wire.call("session.delete", session=session)
    gone = [check(event) for event in ear.drained() if event["type"] == "Forgotten"]
    assert [event["turns"] for event in gone] == [2]


def pour(wire: Wire, session: str, first: int, count: int = 1_000) -> int:
    """Appends turns named by their number, a hundred under way at once; returns the next number."""
    for number in range(first, first + count):
        turns = [{"id": str(number), "role": "user", "text": "字"}]
        wire.request("turn.append", {"session": session, "turns": turns})
        if number % 100 == 99:
            for _ in range(100):
                assert "result" in wire.frame()
    return first + count


def listens(wire: Wire, subscription: str) -> dict[str, Any]:
    """What `status` says of one subscriber."""
    rows = wire.call("status")["subscribers"]
    (found,) = [row for row in rows if row["name"].endswith(f"/{subscription}")]
    assert isinstance(found, dict)
    return found


def test_coalesces_for_whom_asks(daemon: Daemon, session: str) -> None:
    """With `coalesce` a reader that is behind gets one move a branch: first old, last new."""
    with daemon.wire() as wire, daemon.wire() as lazy:
        answer = lazy.call("events.subscribe", session=session, policy="coalesce")
        start, total = answer["seq"], 0
        while listens(wire, answer["subscription"])["coalesced"] < 1_000:
            total = pour(wire, session, total)
            assert total < 60_000, "what was not read was held in full"
        merged = lazy.events(1)
        while merged[-1]["new"] != str(total - 1):
            merged += lazy.events(1)
        assert len(merged) <= total - 1_000
        assert merged[0]["old"] is None
        seqs = [start, *(event["seq"] for event in merged)]
        assert seqs == sorted(set(seqs))
        # Each begins where the one before it ended: nothing fell between two merged moves.
        assert [event["old"] for event in merged[1:]] == [event["new"] for event in merged[:-1]]
        assert lazy.drained() == []


def test_who_does_not_read_is_told_and_misses_nothing(daemon: Daemon, session: str) -> None:
    """A subscriber that stops reading gets `Lagged` and then the rest; nobody waits for it."""
    with daemon.wire() as wire, daemon.wire() as ear:
        types = ["TipMoved", "TipIdle"]
        answer = ear.call("events.subscribe", types=types, session=session)
        total = 0
        while not listens(wire, answer["subscription"])["lagged"]:
            total = pour(wire, session, total)
            assert total < 60_000, "the queue has no bound"
        seen: list[dict[str, Any]] = []
        lags = 0
        while len(seen) < total:
            (event,) = ear.events(1)
            if event["type"] == "Lagged":
                lags += 1
                assert event["seq"] == event["last"] == seen[-1]["seq"]
            else:
                seen.append(event)
        assert lags >= 1
        assert [event["new"] for event in seen] == [str(number) for number in range(total)]


def test_tip_idle_fires_once_a_move_of_every_branch() -> None:
    """Owed or not, also where the head is elsewhere; a checkout alone re-arms nothing."""
    config = '[memory]\nnightly = "off"\nidle_minutes = 0.005\n'
    with serving(config) as daemon, daemon.wire() as wire:
        wire.call("events.subscribe", types=["TipIdle"])
        wire.append("s", "I moved to Porto.", "b")
        wire.append("s", "c", after="b", role="tool")
        first = wire.append("s", "d", after="b", role="tool")["branch"]
        idle = [check(event) for event in wire.events(2)]
        assert sorted(event["tip"] for event in idle) == ["c", "d"]
        rows = {row["branch"]: row for row in wire.call("session.show", session="s")["branches"]}
        assert all(event["since"] == rows[event["branch"]]["moved_at"] for event in idle)
        assert all(row["idle_at"] is None for row in rows.values())
        wire.call("session.checkout", session="s", tip="c")
        found = wire.call("session.show", session="s")
        assert all(row["idle_at"] is None for row in found["branches"])
        wire.append("s", "e", after="d", role="tool")
        (again,) = wire.events(1)
        assert (again["branch"], again["tip"]) == (first, "e")
        assert wire.drained() == []


def test_what_is_no_longer_kept_is_gone() -> None:
    """A `since` before the oldest kept is -32007 with `oldest`; 0 begins at the oldest kept."""
    with serving('[memory]\nnightly = "off"\n') as daemon:
        with daemon.wire() as wire:
            for name in "abcdef":
                wire.append("s", name)
        daemon.stop()
        with closing(sqlite3.connect(daemon.state / "sessions.db")) as db, db:
            db.execute("DELETE FROM event WHERE seq < 4")
        daemon.start()
        with daemon.wire() as wire:
            error = wire.error("events.subscribe", since=2)
            assert error["code"] == -32007
            assert error["data"] == {"kind": "gone", "oldest": 4}
            assert wire.call("events.subscribe", since=3)["seq"] == 3
            assert wire.events(1)[0]["seq"] == 4
        with daemon.wire() as wire:
            wire.call("events.subscribe", since=0)
            assert wire.events(1)[0]["seq"] == 4


def test_events_and_deadlines_survive_a_restart() -> None:
    """`seq` goes on, what happened can be read again, and a deadline fires whatever lay between."""
    with serving('[memory]\nnightly = "off"\nidle_minutes = 0.05\n') as daemon:
        with daemon.wire() as wire:
            wire.append("s", "I moved to Porto.")
            wire.call("events.subscribe", types=["TipMoved"], since=0)
            before = wire.events(1)
        daemon.stop()
        daemon.start()
        with daemon.wire() as wire, daemon.wire() as ear:
            wire.call("events.subscribe", types=["TipMoved"], since=0)
            assert wire.events(1) == before
            since = before[-1]["seq"]
            ear.call("events.subscribe", types=["TipIdle", "TurnsWritten"], since=since)
            idle, written = ear.events(2)
            assert (idle["type"], idle["tip"]) == ("TipIdle", "I moved to Porto.")
            assert (written["type"], written["turns"]) == ("TurnsWritten", ["I moved to Porto."])
            assert since < idle["seq"] < written["seq"]
