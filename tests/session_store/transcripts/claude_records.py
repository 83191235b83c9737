"""Records in the shapes that Claude Code writes, with made-up words, for tests to assemble."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from turnmark_session_store.transcripts.claude_code.reader import ClaudeCodeReader
from turnmark_session_store.transcripts.reader import ReadSession

SESSION = "5e55107a-0000-4000-8000-000000000001"
Record = dict[str, Any]


def at(second: float) -> str:
    """A moment of the morning on which all conversations here take place."""
    minutes, seconds = divmod(second, 60)
    return f"2026-08-09T10:{int(minutes):02}:{seconds:06.3f}Z"


def row(kind: str, uuid: str, parent: str | None, second: float, **fields: Any) -> Record:
    """A record of the chain."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/robin/demo",
        "sessionId": SESSION,
        "version": "2.1.220",
        "type": kind,
        "uuid": uuid,
        "timestamp": at(second),
        **fields,
    }


def user(uuid: str, parent: str | None, second: float, content: Any, **fields: Any) -> Record:
    """A record of role user."""
    return row("user", uuid, parent, second, message={"role": "user", "content": content}, **fields)


def answer(
    uuid: str, parent: str | None, second: float, *content: Any, response: str | None = "", **f: Any
) -> Record:
    """A fragment of a response; strings are text blocks; `response` is its message id."""
    blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
    message: Record = {"role": "assistant", "model": "claude-demo", "content": blocks}
    if response is not None:
        message["id"] = response or f"msg_{uuid}"
    return row("assistant", uuid, parent, second, message=message, **f)


def call(tool: str, name: str = "Bash", **given: Any) -> Record:
    """A block that calls a tool."""
    return {"type": "tool_use", "id": tool, "name": name, "input": given}


def thought() -> Record:
    """A block of thinking."""
    return {"type": "thinking", "thinking": "note", "signature": "sig"}


def result(uuid: str, parent: str, second: float, tool: str, **fields: Any) -> Record:
    """A record with the result of a tool."""
    content = [{"type": "tool_result", "tool_use_id": tool, "content": "ok"}]
    return user(uuid, parent, second, content, **fields)


def hook(uuid: str, parent: str, second: float) -> Record:
    """The summary that a hook leaves."""
    return row("system", uuid, parent, second, subtype="stop_hook_summary", content="hook ran")


def write(path: Path, records: Iterable[Record | str]) -> Path:
    """Writes a transcript; strings are lines as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in records]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return path


def read(*paths: Path, **options: Any) -> list[ReadSession]:
    """Reads a set of files."""
    return list(ClaudeCodeReader(**options).read(paths))


def read_one(tmp_path: Path, *records: Record | str, **options: Any) -> ReadSession:
    """Reads one transcript that makes one session."""
    [session] = read(write(tmp_path / f"{SESSION}.jsonl", records), **options)
    return session


def edges(*sessions: ReadSession) -> dict[str, str | None]:
    """The DAG: each turn's id and its predecessor's."""
    turns = [turn for session in sessions for turn in session.turns]
    found = {str(turn.turn.id): turn.predecessor for turn in turns}
    assert len(found) == len(turns), "a turn is listed once"
    return found


def said(*sessions: ReadSession, role: str = "user", kind: str = "turn") -> list[str]:
    """The texts of the turns of one role and kind."""
    turns = [turn.turn for session in sessions for turn in session.turns]
    return [str(turn.text) for turn in turns if turn.role == role and turn.kind == kind]
