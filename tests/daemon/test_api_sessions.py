"""`session.*` over the socket of a real daemon, as INTERFACE says it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from daemon.api_shapes import BRANCH, SESSION, TEXT_OR_NULL, TURN
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


def pages(wire: Wire, method: str, key: str, **params: object) -> list[list[Any]]:
    """All pages of a list; `next` is there only where more is."""
    found: list[list[Any]] = []
    cursor: dict[str, Any] = {}
    while True:
        answer = wire.call(method, **params, **cursor)
        found.append(answer[key])
        if answer.get("next") is None:
            assert "next" not in answer
            return found
        cursor = {"cursor": answer["next"]}


def shown(wire: Wire, session: str) -> dict[str, dict[str, Any]]:
    """A session's branches by their tip."""
    return {row["tip"]: row for row in wire.call("session.show", session=session)["branches"]}


def ids(wire: Wire, session: str, **params: object) -> list[str]:
    """The ids on a branch."""
    return [turn["id"] for turn in wire.call("session.branch", session=session, **params)["turns"]]


def test_says_who_answers(daemon: Daemon, wire: Wire) -> None:
    """`hello` names server, version, protocol, workspace, pid and state, with or without params."""
    shape = {"server": str, "version": str, "protocol": 1, "workspace": str, "state": str}
    has_shape(wire.call("hello"), {**shape, "pid": int})
    answer = wire.call("hello", client="测试", protocol=1)
    assert answer["pid"] == daemon.pid
    assert answer["protocol"] == 1
    assert answer["workspace"].startswith("w-")
    assert len(answer["workspace"]) == 18


def test_opens_a_session_once(wire: Wire) -> None:
    """The first opening creates, the second says what is there; unknown facts are filled in."""
    session = fresh("会话")
    opened = wire.call("session.open", session=session, agent="codex", title="标题")
    assert opened == {"session": session, "head": None, "created": True}
    wire.append(session, "你好")
    again = wire.call("session.open", session=session, project="/p", memory="on")
    assert again == {"session": session, "head": "你好", "created": False}
    found = wire.call("session.show", session=session)
    has_shape(found, {"session": session, "head": TEXT_OR_NULL, "branches": [BRANCH]})
    assert (found["agent"], found["title"], found["project"]) == ("codex", "标题", "/p")


def test_forks_from_a_head_or_a_turn(wire: Wire) -> None:
    """`forked_from` without `turn` means that session's head; an unknown one is not found."""
    origin, at_head, at_turn = fresh(), fresh(), fresh()
    wire.append(origin, "a", "b", "c")
    point = {"session": origin}
    opened = wire.call("session.open", session=at_head, forked_from=point)
    assert opened == {"session": at_head, "head": "c", "created": True}
    opened = wire.call("session.open", session=at_turn, forked_from={**point, "turn": "b"})
    assert opened["head"] == "b"
    assert ids(wire, at_turn) == ["a", "b"]
    turn = wire.call("session.branch", session=at_turn)["turns"][0]
    assert turn["session"] == origin
    assert set(turn["sessions"]) == {origin, at_head, at_turn}
    error = wire.error("session.open", session=fresh(), forked_from={"session": fresh()})
    assert (error["code"], error["data"]["kind"]) == (-32001, "not_found")


def test_gives_the_first_root_the_sessions_caller(wire: Wire) -> None:
    """`session.open`'s `caller` is the first root's, and of no later root."""
    parent, child = fresh(), fresh()
    wire.append(parent, "do it")
    caller = {"session": parent, "turn": "do it"}
    wire.call("session.open", session=child, caller=caller)
    wire.append(child, "first", role="assistant")
    wire.append(child, "second", role="assistant", after=None)
    first, second = (
        wire.call("session.branch", session=child, tip=tip)["turns"][0]
        for tip in ("first", "second")
    )
    assert first["caller"] == caller
    assert second["caller"] is None
    unknown = {"session": parent, "turn": "never"}
    error = wire.error("session.open", session=fresh(), caller=unknown)
    assert error["data"]["kind"] == "not_found"


def test_stores_nothing_where_memory_is_off(wire: Wire) -> None:
    """A session with `memory: off` takes appends and keeps no turn."""
    session = fresh()
    wire.call("session.open", session=session, memory="off")
    answer = wire.append(session, "secret")
    assert answer["new"] == 0
    assert ids(wire, session) == []


def test_lists_sessions_in_pages(wire: Wire) -> None:
    """Filters hold, the last moved comes first, and pages join without gap or double."""
    project, agent = fresh("项目"), fresh("agent")
    names = [fresh() for _ in range(5)]
    for name in names:
        wire.call("session.open", session=name, project=project, agent=agent)
        wire.append(name, f"in {name}")
    found = pages(wire, "session.list", "sessions", project=project, limit=2)
    assert [len(page) for page in found] == [2, 2, 1]
    rows = [row for page in found for row in page]
    has_shape(rows, [SESSION])
    assert [row["session"] for row in rows] == names[::-1]
    assert all((row["tips"], row["turns"], row["owed_turns"]) == (1, 1, 1) for row in rows)
    assert len(wire.call("session.list", agent=agent)["sessions"]) == 5
    assert wire.call("session.list", agent=agent, project="other") == {"sessions": []}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session.list", {}),
        ("session.branch", {"session": "s"}),
        ("session.export", {"session": "s"}),
        ("memory.owed", {}),
        ("memory.history", {}),
        ("memory.topics", {}),
    ],
)
def test_takes_limits_from_1_to_1000(wire: Wire, method: str, params: dict[str, Any]) -> None:
    """Every list takes `limit` and `cursor`; what is no limit or no cursor is an error."""
    wire.append("s", "known")
    for good in (1, 1000):
        wire.call(method, **params, limit=good)
    for limit in (0, 1001, -1, 10**30, "5", 1.5, None):
        error = wire.error(method, **params, limit=limit)
        assert error["code"] == -32602
        assert "limit" in error["message"]
    if method == "memory.topics":
        return  # its cursor is a name, and any word may be one
    for cursor in ("no cursor", "ż", "", "LTE=", "MTAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDA="):
        error = wire.error(method, **params, cursor=cursor)
        assert error["data"]["kind"] == "refused"


def test_shows_branches(wire: Wire) -> None:
    """Each branch has its tip, its state, its moment and what it owes."""
    session = fresh()
    wire.append(session, "a", "b")
    wire.append(session, "c", after="a")
    found = shown(wire, session)
    has_shape(list(found.values()), [BRANCH])
    assert set(found) == {"b", "c"}
    assert {row["state"] for row in found.values()} == {"live"}
    assert all(row["owed_turns"] == 2 and row["owed_tokens"] > 0 for row in found.values())
    assert all(row["idle_at"] > row["moved_at"] for row in found.values())
    assert wire.call("session.show", session=session)["head"] == "c"
    assert wire.error("session.show", session=fresh())["code"] == -32001


def test_lists_a_branch_oldest_first(wire: Wire) -> None:
    """Without `tip` root to head, even inside a branch; with it root to any turn; in pages."""
    session = fresh()
    wire.append(session, "a", "b", "c", "d")
    wire.append(session, "e", after="b")
    answer = wire.call("session.branch", session=session)
    has_shape(answer["turns"], [TURN])
    assert [turn["id"] for turn in answer["turns"]] == ["a", "b", "e"]
    assert ids(wire, session, tip="d") == ["a", "b", "c", "d"]
    assert ids(wire, session, tip="c") == ["a", "b", "c"]
    wire.call("session.checkout", session=session, tip="c")
    assert ids(wire, session) == ["a", "b", "c"]
    found = pages(wire, "session.branch", "turns", session=session, tip="d", limit=3)
    assert [[turn["id"] for turn in page] for page in found] == [["a", "b", "c"], ["d"]]
    assert wire.error("session.branch", session=session, tip="x")["code"] == -32001
    assert wire.error("session.branch", session=fresh())["code"] == -32001


def test_pages_long_turns_by_their_size(wire: Wire) -> None:
    """Turns that together pass a frame come in several pages, of a branch and of an export."""
    session = fresh()
    for number in range(6):
        text = f"第{number}" + "长" * 100_000
        wire.call("turn.append", session=session, turns=[{"role": "user", "text": text}])
    found = pages(wire, "session.branch", "turns", session=session)
    assert [len(page) for page in found] == [1] * 6
    lines = [
        line for page in pages(wire, "session.export", "lines", session=session) for line in page
    ]
    assert [json.loads(line)["type"] for line in lines] == [
        "turnmark-export",
        *["turn"] * 6,
        "branch",
        "end",
    ]


def test_rewinds(wire: Wire) -> None:
    """What came after is retired and counted; the target must lie before the head."""
    session = fresh()
    wire.append(session, "a", "b", "c", "d")
    error = wire.error("session.rewind", session=session, to="b", expect="c")
    assert (error["code"], error["data"]["kind"]) == (-32003, "stale")
    assert error["data"]["head"] == "d"
    answer = wire.call("session.rewind", session=session, to="b", expect="d")
    assert answer == {"head": "b", "retired": 2}
    turns = wire.call("session.branch", session=session, tip="d")["turns"]
    assert [turn["state"] for turn in turns] == ["live", "live", "retired", "retired"]
    assert [turn["recordable"] for turn in turns] == [True, True, False, False]
    wire.append(session, "e", after="a")
    assert wire.error("session.rewind", session=session, to="b")["code"] == -32005
    assert wire.error("session.rewind", session=session, to="zz")["code"] == -32001


def test_rewind_spares_what_another_branch_reaches(wire: Wire) -> None:
    """A turn is retired if and only if no live branch of any session reaches it any more."""
    session, other = fresh(), fresh()
    wire.append(session, "a", "b", "c")
    point = {"session": session, "turn": "c"}
    wire.call("session.open", session=other, forked_from=point)
    assert wire.call("session.rewind", session=session, to="a") == {"head": "a", "retired": 0}
    assert ids(wire, other) == ["a", "b", "c"]


def test_checks_out(wire: Wire) -> None:
    """The head goes to any live turn; to a retired one with `restore: true`."""
    session = fresh()
    wire.append(session, "a", "b", "c")
    assert wire.call("session.checkout", session=session, tip="b") == {"head": "b"}
    assert wire.call("session.checkout", session=session, tip="c", expect="b") == {"head": "c"}
    error = wire.error("session.checkout", session=session, tip="a", expect="b")
    assert (error["code"], error["data"]["head"]) == (-32003, "c")
    wire.call("session.rewind", session=session, to="a")
    assert wire.error("session.checkout", session=session, tip="c")["code"] == -32005
    answer = wire.call("session.checkout", session=session, tip="c", restore=True)
    assert answer == {"head": "c"}
    turns = wire.call("session.branch", session=session)["turns"]
    assert {turn["state"] for turn in turns} == {"live"}
    assert wire.error("session.checkout", session=session, tip="zz")["code"] == -32001


def test_merges(wire: Wire) -> None:
    """One turn with all tips for parents; the head's branch goes on, the other ends as merged."""
    session = fresh()
    wire.append(session, "a", "b")
    wire.append(session, "c", after="a")
    joined = {"id": "m", "role": "user", "text": "合并"}
    answer = wire.call("session.merge", session=session, tips=["b", "c"], turn=joined)
    assert answer == {"turn": "m", "head": "m"}
    turn = wire.call("session.branch", session=session)["turns"][-1]
    assert {turn["predecessor"], *turn["merged"]} == {"b", "c"}
    rows = wire.call("session.show", session=session)["branches"]
    assert sorted(row["state"] for row in rows) == ["live", "merged"]
    for tips in (["m"], ["m", "m"], ["m", "a"]):
        error = wire.error("session.merge", session=session, tips=tips, turn=joined)
        assert error["data"]["kind"] == "refused"


def test_archives(wire: Wire) -> None:
    """Archiving hides a branch or all; it stays owed, and the next append shows it again."""
    session = fresh()
    wire.append(session, "a", "b")
    wire.append(session, "c", after="a")
    branch = shown(wire, session)["b"]["branch"]
    assert wire.call("session.archive", session=session, branch=branch) == {}
    assert shown(wire, session)["b"]["state"] == "archived"
    assert shown(wire, session)["b"]["owed_turns"] == 2
    assert wire.call("session.archive", session=session) == {}
    assert {row["state"] for row in shown(wire, session).values()} == {"archived"}
    wire.append(session, "d", after="c")
    assert shown(wire, session)["d"]["state"] == "live"
    assert wire.error("session.archive", session=session, branch="br-no")["code"] == -32001
    assert wire.error("session.archive", session=fresh())["code"] == -32001


def test_closes_and_writes_what_is_owed(wire: Wire) -> None:
    """`session.close` answers at once; what is owed is written beside, and appends go on."""
    session = fresh()
    wire.append(session, "I live in Porto.")
    wire.call("events.subscribe", types=["TurnsWritten"], session=session)
    assert wire.call("session.close", session=session) == {}
    assert wire.events(1)[0]["turns"] == ["I live in Porto."]
    assert wire.append(session, "more")["new"] == 1
    assert wire.error("session.close", session=fresh())["code"] == -32001


def test_deletes(wire: Wire) -> None:
    """The session is gone, its turns are forgotten where nobody else reaches them, for good."""
    session, other = fresh(), fresh()
    wire.append(session, "a", "b", "c")
    wire.call("session.open", session=other, forked_from={"session": session, "turn": "b"})
    assert wire.call("session.delete", session=session) == {}
    assert wire.error("session.show", session=session)["code"] == -32001
    assert wire.error("session.delete", session=session)["code"] == -32001
    turns = wire.call("session.branch", session=other)["turns"]
    assert [(turn["id"], turn["state"], turn["text"]) for turn in turns] == [
        ("a", "live", "a"),
        ("b", "live", "b"),
    ]
    answer = wire.append(other, "c")
    assert (answer["new"], answer["forgotten"]) == (0, ["c"])
    assert wire.error("memory.show", ref=f"{other}#c")["code"] == -32008


def test_begins_anew_under_the_name_of_a_deleted_session(wire: Wire) -> None:
    """A deleted name can be used again and shows nothing of before."""
    session = fresh()
    wire.append(session, "old")
    wire.call("session.delete", session=session)
    assert wire.call("session.open", session=session)["created"]
    wire.append(session, "new")
    found = wire.call("session.show", session=session)
    assert (found["turns"], [row["tip"] for row in found["branches"]]) == (1, ["new"])


def exported(wire: Wire, session: str, limit: int = 200) -> list[str]:
    """All lines of an export."""
    found = pages(wire, "session.export", "lines", session=session, limit=limit)
    assert all(isinstance(line, str) for page in found for line in page)
    return [line for page in found for line in page]


def test_exports_and_imports_all_of_a_session(daemon: Daemon, wire: Wire) -> None:
    """Where the session is unknown everything is recreated: the export is equal again."""
    session = fresh("导出")
    wire.call("session.open", session=session, agent="codex", title="题", project="/p")
    wire.append(session, "a", "b", "c")
    wire.append(session, "d", after="b")
    wire.append(session, "e")
    wire.call("session.rewind", session=session, to="d")
    wire.call("session.archive", session=session)
    lines = exported(wire, session, limit=3)
    assert lines == exported(wire, session)
    turn = next(found for found in map(json.loads, lines) if found["type"] == "turn")
    assert {"namespace", "digest", "state", "predecessor", "marks"} <= set(turn)
    with serving('[memory]\nnightly = "off"\n') as elsewhere, elsewhere.wire() as there:
        begun = there.call("session.import", lines=lines[:4])
        assert set(begun) == {"upload"}
        upload = begun["upload"]
        assert there.call("session.import", lines=lines[4:6], upload=upload) == begun
        assert there.error("session.show", session=session)["code"] == -32001
        done = there.call("session.import", lines=lines[6:], upload=upload, last=True)
        assert done == {"session": session, "turns": 5, "new": 5}
        assert exported(there, session) == lines
        assert there.call("session.import", lines=lines, last=True)["new"] == 0
        error = there.error("session.import", lines=[], upload=upload, last=True)
        assert error["data"]["kind"] == "not_found"


def test_import_moves_no_head_that_is_there(wire: Wire) -> None:
    """Into a session that is known an import adds turns and branches and moves nothing."""
    session = fresh()
    wire.append(session, "a", "b")
    lines = exported(wire, session)
    wire.append(session, "c")
    wire.call("session.rewind", session=session, to="a")
    wire.append(session, "d")
    wire.call("events.subscribe", types=["TipMoved"], session=session)
    done = wire.call("session.import", lines=lines, last=True)
    assert done == {"session": session, "turns": 2, "new": 0}
    assert wire.call("session.show", session=session)["head"] == "d"
    assert all(event["cause"] == "import" for event in wire.drained())
    assert ids(wire, session) == ["a", "d"]


def test_import_adds_what_is_missing(wire: Wire) -> None:
    """Turns and branches that were not here are added, and the tips that were here stay."""
    session = fresh()
    wire.append(session, "a", "b", "c")
    wire.append(session, "d", after="a")
    lines = exported(wire, session)
    with serving('[memory]\nnightly = "off"\n') as elsewhere, elsewhere.wire() as there:
        there.append(session, "a", "b")
        there.call("events.subscribe", types=["TipMoved"], session=session)
        done = there.call("session.import", lines=lines, last=True)
        assert done == {"session": session, "turns": 4, "new": 2}
        found = there.call("session.show", session=session)
        assert found["head"] == "b"
        assert {row["tip"] for row in found["branches"]} == {"b", "c", "d"}
        told = there.drained()
        assert sorted((event["old"], event["new"]) for event in told if event["old"]) == []
        assert {event["new"] for event in told} == {"c", "d"}
        assert {(event["cause"], event["head_new"]) for event in told} == {("import", "b")}
        assert there.call("memory.owed", session=session)["turns"] == 4
        assert there.call("session.import", lines=lines, last=True)["new"] == 0
        assert there.drained() == []


def test_import_leaves_retired_turns_retired(wire: Wire) -> None:
    """What was taken back here does not come back through an import of what was exported before."""
    session = fresh()
    wire.append(session, "a", "b")
    lines = exported(wire, session)
    wire.call("session.rewind", session=session, to="a")
    wire.call("session.import", lines=lines, last=True)
    assert wire.call("session.branch", session=session, tip="b")["turns"][1]["state"] == "retired"
    assert wire.call("memory.owed", session=session)["turns"] == 1
    wire.call("session.delete", session=session)
    wire.call("session.import", lines=lines, last=True)
    assert wire.call("memory.owed", session=session)["turns"] == 0


def test_import_keeps_marks_of_the_same_workspace(wire: Wire) -> None:
    """Marks come back where this workspace has reached their revision: nothing is owed twice."""
    session = fresh()
    wire.append(session, "My name is Dana.")
    wire.call("memory.flush", session=session)
    lines = exported(wire, session)
    assert json.loads(lines[1])["marks"]
    assert wire.call("memory.owed", session=session)["turns"] == 0
    wire.call("session.import", lines=lines, last=True)
    assert wire.call("memory.owed", session=session)["turns"] == 0


def test_import_is_ordered_with_the_writes_around_it(wire: Wire) -> None:
    """An append sent behind an import of the same session is applied after it."""
    session, copy = fresh(), fresh()
    wire.append(session, *(f"t{number}" for number in range(300)))
    lines = [
        line.replace(f'"{session}"', f'"{copy}"').replace(f":{session}", f":{copy}")
        for line in exported(wire, session)
    ]
    sent = wire.request("session.import", {"lines": lines, "last": True})
    turns = [{"id": "last", "role": "user", "text": "behind it"}]
    behind = wire.request("turn.append", {"session": copy, "turns": turns})
    assert wire.answer(sent)["result"] == {"session": copy, "turns": 300, "new": 300}
    assert wire.answer(behind)["result"]["head"] == "last"
    assert wire.call("session.show", session=copy)["turns"] == 301
    assert len(shown(wire, copy)) == 1


def test_refuses_lines_that_are_no_export(wire: Wire) -> None:
    """A line that is none is refused with its number, and nothing is created."""
    session = fresh()
    wire.append(session, "a")
    name = fresh()
    lines = [line.replace(session, name) for line in exported(wire, session)]
    for bad, number in ((["{}"], 1), ([*lines[:2], "nonsense"], 3), (lines[:-1], 4), ([], 1)):
        error = wire.error("session.import", lines=bad, last=True)
        assert error["code"] == -32005
        assert str(number) in error["message"] or error["data"].get("line") == number
    assert wire.error("session.show", session=name)["code"] == -32001


def test_import_tells_how_far_it_is(wire: Wire) -> None:
    """With a progress token an import tells turns done and turns in all, before its answer."""
    session = fresh()
    wire.append(session, *(f"t{number}" for number in range(450)))
    params = {"lines": exported(wire, session), "last": True, "_meta": {"progressToken": "进度"}}
    wire.answer(wire.request("session.import", params))
    told = [note["params"] for note in wire.notes if note["method"] == "notifications/progress"]
    assert [one["progressToken"] for one in told] == ["进度"] * len(told)
    assert [one["progress"] for one in told] == [200, 400, 450]
    assert {one["total"] for one in told} == {450}
