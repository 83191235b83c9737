"""What public bug reports say of Claude Code's files, where no other test is named for it."""

from __future__ import annotations

from pathlib import Path

from session_store.transcripts.claude_records import (
    SESSION,
    Record,
    answer,
    edges,
    hook,
    read,
    read_one,
    row,
    said,
    user,
    write,
)

OTHER = "5e55107a-0000-4000-8000-000000000002"


def test_a_fork_that_splits_a_tool_of_the_servers_is_read(tmp_path: Path) -> None:
    """anthropics/claude-code#88957: the call is copied, its result is not."""
    called: Record = {"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {}}
    found: Record = {"type": "web_search_tool_result", "tool_use_id": "srv1", "content": []}
    origin = [
        user("u1", None, 0, "Search for Bergen"),
        answer("a1", "u1", 1, "Searching.", response="m1"),
        answer("a2", "a1", 2, called, response="m1"),
        answer("a3", "a2", 3, found, response="m1"),
        answer("a4", "a3", 4, "It rains.", response="m1"),
    ]
    copied = [record | {"sessionId": OTHER} for record in origin[:3]]
    sessions = read(
        write(tmp_path / f"{SESSION}.jsonl", origin),
        write(
            tmp_path / f"{OTHER}.jsonl",
            [*copied, user("v1", "a2", 5, "Leave it", sessionId=OTHER)],
        ),
    )
    assert edges(*sessions) == {"u1": None, "a1": "u1", "a4": "a1", "v1": "a1"}
    assert {session.session: session.tips for session in sessions} == {
        SESSION: ("a4",),
        OTHER: ("v1",),
    }


def test_an_answer_without_id_and_model_is_one(tmp_path: Path) -> None:
    """d-kimuson/claude-code-viewer#220, ccusage#976: proxies leave out id, model and requestId."""
    bare = answer("a1", "u1", 1, "Fine.", response=None)
    del bare["message"]["model"]
    session = read_one(
        tmp_path,
        user("u1", None, 0, "Hello"),
        bare,
        answer("a2", "a1", 2, "And well.", response=None),
    )
    assert edges(session) == {"u1": None, "a1": "u1", "a2": "a1"}
    assert said(session, role="assistant") == ["Fine.", "And well."]


def test_a_cleared_conversation_is_one_of_its_own(tmp_path: Path) -> None:
    """anthropics/claude-code#60845: nothing leads back, and nothing is guessed."""
    sessions = read(
        write(tmp_path / f"{SESSION}.jsonl", [user("u1", None, 0, "Hello")]),
        write(tmp_path / f"{OTHER}.jsonl", [user("v1", None, 1, "Hello", sessionId=OTHER)]),
    )
    assert edges(*sessions) == {"u1": None, "v1": None}
    assert [session.forked_from for session in sessions] == [None, None]


def test_an_attachment_may_be_written_before_its_parent(tmp_path: Path) -> None:
    """cfal/garcon#441: a hook's child stands above the prompt that it hangs from."""
    child = row("attachment", "h1", "u1", 1, attachment={"type": "hook_success", "content": "ok"})
    session = read_one(
        tmp_path,
        child,
        user("u1", None, 0, "Hello"),
        answer("a1", "h1", 2, "Hi."),
        hook("s", "a1", 3),
    )
    assert edges(session) == {"u1": None, "a1": "u1"}
    assert session.warnings == ()


def test_a_copy_in_the_background_counts_once(tmp_path: Path) -> None:
    """kenn-io/agentsview#1370: the same records under another session, and neither goes on."""
    talk: list[Record] = [user("u1", None, 0, "Hello"), answer("a1", "u1", 1, "Hi.")]
    copied = [record | {"sessionId": OTHER, "sessionKind": "bg"} for record in talk]
    sessions = read(
        write(tmp_path / f"{SESSION}.jsonl", talk), write(tmp_path / f"{OTHER}.jsonl", copied)
    )
    assert edges(*sessions) == {"u1": None, "a1": "u1"}
    assert [session.tips for session in sessions] == [("a1",), ("a1",)]
