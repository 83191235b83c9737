"""Records in the shapes that pi writes, with made-up words, for tests to assemble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from session_store.transcripts.json_records import Record
from turnmark_session_store.transcripts.pi.entries import EntryTree, TreeTurn, read_entry

_EPOCH_MS = 1_786_269_600_000  # 2026-08-09T10:00:00Z
SESSION, OTHER, THIRD = (f"01a2290c-500e-749c-b70a-{number:012x}" for number in (1, 2, 3))


def ms(second: float) -> int:
    """A moment of the morning on which all conversations here take place, in ms since 1970."""
    return _EPOCH_MS + round(second * 1000)


def at(second: float) -> str:
    """The same as text."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms(second))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def file_name(session: str = SESSION, second: float = 0) -> str:
    """A transcript's name, as below `sessions/--home-robin-demo--`."""
    return f"{at(second).replace(':', '-').replace('.', '-')}_{session}.jsonl"


def header(session: str = SESSION, second: float = 0, **fields: Any) -> Record:
    """The first record of a file of version 3."""
    made = {"type": "session", "version": 3, "id": session, "timestamp": at(second)}
    return {**made, "cwd": "/home/robin/demo", **fields}


def entry(kind: str, key: str, parent: str | None, second: float, **fields: Any) -> Record:
    """An entry of the tree."""
    return {"type": kind, "id": key, "parentId": parent, "timestamp": at(second), **fields}


def message(role: str, content: Any, second: float, **fields: Any) -> Record:
    """What an entry of type `message` holds."""
    return {"role": role, "content": content, "timestamp": ms(second), **fields}


def user(key: str, parent: str | None, words: Any, second: float, **fields: Any) -> Record:
    """What a person typed."""
    content = [{"type": "text", "text": words}] if isinstance(words, str) else words
    return entry("message", key, parent, second, message=message("user", content, second, **fields))


def answer(key: str, parent: str | None, words: Any, second: float, **fields: Any) -> Record:
    """What the model said."""
    content = [{"type": "text", "text": words}] if isinstance(words, str) else words
    more = {"model": "faux-1", "stopReason": "stop", **fields}
    said = message("assistant", content, second, **more)
    return entry("message", key, parent, second, message=said)


TALK = (
    header(),
    user("aaaa0001", None, "I live in Bergen.", 1),
    answer("aaaa0002", "aaaa0001", "Noted.", 2),
    user("aaaa0003", "aaaa0002", "我喜欢咖啡。", 3),
    answer("aaaa0004", "aaaa0003", "好的。", 4),
)
"""A short conversation."""


def tool(key: str, parent: str | None, second: float) -> Record:
    """What a tool gave back."""
    content = [{"type": "text", "text": "README.md"}]
    gave = message("toolResult", content, second, toolCallId="call_1", toolName="bash")
    return entry("message", key, parent, second, message=gave)


def without_ids(record: Record) -> Record:
    """The record as the first version wrote it."""
    return {name: value for name, value in record.items() if name not in ("id", "parentId")}


def given_ids(records: Iterable[Record], ids: Iterable[str]) -> list[Record]:
    """Records of the first version as the program writes them anew: in place, behind the rest."""
    found: list[Record] = []
    parent: str | None = None
    for record, key in zip(records, ids, strict=True):
        found.append({**record, "id": key, "parentId": parent})
        parent = key
    return found


def tree_of(*records: Record, session: str | None = SESSION) -> EntryTree:
    """The tree of some entries, a line each from the second."""
    tree = EntryTree(session=session)
    for line, record in enumerate(records, 2):
        found = read_entry(record, line)
        if found is not None:
            tree.add(found)
    return tree


def edges_in(turns: Mapping[str, TreeTurn]) -> dict[str, str | None]:
    """What each turn says, and what the one before it."""
    return {
        turn.words.text: turns[turn.predecessor].words.text if turn.predecessor else None
        for turn in turns.values()
    }
