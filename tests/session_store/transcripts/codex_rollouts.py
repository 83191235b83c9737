"""Records in the shapes that Codex writes, with made-up words, for tests to assemble."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from session_store.transcripts.json_records import Record, write
from turnmark_session_store.transcripts.codex.reader import CodexReader
from turnmark_session_store.transcripts.reader import ReadSession

_EPOCH_MS = 1_786_269_600_000  # 2026-08-09T10:00:00Z


def at(second: float) -> str:
    """A moment of the morning on which all conversations here take place."""
    minutes, seconds = divmod(second, 60)
    return f"2026-08-09T{10 + int(minutes) // 60:02}:{int(minutes) % 60:02}:{seconds:06.3f}Z"


def uuid7(second: float, number: int) -> str:
    """An id as Codex makes it: time first."""
    time = f"{_EPOCH_MS + round(second * 1000):012x}"
    return f"{time[:8]}-{time[8:]}-7000-8000-{number:012x}"


THREAD, OTHER, THIRD = uuid7(0, 1), uuid7(500, 2), uuid7(900, 3)
T1, T2, T3 = (uuid7(10 * n, 10 + n) for n in (1, 2, 3))
U1, U2, U3 = (uuid7(10 * n + 1, 20 + n) for n in (1, 2, 3))


def rollout_name(thread: str, generation: str | None = None) -> str:
    """A file's name, as in `sessions/2026/08/09`."""
    return f"rollout-2026-08-09T12-00-00-{thread}{f'_{generation}' if generation else ''}.jsonl"


def record(kind: str, second: float, payload: Record, ordinal: int | None = None) -> Record:
    """A record in its envelope; only paginated ones have an ordinal."""
    numbered = {} if ordinal is None else {"ordinal": ordinal}
    return {"timestamp": at(second), **numbered, "type": kind, "payload": payload}


def meta(
    thread: str = THREAD, second: float = 0, *, ordinal: int | None = None, **f: Any
) -> Record:
    """The first record of a file."""
    payload: Record = {
        "session_id": thread,
        "id": thread,
        "timestamp": at(second),
        "cwd": "/home/robin/demo",
        "originator": "codex-tui",
        "cli_version": "0.169.0",
        "source": "cli",
        "history_mode": "legacy" if ordinal is None else "paginated",
        **f,
    }
    return record("session_meta", second, payload, ordinal)


def event(kind: str, /, second: float, ordinal: int | None = None, **fields: Any) -> Record:
    """What the user interface was told."""
    return record("event_msg", second, {"type": kind, **fields}, ordinal)


def started(turn: str, second: float, ordinal: int | None = None, **attribution: Any) -> Record:
    """An exchange begins."""
    told: Record = {"turn_id": turn}
    if attribution:
        told["turn_attribution"] = {"turn_id": turn, **attribution}
    return event("task_started", second, ordinal, **told)


def typed(words: str, second: float, **fields: Any) -> Record:
    """What a person typed, as the old event."""
    return event("user_message", second, message=words, images=[], **fields)


def told(words: str, second: float, **fields: Any) -> Record:
    """What the model said, as the old event."""
    return event("agent_message", second, message=words, **fields)


def item(kind: str, key: str, turn: str, second: float, *texts: str, **fields: Any) -> Record:
    """A completed item."""
    content = [{"type": "text" if kind == "UserMessage" else "Text", "text": t} for t in texts]
    more = {name: fields.pop(name) for name in ("ordinal", "thread_id") if name in fields}
    completed = {"type": kind, "id": key, "content": content, **fields}
    return event("item_completed", second, turn_id=turn, item=completed, **more)


def response(role: str, second: float, *texts: str, **fields: Any) -> Record:
    """What the model was shown, or said to the program."""
    block = "output_text" if role == "assistant" else "input_text"
    content = [{"type": block, "text": text} for text in texts]
    ordinal = fields.pop("ordinal", None)
    payload = {"type": "message", "role": role, "content": content, **fields}
    return record("response_item", second, payload, ordinal)


TALK = (
    meta(),
    started(T1, 10),
    typed("I live in Bergen.", 11),
    told("Noted.", 12),
    started(T2, 20),
    typed("我喜欢咖啡。", 21),
    told("好的。", 22),
)
"""A short conversation of the old kind."""


def read(*paths: Path, **options: Any) -> list[ReadSession]:
    """Reads a set of files."""
    return list(CodexReader(**options).read(paths))


def read_one(tmp_path: Path, *records: Record | str, **options: Any) -> ReadSession:
    """Reads one rollout that makes one session."""
    [session] = read(write(tmp_path / rollout_name(THREAD), records), **options)
    return session


def said(*sessions: ReadSession, role: str = "user", kind: str = "turn") -> list[str]:
    """The texts of the turns of one role and kind."""
    turns = [turn.turn for session in sessions for turn in session.turns]
    return [str(turn.text) for turn in turns if turn.role == role and turn.kind == kind]


def texts_of(sessions: Iterable[ReadSession]) -> dict[str, str]:
    """What each turn says, by its id."""
    return {str(t.turn.id): str(t.turn.text) for one in sessions for t in one.turns}


def edges(*sessions: ReadSession) -> dict[str, str | None]:
    """The DAG by its texts, which must differ: what each turn says, and what its predecessor."""
    turns = [turn for session in sessions for turn in session.turns]
    texts = texts_of(sessions)
    assert len(texts) == len(turns), "a turn is listed once"
    found = {str(t.turn.text): texts[t.predecessor] if t.predecessor else None for t in turns}
    assert len(found) == len(turns), "texts are told apart"
    return found
