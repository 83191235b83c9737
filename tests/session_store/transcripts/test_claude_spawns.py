"""Tests of `session_store/transcripts/claude_code/spawns.py`: sub-agents and their callers."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_store.transcripts.claude_records import (
    SESSION,
    Record,
    answer,
    call,
    edges,
    read,
    result,
    row,
    said,
    user,
    write,
)
from turnmark_session_store.model import CallerRef
from turnmark_session_store.transcripts.reader import ReadSession

AGENT_SESSION = f"{SESSION}.agent-x7"


def _parent(*more: Record) -> list[Record]:
    return [
        user("u1", None, 0, "First question"),
        answer("a1", "u1", 1, "First answer."),
        user("u2", "a1", 2, "Look it up"),
        answer("a2", "u2", 3, "I'll ask an agent.", call("t1", "Task", prompt="Find the file.")),
        *more,
        answer("a3", "a2", 20, "Here it is."),
        user("u3", "a3", 30, "Thanks"),
    ]


def _agent(second: float = 10, prompt: str = "Something else.", **fields: object) -> list[Record]:
    extra = {"isSidechain": True, "agentId": "x7", **fields}
    return [
        user("g1", None, second, prompt) | extra,
        answer("g2", "g1", second + 1, "Found.") | extra,
    ]


def _read(tmp_path: Path, parent: list[Record], agent: list[Record]) -> list[ReadSession]:
    return read(
        write(tmp_path / SESSION / "subagents" / "agent-x7.jsonl", agent),
        write(tmp_path / f"{SESSION}.jsonl", parent),
    )


RESULT = result("r1", "a2", 15, "t1", toolUseResult={"agentId": "x7"})
PROGRESS = row(
    "progress",
    "p1",
    "a2",
    9,
    data={"type": "agent_progress", "agentId": "x7"},
    parentToolUseID="t1",
)


@pytest.mark.parametrize(
    ("more", "agent", "caller"),
    [
        ([RESULT], _agent(), "a2"),
        ([PROGRESS], _agent(), "a2"),
        ([], _agent(prompt="Find the file."), "a2"),
        ([], _agent(second=2.5), "u2"),
        ([], _agent(second=25), "a3"),
        ([], _agent(second=0), "u1"),
    ],
)
def test_the_caller_is_the_turn_that_spawned(
    tmp_path: Path, more: list[Record], agent: list[Record], caller: str
) -> None:
    """By the result, the progress, the task, and last by the time."""
    parent, sub = _read(tmp_path, _parent(*more), agent)
    assert (parent.session, sub.session) == (SESSION, AGENT_SESSION)
    assert sub.caller == CallerRef(session=SESSION, turn=caller)
    assert sub.turns[0].turn.caller == sub.caller
    assert sub.turns[1].turn.caller is None
    assert edges(sub) == {"g1": None, "g2": "g1"}
    assert (sub.forked_from, sub.head) == (None, "g2")


def test_the_task_is_a_turn_with_a_caller_and_later_orders_are_notices(tmp_path: Path) -> None:
    """Nobody in a sub-agent's session is a person."""
    order = user("g3", "g2", 12, "Go on.") | {"isSidechain": True, "agentId": "x7"}
    _, sub = _read(tmp_path, _parent(RESULT), [*_agent(), order])
    assert said(sub) == ["Something else."]
    assert said(sub, kind="runtime") == ["Go on."]


def test_a_task_whose_caller_is_not_there_is_a_notice(tmp_path: Path) -> None:
    """Without its parent's session the file alone must not make a person of an agent."""
    [sub] = read(write(tmp_path / SESSION / "subagents" / "agent-x7.jsonl", _agent()))
    assert (sub.session, sub.caller) == (AGENT_SESSION, None)
    assert said(sub) == []
    assert said(sub, kind="runtime") == ["Something else."]
    assert said(sub, role="assistant") == ["Found."]


def test_a_file_beside_its_parent_names_the_session_in_its_records(tmp_path: Path) -> None:
    """Around version 2.0 the files lay side by side."""
    paths = (
        write(tmp_path / "agent-x7.jsonl", _agent()),
        write(tmp_path / f"{SESSION}.jsonl", _parent(RESULT)),
    )
    assert [session.session for session in read(*paths)] == [SESSION, AGENT_SESSION]


def test_side_chains_inside_the_parents_file_are_sessions_of_their_own(tmp_path: Path) -> None:
    """Up to version 1 there was no agent id; each chain is named by its first record."""
    side = {"isSidechain": True}
    records = _parent(
        user("aaaa1111-bbbb-4ccc", None, 5, "Find the file.") | side,
        answer("g2", "aaaa1111-bbbb-4ccc", 6, "Found.") | side,
        user("dddd2222-eeee-4fff", None, 7, "Find the other.") | side,
    )
    parent, *subs = read(write(tmp_path / f"{SESSION}.jsonl", records))
    assert list(edges(parent)) == ["u1", "a1", "u2", "a2", "a3", "u3"]
    assert {sub.session for sub in subs} == {
        f"{SESSION}.agent-aaaa1111bbbb",
        f"{SESSION}.agent-dddd2222eeee",
    }
    assert {sub.caller for sub in subs} == {CallerRef(session=SESSION, turn="a2")}


def test_a_side_chain_that_hangs_from_the_main_chain_is_spawned_there(tmp_path: Path) -> None:
    """A sub-agent that was given the context has a caller, not a predecessor."""
    agent = _agent()
    agent[0]["parentUuid"] = "a1"
    _, sub = _read(tmp_path, _parent(), agent)
    assert sub.caller == CallerRef(session=SESSION, turn="a1")
    assert edges(sub)["g1"] is None


def test_a_sub_agent_of_a_sub_agent_has_its_caller_there(tmp_path: Path) -> None:
    """The caller is named in the session that lists it, which comes first."""
    inner = [record | {"agentId": "y8"} for record in _agent(second=12, prompt="Deeper.")]
    inner = [record | {"uuid": f"i{record['uuid']}"} for record in inner]
    inner[1]["parentUuid"] = "ig1"
    outer = _agent()
    outer.append(
        result("g3", "g2", 14, "t9", toolUseResult={"agentId": "y8"})
        | {"isSidechain": True, "agentId": "x7"}
    )
    folder = tmp_path / SESSION / "subagents"
    sessions = read(
        write(folder / "agent-x7.jsonl", outer),
        write(folder / "workflows" / "run" / "agent-y8.jsonl", inner),
        write(tmp_path / f"{SESSION}.jsonl", _parent(RESULT)),
    )
    names = [SESSION, AGENT_SESSION, f"{SESSION}.agent-y8"]
    assert [session.session for session in sessions] == names
    assert sessions[2].caller == CallerRef(session=AGENT_SESSION, turn="g2")


def test_a_copy_of_the_call_says_nothing_before_the_call_itself(tmp_path: Path) -> None:
    """A fork may name the agent before its origin has the result: the origin's call counts."""
    other = SESSION[:-1] + "2"
    fork = [
        record
        | {
            "uuid": f"f{record['uuid']}",
            "parentUuid": record["parentUuid"] and f"f{record['parentUuid']}",
            "sessionId": other,
            "forkedFrom": {"sessionId": "gone", "messageUuid": f"x{record['uuid']}"},
        }
        for record in (*_parent()[:4], RESULT)
    ]
    sessions = read(
        write(tmp_path / f"{other}.jsonl", fork),
        write(tmp_path / f"{SESSION}.jsonl", _parent()[:4]),
        write(tmp_path / SESSION / "subagents" / "agent-x7.jsonl", _agent(prompt="Find the file.")),
    )
    [sub] = (session for session in sessions if session.session == AGENT_SESSION)
    assert sub.caller == CallerRef(session=SESSION, turn="a2")


def test_a_sub_agent_that_is_in_both_files_is_read_once(tmp_path: Path) -> None:
    """Its records may stand in the parent's file as well."""
    parent, sub = _read(tmp_path, [*_parent(RESULT), *_agent()], _agent())
    assert edges(parent, sub).keys() >= {"g1", "g2"}
    assert sub.session == AGENT_SESSION
