"""Which nodes of OpenProgram are speech, whose it is, and what kind of turn the others are."""

from __future__ import annotations

from typing import Any

from turnmark_session_store.model import CallerRef, Kind, Role, Speaker, TurnIn
from turnmark_session_store.transcripts.openprogram.nodes import Node

# Names of nodes that record what a model was shown; only a summary stands in the chain as words.
_MACHINERY = "context/"
_SUMMARY = "context/summary"
_SUMMARY_ID = "summary_"
# Rows that the program puts in on its own: results handed back to a chat, and merges of branches.
_OF_THE_PROGRAM = frozenset({"job_followup", "merge_turn"})
# Prompts that nobody typed: due tasks, and what one agent wrote for another.
_PROMPTS = frozenset({"scheduler", "agent_spawn"})
# Whose words the program itself keeps out of its memory.
_OUTSIDERS = frozenset({"mcp_browser"})
_BROKEN = frozenset({"error", "failed", "cancelled", "canceled", "interrupted", "aborted"})
_UNFINISHED = frozenset({"running", "pending", "streaming", "in_progress"})
_ERROR_BODY = "[error]"
# Structured fields that say who may have spoken and by what right; kept beside the turn.
_KEPT = (
    "source",
    "speaker_kind",
    "principal_id",
    "authority_tier",
    "interaction",
    "forked_from",
    "status",
)


def is_machinery(node: Node) -> bool:
    """Tells whether nobody said this and nobody heard it: chains go through it."""
    if node.is_root:
        return True
    return node.name.startswith(_MACHINERY) and node.name != _SUMMARY


def is_pointer(node: Node) -> bool:
    """Tells whether the node only shows where a sub-agent's branch is."""
    return node.said("function") == "attach" or node.name == "attach"


def is_unfinished(node: Node) -> bool:
    """Tells whether the program is still writing this answer, or was stopped while it did."""
    return node.role == "llm" and node.said("status") in _UNFINISHED


def is_rewound(node: Node) -> bool:
    """Tells whether a record says that this was taken back."""
    return bool(node.metadata.get("rewound"))


def turn_of(node: Node, *, caller: CallerRef | None, is_inner: bool) -> TurnIn:
    """Returns the turn that a node is; `is_inner` says that it was said inside a tool."""
    role = _role(node)
    metadata: dict[str, Any] = {"origin": {"file": node.file, "line": 1}}
    metadata |= {key: said for key in _KEPT if (said := node.said(key)) is not None}
    if node.name:
        metadata["tool" if node.role == "code" else "model"] = node.name
    return TurnIn(
        id=node.id,
        role=role,
        kind=_kind(node, role, is_inner=is_inner),
        text=node.text,
        speaker=_speaker(node),
        time=node.time,
        caller=caller,
        metadata=metadata,
    )


def _role(node: Node) -> Role:
    if node.role == "code":
        return "tool"
    if node.is_system:
        return "system"
    return "user" if node.role == "user" else "assistant"


def _kind(node: Node, role: Role, *, is_inner: bool) -> Kind:
    if role == "tool":
        return "tool"
    if node.name == _SUMMARY or node.id.startswith(_SUMMARY_ID):
        return "summary"
    if is_inner or is_pointer(node) or node.said("display") == "runtime":
        return "runtime"
    source = node.said("source")
    if source in _OF_THE_PROGRAM or node.said("authority_tier") in _OUTSIDERS:
        return "runtime"
    if role == "user":
        return "runtime" if source in _PROMPTS or node.is_spawn_root else "turn"
    broken = node.said("status") in _BROKEN or node.text.startswith(_ERROR_BODY)
    return "error" if broken and role == "assistant" else "turn"


def _speaker(node: Node) -> Speaker | None:
    """Returns who spoke, by the structured fields alone: nothing is read out of words."""
    identity = node.said("speaker_id") or node.said("peer_id")
    name = node.said("speaker_display") or node.said("peer_display")
    return Speaker(id=identity, name=name) if identity or name else None
