"""One node of an OpenProgram session: its file read, its fields of the types that they should have.

A session keeps a JSON file for each node, replaced whole when something about it changes. What can
stand in one is taken field by field, and what is of another type is as if it were not there; only a
node without an id or of an unknown role is none.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from turnmark_session_store.recordable import replace_surrogates
from turnmark_session_store.transcripts.fields import count_at, mapping_at, string_at
from turnmark_session_store.transcripts.json_lines import parse_line, unreadable
from turnmark_session_store.transcripts.moments import moment_ms, written_time

NodeRole = Literal["user", "llm", "code"]

# What older builds, and rows as the program shows them to its own clients, call the same roles.
_ROLES: dict[str, NodeRole] = {
    "user": "user",
    "llm": "llm",
    "assistant": "llm",
    "system": "llm",
    "code": "code",
    "tool": "code",
}
_ROOT = "ROOT"
_NUMBER = re.compile(r"(\d+)-")
_LARGEST = 2**63
# As long as an id may be in the store.
_ID_LIMIT_BYTES = 512
# An answer of a tool may be a whole file; what was said is never cut.
_TOOL_TEXT_CHARACTERS = 20_000


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node as far as it is understood; edges are None where they name nothing or the root.

    `place` orders nodes as they were made: by `seq`, and by time and name where that is no help.
    `role` is the stored one; `is_system` says that the words are the program's own prompt.
    """

    id: str
    file: str
    place: tuple[float, float, str]
    role: NodeRole
    is_system: bool
    name: str
    text: str
    time: str | None
    predecessor: str | None
    caller: str | None
    metadata: Mapping[str, Any]

    def said(self, key: str) -> str | None:
        """Returns the string at a key of the metadata."""
        return string_at(self.metadata, key)

    @property
    def is_root(self) -> bool:
        """Whether it is the point that all chains hang from, which nobody said."""
        return self.id == _ROOT or self.said("display") == "root"

    @property
    def is_spawn_root(self) -> bool:
        """Whether a sub-agent's branch begins with it."""
        marked = bool(self.metadata.get("spawn_branch_root"))
        return marked or (self.role == "user" and self.said("source") == "agent_spawn")


def read_node(path: Path) -> Node | str:
    """Returns the node in a file, or why there is none, as the end of a sentence.

    Raises:
        Unavailable: if the file can't be read.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return "was taken away while its session was read"
    except OSError as error:
        raise unreadable(path, error) from error
    return parse_node(content, path.name)


def parse_node(content: bytes, file: str) -> Node | str:
    """Returns the node that `content` holds, or why it holds none; `file` is its name."""
    record = parse_object(content)
    if record is None:
        return "is no JSON object"
    key, role = string_at(record, "id"), string_at(record, "role")
    if key is None or not _can_be_id(key):
        return "names no id"
    if role not in _ROLES:
        return "is of no known role"
    metadata = mapping_at(record, "metadata")
    known = _ROLES[role]
    return Node(
        id=key,
        file=replace_surrogates(file),
        place=_place(record, file),
        role=known,
        is_system=known == "llm" and "system" in (role, metadata.get("role")),
        name=string_at(record, "name") or "",
        text=_text(record, known),
        time=_time(record.get("created_at")),
        predecessor=_edge(record, metadata, "predecessor"),
        caller=_edge(record, metadata, "caller"),
        metadata=metadata,
    )


def parse_object(content: bytes) -> Mapping[str, Any] | None:
    """Returns the JSON object that `content` is, None if it is none; bad text spoils no more."""
    parsed = parse_line(content)
    return parsed if isinstance(parsed, dict) else None


def _can_be_id(key: str) -> bool:
    return key.isprintable() and len(key.encode()) <= _ID_LIMIT_BYTES


def _place(record: Mapping[str, Any], file: str) -> tuple[float, float, str]:
    """Returns where a node stands; names are padded for numbers of four digits only."""
    number = count_at(record, "seq")
    if number is None:
        named = _NUMBER.match(file)
        number = int(named[1]) if named else None
    made = record.get("created_at")
    at = made if isinstance(made, int | float) and abs(made) < _LARGEST else 0
    # A number of a thousand digits is none that a node can have.
    place = float(number) if number is not None and number < _LARGEST else math.inf
    return (place, float(at), file)


def _edge(record: Mapping[str, Any], metadata: Mapping[str, Any], key: str) -> str | None:
    named = string_at(record, key) or string_at(metadata, key)
    return None if named == _ROOT else named


def _time(made: Any) -> str | None:
    """Returns seconds since 1970, or a written time, as RFC 3339."""
    return written_time(moment_ms(made, seconds=True))


def _text(record: Mapping[str, Any], role: NodeRole) -> str:
    said: Any = record.get("output")
    if said is None and role == "user":
        said = record.get("input")
    if role == "code":
        return _written(said)[:_TOOL_TEXT_CHARACTERS]
    if isinstance(said, list):
        said = _joined(cast("Sequence[Any]", said))
    return said if isinstance(said, str) else ""


def _written(answer: Any) -> str:
    """Returns a tool's answer as text; empty where there is none, or none that can be written."""
    if answer is None or isinstance(answer, str):
        return answer or ""
    try:
        return json.dumps(answer, ensure_ascii=False)
    except RecursionError:
        return ""


def _joined(parts: Sequence[Any]) -> str:
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            one = cast("Mapping[str, Any]", part)
            if one.get("type", "text") == "text":
                texts.append(string_at(one, "text") or "")
    return "\n".join(text for text in texts if text)
