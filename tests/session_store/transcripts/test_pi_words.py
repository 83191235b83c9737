"""Tests of `session_store/transcripts/pi/words.py`: what a person typed, and what they did not."""

from __future__ import annotations

import pytest

from turnmark_session_store.transcripts.pi.words import text_in, without_wrappers

SKILL = '<skill name="ferry" location="/s/SKILL.md">\nReferences are relative to /s.\n\nx\n</skill>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I live in Bergen.", "I live in Bergen."),
        ('<file name="/a.md">\n# 笔记\n</file>\nWhat is this?', "What is this?"),
        ('<file name="/a.png"></file>\nWhat is this?', "What is this?"),
        (f"{SKILL}\n\nto Stavanger", "to Stavanger"),
        (f'<file name="/a">\nx\n</file>\n{SKILL}\n\nHi', "Hi"),
        (SKILL, ""),
        (f"What does {SKILL} mean?", f"What does {SKILL} mean?"),
        ('<file name="/a">\nnot closed', '<file name="/a">\nnot closed'),
        ("<file>x</file> is what I typed", "<file>x</file> is what I typed"),
    ],
)
def test_wrappers_are_cut_in_front_and_only_whole(text: str, words: str) -> None:
    """A person who quotes one keeps it."""
    assert without_wrappers(text) == words


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ([{"type": "text", "text": "Hi"}, {"type": "text", "text": " "}], "Hi"),
        ([{"type": "text", "text": "一"}, 7, None, {"type": "text", "text": "二"}], "一\n\n二"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "toolCall", "name": "ls"}], ""),
        ([{"type": "text", "text": 7}, {"type": "text"}], ""),
        (None, ""),
        (7, ""),
    ],
)
def test_text_is_that_of_text_blocks_alone(content: object, text: str) -> None:
    """Whatever stands beside them."""
    assert text_in({"content": content}) == text
