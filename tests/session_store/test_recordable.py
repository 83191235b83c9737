"""Tests of `session_store/recordable.py`."""

from __future__ import annotations

from typing import get_args

import pytest

from turnmark_session_store.model import ContentPart, Kind, Role
from turnmark_session_store.recordable import (
    RECORDABLE_VERSION,
    is_recordable,
    replace_surrogates,
    text_of,
)

RECORDABLE = {("user", "turn"), ("assistant", "turn")}


@pytest.mark.parametrize("role", get_args(Role))
@pytest.mark.parametrize("kind", get_args(Kind))
def test_only_turns_of_users_and_assistants_are_recordable(role: Role, kind: Kind) -> None:
    """Every other role and every other kind is not memory's business."""
    recordable = is_recordable(role=role, kind=kind, text="我搬到了波尔图。", spawned=False)
    assert recordable is ((role, kind) in RECORDABLE)


@pytest.mark.parametrize("text", ["", " ", "\n\t\u3000"])
def test_blank_text_is_not_recordable(text: str) -> None:
    """A turn without words has nothing to remember; ideographic space is blank as well."""
    assert not is_recordable(role="user", kind="turn", text=text, spawned=False)


def test_the_prompt_of_a_sub_agent_is_not_recordable_and_its_answer_is() -> None:
    """A spawned user's turn was written by an agent; what the sub-agent says is speech."""
    assert not is_recordable(role="user", kind="turn", text="Search.", spawned=True)
    assert is_recordable(role="assistant", kind="turn", text="Found.", spawned=True)


def test_the_predicate_has_a_version() -> None:
    """The store keeps the version beside each answer."""
    assert RECORDABLE_VERSION == 1


def test_text_parts_are_joined_by_a_blank_line_and_others_left_out() -> None:
    """Pictures and empty parts leave no gap."""
    parts = [
        ContentPart(type="text", text="One"),
        ContentPart(type="image", text="not words"),
        ContentPart(type="text"),
        ContentPart(type="text", text="二"),
    ]
    assert text_of(parts) == "One\n\n二"
    assert text_of("as it is") == "as it is"
    assert text_of([]) == ""


def test_lone_surrogates_are_replaced_and_nul_is_kept() -> None:
    """What is stored can be encoded; a whole pair is one character and stays."""
    assert replace_surrogates("a\ud83d b\udc00\x00😀") == "a\ufffd b\ufffd\x00😀"
    assert text_of([ContentPart(type="text", text="\ud83d")]) == "\ufffd"
