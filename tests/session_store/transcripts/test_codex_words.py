"""Tests of `session_store/transcripts/codex/words.py`: whose words are whose."""

from __future__ import annotations

import pytest

from turnmark_session_store.transcripts.codex.words import parts_of, spoken_words, typed_words

NOISE = [
    "# AGENTS.md instructions for /home/robin\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
    "<user_instructions>\nUse tabs.\n</user_instructions>",
    "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>",
    "<skill>\n<name>x</name>\n</skill>",
    "<user_shell_command>\n<command>ls</command>\n</user_shell_command>",
    "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
    "<subagent_notification>\n{}\n</subagent_notification>",
    '<codex_internal_context source="goal">Go on.</codex_internal_context>',
    "<goal_context>Go on.</goal_context>",
    "<recommended_plugins>x</recommended_plugins>",
    '<hook_prompt hook_run_id="1">Mind.</hook_prompt>',
    "<external_agent_note>x</external_agent_note>",
    "<user_action>review</user_action>",
    "Warning: apply_patch was requested via exec_command. Use the tool.",
    "Warning: The maximum number of unified exec processes is 60.",
    "<image name=[Image #1]>",
    "</image>",
    "gAAAAABmV3k2b2Rpbmcgb2YgYSBzZWNyZXQgdG9rZW4=",
    "  \n",
]


@pytest.mark.parametrize("text", NOISE)
def test_what_the_harness_wrote_is_no_persons(text: str) -> None:
    """Alone, as a part of a message, and in front of words that share the part."""
    assert typed_words([text]) == ""
    assert typed_words([text, "住在卑尔根。"]) == "住在卑尔根。"


@pytest.mark.parametrize("text", [text for text in NOISE if "</" in text[1:]])
def test_words_behind_a_wrapper_are_kept(text: str) -> None:
    """Several may stand in front of them."""
    assert typed_words([f"{text}\n{text}\n\nI live in Bergen."]) == "I live in Bergen."


@pytest.mark.parametrize(
    "text",
    [
        "What is <environment_context> for?",
        "Why does it say <skill>x</skill>?",
        "<environment_context> is never closed",
        "<skills>x</skills>",
        "# AGENTS.md instructions are too long",
        "Warning: the maximum is 60.",
        "# Context from my IDE setup: what is that?",
        "gAAAAA is what all of them begin with, isn't it?",
        "  indented\n",
    ],
)
def test_a_person_who_quotes_keeps_the_sentence(text: str) -> None:
    """Word for word."""
    assert typed_words([text]) == text


def test_what_an_editor_adds_is_cut() -> None:
    """The request stands below it."""
    context = "# Context from my IDE setup:\n\n## Active file: a.py\n\n"
    text = f"{context}## My request for Codex:\nFix it.\n"
    assert typed_words([text]) == "Fix it.\n"


def test_parts_are_joined_by_a_blank_line() -> None:
    """Those that are text."""
    blocks = [{"type": "text", "text": "One"}, {"type": "image"}, 7, {"type": "Text", "text": "二"}]
    assert typed_words(parts_of(blocks)) == "One\n\n二"
    assert parts_of("plain") == ["plain"]
    assert parts_of({"text": "x"}) == []


def test_what_the_model_said_is_kept_as_it_is() -> None:
    """Only what can't be read is none."""
    assert spoken_words(["<skill>x</skill>", " "]) == "<skill>x</skill>"
    assert spoken_words(["gAAAAABmV3k2b2Rpbmcgb2YgYSBzZWNyZXQgdG9rZW4="]) == ""
