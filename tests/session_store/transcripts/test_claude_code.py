"""Tests of `transcripts/claude_code/reader.py`: whole files in, sessions of turns out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from session_store.transcripts.claude_records import (
    SESSION,
    Record,
    answer,
    at,
    call,
    edges,
    read,
    read_one,
    result,
    row,
    said,
    thought,
    user,
    write,
)
from turnmark_session_store.model import CallerRef
from turnmark_session_store.requests import ForkPoint
from turnmark_session_store.transcripts.reader import ReadSession

FORKS = Path(__file__).parents[2] / "data" / "claude-code" / "sdk-fork-generated"
ORIGIN = "5d0c7b1e-0000-4000-8000-000000000001"
FORK_FILES = sorted(FORKS.iterdir())
SHARED = Path(__file__).parents[4] / "shared" / "transcripts" / "claude-code"


def _shared(*names: str) -> list[Path]:
    paths = [SHARED / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("the public transcripts are not beside the repository")
    return [p for path in paths for p in ([path] if path.is_file() else path.rglob("*.jsonl"))]


def _by_name(sessions: list[ReadSession]) -> dict[str, ReadSession]:
    return {session.session: session for session in sessions}


@pytest.mark.parametrize("paths", [FORK_FILES, FORK_FILES[::-1]])
def test_a_prefix_that_forks_share_is_read_once(paths: list[Path]) -> None:
    """Three files of one conversation: each human turn once, with the ids of the original."""
    sessions = read(*paths)
    assert sorted(said(*sessions)) == [
        "Actually I prefer two spaces.",
        "I prefer tabs.",
        "List the files.",
        "My name is Robin and I moved from Oslo to Bergen last month.",
    ]
    assert sessions[0].session == ORIGIN
    assert all(turn_id.startswith("5d0c7b1e-0000-4000-8000-1") for turn_id in edges(*sessions))
    assert [len(session.turns) for session in sessions] == [8, 0, 0]


def test_a_fork_says_where_it_forked_and_which_tips_it_reaches() -> None:
    """A fork without a turn of its own still has tips and a head, in the origin's turns."""
    sessions = _by_name(read(*FORK_FILES))
    tabs, spaces = (f"5d0c7b1e-0000-4000-8000-1000000000{n}" for n in (12, 14))
    partial = sessions["d7687fcf-21fd-4d9d-b20b-fcc36c3292f4"]
    assert (partial.tips, partial.head) == ((tabs,), tabs)
    assert partial.forked_from == ForkPoint(session=ORIGIN, turn=tabs)
    assert partial.title == "tabs branch"
    whole = sessions["faa53809-8099-4145-88c7-a896ed371089"]
    assert (set(whole.tips), whole.head) == ({tabs, spaces}, spaces)
    assert whole.forked_from == ForkPoint(session=ORIGIN, turn=spaces)
    origin = sessions[ORIGIN]
    assert (set(origin.tips), origin.head, origin.title) == ({tabs, spaces}, spaces, "Bergen talk")
    assert (origin.forked_from, origin.project) == (None, "/home/user/demo")


def test_a_fork_without_its_origin_has_the_same_turns() -> None:
    """The pointer alone gives the identity, so that a later reading of the origin adds nothing."""
    alone = read(FORKS / "d7687fcf-21fd-4d9d-b20b-fcc36c3292f4.jsonl")
    together = edges(*read(*FORK_FILES))
    assert edges(*alone).items() <= together.items()
    assert len(edges(*alone)) == 6
    assert {turn.session for turn in alone[0].turns} == {ORIGIN}


def test_tool_calls_make_no_branches() -> None:
    """The two branches of the original are its rewind; its parallel tool calls are none."""
    [origin] = read(FORKS / f"{ORIGIN}.jsonl")
    children = Counter(turn.predecessor for turn in origin.turns)
    assert [before for before, count in children.items() if count > 1] == [
        "5d0c7b1e-0000-4000-8000-100000000010"
    ]


def test_reading_changes_no_file_and_gives_the_same_again() -> None:
    """Two readings are equal, and the files keep their bytes."""
    before = [path.read_bytes() for path in FORK_FILES]
    assert read(*FORK_FILES) == read(*FORK_FILES, *FORK_FILES)
    assert [path.read_bytes() for path in FORK_FILES] == before


def test_a_public_chain_of_progress_records_is_collapsed() -> None:
    """Fifty-eight records of progress carry the chain and are no turns."""
    [session] = read(*_shared("v2.1.38-progress-chain.jsonl"))
    chain = [turn.turn for turn in session.turns]
    assert [turn.role for turn in chain] == ["user", "assistant", "assistant"]
    assert session.tips == (chain[-1].id,)
    assert session.warnings == ()


def test_a_public_compaction_keeps_both_branches_and_the_preserved_tail() -> None:
    """The summary is a root of kind summary; what follows hangs from the preserved tail."""
    [session] = read(*_shared("compact-after-rewind-preserved-tail.jsonl"))
    texts = ["Start", "First attempt", "Second attempt", "Keep going", "After compaction"]
    assert said(session) == texts
    dag = edges(session)
    assert (dag["cs"], dag["b2a2"], dag["p1u"]) == (None, "cs", "b2a2")
    assert (dag["b1u"], dag["b2u"]) == ("a1", "a1")
    assert session.head == "p1a"
    assert len(said(session, kind="summary")) == 1


def test_a_public_sub_agent_is_a_session_with_a_caller() -> None:
    """The first turn is the task, and its caller is the turn that spawned it."""
    parent, agent = read(*_shared("subagent-tree"))
    assert agent.session == f"{parent.session}.agent-a0ad4f44468bdf20d"
    assert agent.caller == CallerRef(session=parent.session, turn="pa1")
    assert agent.turns[0].turn.caller == agent.caller
    assert said(parent) == ["Delegate a repo search to a subagent"]
    assert said(parent, agent, role="assistant") == ["Spawning a subagent.", "Searching."]


def test_a_turn_says_when_it_was_said_and_where_it_stands(tmp_path: Path) -> None:
    """Time, origin and model; no speaker, because the files name none."""
    session = read_one(
        tmp_path, {"type": "mode"}, user("u1", None, 1, "你好"), answer("a1", "u1", 2, "您好")
    )
    human, model = (turn.turn for turn in session.turns)
    assert (human.id, human.time, human.speaker) == ("u1", at(1), None)
    assert human.metadata == {"origin": {"file": f"{SESSION}.jsonl", "line": 2}}
    assert model.metadata == {
        "origin": {"file": f"{SESSION}.jsonl", "line": 3},
        "model": "claude-demo",
    }
    assert (session.agent, session.namespace) == ("claude-code", "claude-code")


@pytest.mark.parametrize("data", [b"", b"\0\0\0\n", b'{"type":"mode","mode":"x"}\n', b'"text"\n'])
def test_a_file_without_messages_has_no_turns(tmp_path: Path, data: bytes) -> None:
    """Empty files, headers only and broken lines are no errors."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(data)
    assert edges(*read(path)) == {}


def test_one_bad_line_costs_one_warning(tmp_path: Path) -> None:
    """What stands around it is read, and the warning names the line."""
    session = read_one(
        tmp_path, user("u1", None, 0, "One"), "{torn", "[]", answer("a1", "u1", 1, "Two")
    )
    assert edges(session) == {"u1": None, "a1": "u1"}
    assert [(warning.line, warning.reason) for warning in session.warnings] == [
        (2, "not JSON"),
        (3, "JSON, but no object"),
    ]


def test_surrogates_and_line_separators_are_survived(tmp_path: Path) -> None:
    """Texts can be encoded, and U+2028 splits nothing."""
    broken = json.dumps(user("u1", None, 0, "cut \ud83d"))
    session = read_one(tmp_path, broken, answer("a1", "u1", 1, "one\u2028two"))
    assert [turn.turn.text for turn in session.turns] == ["cut \ufffd", "one\u2028two"]


def test_children_may_stand_before_their_parents(tmp_path: Path) -> None:
    """Edges come from the ids; turns are given parents first."""
    session = read_one(
        tmp_path,
        answer("a1", "u1", 1, "Two"),
        row("attachment", "x", "a1", 2),
        user("u1", None, 0, "One"),
    )
    assert [turn.turn.id for turn in session.turns] == ["u1", "a1"]


def test_a_missing_parent_makes_a_marked_root(tmp_path: Path) -> None:
    """Also where the record that lost it is no turn itself."""
    session = read_one(
        tmp_path,
        user("u1", "gone", 0, "One"),
        row("system", "s1", "gone too", 1),
        user("u2", "s1", 2, "Two"),
        user("u3", None, 3, "Three"),
    )
    lost = {turn.turn.id: turn.lost_predecessor for turn in session.turns}
    assert lost == {"u1": True, "u2": True, "u3": False}
    assert set(edges(session).values()) == {None}


def test_a_record_that_is_its_own_parent_is_a_root(tmp_path: Path) -> None:
    """It lost nothing."""
    session = read_one(tmp_path, user("u1", "u1", 0, "One"))
    assert edges(session) == {"u1": None}
    assert not session.turns[0].lost_predecessor


def test_a_cycle_is_cut_at_the_record_that_closes_it(tmp_path: Path) -> None:
    """The last record of the circle by position becomes the root, with a warning."""
    session = read_one(
        tmp_path,
        user("u1", "x2", 0, "One"),
        answer("a1", "u1", 1, "Two"),
        row("system", "x2", "a1", 2),
    )
    assert edges(session) == {"u1": None, "a1": "u1"}
    assert [(w.line, w.reason) for w in session.warnings] == [(3, "closes a cycle")]


def test_a_duplicate_that_would_close_a_cycle_changes_nothing(tmp_path: Path) -> None:
    """The first occurrence of an id is the record; the preserved tail writes it again."""
    session = read_one(
        tmp_path,
        row("attachment", "h1", None, 0),
        user("u1", "h1", 1, "One"),
        answer("a1", "u1", 2, "Two"),
        row("attachment", "h1", "a1", 3),
        row("system", "cb", None, 4, subtype="compact_boundary", logicalParentUuid="a1"),
        user("cs", "cb", 5, "Summary", isCompactSummary=True),
        answer("a1", "cs", 2, "Two"),
        user("u2", "a1", 6, "Three"),
    )
    assert edges(session) == {"u1": None, "a1": "u1", "cs": None, "u2": "a1"}
    assert session.warnings == ()


def test_a_long_chain_needs_no_recursion(tmp_path: Path) -> None:
    """Five thousand records of progress between two turns, and five thousand turns."""
    records: list[Record] = [user("u0", None, 0, "Start")]
    for n in range(1, 5001):
        kind = row("progress", f"p{n}", records[-1]["uuid"], n / 10)
        records.append(kind)
    for n in range(1, 5001):
        make = user if n % 2 else answer
        records.append(make(f"t{n}", records[-1]["uuid"], 500 + n / 10, f"Turn {n}"))
    session = read_one(tmp_path, *records)
    dag = edges(session)
    assert (len(dag), dag["t1"], dag["t5000"]) == (5001, "u0", "t4999")
    assert session.tips == ("t5000",)


def test_a_rewind_keeps_both_branches_and_takes_nothing_back(tmp_path: Path) -> None:
    """A second prompt beside the first is a fork; the head is where it was said last."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Hello"),
        answer("a1", "u1", 1, "Hi"),
        user("u2", "a1", 2, "I like tea."),
        answer("a2", "u2", 3, "Noted."),
        user("u3", "a1", 4, "我喜欢咖啡。"),
        answer("a3", "u3", 5, "好的。"),
    )
    assert (edges(session)["u2"], edges(session)["u3"]) == ("a1", "a1")
    assert (session.tips, session.head, session.taken_back) == (("a2", "a3"), "a3", ())


def test_the_noted_leaf_decides_between_several_roots(tmp_path: Path) -> None:
    """After a rewind to the start, only `last-prompt` says which root is the one."""
    records: list[Record] = [
        user("u1", None, 0, "First start"),
        answer("a1", "u1", 1, "One"),
        user("u2", None, 2, "Second start"),
        answer("a2", "u2", 3, "Two"),
    ]
    noted = {"type": "last-prompt", "lastPrompt": "First start", "leafUuid": "a1"}
    assert read_one(tmp_path, *records).head == "a2"
    assert read_one(tmp_path, *records, noted).head == "a1"


def test_what_a_record_retracts_is_taken_back(tmp_path: Path) -> None:
    """The retracted turn is a leaf, and what followed hangs from the turn above it."""
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Question"),
        answer("a1", "u1", 1, "A wrong answer"),
        answer("a2", "a1", 2, "A right answer", retractedMessageUuids=["a1"]),
        user("u2", "a2", 3, "Thanks"),
    )
    assert edges(session) == {"u1": None, "a1": "u1", "a2": "u1", "u2": "a2"}
    assert (session.taken_back, session.tips, session.head) == (("a1",), ("u2",), "u2")


def test_copies_with_the_same_ids_are_one_turn(tmp_path: Path) -> None:
    """A branch of the command line keeps uuids; the origin is the file with the earlier turns."""
    first = [user("u1", None, 0, "One"), answer("a1", "u1", 1, "Two"), user("u2", "a1", 2, "Old")]
    branch = [record | {"sessionId": "0-branch"} for record in first[:2]]
    branch.append(user("u3", "a1", 9, "New") | {"sessionId": "0-branch"})
    origin_path = write(tmp_path / f"{SESSION}.jsonl", first)
    branch_path = write(tmp_path / "0-branch.jsonl", branch)
    for paths in ((origin_path, branch_path), (branch_path, origin_path)):
        origin, fork = read(*paths)
        assert (origin.session, fork.session) == (SESSION, "0-branch")
        assert edges(origin) == {"u1": None, "a1": "u1", "u2": "a1"}
        assert edges(fork) == {"u3": "a1"}
        assert fork.forked_from == ForkPoint(session=SESSION, turn="a1")
        assert (fork.tips, fork.head) == (("u3",), "u3")


def test_a_resumed_file_continues_the_session_that_its_records_name(tmp_path: Path) -> None:
    """Old versions copied rows with their old session id into the new file."""
    resumed = write(
        tmp_path / "new.jsonl",
        [user("u1", None, 0, "Old"), user("u2", "u1", 5, "New") | {"sessionId": "new"}],
    )
    old, new = read(resumed)
    assert (old.session, edges(old)) == (SESSION, {"u1": None})
    assert (new.session, edges(new)) == ("new", {"u2": "u1"})
    assert new.forked_from == ForkPoint(session=SESSION, turn="u1")


def test_a_fork_of_a_fork_leads_to_the_first_original(tmp_path: Path) -> None:
    """Pointers are followed through every copy in the set, however the files are named."""
    copied = {"sessionId": "s", "messageUuid": "u1"}
    first = user("u1", None, 0, "One")
    second = user("v1", None, 0, "One", forkedFrom=copied | {"sessionId": SESSION})
    third = user("w1", None, 0, "One", forkedFrom={"sessionId": "b", "messageUuid": "v1"})
    own = user("w2", "w1", 9, "Mine")
    paths = (
        write(tmp_path / "a.jsonl", [r | {"sessionId": "a"} for r in (third, own)]),
        write(tmp_path / "b.jsonl", [second | {"sessionId": "b"}]),
        write(tmp_path / f"{SESSION}.jsonl", [first]),
    )
    sessions = read(*paths)
    assert edges(*sessions) == {"u1": None, "w2": "u1"}
    assert sessions[0].session == SESSION
    assert _by_name(sessions)["a"].forked_from == ForkPoint(session=SESSION, turn="u1")


def test_titles_come_from_people_before_programs(tmp_path: Path) -> None:
    """A given title, else a made one, else the summary of one of its own records."""
    prompt = user("u1", None, 0, "One")
    summary = {"type": "summary", "summary": "Sum", "leafUuid": "u1"}
    foreign = {"type": "summary", "summary": "Foreign", "leafUuid": "zz"}
    made, given = (
        {"type": "ai-title", "aiTitle": "Made"},
        {"type": "custom-title", "customTitle": "给"},
    )
    assert read_one(tmp_path, foreign, prompt).title is None
    assert read_one(tmp_path, summary, foreign, prompt).title == "Sum"
    assert read_one(tmp_path, summary, made, prompt).title == "Made"
    assert read_one(tmp_path, given, made, prompt).title == "给"


def test_sessions_of_a_skipped_directory_are_not_read(tmp_path: Path) -> None:
    """Turnmark's own writer works there; its sub-agents go with it."""
    own = [user("u1", None, 0, "Write these facts") | {"cwd": "/state/writer/run-1"}]
    agent = [user("g1", None, 1, "Part", isSidechain=True, agentId="x") | {"cwd": "/tmp"}]
    other = [user("u2", None, 2, "I like tea.") | {"cwd": "/state/writer-notes", "sessionId": "o"}]
    paths = (
        write(tmp_path / f"{SESSION}.jsonl", own),
        write(tmp_path / SESSION / "subagents" / "agent-x.jsonl", agent),
        write(tmp_path / "o.jsonl", other),
    )
    assert len(read(*paths)) == 3
    assert edges(*read(*paths, skip_directories=[Path("/state/writer")])) == {"u2": None}


@pytest.mark.parametrize("time", [None, "", "yesterday", 5e246, "99999-01-01T00:00:00Z", [1]])
def test_a_record_without_a_time_has_that_of_the_one_before(tmp_path: Path, time: object) -> None:
    """Unknown times are not invented, and never the time of the reading."""
    session = read_one(
        tmp_path,
        user("u0", None, 0, "Zero") | {"timestamp": time},
        user("u1", "u0", 5, "One"),
        answer("a1", "u1", 6, "Two") | {"timestamp": time},
    )
    assert [turn.turn.time for turn in session.turns] == [None, at(5), at(5)]


def test_clocks_that_run_backwards_change_no_edge(tmp_path: Path) -> None:
    """Edges follow ids; only siblings beside the harness are compared by time."""
    session = read_one(
        tmp_path,
        user("u1", None, 50, "One"),
        answer("a1", "u1", 40, thought(), call("t1")),
        result("r1", "a1", 30, "t1"),
        answer("a2", "r1", 20, "Two"),
        user("u2", "a2", 10, "Three"),
    )
    assert edges(session) == {"u1": None, "a2": "u1", "u2": "a2"}
    assert session.tips == ("u2",)


def test_unknown_records_and_fields_are_passed_over(tmp_path: Path) -> None:
    """Every release adds some; an unknown type with a parent carries the chain."""
    session = read_one(
        tmp_path,
        {"type": "never-seen", "uuid": "x", "timestamp": "2026-11-29T20:46:29.143046Z"},
        user("u1", None, 0, "One", neverSeen={"a": [1]}),
        row("never-seen", "n1", "u1", 1),
        answer("a1", "n1", 2, {"type": "never-seen"}, "Two", response=None),
        {"type": "user", "uuid": 7, "message": "odd"},
        user("u2", "a1", 3, None) | {"message": None},
        user(
            "u3", "u2", 4, [{"type": "text", "text": 5}, "odd", {"type": "text", "text": "Three"}]
        ),
    )
    assert edges(session) == {"u1": None, "a1": "u1", "u3": "a1"}
    assert said(session) == ["One", "Three"]
