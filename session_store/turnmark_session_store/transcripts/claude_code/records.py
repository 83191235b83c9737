"""One record of a Claude Code transcript, reduced to what the graph of turns needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from turnmark_session_store.model import Kind, Role
from turnmark_session_store.transcripts.claude_code.words import (
    command_prose,
    has_block,
    is_harness_text,
    is_no_words,
    is_other_author,
    words_of,
)
from turnmark_session_store.transcripts.fields import (
    list_at,
    mapping_at,
    mappings_in,
    normal_time,
    string_at,
)

_CHAIN_TYPES = ("user", "assistant", "system", "attachment", "progress")
_SYNTHETIC = "<synthetic>"
# What the program notes once an answer has been given.
_CLOSING_SUBTYPES = ("stop_hook_summary", "turn_duration")


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What a record says as a turn: `text` may be empty where a person sent only a picture."""

    role: Role
    kind: Kind
    text: str
    cancelled: bool = False


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a tool; `prompt` is the task where the call spawns a sub-agent."""

    id: str
    prompt: str | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A record that takes part in the chain of parents.

    `words` is None for a record that only carries the chain. `opens` says that the record is a
    prompt, behind which something new begins; `harness` that the program wrote it between the
    fragments of a response or after it. `copy_of` names the record that a fork copied.
    `response` is the API response of which an assistant's record is a fragment; `closes` says that
    the record is known to be the last word of one.
    """

    uuid: str
    parent: str | None
    file: str
    line: int
    session: str
    sidechain: bool
    agent_id: str | None
    time: str
    words: Words | None
    opens: bool
    harness: bool
    copy_of: str | None
    copy_of_session: str | None
    response: str | None
    closes: bool
    model: str | None
    cwd: str | None
    tool_uses: tuple[ToolUse, ...]
    tool_results: tuple[str, ...]
    spawned_agent: str | None
    spawned_by_tool: str | None
    retracts: tuple[str, ...]


def read_row(
    record: Mapping[str, Any], *, file: str, line: int, session: str, time: str
) -> Row | None:
    """Returns the row of a record, or None if the record is no part of the chain.

    `session` and `time` stand in where the record has none of its own.
    """
    uuid, kind = string_at(record, "uuid"), record.get("type")
    if uuid is None or (kind not in _CHAIN_TYPES and "parentUuid" not in record):
        return None
    message = mapping_at(record, "message")
    content = message.get("content")
    copied = mapping_at(record, "forkedFrom")
    copy_of = string_at(copied, "messageUuid")
    is_prompt_row = kind == "user" and not has_block(content, "tool_result")
    spawned_agent, spawned_by = _spawned(record)
    return Row(
        uuid=uuid,
        parent=string_at(record, "parentUuid"),
        file=file,
        line=line,
        session=string_at(record, "sessionId") or session,
        sidechain=record.get("isSidechain") is True,
        agent_id=string_at(record, "agentId"),
        time=normal_time(record.get("timestamp")) or time,
        words=_words(record, content),
        opens=is_prompt_row and not record.get("isMeta") and not record.get("isCompactSummary"),
        harness=kind != "assistant" and not (is_prompt_row and not record.get("isMeta")),
        copy_of=copy_of if copy_of != uuid else None,
        copy_of_session=string_at(copied, "sessionId"),
        response=_response(record, message) if kind == "assistant" else None,
        closes=_closes(record, message),
        model=string_at(message, "model"),
        cwd=string_at(record, "cwd"),
        tool_uses=_tool_uses(content) if kind == "assistant" else (),
        tool_results=_tool_results(content) if kind == "user" else (),
        spawned_agent=spawned_agent,
        spawned_by_tool=spawned_by,
        retracts=(*_strings(record, "retractedMessageUuids"), *_strings(record, "supersedesUuids")),
    )


def _words(record: Mapping[str, Any], content: Any) -> Words | None:
    kind = record.get("type")
    if kind == "user":
        return _user_words(record, content)
    if kind == "assistant":
        return _assistant_words(record, content)
    if kind == "attachment":
        return _queued_words(record)
    return None


def _user_words(record: Mapping[str, Any], content: Any) -> Words | None:
    text = words_of(content)
    if has_block(content, "tool_result"):
        return None
    if record.get("isCompactSummary"):
        return Words(role="user", kind="summary", text=text) if text.strip() else None
    by_program = any(record.get(field) for field in ("isMeta", "isVisibleInTranscriptOnly"))
    if by_program or is_other_author(record) or record.get("isSidechain") is True:
        return Words(role="user", kind="runtime", text=text) if text.strip() else None
    return _typed_words(text, pictured=has_block(content, "image"))


def _typed_words(text: str, *, pictured: bool) -> Words | None:
    """Returns what a person typed; a picture without words stays as a turn with empty text."""
    prose = command_prose(text)
    if prose is not None:
        return Words(role="user", kind="turn", text=prose)
    if is_harness_text(text):
        return Words(role="user", kind="runtime", text=text)
    return Words(role="user", kind="turn", text=text) if text.strip() or pictured else None


def _assistant_words(record: Mapping[str, Any], content: Any) -> Words | None:
    text = words_of(content)
    if is_no_words(text):
        return None
    message = mapping_at(record, "message")
    if record.get("isApiErrorMessage") or message.get("model") == _SYNTHETIC:
        return Words(role="assistant", kind="error", text=text)
    if record.get("isAbortedMidStream"):
        # Not `partial`: a partial can be nobody's predecessor, and the chain goes on behind it.
        return Words(role="assistant", kind="runtime", text=text, cancelled=True)
    return Words(role="assistant", kind="turn", text=text)


def _queued_words(record: Mapping[str, Any]) -> Words | None:
    """Returns the prompt that was typed while a tool ran, and stands in an attachment."""
    attachment = mapping_at(record, "attachment")
    if attachment.get("type") != "queued_command":
        return None
    prompt = attachment.get("prompt")
    text = words_of(prompt)
    mode = attachment.get("commandMode")
    by_program = (
        any(source.get("isMeta") or is_other_author(source) for source in (record, attachment))
        or record.get("isSidechain") is True
        or (isinstance(mode, str) and mode != "prompt")
    )
    if by_program:
        return Words(role="user", kind="runtime", text=text) if text.strip() else None
    return _typed_words(text, pictured=has_block(prompt, "image"))


def _response(record: Mapping[str, Any], message: Mapping[str, Any]) -> str | None:
    message_id = string_at(message, "id")
    return f"{message_id} {record.get('requestId') or ''}" if message_id else None


def _closes(record: Mapping[str, Any], message: Mapping[str, Any]) -> bool:
    if record.get("type") == "assistant":
        return string_at(message, "stop_reason") is not None
    return record.get("type") == "system" and record.get("subtype") in _CLOSING_SUBTYPES


def _tool_uses(content: Any) -> tuple[ToolUse, ...]:
    return tuple(
        ToolUse(id=string_at(use, "id") or "", prompt=string_at(mapping_at(use, "input"), "prompt"))
        for use in mappings_in(content)
        if use.get("type") == "tool_use"
    )


def _tool_results(content: Any) -> tuple[str, ...]:
    ids = (
        string_at(block, "tool_use_id")
        for block in mappings_in(content)
        if block.get("type") == "tool_result"
    )
    return tuple(tool_id for tool_id in ids if tool_id)


def _spawned(record: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Returns the sub-agent that a record speaks of, and the call that spawned it."""
    progress = mapping_at(record, "data")
    if progress.get("type") == "agent_progress":
        return string_at(progress, "agentId"), string_at(record, "parentToolUseID")
    return string_at(mapping_at(record, "toolUseResult"), "agentId"), None


def _strings(record: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(item for item in list_at(record, key) if isinstance(item, str))
