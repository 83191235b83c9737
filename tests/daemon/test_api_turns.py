"""`turn.append` and `turn.sync` over the socket of a real daemon, as INTERFACE says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from daemon.api_shapes import APPENDED, TEXT_OR_NULL, TURN
from daemon.served import Daemon, Wire, fresh, has_shape, serving


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """One daemon for all of these tests."""
    with serving('[memory]\nnightly = "off"\n') as running:
        yield running


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[Wire]:
    """A connection."""
    with daemon.wire() as connection:
        yield connection


@pytest.fixture
def session() -> str:
    """A session's name that nobody used."""
    return fresh("会话")


def user(text: str, **fields: object) -> dict[str, Any]:
    """A turn of a user."""
    return {"role": "user", "text": text, **fields}


def assistant(text: str, **fields: object) -> dict[str, Any]:
    """A turn of an assistant."""
    return {"role": "assistant", "text": text, **fields}


def line(wire: Wire, session: str, **params: object) -> list[dict[str, Any]]:
    """The turns on a branch."""
    found: list[dict[str, Any]] = wire.call("session.branch", session=session, **params)["turns"]
    return found


def head(wire: Wire, session: str) -> str | None:
    """The session's head."""
    found: str | None = wire.call("session.show", session=session)["head"]
    return found


def test_append_opens_an_unknown_session(wire: Wire, session: str) -> None:
    """The first append makes the session; the answer has the shape of the table."""
    answer = wire.call("turn.append", session=session, turns=[user("你好"), assistant("hello")])
    has_shape(answer, APPENDED)
    assert answer["new"] == 2
    assert answer["forked"] is False
    assert answer["forgotten"] == []
    assert answer["head"] == answer["turns"][-1]
    assert all(turn.startswith("h-") and len(turn) == 34 for turn in answer["turns"])
    assert [turn["text"] for turn in line(wire, session)] == ["你好", "hello"]


def test_a_turn_comes_out_as_it_went_in(wire: Wire, session: str) -> None:
    """Every field of a turn is kept; what turnmark adds is beside it."""
    given = {
        "id": "t-1",
        "role": "user",
        "text": "我搬到了波尔图",
        "kind": "turn",
        "speaker": {"id": "u-17", "name": "Dana"},
        "time": "2026-08-09T14:02:00+02:00",
        "metadata": {"nested": [1, {"键": None}]},
    }
    answer = wire.call("turn.append", session=session, turns=[given])
    (turn,) = line(wire, session)
    has_shape(turn, TURN)
    kept = {"id", "role", "text", "kind", "speaker", "metadata"}
    assert {name: turn[name] for name in kept} == {name: given[name] for name in kept}
    assert turn["time"] == "2026-08-09T12:02:00.000Z"
    assert (turn["session"], turn["sessions"]) == (session, [session])
    assert (turn["branch"], turn["predecessor"]) == (answer["branch"], None)
    assert (turn["state"], turn["recordable"], turn["masked"]) == ("live", True, False)
    assert turn["marks"] == {}


def test_only_the_text_of_content_parts_counts(wire: Wire, session: str) -> None:
    """`text` may be MCP-style content parts."""
    parts = [
        {"type": "text", "text": "看这张图"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "text", "text": "and this"},
    ]
    wire.call("turn.append", session=session, turns=[{"role": "user", "text": parts}])
    (turn,) = line(wire, session)
    assert "看这张图" in turn["text"]
    assert "and this" in turn["text"]
    assert "aGk" not in turn["text"]


def test_append_goes_after_the_head_a_turn_or_nothing(wire: Wire, session: str) -> None:
    """`after` omitted: after the head; an id: after it, which forks; null: a new root."""
    first = wire.append(session, "a", "b")
    assert wire.append(session, "c")["branch"] == first["branch"]
    forked = wire.append(session, "d", after="a")
    assert (forked["forked"], forked["head"]) == (True, "d")
    assert forked["branch"] != first["branch"]
    root = wire.append(session, "e", after=None)
    assert (root["forked"], root["head"]) == (False, "e")
    assert [turn["id"] for turn in line(wire, session)] == ["e"]
    tips = {row["tip"] for row in wire.call("session.show", session=session)["branches"]}
    assert tips == {"c", "d", "e"}
    error = wire.error("turn.append", session=session, turns=[user("x")], after="never")
    assert (error["code"], error["data"]["kind"]) == (-32001, "not_found")


def test_append_can_leave_the_head(wire: Wire, session: str) -> None:
    """With `move_head: false` the tip moves and the head stays."""
    wire.append(session, "a")
    answer = wire.append(session, "b", move_head=False)
    assert (answer["head"], answer["turns"]) == ("a", ["b"])
    assert head(wire, session) == "a"


def test_append_is_atomic(wire: Wire, session: str) -> None:
    """Where one turn is refused none is stored, and the session is not made."""
    turns = [user("good"), user("bad", time="yesterday")]
    assert wire.error("turn.append", session=session, turns=turns)["code"] == -32005
    turns = [user("good", id="g"), user("one", id="x"), user("two", id="x")]
    assert wire.error("turn.append", session=session, turns=turns)["code"] == -32002
    assert wire.error("session.show", session=session)["code"] == -32001
    assert wire.error("turn.append", session=session, turns=[])["code"] == -32602


def test_appending_again_changes_nothing(wire: Wire, session: str) -> None:
    """Turns that are there count 0 in `new`; head and branch end as after new ones."""
    first = wire.append(session, "a", "b", "c")
    wire.append(session, "d", after="a")
    again = wire.append(session, "a", "b", "c", after=None)
    assert again == {**first, "new": 0}
    assert head(wire, session) == "c"
    error = wire.error("turn.append", session=session, turns=[user("other", id="b")])
    assert (error["code"], error["data"]["kind"]) == (-32002, "conflict")


def test_a_key_makes_a_retry_safe(wire: Wire, session: str) -> None:
    """The same key with the same turns answers the first ids, head and branch, with `new: 0`."""
    params = {"session": session, "turns": [user("一"), assistant("two")], "key": "k-1"}
    first = wire.call("turn.append", **params, expect=None)
    wire.append(session, "later")
    again = wire.call("turn.append", **params, expect=None)
    assert again == {**first, "new": 0}
    assert head(wire, session) == "later"
    error = wire.error("turn.append", session=session, turns=[user("other")], key="k-1")
    assert (error["code"], error["data"]["kind"]) == (-32002, "conflict")


def test_a_key_is_of_its_session(wire: Wire, session: str) -> None:
    """Another session may use the same key for something else."""
    wire.append(session, "a", key="k")
    assert wire.append(fresh(), "b", key="k")["new"] == 1


def test_expect_is_the_head(wire: Wire, session: str) -> None:
    """An `expect` that no longer holds is stale and names the head; null expects none."""
    assert wire.append(session, "a", expect=None)["new"] == 1
    for expected in (None, "x"):
        error = wire.error("turn.append", session=session, turns=[user("b")], expect=expected)
        assert (error["code"], error["data"]["kind"]) == (-32003, "stale")
        assert error["data"]["head"] == "a"
    assert wire.append(session, "b", expect="a")["head"] == "b"
    error = wire.error("turn.append", session=fresh(), turns=[user("b")], expect="a")
    assert error["data"]["head"] is None


def test_a_caller_begins_a_root_beside_the_conversation(wire: Wire, session: str) -> None:
    """A first turn with `caller` and no `after` is a new root, and the head stays where it is."""
    wire.append(session, "a", "b")
    spawned = user("look into it", id="s", caller={"session": session, "turn": "b"})
    answer = wire.call("turn.append", session=session, turns=[spawned])
    assert (answer["head"], answer["forked"]) == ("b", False)
    (turn,) = line(wire, session, tip="s")
    assert turn["predecessor"] is None
    assert turn["caller"] == {"session": session, "turn": "b"}
    assert turn["recordable"] is False
    elsewhere = fresh()
    taken = wire.call("turn.append", session=elsewhere, turns=[{**spawned, "id": "s2"}])
    assert taken["head"] == "s2"


def test_supersedes_retires_what_it_replaces(wire: Wire, session: str) -> None:
    """The new wording takes the place of the old one, on the same branch."""
    first = wire.append(session, "a", "b")
    answer = wire.call("turn.append", session=session, turns=[user("c", id="b~2", supersedes="b")])
    assert (answer["branch"], answer["head"]) == (first["branch"], "b~2")
    assert [turn["id"] for turn in line(wire, session)] == ["a", "b~2"]
    assert line(wire, session, tip="b")[-1]["state"] == "retired"
    assert line(wire, session)[-1]["supersedes"] == "b"


def test_a_partial_is_for_display_only(wire: Wire, session: str) -> None:
    """A partial has no key of its own; the append with its id replaces it."""
    wire.append(session, "a")
    wire.call("turn.append", session=session, turns=[assistant("Hel", id="p", kind="partial")])
    assert head(wire, session) == "a"
    assert wire.call("memory.owed", session=session)["turns"] == 1
    answer = wire.call("turn.append", session=session, turns=[assistant("Hello", id="p")])
    assert (answer["new"], answer["head"]) == (1, "p")


def test_a_client_restores_what_it_appends_again(wire: Wire, session: str) -> None:
    """An append that meets a retired turn brings it and its path back."""
    wire.append(session, "a", "b", "c")
    wire.call("session.rewind", session=session, to="a")
    wire.append(session, "b", "c")
    assert [turn["state"] for turn in line(wire, session)] == ["live"] * 3


def test_what_counts_as_recordable(wire: Wire, session: str) -> None:
    """User and assistant turns with text; not tool and system rows, notices, or blanks."""
    rows = [
        (user("real"), True),
        (assistant("真的"), True),
        (user("  \n"), False),
        ({"role": "tool", "text": "out"}, False),
        ({"role": "system", "text": "be nice"}, False),
        (user("x", kind="tool"), False),
        (user("x", kind="runtime"), False),
        (assistant("x", kind="summary"), False),
        (assistant("x", kind="error"), False),
    ]
    wire.call("turn.append", session=session, turns=[turn for turn, _ in rows])
    assert [turn["recordable"] for turn in line(wire, session)] == [kept for _, kept in rows]


def test_secrets_are_masked_and_fences_cut(wire: Wire, session: str) -> None:
    """What is stored is the masked text, and nothing out of turnmark's own fence."""
    secret = "ghp_" + "a1B2c3D4" * 5
    fence = "<turnmark-memory>\nrecalled\n</turnmark-memory>"
    wire.call("turn.append", session=session, turns=[user(f"token {secret} {fence} ok")])
    (turn,) = line(wire, session)
    assert turn["masked"] is True
    assert secret not in turn["text"]
    assert "recalled" not in turn["text"]
    assert "ok" in turn["text"]


def test_writes_of_one_connection_are_applied_in_the_order_sent(wire: Wire, session: str) -> None:
    """Two hundred pipelined appends, long ones among them, make one line in their order."""
    texts = [f"第{number}" + "长" * (40_000 if number % 50 == 0 else 0) for number in range(200)]
    sent = [
        wire.request("turn.append", {"session": session, "turns": [user(text, id=str(number))]})
        for number, text in enumerate(texts)
    ]
    for number in sent:
        assert wire.answer(number)["result"]["forked"] is False
    found = wire.call("session.show", session=session)
    assert (found["turns"], len(found["branches"])) == (200, 1)
    assert [turn["predecessor"] for turn in line(wire, session, tip="150", limit=1000)][1:] == [
        turn["id"] for turn in line(wire, session, tip="149", limit=1000)
    ]


def test_sync_appends_where_the_array_departs(wire: Wire, session: str) -> None:
    """Equal prefixes match, the rest is appended, and only a departure forks."""
    array = [user("你好"), assistant("hi")]
    answer = wire.call("turn.sync", session=session, messages=array)
    has_shape(answer, {"head": TEXT_OR_NULL, "new": int, "forked_after": TEXT_OR_NULL})
    assert (answer["new"], answer["forked_after"]) == (2, None)
    longer = wire.call("turn.sync", session=session, messages=[*array, user("more")])
    assert (longer["new"], longer["forked_after"]) == (1, None)
    other = wire.call("turn.sync", session=session, messages=[*array, user("else")])
    assert (other["new"], other["forked_after"]) == (1, answer["head"])
    states = {row["state"] for row in wire.call("session.show", session=session)["branches"]}
    assert states == {"live"}
    assert [turn["text"] for turn in line(wire, session)] == ["你好", "hi", "else"]


def test_a_prefix_is_only_a_checkout(wire: Wire, session: str) -> None:
    """Nothing is new, nothing is retired, and the head is on the array's last turn."""
    array = [user("a"), assistant("b"), user("c")]
    wire.call("turn.sync", session=session, messages=array)
    answer = wire.call("turn.sync", session=session, messages=array[:2])
    assert (answer["new"], answer["forked_after"]) == (0, None)
    assert line(wire, session)[-1]["text"] == "b"
    tip = wire.call("session.show", session=session)["branches"][0]["tip"]
    assert [turn["state"] for turn in line(wire, session, tip=tip)] == ["live"] * 3


def test_sync_skips_system_rows_in_matching(wire: Wire, session: str) -> None:
    """A system row that came, went or changed makes no fork."""
    wire.call("turn.sync", session=session, messages=[user("a"), assistant("b")])
    system = {"role": "system", "text": "今天是星期天"}
    for messages in (
        [system, user("a"), assistant("b")],
        [user("a"), system, assistant("b")],
        [user("a"), assistant("b")],
    ):
        answer = wire.call("turn.sync", session=session, messages=messages)
        assert (answer["new"], answer["forked_after"]) == (0, None)


def test_sync_matches_by_id_before_text(wire: Wire, session: str) -> None:
    """An id decides where there is one; else role, kind, speaker and text."""
    wire.call("turn.sync", session=session, messages=[user("a", id="1"), assistant("b", id="2")])
    answer = wire.call("turn.sync", session=session, messages=[user("a"), assistant("b")])
    assert answer == {"head": "2", "new": 0, "forked_after": None}
    dana = user("a", speaker={"id": "dana"})
    answer = wire.call("turn.sync", session=session, messages=[dana, assistant("b")])
    assert answer["new"] == 2
    answer = wire.call("turn.sync", session=session, messages=[user("edited", id="1"), user("z")])
    assert (answer["new"], answer["forked_after"]) == (1, "1")
    assert line(wire, session)[0]["text"] == "a"


def test_sync_refuses_an_empty_array(wire: Wire, session: str) -> None:
    """An empty array is -32602, and no session is made."""
    error = wire.error("turn.sync", session=session, messages=[])
    assert (error["code"], error["data"]["kind"]) == (-32602, "invalid_params")
    assert wire.error("session.show", session=session)["code"] == -32001


def test_sync_with_a_key_replays(wire: Wire, session: str) -> None:
    """The same key and array answer as before with `new: 0`; another array is a conflict."""
    array = [user("a"), assistant("b")]
    first = wire.call("turn.sync", session=session, messages=array, key="k")
    assert wire.call("turn.sync", session=session, messages=array, key="k") == {**first, "new": 0}
    error = wire.error("turn.sync", session=session, messages=array[:1], key="k")
    assert error["data"]["kind"] == "conflict"
